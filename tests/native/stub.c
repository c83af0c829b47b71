/* A library that only fails: rlx_program_load ends in the status written in the path ("5"), with texts from the
 * path, so that the client's side of every status can be seen. Built by conftest.py in several bad shapes. */
#include "rlx.h"

#include <stdlib.h>

#ifndef STUB_ABI
#define STUB_ABI RLX_ABI_VERSION
#endif

struct rlx_error { int32_t code; };
static int64_t live;

int32_t rlx_abi_version(void) { return STUB_ABI; }
const char *rlx_version(void) { return "stub"; }
int32_t rlx_error_code(const rlx_error *error) { return error ? error->code : 0; }
const char *rlx_error_message(const rlx_error *error) { return error ? "the message" : ""; }
const char *rlx_error_detail(const rlx_error *error) { return error && error->code % 2 ? "the detail" : ""; }
const char *rlx_error_subject(const rlx_error *error) { return error ? "the subject" : ""; }
void rlx_error_destroy(rlx_error *error) { if (error) live -= 1; free(error); }
int64_t rlx_live_handles(void) { return live; }
const char *rlx_isa(void) { return "none"; }
void rlx_set_interrupt(int32_t (*ask)(void), uint64_t thread) { (void)ask, (void)thread; }

static rlx_status fail(int32_t code, rlx_error **error) {
    if (error && code) {
        *error = malloc(sizeof **error);
        (*error)->code = code;
        live += 1;
    }
    return (rlx_status)code;
}

/* "-5" is status 5 without an error object. */
rlx_status rlx_program_load(const char *path, const char *function, rlx_program **out, rlx_error **error) {
    (void)function, (void)out;
    int32_t code = atoi(path);
    return code < 0 ? (rlx_status)-code : fail(code, error);
}
rlx_status rlx_program_load_memory(
    const void *model, size_t model_size, const void *weights, size_t weights_size,
    const char *function, rlx_program **out, rlx_error **error) {
    (void)model, (void)model_size, (void)weights, (void)weights_size, (void)function, (void)out;
    return fail(RLX_STATUS_UNSUPPORTED, error);
}
rlx_status rlx_device_check(int32_t device, rlx_error **error) {
    (void)device;
    return fail(RLX_STATUS_UNAVAILABLE, error);
}
int64_t rlx_program_feature_count(const rlx_program *program, int32_t kind) { (void)program, (void)kind; return 0; }
rlx_status rlx_program_feature(
    const rlx_program *program, int32_t kind, int64_t index, rlx_feature *out, rlx_error **error) {
    (void)program, (void)kind, (void)index, (void)out;
    return fail(RLX_STATUS_NOT_FOUND, error);
}
void rlx_program_destroy(rlx_program *program) { (void)program; }
rlx_status rlx_store_create(rlx_store **out, rlx_error **error) {
    (void)out;
    return fail(RLX_STATUS_OUT_OF_MEMORY, error);
}
rlx_status rlx_store_put(rlx_store *store, const char *name, const rlx_tensor *value, rlx_error **error) {
    (void)store, (void)name, (void)value;
    return fail(RLX_STATUS_BAD_SHAPE, error);
}
rlx_status rlx_store_get(rlx_store *store, const char *name, rlx_tensor *out, rlx_error **error) {
    (void)store, (void)name, (void)out;
    return fail(RLX_STATUS_BAD_SHAPE, error);
}
void rlx_store_destroy(rlx_store *store) { (void)store; }
rlx_status rlx_session_create(
    const rlx_program *program, rlx_store *store, const rlx_session_options *options,
    rlx_session **out, rlx_error **error) {
    (void)program, (void)store, (void)options, (void)out;
    return fail(RLX_STATUS_UNSUPPORTED, error);
}
rlx_status rlx_session_buffer(rlx_session *session, const char *name, rlx_tensor *out, rlx_error **error) {
    (void)session, (void)name, (void)out;
    return fail(RLX_STATUS_NOT_FOUND, error);
}
#ifndef STUB_WITHOUT_RUN
rlx_status rlx_session_run(rlx_session *session, rlx_error **error) {
    (void)session;
    return fail(RLX_STATUS_BAD_FEED, error);
}
#endif
rlx_status rlx_session_run_feeds(
    rlx_session *session, const rlx_feed *feeds, size_t feed_count, rlx_error **error) {
    (void)session, (void)feeds, (void)feed_count;
    return fail(RLX_STATUS_BAD_FEED, error);
}
rlx_status rlx_session_run_lent(
    rlx_session *session, const rlx_feed *feeds, size_t feed_count, const rlx_target *targets, size_t target_count,
    rlx_error **error) {
    (void)session, (void)feeds, (void)feed_count, (void)targets, (void)target_count;
    return fail(RLX_STATUS_BAD_FEED, error);
}
rlx_status rlx_session_run_steps(
    rlx_session *session, const rlx_steps *steps, int64_t *done, rlx_error **error) {
    (void)session, (void)steps, (void)done;
    return fail(RLX_STATUS_BAD_FEED, error);
}
rlx_status rlx_session_get_statistics(rlx_session *session, rlx_session_statistics *out, rlx_error **error) {
    (void)session, (void)out;
    return fail(RLX_STATUS_INTERNAL, error);
}
void rlx_session_destroy(rlx_session *session) { (void)session; }

rlx_status rlx_update_run(
    const void *model, size_t model_size, const rlx_column *columns, size_t column_count,
    const rlx_update_options *options, rlx_update **out, rlx_error **error) {
    (void)model, (void)model_size, (void)columns, (void)column_count, (void)options, (void)out;
    return fail(RLX_STATUS_UNAVAILABLE, error);
}
int64_t rlx_update_loss_count(const rlx_update *update) { (void)update; return 0; }
rlx_status rlx_update_get_losses(const rlx_update *update, double *out, int64_t count, rlx_error **error) {
    (void)update, (void)out, (void)count;
    return fail(RLX_STATUS_BAD_SHAPE, error);
}
rlx_status rlx_update_get_parameter(
    const rlx_update *update, const char *layer, int32_t kind, rlx_tensor *out, rlx_error **error) {
    (void)update, (void)layer, (void)kind, (void)out;
    return fail(RLX_STATUS_NOT_FOUND, error);
}
void rlx_update_destroy(rlx_update *update) { (void)update; }

rlx_status rlx_model_load(
    const char *path, const char *function, const rlx_model_options *options, rlx_model **out, rlx_error **error) {
    (void)path, (void)function, (void)options, (void)out;
    return fail(RLX_STATUS_IO, error);
}
const char *rlx_model_interface(const rlx_model *model) { (void)model; return "{}"; }
rlx_status rlx_model_predict(
    const rlx_model *model, rlx_state *state, const char *const *names, const rlx_tensor *values, size_t count,
    rlx_results **out, rlx_error **error) {
    (void)model, (void)state, (void)names, (void)values, (void)count, (void)out;
    return fail(RLX_STATUS_BAD_FEED, error);
}
rlx_status rlx_model_profile(
    const rlx_model *model, const char *const *names, const rlx_tensor *values, size_t count, int64_t runs,
    rlx_text **out, rlx_error **error) {
    (void)model, (void)names, (void)values, (void)count, (void)runs, (void)out;
    return fail(RLX_STATUS_BAD_FEED, error);
}
const char *rlx_text_get(const rlx_text *text) { (void)text; return ""; }
void rlx_text_destroy(rlx_text *text) { (void)text; }
void rlx_model_destroy(rlx_model *model) { (void)model; }
int64_t rlx_results_count(const rlx_results *results) { (void)results; return 0; }
rlx_status rlx_results_get(const rlx_results *results, int64_t index, rlx_result *out, rlx_error **error) {
    (void)results, (void)index, (void)out;
    return fail(RLX_STATUS_NOT_FOUND, error);
}
void rlx_results_destroy(rlx_results *results) { (void)results; }
rlx_status rlx_state_create(const rlx_model *model, rlx_state **out, rlx_error **error) {
    (void)model, (void)out;
    return fail(RLX_STATUS_INTERNAL, error);
}
rlx_status rlx_state_put(rlx_state *state, const char *name, const rlx_tensor *value, rlx_error **error) {
    (void)state, (void)name, (void)value;
    return fail(RLX_STATUS_NOT_FOUND, error);
}
rlx_status rlx_state_get(const rlx_state *state, const char *name, rlx_tensor *out, rlx_error **error) {
    (void)state, (void)name, (void)out;
    return fail(RLX_STATUS_NOT_FOUND, error);
}
void rlx_state_destroy(rlx_state *state) { (void)state; }
rlx_status rlx_placement_load(
    const char *path, const char *function, int32_t units, rlx_placement **out, rlx_error **error) {
    (void)path, (void)function, (void)units, (void)out;
    return fail(RLX_STATUS_UNAVAILABLE, error);
}
const char *rlx_placement_json(const rlx_placement *placement) { (void)placement; return "{}"; }
void rlx_placement_destroy(rlx_placement *placement) { (void)placement; }

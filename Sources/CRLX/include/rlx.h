/* rlx.h - the C ABI of rlx_swift, and the only declaration of it.
 *
 * Swift implements these functions (Sources/RLXBridge), Python reads the part between the two
 * RLX_DECLARATIONS markers with cffi; the C compiler reads all of it.
 *
 * Rules that hold everywhere
 *   status    Every function that can fail returns an rlx_status and takes a trailing rlx_error **, which
 *             may be NULL. On failure *error is set to an object that the caller destroys; on success it
 *             is left alone.
 *   handles   Opaque and typed. `create`/`load` gives one reference, `destroy` takes it back; destroying
 *             NULL is a no-op. A handle may be used from any thread; calls on one session are serialised.
 *   buffers   Borrowed for the length of the call, except those that rlx_session_buffer hands out: they
 *             live as long as the session.
 *   strings   UTF-8, NUL-terminated, owned by the handle they came from.
 *   names     Inputs and outputs are bound by name, never by order.
 *   structs   Passed by pointer; `size` is sizeof the struct as the caller knows it.
 */
#ifndef RLX_H
#define RLX_H

#include <stddef.h>
#include <stdint.h>

#if defined(__clang__)
#define RLX_NULLABLE _Nullable
#define RLX_NONNULL _Nonnull
#else
#define RLX_NULLABLE
#define RLX_NONNULL
#endif

/* Raised when a struct, a signature or a meaning changes or a symbol goes; adding is free. */
#define RLX_ABI_VERSION 2

#ifdef __cplusplus
extern "C" {
#endif

/* RLX_DECLARATIONS_BEGIN */

typedef enum rlx_status {
    RLX_STATUS_OK = 0,
    RLX_STATUS_INVALID_ARGUMENT = 1, /* a NULL where none may be, a closed handle, a contradiction */
    RLX_STATUS_BAD_SHAPE = 2,        /* shape or strides do not fit the feature */
    RLX_STATUS_BAD_DTYPE = 3,        /* element type does not fit the feature */
    RLX_STATUS_NOT_FOUND = 4,        /* no feature, tensor or function of that name */
    RLX_STATUS_BAD_PACKAGE = 5,      /* not a Core ML package, truncated, or inconsistent */
    RLX_STATUS_UNSUPPORTED = 6,      /* a valid program with an op or feature that we do not have */
    RLX_STATUS_BAD_FEED = 7,         /* an id or label outside its range; nothing was changed */
    RLX_STATUS_IO = 8,               /* the operating system refused to read or write */
    RLX_STATUS_OUT_OF_MEMORY = 9,
    RLX_STATUS_UNAVAILABLE = 10,     /* the device is not present on this system */
    RLX_STATUS_INTERNAL = 11,        /* a fault of ours */
    RLX_STATUS_TIME_LIMIT = 12,      /* a prediction was given up after the time that it was allowed */
    RLX_STATUS_INTERRUPTED = 13,     /* the call was asked to stop; nothing was changed */
    RLX_STATUS_BUSY = 14             /* a call from inside of `ask` that would have to wait for another one */
} rlx_status;

/* Values are those of MIL's DataType. Programs and sessions take bool, f16, f32 and i32; models take all. */
typedef enum rlx_dtype {
    RLX_DTYPE_BOOL = 1,
    RLX_DTYPE_F16 = 10,
    RLX_DTYPE_F32 = 11,
    RLX_DTYPE_I8 = 21,
    RLX_DTYPE_I16 = 22,
    RLX_DTYPE_I32 = 23,
    RLX_DTYPE_U8 = 31,
    RLX_DTYPE_U16 = 32
} rlx_dtype;

typedef enum rlx_device { RLX_DEVICE_CPU = 0, RLX_DEVICE_COREML = 1 } rlx_device;

/* Values are those of MLComputeUnits. */
typedef enum rlx_units {
    RLX_UNITS_CPU = 0,
    RLX_UNITS_CPU_AND_GPU = 1,
    RLX_UNITS_ALL = 2,
    RLX_UNITS_CPU_AND_NE = 3
} rlx_units;

typedef enum rlx_feature_kind { RLX_FEATURE_KIND_INPUT = 0, RLX_FEATURE_KIND_OUTPUT = 1 } rlx_feature_kind;

typedef enum rlx_parameter { RLX_PARAMETER_WEIGHTS = 0, RLX_PARAMETER_BIAS = 1 } rlx_parameter;

typedef struct rlx_error rlx_error;
typedef struct rlx_program rlx_program; /* a loaded package; immutable */
typedef struct rlx_store rlx_store;     /* named tensors that stay between steps and are shared by sessions */
typedef struct rlx_update rlx_update;   /* what one of Core ML's own training tasks left */
typedef struct rlx_session rlx_session; /* a program planned for one store, with its own buffers */
typedef struct rlx_model rlx_model;     /* a function that predicts on the cpu, whatever its interface */
typedef struct rlx_state rlx_state;     /* the values of a model's states between predictions */
typedef struct rlx_results rlx_results; /* what one prediction gave */
typedef struct rlx_placement rlx_placement; /* which processors Core ML plans for a model's operations */
typedef struct rlx_text rlx_text;       /* a string that somebody must own */

/* A view of caller memory. `strides` are in bytes, may be zero or negative, NULL means C order. */
typedef struct rlx_tensor {
    size_t size;
    void *data;
    int32_t dtype;
    int32_t rank;
    const int64_t *shape;
    const int64_t *strides;
} rlx_tensor;

/* What a program says of one input or output. `shape` has `rank` entries and lives with the program. */
typedef struct rlx_feature {
    size_t size;
    const char *name;
    int32_t dtype;
    int32_t rank;
    const int64_t *shape;
} rlx_feature;

/* After each run the value of `output` becomes the value of the store's tensor `input`. */
typedef struct rlx_pair {
    const char *input;
    const char *output;
} rlx_pair;

/* Every element of the i32 input must be in [low, high); checked before a run changes anything. */
typedef struct rlx_range {
    const char *input;
    int32_t low;
    int32_t high;
} rlx_range;

typedef struct rlx_session_options {
    size_t size;
    const rlx_pair *pairs;
    size_t pair_count;
    const rlx_range *ranges;
    size_t range_count;
    int32_t device;  /* rlx_device */
    int32_t units;   /* rlx_units; read by RLX_DEVICE_COREML only */
    int32_t threads; /* 0: RLX_NUM_THREADS, else one per core */
} rlx_session_options;

/* A feed in caller memory: C order, the feed's dtype and shape, `bytes` long. NULL data: the feed's own buffer. */
typedef struct rlx_feed {
    const char *name;
    const void *data;
    size_t bytes;
} rlx_feed;

/* Memory of the caller's for a result: C order, the result's dtype and shape, `bytes` long. */
typedef struct rlx_target {
    const char *name;
    void *data;
    size_t bytes;
} rlx_target;

/* One feed's values for many runs, in caller memory: `bytes` of blocks in C order, `block_bytes` each. A run reads as many
 * blocks as make the feed, one after another: the first run the blocks that `blocks` begins with, the next run the next;
 * without `blocks` they come as they stand. */
typedef struct rlx_series {
    const char *name;
    const void *data;
    size_t bytes;
    size_t block_bytes;
    const int64_t *blocks;
    size_t block_count;
} rlx_series;

typedef enum rlx_ending {
    RLX_ENDING_NONE = 0,
    RLX_ENDING_ZERO = 1,      /* the first element is zero */
    RLX_ENDING_NOT_FINITE = 2 /* the first element is an infinity or NaN */
} rlx_ending;

/* Caller memory for a result of many runs, that of the first run first. The call ends with a run that leaves what
 * `ending` says. */
typedef struct rlx_record {
    const char *name;
    void *data;
    size_t bytes;
    int32_t ending; /* rlx_ending */
} rlx_record;

typedef struct rlx_steps {
    size_t size;
    int64_t count; /* of runs */
    const rlx_series *feeds;
    size_t feed_count;
    const rlx_record *records;
    size_t record_count;
    int64_t nanoseconds; /* no run begins so long after the first; 0: without limit */
} rlx_steps;

/* Counts since the session was made. */
typedef struct rlx_session_statistics {
    size_t size;
    int64_t runs;
    int64_t instructions;   /* kernel launches in one run */
    int64_t arena_bytes;    /* planned memory for values that live inside a run */
    int64_t backing_copies; /* Core ML outputs that did not land in the buffer we offered */
} rlx_session_statistics;

/* Values of one training input, samples along the first axis; f32 or i32. */
typedef struct rlx_column {
    const char *name;
    const rlx_tensor *value;
} rlx_column;

typedef struct rlx_update_options {
    size_t size;
    int64_t epochs;     /* 0: the model's own number */
    int64_t mini_batch; /* 0: the model's own number */
    int64_t seed;       /* read with shuffle only */
    int32_t shuffle;    /* 0: samples come in the order that they are given in */
    const int32_t *stop; /* NULL, or read after each mini-batch: anything but 0 ends the task, an INVALID_ARGUMENT */
} rlx_update_options;

int32_t rlx_abi_version(void);
const char *rlx_version(void);

int32_t rlx_error_code(const rlx_error *error);        /* an rlx_status */
const char *rlx_error_message(const rlx_error *error); /* what is wrong and what to do */
const char *rlx_error_detail(const rlx_error *error);  /* foreign text kept whole, or "" */
const char *rlx_error_subject(const rlx_error *error); /* the feature, op or file at fault, or "" */
void rlx_error_destroy(rlx_error *error);

/* Live programs, stores, sessions and errors: zero when a client has given all of them back. */
int64_t rlx_live_handles(void);

/* OK when the device can be used here; otherwise UNAVAILABLE with the reason. */
rlx_status rlx_device_check(int32_t device, rlx_error **error);

/* Forces an instruction set ("avx512", "avx2", "neon", "baseline") is done by RLX_ISA; this tells which is in use. */
const char *rlx_isa(void);

/* Has `ask` asked about every 20 ms, by calls on the thread `thread` (a pthread_t) that run programs on the cpu: anything
 * but 0 ends the call, before its next operation, with INTERRUPTED. A session's run that has begun to write weights is
 * not ended. NULL: nobody is asked. `ask` must be good to call until then. It may call this library: the store of the
 * session that asks can be read; what must wait for that call, or for another thread's, fails with BUSY. */
void rlx_set_interrupt(int32_t (*ask)(void), uint64_t thread);

/* `path` is an .mlpackage directory or a bare model file. `function` may be NULL: the default one. */
rlx_status rlx_program_load(const char *path, const char *function, rlx_program **out, rlx_error **error);

/* The bytes of model.mlmodel and of weights/weight.bin (`weights` may be NULL). Both are copied. */
rlx_status rlx_program_load_memory(
    const void *model, size_t model_size, const void *weights, size_t weights_size,
    const char *function, rlx_program **out, rlx_error **error);

int64_t rlx_program_feature_count(const rlx_program *program, int32_t kind);
rlx_status rlx_program_feature(
    const rlx_program *program, int32_t kind, int64_t index, rlx_feature *out, rlx_error **error);
void rlx_program_destroy(rlx_program *program);

rlx_status rlx_store_create(rlx_store **out, rlx_error **error);

/* Makes the tensor `name` if it is new; otherwise shape and dtype must be those it has. Copies by strides. */
rlx_status rlx_store_put(rlx_store *store, const char *name, const rlx_tensor *value, rlx_error **error);

/* Copies into caller memory of the same shape and dtype, by strides. */
rlx_status rlx_store_get(rlx_store *store, const char *name, rlx_tensor *out, rlx_error **error);
void rlx_store_destroy(rlx_store *store);

/* Plans the program. Inputs whose names are in the store are read from there; the others are feeds.
 * The pairs' outputs go to the store; the others are results. */
rlx_status rlx_session_create(
    const rlx_program *program, rlx_store *store, const rlx_session_options *options,
    rlx_session **out, rlx_error **error);

/* The session's own buffer of a feed (write before a run) or of a result (read after it): C order,
 * same address for the life of the session. `shape` lives with the session. */
rlx_status rlx_session_buffer(rlx_session *session, const char *name, rlx_tensor *out, rlx_error **error);

/* Runs once on what the feed buffers hold. On an error the store is unchanged. */
rlx_status rlx_session_run(rlx_session *session, rlx_error **error);

/* As rlx_session_run, but these feeds are read from caller memory, which nobody may write during the call. It is not
 * said what their buffers hold afterwards. Fastest when the feeds stand in the order of the program's inputs. */
rlx_status rlx_session_run_feeds(
    rlx_session *session, const rlx_feed *feeds, size_t feed_count, rlx_error **error);

/* As rlx_session_run_feeds, and these results are written to caller memory, which nobody may touch during the call. It is
 * not said what their buffers hold afterwards. */
rlx_status rlx_session_run_lent(
    rlx_session *session, const rlx_feed *feeds, size_t feed_count, const rlx_target *targets, size_t target_count,
    rlx_error **error);

/* As rlx_session_run, `steps->count` times or until an ending or the limit of time. `done` is the number of runs that
 * are whole, on an error too: it is of the run after them, which changed nothing. Feeds without a series are read from
 * their buffers; it is not said what the buffers of the others hold afterwards. */
rlx_status rlx_session_run_steps(
    rlx_session *session, const rlx_steps *steps, int64_t *done, rlx_error **error);

rlx_status rlx_session_get_statistics(rlx_session *session, rlx_session_statistics *out, rlx_error **error);
void rlx_session_destroy(rlx_session *session);

typedef enum rlx_result_kind {
    RLX_RESULT_KIND_TENSOR = 0,
    RLX_RESULT_KIND_LABEL = 1,        /* `label` is the place of the predicted class */
    RLX_RESULT_KIND_PROBABILITIES = 2 /* `value` has one element a class, in order */
} rlx_result_kind;

/* One result; `name` and the memory of `value` live with the results. */
typedef struct rlx_result {
    size_t size;
    const char *name;
    int32_t kind; /* rlx_result_kind */
    int64_t label;
    rlx_tensor value;
} rlx_result;

typedef struct rlx_model_options {
    size_t size;
    int32_t threads;            /* as in rlx_session_options */
    double seconds;             /* 0: no limit; else a prediction that takes longer ends at the next round of a loop */
    const char *const *watched; /* values of the function's body that predictions give too, where they are tensors */
    size_t watched_count;
} rlx_model_options;

/* As rlx_program_load, for predictions with any shapes that the function allows, with states and with classes.
 * `options` may be NULL. */
rlx_status rlx_model_load(
    const char *path, const char *function, const rlx_model_options *options, rlx_model **out, rlx_error **error);

/* What the function takes and gives, as a JSON object; lives with the model. */
const char *rlx_model_interface(const rlx_model *model);

/* Predicts with the values of all inputs, which are copied. `state` may be NULL: zeros that are thrown away. On an
 * error the state is as before, or as after the whole prediction. */
rlx_status rlx_model_predict(
    const rlx_model *model, rlx_state *state, const char *const *names, const rlx_tensor *values, size_t count,
    rlx_results **out, rlx_error **error);

/* Predicts `runs` times with states of zeros and tells where the time of the quickest run goes: a JSON object with
 * "nanoseconds" and "steps", each with "operations" (objects with "type" and "output"), "calls", "nanoseconds", "flops"
 * and "bytes". */
rlx_status rlx_model_profile(
    const rlx_model *model, const char *const *names, const rlx_tensor *values, size_t count, int64_t runs,
    rlx_text **out, rlx_error **error);
void rlx_model_destroy(rlx_model *model);

const char *rlx_text_get(const rlx_text *text);
void rlx_text_destroy(rlx_text *text);

int64_t rlx_results_count(const rlx_results *results);
rlx_status rlx_results_get(const rlx_results *results, int64_t index, rlx_result *out, rlx_error **error);
void rlx_results_destroy(rlx_results *results);

/* Zeros for each state of the model, to be used with that model only. */
rlx_status rlx_state_create(const rlx_model *model, rlx_state **out, rlx_error **error);
rlx_status rlx_state_put(rlx_state *state, const char *name, const rlx_tensor *value, rlx_error **error);
rlx_status rlx_state_get(const rlx_state *state, const char *name, rlx_tensor *out, rlx_error **error);
void rlx_state_destroy(rlx_state *state);

/* Trains a copy of an updatable neural network, given as the bytes of its .mlmodel, by Core ML's own update task
 * (MLUpdateTask) and waits for its end. There is a column for each training input. UNAVAILABLE where there is no
 * Core ML. */
rlx_status rlx_update_run(
    const void *model, size_t model_size, const rlx_column *columns, size_t column_count,
    const rlx_update_options *options, rlx_update **out, rlx_error **error);

int64_t rlx_update_loss_count(const rlx_update *update);

/* The mean loss of each mini-batch before its step; `count` is rlx_update_loss_count. */
rlx_status rlx_update_get_losses(const rlx_update *update, double *out, int64_t count, rlx_error **error);

/* Copies the weights or the bias of a trained layer into caller memory of their shape; f32. `kind` is an rlx_parameter. */
rlx_status rlx_update_get_parameter(
    const rlx_update *update, const char *layer, int32_t kind, rlx_tensor *out, rlx_error **error);
void rlx_update_destroy(rlx_update *update);

/* Compiles an .mlpackage or .mlmodel (or takes an .mlmodelc) with Core ML and asks for its plan; nothing is run.
 * `function` may be NULL: the default one. UNAVAILABLE where there is no Core ML that tells. */
rlx_status rlx_placement_load(
    const char *path, const char *function, int32_t units, rlx_placement **out, rlx_error **error);

/* A JSON object that lives with the placement: `units` (an rlx_units), `counts` (steps by device) and `steps` in the
 * order of the model, each with `function`, `operation` ("ios17.add", or a layer's kind), `outputs`, `supported` (devices:
 * "cpu", "gpu", "ane", "other"), and where Core ML says them `preferred` (a device) and `cost` (a share of the whole). */
const char *rlx_placement_json(const rlx_placement *placement);
void rlx_placement_destroy(rlx_placement *placement);

/* RLX_DECLARATIONS_END */

#ifdef __cplusplus
}
#endif
#endif

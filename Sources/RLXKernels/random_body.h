/* random_body.h - the kernel of random.c for one instruction set. */

static void RLXK_FN(random)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_random *r = arguments;
    (void)worker, (void)workers;
    const uint64_t key = mixed(mixed(r->seed) ^ *r->runs);
    for (int64_t i = 0; i < r->count; i++) {
        const uint64_t bits = mixed(key ^ mixed((uint64_t)i));
        switch (r->distribution) {
        case RLXK_UNIFORM: r->out[i] = r->p + (r->q - r->p) * unit(bits); break;
        case RLXK_NORMAL: r->out[i] = r->p + r->q * normal(bits); break;
        case RLXK_BERNOULLI: r->out[i] = unit(bits) < r->p ? 1.0f : 0.0f; break;
        case RLXK_CATEGORICAL:
            r->out[i] = category(r->probabilities + i / r->draws * r->classes, r->classes, unit(bits));
            break;
        }
    }
    if (r->continues) (*r->runs)++;
}

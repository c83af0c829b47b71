/* sample_body.h - the kernel of sample.c for one instruction set. */

static void RLXK_FN(sample)(const void *arguments, int32_t worker, int32_t workers) {
    const rlxk_sample *s = arguments;
    int64_t begin, end;
    rlxk_share(s->samples * s->count, worker, workers, &begin, &end);
    for (int64_t task = begin; task < end; task++) {
        const int64_t n = task / s->count, p = task % s->count;
        const float x = placed(s->points[2 * task], s->width, s->border, s->nearest);
        const float y = placed(s->points[2 * task + 1], s->height, s->border, s->nearest);
        int64_t image = s->index ? s->index[n] : n;
        if (image < 0) image += s->images;
        image = image < 0 ? 0 : image >= s->images ? s->images - 1 : image;
        const float *plane = s->x + image * s->channels * s->height * s->width;
        for (int64_t c = 0; c < s->channels; c++, plane += s->height * s->width)
            s->out[(n * s->channels + c) * s->count + p] = sampled(s, plane, x, y);
    }
}

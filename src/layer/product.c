/* To be read together with docs/exactness.md. A tap outside the input would multiply +0, which
 * changes no chain but for the sign of a zero; it is left out. */
#include "layer/product.h"

#include <math.h>
#include <stddef.h>

/* One tap of one output pixel. */
typedef struct tap {
    uint32_t y, x;   /* output pixel */
    uint32_t ky, kx; /* tap of the window */
} tap;

/* Where the values of the input pixel and of the output pixel begin, and the weights of the tap in
 * a row of depth; 0 when the tap lies outside the input. */
typedef struct places {
    size_t input, output, weights;
} places;

static int find(const qn__layer *l, tap t, places *at) {
    const qn__window *w = &l->window;
    const int64_t y = (int64_t)t.y * w->stride[0] - w->pad[0] + (int64_t)t.ky * w->dilation[0];
    const int64_t x = (int64_t)t.x * w->stride[1] - w->pad[1] + (int64_t)t.kx * w->dilation[1];
    if (y < 0 || x < 0 || y >= l->from.height || x >= l->from.width)
        return 0;
    at->input = ((size_t)y * l->from.width + (size_t)x) * l->from.channels;
    at->output = ((size_t)t.y * l->to.width + t.x) * l->to.channels;
    at->weights = ((size_t)t.ky * w->kernel[1] + t.kx) * l->from.channels;
    return 1;
}

/* All taps of all output pixels: pixels in their order, the taps of each in theirs. The first one
 * is {0, 0, 0, 0}. */
static int next(const qn__layer *l, tap *t) {
    if (++t->kx < l->window.kernel[1])
        return 1;
    t->kx = 0;
    if (++t->ky < l->window.kernel[0])
        return 1;
    t->ky = 0;
    if (++t->x < l->to.width)
        return 1;
    t->x = 0;
    return ++t->y < l->to.height;
}

void qn__product_forward(const qn__layer *l, const float *parameters, const float *a, float *z) {
    const uint32_t channels = l->from.channels;
    for (uint32_t o = 0; o < l->out; ++o)
        z[o] = parameters[l->biases + o % l->to.channels];
    tap t = {0, 0, 0, 0};
    places at;
    do {
        if (!find(l, t, &at))
            continue;
        for (uint32_t o = 0; o < l->to.channels; ++o) {
            const float *w = parameters + l->weights + (size_t)o * l->depth + at.weights;
            float acc = z[at.output + o];
            for (uint32_t c = 0; c < channels; ++c)
                acc = fmaf(a[at.input + c], w[c], acc);
            z[at.output + o] = acc;
        }
    } while (next(l, &t));
}

void qn__product_backward(const qn__layer *l, const float *parameters, const float *delta,
                          float *e) {
    for (uint32_t k = 0; k < l->in; ++k)
        e[k] = 0.0f;
    tap t = {0, 0, 0, 0};
    places at;
    do {
        if (!find(l, t, &at))
            continue;
        for (uint32_t o = 0; o < l->to.channels; ++o) {
            const float *w = parameters + l->weights + (size_t)o * l->depth + at.weights;
            for (uint32_t c = 0; c < l->from.channels; ++c)
                e[at.input + c] = fmaf(delta[at.output + o], w[c], e[at.input + c]);
        }
    } while (next(l, &t));
}

static void add_item(const qn__layer *l, const places *at, const float *a, const float *delta,
                     float *partial) {
    for (uint32_t o = 0; o < l->to.channels; ++o) {
        float *w = partial + (size_t)o * l->depth + at->weights;
        for (uint32_t c = 0; c < l->from.channels; ++c)
            w[c] = fmaf(delta[at->output + o], a[at->input + c], w[c]);
    }
}

void qn__product_gradient(const qn__layer *l, uint64_t items, const float *a, const float *delta,
                          float *partial) {
    tap t = {0, 0, 0, 0};
    places at;
    do {
        if (!find(l, t, &at))
            continue;
        for (uint64_t i = 0; i < items; ++i)
            add_item(l, &at, a + i * l->in, delta + i * l->out, partial);
    } while (next(l, &t));
}

/* position rotary: docs/exactness.md 25.31. A channel becomes itself by the cosine and its partner
 * by the sine, half a head further on or back. Where halves are whole panels, the partners are a
 * panel, too; else they are gathered. Channels of values have the cosine 1, and the sine 0 of a
 * partner 0. */
#include "device/cpu/worker/cpu_kinds.h"
#include "layer/turned.h"
#include <string.h>

/* What a panel of channels needs. `sign`: of the sines of the first half of a head. */
typedef struct turned {
    const qn__cpu_layer *l;
    const float *from; /* panel 0 of the run */
    size_t stride;
    uint32_t panel, pairs, channels; /* of a head; that are turned */
    float sign;
} turned;

static int is_whole(const turned *t) { return t->pairs % QN__PANEL == 0; }

/* The partner of a channel. */
static uint32_t partner_of(const turned *t, uint32_t c) {
    return c % (2 * t->pairs) < t->pairs ? c + t->pairs : c - t->pairs;
}

/* Of each lane of a panel: its pair, and the sign of its sine, 0 where it is not turned. */
typedef struct lanes {
    uint32_t pair[QN__PANEL];
    float sign[QN__PANEL];
} lanes;

static lanes lanes_of(const turned *t) {
    lanes all;
    for (uint32_t k = 0; k < QN__PANEL; ++k) {
        const uint32_t c = t->panel * QN__PANEL + k;
        const float sign = c % (2 * t->pairs) < t->pairs ? t->sign : -t->sign;
        all.pair[k] = c % t->pairs;
        all.sign[k] = c < t->channels ? sign : 0.0f;
    }
    return all;
}

/* Where halves are whole panels, the pairs of lanes follow one another. */
static void numbers_of(const turned *t, const lanes *all, uint32_t position, float *cosine,
                       float *sine) {
    const float *row = t->l->turned + (size_t)position * 2 * t->pairs;
    if (is_whole(t)) {
        const float *own = row + all->pair[0];
        for (uint32_t k = 0; k < QN__PANEL; ++k) {
            cosine[k] = own[k];
            sine[k] = all->sign[0] * own[t->pairs + k];
        }
        return;
    }
    for (uint32_t k = 0; k < QN__PANEL; ++k) {
        cosine[k] = all->sign[k] != 0.0f ? row[all->pair[k]] : 1.0f;
        sine[k] = all->sign[k] * row[t->pairs + all->pair[k]];
    }
}

static void gather(const turned *t, uint32_t rows, float *other) {
    for (uint32_t k = 0; k < QN__PANEL; ++k) {
        const uint32_t own = t->panel * QN__PANEL + k, c = partner_of(t, own);
        const float *x = t->from + c / QN__PANEL * t->stride + c % QN__PANEL;
        for (uint32_t i = 0; i < rows; ++i)
            other[i * QN__PANEL + k] = own < t->channels ? x[i * QN__PANEL] : 0.0f;
    }
}

/* Rows from `row` on that have its position: those of a position follow one another. */
static uint32_t rows_of_position(const qn__cpu_pass *pass, size_t row) {
    return pass->extension ? 1 : pass->batch->items - (uint32_t)(row % pass->batch->items);
}

static void turn_rows(const qn__cpu_pass *pass, const qn__cpu_walk_run *run, const turned *t,
                      const float *other, float *to) {
    const float *x = t->from + t->panel * t->stride;
    const lanes all = lanes_of(t);
    for (uint32_t i = 0, rows; i < run->rows; i += rows) {
        const size_t row = run->row + i, at = (size_t)i * QN__PANEL;
        const uint32_t some = rows_of_position(pass, row);
        float cosine[QN__PANEL], sine[QN__PANEL];
        rows = run->rows - i < some ? run->rows - i : some;
        numbers_of(t, &all, qn__cpu_position_of(pass, row), cosine, sine);
        pass->worker->kernels->turn(rows, cosine, sine, x + at, other + at, to + at);
    }
}

static void turn_run(const qn__cpu_pass *pass, const qn__cpu_walk_run *run, const turned *t,
                     float *to) {
    if (is_whole(t) && t->panel * QN__PANEL >= t->channels) {
        const float *x = t->from + t->panel * t->stride;
        for (size_t i = 0; i < (size_t)run->rows * QN__PANEL; ++i)
            to[i] = x[i] + 0.0f;
    } else if (is_whole(t)) {
        const uint32_t c = partner_of(t, t->panel * QN__PANEL);
        turn_rows(pass, run, t, t->from + c / QN__PANEL * t->stride, to);
    } else {
        /* Rows of a long run, some at a time. */
        enum { MOST = QN__RUN_ROWS };
        float other[MOST * QN__PANEL];
        qn__cpu_walk_run some = *run;
        turned own = *t;
        for (uint32_t i = 0; i < run->rows; i += some.rows) {
            some.row = run->row + i;
            some.rows = run->rows - i < MOST ? run->rows - i : MOST;
            own.from = t->from + (size_t)i * QN__PANEL;
            gather(&own, some.rows, other);
            turn_rows(pass, &some, &own, other, to + (size_t)i * QN__PANEL);
        }
    }
}

static void forward_run(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                        const qn__cpu_walk_run *run, uint32_t panel, float *to) {
    const float *from = qn__cpu_input(pass, l) + run->row * QN__PANEL;
    const turned t = {
        l,    from, l->in_stride, panel, qn__turned_pairs(l->layer), qn__rotary_channels(l->layer),
        -1.0f};
    (void)thread;
    turn_run(pass, run, &t, to);
}

static void backward_run(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                         const qn__cpu_walk_run *run, uint32_t panel, float *error) {
    const turned t = {l,     l->error + run->row * QN__PANEL, l->out_stride,
                      panel, qn__turned_pairs(l->layer),      qn__rotary_channels(l->layer),
                      1.0f};
    (void)thread;
    turn_run(pass, run, &t, error);
}

/* A layer before it with the same angles has its table, too. */
static qn__cpu_layer *same_before(const qn__worker *w, const qn__cpu_layer *l) {
    for (qn__cpu_layer *other = w->layer; other < l; ++other)
        if (other->layer->kind == QN__LAYER_ROTARY &&
            qn__turned_pairs(other->layer) == qn__turned_pairs(l->layer) &&
            other->out_pixels == l->out_pixels &&
            memcmp(&other->layer->turns, &l->layer->turns, sizeof l->layer->turns) == 0)
            return other;
    return NULL;
}

static void carve(qn__cpu_arena *a, const qn__worker *w, qn__cpu_layer *l) {
    const qn__cpu_layer *same = same_before(w, l);
    const uint32_t positions = qn__cpu_positions(w, l);
    l->turned = same ? same->turned
                     : qn__cpu_carve(a, positions, 2 * qn__turned_pairs(l->layer) * sizeof(float));
    if (a->base && !same)
        qn__turned_table(l->layer, 0, positions, l->turned);
}

const qn__cpu_kind qn__cpu_rotary = {.forward = qn__cpu_walk_forward,
                                     .backward = qn__cpu_walk_backward,
                                     .run = forward_run,
                                     .run_back = backward_run,
                                     .carve = carve};

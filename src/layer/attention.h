/* attention as docs/exactness.md 25.20 to 25.26 writes it, head by head, for values in any order.
 * The CPU worker uses it for values that are not finite. `bits` is the width of integers, 0:
 * float. */
#ifndef QN_LAYER_ATTENTION_H
#define QN_LAYER_ATTENTION_H

#include "num/program.h"
#include <math.h>

/* Where the values of an item are: that of channel c at a position is number c / 16 * panel +
 * position * row + c % 16. */
typedef struct qn__attended {
    size_t panel, row;
} qn__attended;

/* A query: m of 25.22, and r, which is a NaN where a score is not finite. */
typedef struct qn__attention_query {
    float greatest, share;
} qn__attention_query;

/* The positions begin .. end - 1 that position t sees, which is below the length. */
static inline qn__cover qn__attention_sees(const qn__layer *l, uint32_t t) {
    const uint32_t all = qn__layer_positions(l);
    return (qn__cover){l->span && t >= l->span ? t - l->span + 1 : 0, l->causal ? t + 1 : all};
}

/* Those that see position u. */
static inline qn__cover qn__attention_seen(const qn__layer *l, uint32_t u) {
    const uint32_t all = qn__layer_positions(l);
    return (qn__cover){l->causal ? u : 0, l->span && all - u > l->span ? u + l->span : all};
}

/* Channels of a head. */
static inline uint32_t qn__attention_width(const qn__layer *l) { return l->to.channels / l->heads; }

/* Where channel c of a position is. */
static inline size_t qn__attended_at(qn__attended order, uint32_t position, uint32_t channel) {
    return channel / 16 * order.panel + position * order.row + channel % 16;
}

/* The first channel of the keys of a group; its values are `kv_heads` heads further on. */
static inline uint32_t qn__attention_keys(const qn__layer *l, uint32_t group) {
    return (l->heads + group) * qn__attention_width(l);
}

/* 25.22: the factor of scores. */
static inline float qn__attention_scale(const qn__layer *l) {
    return 1.0f / sqrtf((float)qn__attention_width(l));
}

/* r of a sum of units. */
static inline float qn__attention_share(int64_t units) { return 1.0f / ((float)units * 0x1p-40f); }

/* The weight of a score below the greatest one by -x. */
static inline float qn__attention_cut(float weight) { return weight > 0x1p-41f ? weight : 0.0f; }

/* n of 25.22. */
static inline int64_t qn__attention_units(float weight) { return (int64_t)rintf(weight * 0x1p40f); }

/* Of a head, whose first channel is given: zeros from the length on; e = e * factor + 0 at all
 * positions, or e = 0 where the factor is 0. */
void qn__attention_clear_rest(const qn__layer *layer, uint32_t first, float *z, qn__attended out);
void qn__attention_scale_errors(const qn__layer *layer, uint32_t first, float factor, float *e,
                                qn__attended to);

/* The outputs z of a head at all positions, from the inputs a; of query t returns the numbers in
 * query[t], unless that is NULL. */
void qn__attention_head(const qn__layer *layer, int bits, uint32_t head, const float *a,
                        qn__attended in, float *z, qn__attended out, qn__attention_query *query);
void qn__attention_integer_head(const qn__layer *layer, int bits, uint32_t head, const float *a,
                                qn__attended in, float *z, qn__attended out,
                                qn__attention_query *query);

/* With integers, those of head 0 at position t alone: z + out.panel * panel has its channels. */
void qn__attention_integer_row(const qn__layer *layer, int bits, uint32_t t, const float *a,
                               qn__attended in, float *z, qn__attended out);

/* What the errors of a group are computed from, in an order each: the inputs a, the outputs z and
 * their errors delta; and where the errors e go. */
typedef struct qn__attention_errors {
    const float *a, *z, *delta;
    float *e;
    qn__attended in, out, to;
    float *space; /* with integers: 5 floats for each position; else unused */
} qn__attention_errors;

/* The errors of the queries, keys and values of a group. */
void qn__attention_group_errors(const qn__layer *layer, int bits, uint32_t group,
                                const qn__attention_errors *errors);
void qn__attention_integer_errors(const qn__layer *layer, int bits, uint32_t group,
                                  const qn__attention_errors *errors);

#endif

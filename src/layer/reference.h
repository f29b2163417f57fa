/* The reference: docs/exactness.md, sections 5 to 8 and 15, as plain loops over one item and one
 * grain at a time. What a layer's kind decides is in the kind's file (layer/layer.h).
 *
 * It is slow and easy to read, and every backend is compared with it byte for byte. Section 9, the
 * update, is qn__update_one in num/optimise.h. Parameters are in the canonical order of
 * num/program.h.
 *
 *     qn__reference *r;
 *     qn__reference_create(program, &r, err);
 *     qn__reference_grain_begin(r);
 *     for each item of the grain, in order of position:
 *         qn__reference_grain_item(r, parameters, &item, epoch);
 *     if (qn__reference_grain_end(r, sums, &tally) != QN__GRAIN_FINE) ...
 *
 * A reference is used by one thread at a time. */
#ifndef QN_LAYER_REFERENCE_H
#define QN_LAYER_REFERENCE_H

#include "base/error.h"
#include "layer/lost.h"
#include "num/element.h"
#include "num/program.h"

typedef struct qn__reference qn__reference;

/* One item of the data. */
typedef struct qn__reference_item {
    qn__element_type type; /* of the values */
    const void *values;    /* in[0] of them */
    uint64_t number;       /* among the training items; it selects the dropout words */
    uint32_t label;      /* the class, below the number of outputs, or below 2 with binary; the bits
                            of the target if program->real */
    const float *weight; /* of the item (7.7, 24.72); NULL: 1 */
    const uint8_t *answers; /* program->answers targets; NULL: there are none */
} qn__reference_item;

typedef enum qn__grain_end {
    QN__GRAIN_FINE,
    QN__GRAIN_LOSS,    /* its loss is NaN or too large to be summed (8.7) */
    QN__GRAIN_GRADIENT /* a partial gradient is NaN or too large (8.7) */
} qn__grain_end;

/* Allocates the working memory for a program, which must outlive it. */
qn_status qn__reference_create(const qn__program *program, qn__reference **out, qn_error *err);
void qn__reference_destroy(qn__reference *reference);

/* The same without the large memory for gradients: only qn__reference_grain_begin and _item,
 * qn__reference_lost and the functions for one item may be called. */
qn_status qn__reference_watch(const qn__program *program, qn__reference **out, qn_error *err);

/* What that takes for grains of `items` items, in bytes. */
uint64_t qn__reference_bytes(const qn__program *program, uint64_t items);

/* 5.1: x[0 .. in[0]-1] from the item's values. */
void qn__reference_input(const qn__program *program, const qn__reference_item *item, float *x);

/* 6.3, 6.4 without dropout. The outputs of the last layer; they belong to the reference until its
 * next call. */
const float *qn__reference_apply(qn__reference *reference, const float *parameters,
                                 const qn__reference_item *item);

/* What the last layer read of the item, as data has it: the values of a channel one after the
 * other, to[in]. */
void qn__reference_last_inputs(const qn__reference *reference, float *to);

/* 6.6 and 7 for the last item that was applied: its class (0 for real targets, and where there are
 * several answers, as is the score) and its score; its loss, given its label and with its weight
 * (7.7); the number of answers that are right, 0 for real targets. */
int32_t qn__reference_class(const qn__reference *reference);
float qn__reference_score(const qn__reference *reference);
float qn__reference_loss(const qn__reference *reference, const qn__reference_item *item);
uint64_t qn__reference_right(const qn__reference *reference, const qn__reference_item *item);

/* A grain of at most program->grain items: its loss starts at +0, and each item adds to it (7.4).
 * At the end its partial gradients (8.6) and its loss become integers, which are added to
 * sums[program->parameters] and *tally. If the result is not QN__GRAIN_FINE, neither is changed. */
void qn__reference_grain_begin(qn__reference *reference);
void qn__reference_grain_item(qn__reference *reference, const float *parameters,
                              const qn__reference_item *item, uint32_t epoch);
/* The same for an item that is mixed with another one: where program->mix, each is (24.57). */
void qn__reference_grain_pair(qn__reference *reference, const float *parameters,
                              const qn__reference_item *item, const qn__reference_item *partner,
                              uint32_t epoch);
qn__grain_end qn__reference_grain_end(qn__reference *reference, int64_t *sums, qn__tally *tally);

/* Adds to `losses` the values that lost all bits, in the grain's items so far, which count as the
 * whole grain, and in the weights. Integers only; overwrites the state of the last item. */
void qn__reference_lost(qn__reference *reference, const float *parameters, qn__lost_kinds *losses);

/* The partial gradients of the grain that ended last, in units, as sums in float32 (with integers
 * only those of biases); they belong to the reference. */
const float *qn__reference_partials(const qn__reference *reference);

#endif

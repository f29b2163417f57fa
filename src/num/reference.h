/* The reference: docs/exactness.md, sections 5 to 8 and 15, as plain loops over one item and one
 * grain at a time.
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
#ifndef QN_NUM_REFERENCE_H
#define QN_NUM_REFERENCE_H

#include "base/error.h"
#include "num/lost.h"
#include "num/program.h"

typedef struct qn__reference qn__reference;

/* One item as the data has it. */
typedef struct qn__reference_item {
    int bytes;          /* 1: values are uint8_t, 0: float */
    const void *values; /* in[0] of them */
    uint64_t number;    /* the item's number among the training items; dropout is keyed by it */
    uint32_t label;     /* the class, below the number of outputs, or below 2 with binary; the bits
                           of the target where program->real */
} qn__reference_item;

typedef enum qn__grain_end {
    QN__GRAIN_FINE,
    QN__GRAIN_LOSS,    /* its loss is NaN or too large to be summed (8.7) */
    QN__GRAIN_GRADIENT /* a partial gradient is (8.7) */
} qn__grain_end;

/* Makes the working memory for a program, which must outlive it. */
qn_status qn__reference_create(const qn__program *program, qn__reference **out, qn_error *err);
void qn__reference_destroy(qn__reference *reference);

/* The same for integers without room for gradients, which large networks need much of: only
 * qn__reference_grain_begin and _item, qn__reference_lost and what asks one item may be called. */
qn_status qn__reference_watch(const qn__program *program, qn__reference **out, qn_error *err);

/* 5.1: x[0 .. in[0]-1] from the item's values. */
void qn__reference_input(const qn__program *program, const qn__reference_item *item, float *x);

/* 6.3, 6.4 without dropout. The outputs of the last layer; they belong to the reference until its
 * next call. */
const float *qn__reference_apply(qn__reference *reference, const float *parameters,
                                 const qn__reference_item *item);

/* 6.6 and 7 for the item that went forward last: its class (0 for real targets) and its score; its
 * loss, given its label; whether the class is the label, never for real targets. */
int32_t qn__reference_class(const qn__reference *reference);
float qn__reference_score(const qn__reference *reference);
float qn__reference_loss(const qn__reference *reference, uint32_t label);
int qn__reference_right(const qn__reference *reference, uint32_t label);

/* A grain: its partial gradients and its loss start at +0; each item adds to them (7.4, 8.6); at
 * the end they become integers, which are added to sums[program->parameters] and *tally. When the
 * grain does not end fine, neither is changed. */
void qn__reference_grain_begin(qn__reference *reference);
void qn__reference_grain_item(qn__reference *reference, const float *parameters,
                              const qn__reference_item *item, uint32_t epoch);
qn__grain_end qn__reference_grain_end(qn__reference *reference, int64_t *sums, qn__tally *tally);

/* Adds to `losses` what lost all bits in the grain's items so far, which are taken for the whole
 * grain, and in the weights. Integers only; undoes the item that went forward last. */
void qn__reference_lost(qn__reference *reference, const float *parameters, qn__losses *losses);

/* The partial gradients of the grain so far, in units, as the chains of float32 have them (with
 * integers only those of biases); they belong to the reference. */
const float *qn__reference_partials(const qn__reference *reference);

#endif

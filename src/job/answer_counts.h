/* What is counted of networks that give several answers to an item (docs/exactness.md 24.77). */
#ifndef QN_JOB_ANSWER_COUNTS_H
#define QN_JOB_ANSWER_COUNTS_H

#include "data/table/data.h"
#include "num/program.h"

/* Of a class of pixels, or of a label: targets that are it, answers, and those that are both. */
typedef struct qn__answer_class {
    uint64_t labelled, answered, right;
} qn__answer_class;

/* Ignored targets, and what was answered there, count nowhere. */
typedef struct qn__answer_counts {
    uint64_t items;   /* that have targets */
    uint64_t exact;   /* items all of whose answers are right */
    uint64_t targets; /* of all items */
    uint64_t right;
    qn__answer_class *of; /* qn__answer_classes of them, owned by the caller */
} qn__answer_counts;

/* Classes of pixels, or labels. */
uint32_t qn__answer_classes(const qn_data *data, const qn__program *program);

/* The answers to an item from its outputs, `program->answers` of them. */
void qn__answers_from(const qn__program *program, const float *outputs, uint8_t *answers);

/* Adds those of one item. */
void qn__answers_add(const qn_data *data, uint64_t item, const uint8_t *answers,
                     qn__answer_counts *counts);

#endif

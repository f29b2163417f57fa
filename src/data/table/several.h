/* Several targets for an item (docs/exactness.md 24.75): the labels 0 and 1 that it has, or the
 * class of each pixel of its mask. */
#ifndef QN_DATA_TABLE_SEVERAL_H
#define QN_DATA_TABLE_SEVERAL_H

#include "base/error.h"
#include <stdint.h>

typedef struct qn_data qn_data;

/* A target that does not count: QN__IGNORED of num/program.h. */
enum { QN__NO_TARGET = 255 };

typedef struct qn__several {
    uint32_t each;          /* targets of an item, at least 1 */
    uint32_t height, width; /* of a mask: height x width is `each`; both 0: they are labels */
    uint8_t *target;        /* of all items of the table: a class, or QN__NO_TARGET */
    int mapped;             /* 1: the targets belong to someone else */
} qn__several;

/* Columns of a file that become labels, in the order in which they were named (24.15). Readers read
 * them as features; qn__label_columns_take then makes labels of them. From qn__alloc. */
typedef struct qn__label_columns {
    uint32_t count;
    struct {
        uint64_t column;  /* of the file, from 0 */
        uint32_t feature; /* among those that are read */
    } at[];
} qn__label_columns;

/* Space for the targets of `items` items, all 0. NULL, with QN_MEMORY in err: out of memory. */
qn__several *qn__several_create(uint64_t items, uint32_t each, uint32_t height, uint32_t width,
                                qn_error *err);
void qn__several_free(qn__several *several); /* accepts NULL */

/* The targets of item i. */
const uint8_t *qn__several_of(const qn_data *data, uint64_t i);

/* Those of `count` items of `data`, whose numbers `item` has (NULL: all). `*out` is NULL where the
 * items have one target each. Fails with QN_MEMORY. */
qn_status qn__several_copy(const qn_data *data, const uint64_t *item, uint64_t count,
                           qn__several **out, qn_error *err);

/* Classes of masks: the largest target + 1. Of labels: 0, they have no classes. */
uint32_t qn__several_classes(const qn__several *several, uint64_t items);

/* The targets of an item that count. */
uint64_t qn__several_count(const qn_data *data, uint64_t i);
/* Of all items. */
uint64_t qn__several_count_all(const qn_data *data);

/* Refuses targets of labels that are neither 0, 1 nor ignored. QN_INPUT names the item. */
qn_status qn__several_check(const qn__several *several, uint64_t items, qn_error *err);

#endif

/* Sums and extremes of columns by a device: the kernel, its table, and the numbers that it gives.
 *
 * An item is one column over a part of the rows (kernels/runtime/columns.cl). Some neighbouring
 * columns are a tile. The items of a tile follow each other: by parts, by columns. A part lies
 * within a class, and classes ascend.
 *
 * In a pass, QN__KERNEL_LANES items count the values of a chunk of the rows in one column, between
 * ascending keys. Each item has some of the keys, and gives as many counts. The items of a tile
 * follow each other: by columns, by chunks, by keys. A chunk belongs to all rows, or lies within a
 * class. */
#ifndef QN_STATISTICS_COLUMN_DEVICE_H
#define QN_STATISTICS_COLUMN_DEVICE_H

#include "kernels/kernels.h"
#include "statistics/column_statistics.h"
#include "statistics/table_device.h"

enum { QN__COLUMN_LANE_KEYS = 16, QN__COLUMN_VALUES_ARRAY = 2, QN__COLUMN_KEYS_ARRAY = 4 };
enum { QN__COLUMN_TILE = 32 /* at most */, QN__COLUMN_WORDS = 8 };

typedef struct qn__column_device {
    qn__kernel_job job; /* the functions in it are the caller's */
    qn__kernel_array array[5];
    uint64_t numbers[3];
    qn__table_device table; /* its rows class after class */
    uint64_t *start;        /* the first row of each part, and that after the last */
    uint32_t *group;        /* of each part */
    uint64_t parts;
    /* Of passes; without them there are no chunks. */
    uint64_t *chunk;  /* the first row of each chunk, and that after it */
    uint32_t *target; /* the group of each chunk */
    uint64_t chunks;
} qn__column_device;

/* Sums and extremes of some values. All zeros: of none. */
typedef struct qn__column_total {
    qn__moments moments;
    float least, greatest;
} qn__column_total;

/* 1: a device can compute the columns of this data. */
int qn__column_device_takes(const qn_data *data);

/* 1: the classes have enough values for passes to be worth their cost. */
int qn__column_device_passes(const qn_data *data, const qn__column_task *task);

/* `passes`: 1 if counting passes will be made. `order`: the items class after class, of a task with
 * more than one group. On success qn__column_device_release frees it; *out must not move, and
 * `data` must live as long. QN_MEMORY. */
qn_status qn__column_device_make(const qn_data *data, const uint64_t *order,
                                 const qn__column_task *task, int passes, qn__column_device *out,
                                 qn_error *err);
/* Also of one that failed, and of zeros. */
void qn__column_device_release(qn__column_device *device);

/* Columns of the next run are counted from this one. */
void qn__column_device_begin(qn__column_device *device, uint32_t column);

/* A tile, and the place of an item in it: of the part's columns, and the part. */
typedef struct qn__column_item {
    uint32_t first, columns; /* the tile */
    uint32_t column;         /* first .. first + columns - 1 */
    uint64_t part;
} qn__column_item;

/* Sets *out to the span of the items of a tile. The number of an item encodes the columns of its
 * tile: see the next function. */
void qn__column_device_span(const qn__column_device *device, uint32_t first, uint32_t columns,
                            qn__kernel_span *out);
qn__column_item qn__column_device_item(uint64_t item);

/* Adds the result of a part of a column. */
void qn__column_device_add(const qn__column_device *device, uint64_t part, uint32_t column,
                           const uint64_t words[QN__COLUMN_WORDS], qn__column_total *sums);
/* 1 if it is what the host computes. */
int qn__column_device_check(const qn__column_device *device, uint64_t part, uint32_t column,
                            const uint64_t words[QN__COLUMN_WORDS]);

/* Sets *out to the span of the items of a pass over a tile. qn__column_device_is_pass is 1 for the
 * number of such an item. */
void qn__column_device_pass(const qn__column_device *device, uint32_t first, uint32_t columns,
                            qn__kernel_span *out);
int qn__column_device_is_pass(uint64_t item);
/* 1 if the words of a chunk's items are what the host counts between these keys: those of
 * num/order.h, in a table of bytes the bytes themselves. */
int qn__column_device_check_chunk(const qn__column_device *device, uint64_t chunk, uint32_t column,
                                  const uint32_t *keys, const uint64_t *words);

/* Adds other sums. */
void qn__column_total_merge(qn__column_total *sums, qn__column_total *other);

#endif

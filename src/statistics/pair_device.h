/* Sums of products of columns by a device: the kernel, its table, and the numbers that it gives.
 *
 * An item is one sum of a pair of columns over QN__PAIR_PART rows. It gives four words: the sum as
 * an integer of 128 bits, the lower half first; its unit; the number of rows that have both values.
 * The items of a square follow each other: by parts of the rows, by kinds of sums, by pairs. */
#ifndef QN_STATISTICS_PAIR_DEVICE_H
#define QN_STATISTICS_PAIR_DEVICE_H

#include "kernels/kernels.h"
#include "statistics/table_device.h"

enum { QN__PAIR_SIDE = 16, QN__PAIRS = QN__PAIR_SIDE * QN__PAIR_SIDE, QN__PAIR_PART = 1 << 14 };

/* Of a pair: the sums of products, of values, and of squares where the other value is there too. */
typedef struct qn__pair_sums {
    qn__exact_sum products, first[2], second[2];
    uint64_t count;
} qn__pair_sums;

typedef struct qn__pair_device {
    qn__kernel_job job; /* the functions in it are the caller's */
    qn__kernel_array array[2];
    uint64_t numbers[6];
    qn__table_device table;
    uint32_t parts, kinds;
} qn__pair_device;

/* `any`: 1 if a value is missing, so that five sums of a pair are needed in place of one. On
 * success qn__pair_device_release frees it; *out must not move, and `data` must live as long.
 * QN_MEMORY. */
qn_status qn__pair_device_make(const qn_data *data, int any, qn__pair_device *out, qn_error *err);
/* Also of one that failed, and of zeros. */
void qn__pair_device_release(qn__pair_device *device);

/* Squares of SIDE x SIDE pairs are counted row by row, on and above the diagonal; `from` is the
 * first of those that the items of the next run are of. */
void qn__pair_device_begin(qn__pair_device *device, uint32_t from, uint32_t squares);

/* Items of a square. */
uint64_t qn__pair_device_items(const qn__pair_device *device);

/* Adds what an item of two columns gave to the sums of their pair. */
void qn__pair_device_add(const qn__pair_device *device, uint64_t item, uint32_t left,
                         uint32_t right, const uint64_t words[4], qn__pair_sums *sums);
/* 1 if it is what the host computes. */
int qn__pair_device_check(const qn__pair_device *device, uint64_t item, uint32_t left,
                          uint32_t right, const uint64_t words[4]);

#endif

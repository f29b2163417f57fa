/* A table of columns on a device, and the integers that a device makes of its values
 * (kernels/runtime/cells.cl). */
#ifndef QN_STATISTICS_TABLE_DEVICE_H
#define QN_STATISTICS_TABLE_DEVICE_H

#include "base/text/text.h"
#include "data/table/data.h"
#include "device/device.h"
#include "num/exact_sum.h"

typedef struct qn__table_device {
    const void *values; /* rows of `columns` values */
    void *copy;         /* the values, where they are not those of the data */
    int bytes;          /* 1: uint8_t, else float */
    uint64_t rows;
    uint32_t columns;
    qn__text text[2]; /* the kernel's, by qn__language */
} qn__table_device;

/* Row i is item order[i]; NULL: item i. Views, tables with real labels, and those in an order, are
 * copied, so that the rows lie together. `data` must live as long. QN_MEMORY. */
qn_status qn__table_device_make(const qn_data *data, const uint64_t *order, qn__table_device *out,
                                qn_error *err);
/* Also of one that failed, and of zeros. */
void qn__table_device_release(qn__table_device *table);

/* The table as an array of a kernel. */
qn__kernel_array qn__table_device_array(const qn__table_device *table);

/* Makes the texts of a kernel that reads the table, and sets those of the job: macros that the
 * kernel needs, and the kernel, which are the same in both languages. QN_MEMORY. */
qn_status qn__table_device_program(qn__table_device *table, const char *macros, const char *kernel,
                                   qn__kernel_job *job, qn_error *err);

float qn__table_device_value(const qn__table_device *table, uint64_t row, uint32_t column);

/* Adds an integer of 1 to 3 words in two's complement, the lowest first, times 2^power. */
void qn__table_device_add(const uint64_t *words, int count, int power, qn__exact_sum *sum);

#endif

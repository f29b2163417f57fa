#include "job/exact_statistics.h"
#include "base/memory.h"
#include "data/wide.h"
#include "job/column_places.h"
#include "num/ratio.h"
#include <math.h>
#include <stdlib.h>

/* A value as an integer times a power of two. */
typedef struct number {
    uint64_t m;
    int power, negative;
} number;

/* Sums hold cubes of numbers down to this power. */
enum { LEAST_POWER = -340 };

static number number_of(qn__exact kind, qn__wide_value value) {
    number n = {0, 0, 0};
    if (kind == QN__EXACT_WHOLE) {
        n.negative = value.whole < 0;
        n.m = n.negative ? 0 - (uint64_t)value.whole : (uint64_t)value.whole;
    } else if (value.real != 0) {
        n.negative = value.real < 0;
        n.m = (uint64_t)ldexp(frexp(fabs(value.real), &n.power), 53);
        n.power -= 53;
    }
    return n;
}

/* a * b in halves of 64 bits. Not every processor has integers of 128 bits. */
static void multiply(uint64_t a, uint64_t b, uint64_t half[2]) {
    const uint64_t mask = UINT32_MAX;
    const uint64_t low = (a & mask) * (b & mask), high = (a >> 32) * (b >> 32);
    const uint64_t one = (a >> 32) * (b & mask), other = (a & mask) * (b >> 32);
    const uint64_t middle = (low >> 32) + (one & mask) + (other & mask);
    half[0] = (low & mask) | middle << 32;
    half[1] = high + (one >> 32) + (other >> 32) + (middle >> 32);
}

static void add_product(qn__exact_sum *sum, uint64_t a, uint64_t b, int power, int negative) {
    uint64_t product[2];
    multiply(a, b, product);
    qn__exact_add_scaled(sum, product[0], power, negative);
    qn__exact_add_scaled(sum, product[1], power + 64, negative);
}

static void add_powers(qn__moments *sums, number n) {
    uint64_t square[2];
    multiply(n.m, n.m, square);
    qn__exact_add_scaled(&sums->first, n.m, n.power, n.negative);
    add_product(&sums->second, n.m, n.m, 2 * n.power, 0);
    add_product(&sums->third, square[0], n.m, 3 * n.power, n.negative);
    add_product(&sums->third, square[1], n.m, 3 * n.power + 64, n.negative);
    sums->count++;
}

static int by_whole(const void *a, const void *b) {
    const int64_t x = ((const qn__wide_value *)a)->whole, y = ((const qn__wide_value *)b)->whole;
    return (x > y) - (x < y);
}

static int by_real(const void *a, const void *b) {
    const double x = ((const qn__wide_value *)a)->real, y = ((const qn__wide_value *)b)->real;
    return (x > y) - (x < y);
}

/* n * part / 2^bits */
static void add_share(qn__exact_sum *sum, number n, const uint64_t part[2], int bits,
                      int negative) {
    add_product(sum, n.m, part[0], n.power - bits, negative);
    add_product(sum, n.m, part[1], n.power - bits + 64, negative);
}

static double quantile(qn__exact kind, const qn__wide_value *sorted, uint64_t count, double q) {
    const qn__quantile_place p = qn__quantile_place_of(q, count);
    const number at = number_of(kind, sorted[p.rank]);
    const number next = number_of(kind, sorted[p.rank + 1 < count ? p.rank + 1 : p.rank]);
    qn__exact_sum sum = {.pending = 0};
    qn__exact_add_scaled(&sum, at.m, at.power, at.negative);
    add_share(&sum, at, p.part, p.bits, !at.negative);
    add_share(&sum, next, p.part, p.bits, next.negative);
    return qn__ratio_of_sum(&sum, 1);
}

static double real_of(qn__exact kind, qn__wide_value value) {
    return kind == QN__EXACT_WHOLE ? (double)value.whole : value.real;
}

/* `value` has the `count` values of a group, which are sorted. */
static void describe(const qn__column_task *task, qn__exact kind, qn__wide_value *value,
                     uint64_t count, qn__column_numbers *out) {
    qn__moments sums = {.count = 0};
    if (count == 0)
        return;
    qsort(value, (size_t)count, sizeof *value, kind == QN__EXACT_WHOLE ? by_whole : by_real);
    for (uint64_t i = 0; i < count; i++)
        add_powers(&sums, number_of(kind, value[i]));
    qn__moments_finish(&sums, &out->moments);
    out->minimum = real_of(kind, value[0]);
    out->maximum = real_of(kind, value[count - 1]);
    for (uint32_t i = 0; i < task->quantile_count; i++)
        out->quantiles[i] = quantile(kind, value, count, task->quantiles[i]);
}

static int is_missing(qn__exact kind, qn__wide_value value) {
    return kind == QN__EXACT_WHOLE ? value.whole == QN__WIDE_MISSING : isnan(value.real);
}

/* Numbers so near to 0 that their cubes are beyond the sums stay those of the floats. */
static int fits(qn__exact kind, const qn__wide_value *value, uint64_t rows) {
    for (uint64_t i = 0; i < rows; i++)
        if (!is_missing(kind, value[i]) && number_of(kind, value[i]).power < LEAST_POWER)
            return 0;
    return 1;
}

static void describe_column(const qn_data *data, uint32_t k, const qn__column_task *task,
                            const uint64_t *order, qn__wide_value *room, qn__column_numbers *out) {
    const qn__exact kind = qn__wide_kind(data, k);
    const qn__wide_value *value = qn__wide_column(data, k);
    if (!fits(kind, value, data->wide->rows))
        return;
    for (uint32_t g = 0; g < task->groups; g++) {
        const uint64_t first = g > 0 ? task->starts[g - 1] : 0;
        const uint64_t end = g > 0 && g + 1 < task->groups ? task->starts[g] : data->items;
        uint64_t count = 0;
        for (uint64_t i = first; i < end; i++) {
            const uint64_t item = order ? order[i] : i;
            room[count] = value[qn__data_row(data, item)];
            count += !is_missing(kind, room[count]);
        }
        describe(task, kind, room, count, &out[g]);
    }
}

qn_status qn__exact_describe(const qn_data *data, const qn__column_task *task,
                             const uint64_t *order, qn__column_numbers *numbers, qn_error *err) {
    if (!data->wide)
        return QN_OK;
    qn__wide_value *room = qn__alloc(data->items, sizeof *room, err);
    if (!room)
        return QN_MEMORY;
    for (uint32_t j = 0; j < data->wide->columns; j++) {
        const uint32_t k = data->wide->feature[j];
        if (qn__wide_kind(data, k) != QN__EXACT_MOMENT)
            describe_column(data, k, task, order, room, numbers + (size_t)k * task->groups);
    }
    qn__free(room);
    return QN_OK;
}

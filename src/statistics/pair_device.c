#include "statistics/pair_device.h"

#include <stdio.h>

/* Sums of a pair, in the order of the kernel: products, values of both, squares of both. */
enum { KINDS = 5 };
/* Numbers of the kernel, and words that an item gives. */
enum { ROWS, COLUMNS, KIND_COUNT, PARTS, FROM, SQUARES, NUMBERS };
enum { WORDS = 4 };
/* Items of a launch at most: their words need 128 MiB. */
#define MOST_ITEMS ((uint64_t)1 << 22)

/* ------------------------------------------------------------------ the kernel */

static qn_status write_program(qn__pair_device *d, qn_error *err) {
    char macros[512];
    snprintf(macros, sizeof macros,
             "#define QN_PAIR_LANES %d\n#define QN_PAIR_SIDE %du\n#define QN_PAIR_PART %du\n"
             "#define QN_PAIR_ROWS %d\n#define QN_PAIR_COLUMNS %d\n#define QN_PAIR_KINDS %d\n"
             "#define QN_PAIR_PARTS %d\n#define QN_PAIR_FROM %d\n#define QN_PAIR_SQUARES %d\n",
             QN__KERNEL_LANES, QN__PAIR_SIDE, QN__PAIR_PART, ROWS, COLUMNS, KIND_COUNT, PARTS, FROM,
             SQUARES);
    return qn__table_device_program(&d->table, macros, qn__pairs_text(), &d->job, err);
}

static void set_job(qn__pair_device *d) {
    d->array[0] = qn__table_device_array(&d->table);
    d->array[1] = (qn__kernel_array){.use = QN__KERNEL_VALUES, .each = WORDS * sizeof(uint64_t)};
    d->numbers[ROWS] = d->table.rows;
    d->numbers[COLUMNS] = d->table.columns;
    d->numbers[KIND_COUNT] = d->kinds;
    d->numbers[PARTS] = d->parts;
    d->job.array = d->array;
    d->job.arrays = 2;
    d->job.numbers = d->numbers;
    d->job.count = NUMBERS;
    const uint64_t side = (d->table.columns + QN__PAIR_SIDE - 1) / QN__PAIR_SIDE;
    d->job.items = side * (side + 1) / 2 * qn__pair_device_items(d);
    if (d->job.items > MOST_ITEMS)
        d->job.items = MOST_ITEMS;
}

qn_status qn__pair_device_make(const qn_data *data, int any, qn__pair_device *out, qn_error *err) {
    *out = (qn__pair_device){.parts = (uint32_t)((data->items - 1) / QN__PAIR_PART + 1),
                             .kinds = any ? KINDS : 1};
    qn_status status = qn__table_device_make(data, NULL, &out->table, err);
    if (status == QN_OK)
        status = write_program(out, err);
    if (status != QN_OK)
        qn__pair_device_release(out);
    else
        set_job(out);
    return status;
}

void qn__pair_device_release(qn__pair_device *d) { qn__table_device_release(&d->table); }

void qn__pair_device_begin(qn__pair_device *d, uint32_t from, uint32_t squares) {
    d->numbers[FROM] = from;
    d->numbers[SQUARES] = squares;
}

uint64_t qn__pair_device_items(const qn__pair_device *d) {
    return (uint64_t)QN__PAIRS * d->kinds * d->parts;
}

/* ------------------------------------------------------------------ what an item gives */

/* The item's sum, product by product; each is an exact binary64. Returns the rows that count. */
static uint64_t add_rows(const qn__pair_device *d, uint64_t item, uint32_t left, uint32_t right,
                         qn__exact_sum *sum) {
    const uint64_t number = item / QN__PAIRS, kind = number % d->kinds;
    const uint64_t from = number / d->kinds % d->parts * QN__PAIR_PART;
    const uint64_t to = d->table.rows - from < QN__PAIR_PART ? d->table.rows : from + QN__PAIR_PART;
    uint64_t count = 0;
    for (uint64_t row = from; row < to; row++) {
        const double a = (double)qn__table_device_value(&d->table, row, left);
        const double b = (double)qn__table_device_value(&d->table, row, right);
        if (a != a || b != b)
            continue;
        const double x = kind == 2 || kind == 4 ? b : a;
        qn__exact_add(sum, x * (kind == 0 ? b : kind < 3 ? 1.0 : x));
        count++;
    }
    return count;
}

/* An integer of 128 bits, times its unit. */
static void add_words(const uint64_t words[WORDS], qn__exact_sum *sum) {
    qn__table_device_add(words, 2, (int)(uint32_t)words[2] - 300, sum);
}

/* 1: the device has left the item to the host. */
static int is_left(const uint64_t words[WORDS]) { return words[2] >> 32 != 0; }

void qn__pair_device_add(const qn__pair_device *d, uint64_t item, uint32_t left, uint32_t right,
                         const uint64_t words[WORDS], qn__pair_sums *sums) {
    const uint64_t kind = item / QN__PAIRS % d->kinds;
    qn__exact_sum *sum = kind == 0  ? &sums->products
                         : kind < 3 ? &sums->first[kind - 1]
                                    : &sums->second[kind - 3];
    if (kind == 0)
        sums->count += words[3];
    if (is_left(words))
        add_rows(d, item, left, right, sum);
    else
        add_words(words, sum);
}

int qn__pair_device_check(const qn__pair_device *d, uint64_t item, uint32_t left, uint32_t right,
                          const uint64_t words[WORDS]) {
    qn__exact_sum own = {.pending = 0}, other = {.pending = 0};
    if (words[3] != add_rows(d, item, left, right, &own))
        return 0;
    add_words(words, &other);
    return is_left(words) || qn__exact_compare(&own, &other) == 0;
}

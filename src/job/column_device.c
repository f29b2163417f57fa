#include "job/column_device.h"

#include "base/memory.h"
#include "job/statistics_columns.h"
#include <string.h>

enum { MOST_CLASSES = 1 << 16, PART = 1 << 10, TILE = QN__COLUMN_TILE, WORDS = QN__COLUMN_WORDS };
/* Numbers of the kernel. */
enum { COLUMNS, FROM, NUMBERS };
/* Items of a launch at most: their words need 128 MiB. */
#define MOST_ITEMS ((uint64_t)1 << 21)

/* ------------------------------------------------------------------ the kernel */

static int write_text(qn__language language, int bytes, qn__text *t) {
    qn__text_add(t,
                 "%s%s#define QN_COLUMN_LANES %d\n#define QN_COLUMN_TILE %du\n"
                 "#define QN_COLUMN_COLUMNS %d\n#define QN_COLUMN_FROM %d\n%s",
                 qn__exact_text(language), bytes ? "#define QN_TABLE_BYTES 1\n" : "",
                 QN__KERNEL_LANES, TILE, COLUMNS, FROM, qn__columns_text());
    return !t->failed;
}

static uint64_t end_of(const qn__column_task *task, uint32_t group, uint64_t items) {
    return group > 0 && group + 1 < task->groups ? task->starts[group] : items;
}

/* Cuts the rows of each class, or all; `d` NULL: only counts. Returns the number of parts. */
static uint64_t cut(const qn__column_task *task, uint64_t items, qn__column_device *d) {
    uint64_t parts = 0, from = 0;
    for (uint32_t g = task->groups > 1; g < task->groups; g++)
        for (const uint64_t end = end_of(task, g, items); from < end; parts++) {
            if (d) {
                d->group[parts] = g;
                d->start[parts] = from;
            }
            from = end - from < PART ? end : from + PART;
        }
    if (d)
        d->start[parts] = items;
    return parts;
}

static qn_status make_parts(const qn__column_task *task, qn__column_device *d, qn_error *err) {
    d->parts = cut(task, d->table.rows, NULL);
    d->start = qn__alloc(d->parts + 1, sizeof *d->start, err);
    d->group = qn__alloc(d->parts, sizeof *d->group, err);
    if (!d->start || !d->group)
        return QN_MEMORY;
    cut(task, d->table.rows, d);
    return QN_OK;
}

static void set_job(qn__column_device *d) {
    d->array[0] = qn__table_device_array(&d->table);
    d->array[1] = (qn__kernel_array){.use = QN__KERNEL_WHOLE,
                                     .each = sizeof *d->start,
                                     .bytes = (d->parts + 1) * sizeof *d->start,
                                     .data = d->start};
    d->array[2] = (qn__kernel_array){.use = QN__KERNEL_VALUES, .each = WORDS * sizeof(uint64_t)};
    d->numbers[COLUMNS] = d->table.columns;
    d->job.array = d->array;
    d->job.arrays = 3;
    d->job.numbers = d->numbers;
    d->job.count = NUMBERS;
    d->job.items = d->parts * (d->table.columns < TILE ? d->table.columns : TILE);
    if (d->job.items > MOST_ITEMS)
        d->job.items = MOST_ITEMS;
    d->job.smaller = "leave the device out: it takes a table that fits in its memory";
}

int qn__column_device_takes(const qn_data *data) {
    const uint64_t most = (uint64_t)UINT32_MAX / TILE; /* parts of a tile have 32 bits */
    return data->items > 0 && qn__columns_of(data) < most &&
           data->items / PART + MOST_CLASSES < most;
}

qn_status qn__column_device_make(const qn_data *data, const uint64_t *order,
                                 const qn__column_task *task, qn__column_device *out,
                                 qn_error *err) {
    *out = (qn__column_device){.parts = 0};
    qn_status status = qn__table_device_make(data, order, &out->table, err);
    if (status == QN_OK)
        status = make_parts(task, out, err);
    for (int language = 0; language < 2 && status == QN_OK; language++) {
        if (!write_text((qn__language)language, out->table.bytes, &out->text[language]))
            status = qn__fail_memory(err, 1, out->text[language].size);
        out->job.text[language] = out->text[language].data;
    }
    if (status != QN_OK)
        qn__column_device_release(out);
    else
        set_job(out);
    return status;
}

void qn__column_device_release(qn__column_device *d) {
    for (int language = 0; language < 2; language++)
        qn__text_release(&d->text[language]);
    qn__table_device_release(&d->table);
    qn__free(d->start);
    qn__free(d->group);
    d->start = NULL;
    d->group = NULL;
}

void qn__column_device_begin(qn__column_device *d, uint32_t column) { d->numbers[FROM] = column; }

/* The upper half of an item's number is the tile. */
void qn__column_device_span(const qn__column_device *d, uint32_t first, uint32_t columns,
                            qn__kernel_span *out) {
    const uint32_t tile = columns < TILE ? columns : TILE;
    out->first = ((uint64_t)first * TILE + tile - 1) << 32;
    out->count = d->parts * tile;
}

qn__column_item qn__column_device_item(uint64_t item) {
    const uint32_t tile = (uint32_t)(item >> 32), place = (uint32_t)item;
    const uint32_t first = tile / TILE, columns = tile % TILE + 1;
    return (qn__column_item){first, columns, first + place % columns, place / columns};
}

/* ------------------------------------------------------------------ what an item gives */

/* What an item of the kernel has besides its sums. */
static uint64_t count_of(const uint64_t words[WORDS]) { return words[6] & 0xFFFFFFFF; }
static int unit_of(const uint64_t words[WORDS]) { return (int)(words[6] >> 32 & 0xFF) - 150; }
static int is_left(const uint64_t words[WORDS]) { return words[6] >> 63 != 0; }

/* The float of an ascending number (qn_order_key of columns.cl). */
static float float_of(const qn__column_device *d, uint32_t key) {
    const uint32_t bits = key ^ (((key >> 31) - 1) | 0x80000000);
    float value;
    memcpy(&value, &bits, sizeof value);
    return d->table.bytes ? (float)key : value;
}

static void add_extremes(qn__column_total *sums, uint64_t count, float least, float greatest) {
    if (count == 0)
        return;
    sums->least = sums->moments.count == 0 || least < sums->least ? least : sums->least;
    sums->greatest =
        sums->moments.count == 0 || greatest > sums->greatest ? greatest : sums->greatest;
    sums->moments.count += count;
}

static void add_words(const qn__column_device *d, const uint64_t words[WORDS],
                      qn__column_total *sums) {
    const int unit = unit_of(words);
    qn__table_device_add(words, 1, unit, &sums->moments.first);
    qn__table_device_add(words + 1, 2, 2 * unit, &sums->moments.second);
    qn__table_device_add(words + 3, 3, 3 * unit, &sums->moments.third);
    add_extremes(sums, count_of(words), float_of(d, (uint32_t)words[7]),
                 float_of(d, (uint32_t)(words[7] >> 32)));
}

/* The part's sums by the host. */
static void add_rows(const qn__column_device *d, uint64_t part, uint32_t column,
                     qn__column_total *sums) {
    float values[PART], least = 0, greatest = 0;
    size_t count = 0;
    for (uint64_t row = d->start[part]; row < d->start[part + 1]; row++) {
        const float value = qn__table_device_value(&d->table, row, column) + 0.0f;
        if (value != value)
            continue;
        least = count == 0 || value < least ? value : least;
        greatest = count == 0 || value > greatest ? value : greatest;
        values[count++] = value;
    }
    add_extremes(sums, count, least, greatest);
    sums->moments.count -= count; /* the next call counts them */
    qn__moments_add(&sums->moments, values, count);
}

void qn__column_device_add(const qn__column_device *d, uint64_t part, uint32_t column,
                           const uint64_t words[WORDS], qn__column_total *sums) {
    if (is_left(words))
        add_rows(d, part, column, sums);
    else
        add_words(d, words, sums);
}

int qn__column_device_check(const qn__column_device *d, uint64_t part, uint32_t column,
                            const uint64_t words[WORDS]) {
    qn__column_total own = {.least = 0}, other = {.least = 0};
    add_rows(d, part, column, &own);
    add_words(d, words, &other);
    if (own.moments.count != other.moments.count || own.least != other.least ||
        own.greatest != other.greatest)
        return 0;
    return is_left(words) || (qn__exact_compare(&own.moments.first, &other.moments.first) == 0 &&
                              qn__exact_compare(&own.moments.second, &other.moments.second) == 0 &&
                              qn__exact_compare(&own.moments.third, &other.moments.third) == 0);
}

void qn__column_total_merge(qn__column_total *sums, qn__column_total *other) {
    const uint64_t count = other->moments.count;
    add_extremes(sums, count, other->least, other->greatest);
    sums->moments.count -= count;
    qn__moments_merge(&sums->moments, &other->moments);
}

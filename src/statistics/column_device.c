#include "statistics/column_device.h"

#include "base/memory.h"
#include "data/table/table_columns.h"
#include <stdio.h>

enum { CHUNK = 1 << 16, MOST_CHUNKS = 64, MOST_TARGETS = 64, LEAST_TARGET = 1 << 12 };
enum { MOST_CLASSES = 1 << 16, PART = 1 << 10, TILE = QN__COLUMN_TILE, WORDS = QN__COLUMN_WORDS };
enum { ALL_KEYS = QN__COLUMN_LANE_KEYS * QN__KERNEL_LANES };
/* Numbers of the kernel. */
enum { COLUMNS, FROM, CHUNKS, NUMBERS };
/* Items of a launch at most: their words need 128 MiB. */
#define MOST_ITEMS ((uint64_t)1 << 21)

/* ------------------------------------------------------------------ the kernel */

static qn_status write_program(qn__column_device *d, qn_error *err) {
    char macros[512];
    snprintf(macros, sizeof macros,
             "#define QN_COLUMN_LANES %d\n#define QN_COLUMN_TILE %du\n"
             "#define QN_COLUMN_COLUMNS %d\n#define QN_COLUMN_FROM %d\n"
             "#define QN_COLUMN_CHUNKS %d\n#define QN_COLUMN_KEYS %du\n",
             QN__KERNEL_LANES, TILE, COLUMNS, FROM, CHUNKS, QN__COLUMN_LANE_KEYS);
    return qn__table_device_program(&d->table, macros, qn__columns_text(), &d->job, err);
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

/* Cuts the rows of all groups for passes: few chunks, whose counts the host adds. Returns their
 * number. */
static uint64_t cut_chunks(const qn__column_task *task, uint64_t items, qn__column_device *d) {
    const uint64_t most = items / MOST_CHUNKS > CHUNK ? items / MOST_CHUNKS : CHUNK;
    uint64_t chunks = 0, from = 0;
    for (uint32_t g = 0; g < task->groups; g++) {
        from = g == 1 ? 0 : from;
        for (const uint64_t end = end_of(task, g, items); from < end; chunks++) {
            const uint64_t to = end - from < most ? end : from + most;
            if (d) {
                d->target[chunks] = g;
                d->chunk[2 * chunks] = from;
                d->chunk[2 * chunks + 1] = to;
            }
            from = to;
        }
    }
    return chunks;
}

static qn_status make_chunks(const qn__column_task *task, qn__column_device *d, qn_error *err) {
    d->chunks = cut_chunks(task, d->table.rows, NULL);
    d->chunk = qn__alloc(d->chunks, 2 * sizeof *d->chunk, err);
    d->target = qn__alloc(d->chunks, sizeof *d->target, err);
    if (!d->chunk || !d->target)
        return QN_MEMORY;
    cut_chunks(task, d->table.rows, d);
    return QN_OK;
}

/* Without passes nobody reads these arrays. */
static void set_passes(qn__column_device *d, uint32_t columns) {
    const uint64_t items = d->chunks * columns * QN__KERNEL_LANES;
    d->array[3] = (qn__kernel_array){.use = QN__KERNEL_WHOLE, .each = sizeof(uint64_t)};
    d->array[3].bytes = (d->chunks > 0 ? 2 * d->chunks : 1) * sizeof(uint64_t);
    d->array[3].data = d->chunks > 0 ? d->chunk : d->start;
    d->array[QN__COLUMN_KEYS_ARRAY] = (qn__kernel_array){
        .use = QN__KERNEL_READ,
        .each = (d->chunks > 0 ? QN__COLUMN_LANE_KEYS : 1) * (uint32_t)sizeof(uint32_t)};
    d->numbers[CHUNKS] = d->chunks;
    d->job.items = d->job.items > items ? d->job.items : items;
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
    d->job.arrays = 5;
    d->job.whole_groups = 1;
    d->job.numbers = d->numbers;
    d->job.count = NUMBERS;
    const uint32_t columns = d->table.columns < TILE ? d->table.columns : TILE;
    d->job.items = d->parts * columns;
    set_passes(d, columns);
    d->job.items = d->job.items < QN__KERNEL_LANES ? QN__KERNEL_LANES
                   : d->job.items > MOST_ITEMS     ? MOST_ITEMS
                                                   : d->job.items;
}

int qn__column_device_takes(const qn_data *data) {
    const uint64_t most = (uint64_t)(UINT32_MAX >> 1) / TILE; /* parts of a tile have 32 bits */
    return data->items > 0 && qn__columns_of(data) < most &&
           data->items / PART + MOST_CLASSES < most;
}

qn_status qn__column_device_make(const qn_data *data, const uint64_t *order,
                                 const qn__column_task *task, int passes, qn__column_device *out,
                                 qn_error *err) {
    *out = (qn__column_device){.parts = 0};
    qn_status status = qn__table_device_make(data, order, &out->table, err);
    if (status == QN_OK)
        status = make_parts(task, out, err);
    if (status == QN_OK && passes)
        status = make_chunks(task, out, err);
    if (status == QN_OK)
        status = write_program(out, err);
    if (status != QN_OK)
        qn__column_device_release(out);
    else
        set_job(out);
    return status;
}

void qn__column_device_release(qn__column_device *d) {
    qn__table_device_release(&d->table);
    qn__free(d->start);
    qn__free(d->group);
    qn__free(d->chunk);
    qn__free(d->target);
    d->start = d->chunk = NULL;
    d->group = d->target = NULL;
}

void qn__column_device_begin(qn__column_device *d, uint32_t column) { d->numbers[FROM] = column; }

int qn__column_device_passes(const qn_data *data, const qn__column_task *task) {
    const uint64_t classes = task->groups - 1;
    return classes <= MOST_TARGETS && data->items >= classes * LEAST_TARGET &&
           data->items < (uint64_t)MOST_CHUNKS << 31;
}

/* The upper half of an item's number is the tile. The highest bit is that of passes. */
void qn__column_device_span(const qn__column_device *d, uint32_t first, uint32_t columns,
                            qn__kernel_span *out) {
    const uint32_t tile = columns < TILE ? columns : TILE;
    out->first = ((uint64_t)first * TILE + tile - 1) << 32;
    out->count = d->parts * tile;
    out->from[QN__COLUMN_KEYS_ARRAY] = NULL;
}

void qn__column_device_pass(const qn__column_device *d, uint32_t first, uint32_t columns,
                            qn__kernel_span *out) {
    qn__column_device_span(d, first, columns, out);
    out->first |= (uint64_t)1 << 63;
    out->count = d->chunks * columns * QN__KERNEL_LANES;
}

int qn__column_device_is_pass(uint64_t item) { return item >> 63 != 0; }

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
    return d->table.bytes ? (float)key : qn__order_value(key);
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

/* The number of ascending keys up to a number; as in columns.cl. */
static uint32_t place_of(const uint32_t *keys, uint32_t number) {
    uint32_t place = 0;
    for (uint32_t half = ALL_KEYS / 2; half > 0; half /= 2)
        place += keys[place + half - 1] <= number ? half : 0;
    return place;
}

int qn__column_device_check_chunk(const qn__column_device *d, uint64_t chunk, uint32_t column,
                                  const uint32_t *keys, const uint64_t *words) {
    uint32_t counted[ALL_KEYS] = {0}, given[2];
    for (uint64_t row = d->chunk[2 * chunk]; row < d->chunk[2 * chunk + 1]; row++) {
        const float value = qn__table_device_value(&d->table, row, column) + 0.0f;
        if (value == value)
            counted[place_of(keys, d->table.bytes ? (uint32_t)value : qn__order_key(value))]++;
    }
    for (uint32_t i = 0; i < ALL_KEYS; i += 2) {
        given[0] = (uint32_t)words[i / 2];
        given[1] = (uint32_t)(words[i / 2] >> 32);
        if (given[0] != counted[i] || given[1] != counted[i + 1])
            return 0;
    }
    return 1;
}

void qn__column_total_merge(qn__column_total *sums, qn__column_total *other) {
    const uint64_t count = other->moments.count;
    add_extremes(sums, count, other->least, other->greatest);
    sums->moments.count -= count;
    qn__moments_merge(&sums->moments, &other->moments);
}

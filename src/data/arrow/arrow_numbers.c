/* Columns become rows in blocks of some rows of all columns, which stay in the cache: row by row
 * the reads would be far apart, column by column the writes. */
#include "data/arrow/arrow_numbers.h"
#include "base/binary/half.h"
#include "data/table/missing.h"
#include "data/table/table_space.h"
#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { BLOCK = 128 };

/* The letters of whole numbers and their types, but for bytes ('C'). */
#define WHOLE_NUMBERS(each)                                                                        \
    each('c', int8_t) each('s', int16_t) each('S', uint16_t) each('i', int32_t)                    \
        each('I', uint32_t) each('l', int64_t) each('L', uint64_t)

typedef struct work {
    const qn__arrow_table *table;
    const qn__arrow_number *number;
    qn__arrow_number *found; /* the same, to write `not_bytes` */
    uint32_t count;
    qn_data *data;
    atomic_uint_fast64_t next; /* column or block */
    uint64_t blocks;
    atomic_int missing, infinite;
    qn__wide_gather *gather;
} work;

/* A column of a part, and values of it. */
typedef struct cells {
    const struct ArrowArray *a;
    const char *values;
    const uint8_t *valid; /* NULL: none is missing */
    int64_t begin, rows;
    char letter;
} cells;

static char letter_of(const qn__arrow_table *table, uint64_t column) {
    return table->schema.children[column]->format[0];
}

int qn__arrow_is_plain(const qn__arrow_table *table, uint64_t column) {
    const struct ArrowSchema *type = table->schema.children[column];
    if (type->dictionary || strlen(type->format) != 1 || !strchr("bcsilCSILefg", *type->format))
        return 0;
    for (uint64_t p = 0; p < table->parts; p++) {
        const struct ArrowArray *a = table->part[p].children[column];
        if (a->n_buffers < 2 || !a->buffers[1])
            return 0;
    }
    return 1;
}

static cells cells_of(const qn__arrow_table *table, uint64_t part, uint64_t column) {
    const struct ArrowArray *whole = &table->part[part], *a = whole->children[column];
    return (cells){.a = a,
                   .values = a->buffers[1],
                   .valid = a->null_count != 0 ? a->buffers[0] : NULL,
                   .begin = whole->offset + a->offset,
                   .rows = whole->length,
                   .letter = letter_of(table, column)};
}

static int is_there(const cells *c, int64_t i) {
    const int64_t at = c->begin + i;
    return !c->valid || (c->valid[at / 8] >> at % 8 & 1);
}

static void run(qn__pool *pool, void (*body)(void *context, int thread), work *w) {
    if (pool)
        qn__pool_run(pool, body, w);
    else
        body(w, 0);
}

/* ------------------------------------------------------------------ not bytes */

/* Bits above the lowest 8 of any value; those of a negative one are set. */
#define SCAN(letter, type)                                                                         \
    case letter:                                                                                   \
        for (int64_t i = 0; i < c->rows; i++) {                                                    \
            type value;                                                                            \
            memcpy(&value, c->values + (size_t)(c->begin + i) * sizeof value, sizeof value);       \
            high |= (uint64_t)(int64_t)value;                                                      \
        }                                                                                          \
        break;

static int is_not_byte(const cells *c) {
    uint64_t high = 0;
    for (int64_t i = 0; c->valid && i < c->rows; i++)
        if (!is_there(c, i))
            return 1;
    switch (c->letter) {
        WHOLE_NUMBERS(SCAN)
    default: /* truth values and bytes */
        break;
    }
    return high > 255;
}

static void find_some(void *context, int thread) {
    work *w = context;
    (void)thread;
    for (;;) {
        const uint64_t k = atomic_fetch_add(&w->next, 1);
        if (k >= w->count)
            return;
        qn__arrow_number *n = &w->found[k];
        n->not_bytes |= strchr("efg", letter_of(w->table, n->column)) != NULL;
        for (uint64_t p = 0; p < w->table->parts && !n->not_bytes; p++) {
            const cells c = cells_of(w->table, p, n->column);
            n->not_bytes = is_not_byte(&c);
        }
    }
}

void qn__arrow_find_not_bytes(const qn__arrow_table *table, qn__arrow_number *number,
                              uint32_t count, qn__pool *pool) {
    work w = {.table = table, .found = number, .count = count};
    run(pool, find_some, &w);
}

/* ------------------------------------------------------------------ values */

/* Values i of the type, converted by `as`, to every `step`-th place from `to` on. */
#define PUT(letter, type, as)                                                                      \
    case letter:                                                                                   \
        for (int64_t i = 0; i < c->rows; i++) {                                                    \
            type value;                                                                            \
            memcpy(&value, c->values + (size_t)(c->begin + i) * sizeof value, sizeof value);       \
            to[(size_t)i * step] = as;                                                             \
        }                                                                                          \
        return;
#define PUT_BYTE(letter, type) PUT(letter, type, (uint8_t)value)
#define PUT_FLOAT(letter, type) PUT(letter, type, (float)value)

static int truth_at(const cells *c, int64_t i) {
    const int64_t at = c->begin + i;
    return ((const uint8_t *)c->values)[at / 8] >> at % 8 & 1;
}

static void put_bytes(const cells *c, uint8_t *to, size_t step) {
    switch (c->letter) {
        WHOLE_NUMBERS(PUT_BYTE)
        PUT_BYTE('C', uint8_t)
    default:
        for (int64_t i = 0; i < c->rows; i++)
            to[(size_t)i * step] = (uint8_t)truth_at(c, i);
    }
}

static void put_floats(const cells *c, float *to, size_t step) {
    switch (c->letter) {
        WHOLE_NUMBERS(PUT_FLOAT)
        PUT_FLOAT('C', uint8_t)
        PUT('e', uint16_t, (float)qn__half_value(value))
        PUT('f', float, value)
        PUT_FLOAT('g', double)
    default:
        for (int64_t i = 0; i < c->rows; i++)
            to[(size_t)i * step] = (float)truth_at(c, i);
    }
}

/* Missing values and NaN become the one NaN of data sets. */
static void settle(work *w, const cells *c, float *to, size_t step) {
    int missing = 0, infinite = 0;
    for (int64_t i = 0; i < c->rows; i++) {
        float *value = &to[(size_t)i * step];
        if (!is_there(c, i) || isnan(*value)) {
            qn__set_missing(value);
            missing = 1;
        }
        infinite |= isinf(*value);
    }
    if (missing)
        atomic_store(&w->missing, 1);
    if (infinite)
        atomic_store(&w->infinite, 1);
}

/* Some rows of a part, which is row `item` of the table. */
static void put_block(work *w, uint64_t part, int64_t first, int64_t rows, uint64_t item) {
    qn_data *data = w->data;
    const size_t step = data->features;
    for (uint32_t k = 0; k < w->count; k++) {
        const qn__arrow_number *n = &w->number[k];
        cells c = cells_of(w->table, part, n->column);
        c.begin += first;
        c.rows = rows;
        const size_t at = (size_t)item * step + n->feature;
        if (data->type == QN_U8) {
            put_bytes(&c, (uint8_t *)qn__table_space_values(data) + at, step);
            continue;
        }
        float *to = (float *)qn__table_space_values(data) + at;
        put_floats(&c, to, step);
        if (c.valid || strchr("efg", c.letter))
            settle(w, &c, to, step);
    }
}

static uint64_t blocks_of(const qn__arrow_table *table, uint64_t part) {
    return ((uint64_t)table->part[part].length + BLOCK - 1) / BLOCK;
}

/* Blocks are counted through all parts; a thread takes the next one that nobody has. */
static void put_some(void *context, int thread) {
    work *w = context;
    /* Blocks and rows before the part. */
    uint64_t part = 0, before = 0, item = w->table->first;
    (void)thread;
    for (;;) {
        const uint64_t block = atomic_fetch_add(&w->next, 1);
        if (block >= w->blocks || atomic_load(&w->infinite))
            return;
        for (; block - before >= blocks_of(w->table, part); part++) {
            before += blocks_of(w->table, part);
            item += (uint64_t)w->table->part[part].length;
        }
        const int64_t first = (int64_t)(block - before) * BLOCK,
                      left = w->table->part[part].length - first;
        put_block(w, part, first, left < BLOCK ? left : BLOCK, item + (uint64_t)first);
    }
}

int qn__arrow_put_numbers(const qn__arrow_table *table, const qn__arrow_number *number,
                          uint32_t count, qn_data *data, qn__pool *pool) {
    work w = {.table = table, .number = number, .count = count, .data = data};
    for (uint64_t p = 0; p < table->parts; p++)
        w.blocks += blocks_of(table, p);
    if (count > 0)
        run(pool, put_some, &w);
    if (atomic_load(&w.infinite))
        return 0;
    data->missing |= atomic_load(&w.missing);
    return 1;
}

/* ------------------------------------------------------------------ wide columns */

/* Values between two looks at whether more are needed. */
enum { LOOK = 1024 };

int qn__arrow_may_be_wide(const qn__arrow_table *table, uint64_t column, int *real) {
    const struct ArrowSchema *type = table->schema.children[column];
    const char *format = type->dictionary ? type->dictionary->format : type->format;
    size_t width;
    int scale;
    if (qn__arrow_decimal_format(format, &width, &scale)) {
        *real = scale != 0;
        return 1;
    }
    *real = format[0] == 'g';
    return strlen(format) == 1 && strchr("iIlLg", *format);
}

/* Values from `first` on, as `see` takes them. */
#define SEE(type, see)                                                                             \
    {                                                                                              \
        for (int64_t i = first; i < end; i++) {                                                    \
            type value;                                                                            \
            memcpy(&value, c->values + (size_t)(c->begin + i) * sizeof value, sizeof value);       \
            if (!c->valid || is_there(c, i))                                                       \
                see;                                                                               \
        }                                                                                          \
        return;                                                                                    \
    }

static void see_run(const cells *c, int64_t first, int64_t end, qn__wide_facts *facts) {
    switch (c->letter) {
    case 'i':
        SEE(int32_t, qn__wide_see_whole(facts, value))
    case 'I':
        SEE(uint32_t, qn__wide_see_whole(facts, value))
    case 'l':
        SEE(int64_t, qn__wide_see_whole(facts, value))
    case 'L':
        SEE(uint64_t, qn__wide_see_whole(facts, value > INT64_MAX ? INT64_MIN : (int64_t)value))
    default:
        SEE(double, if (!isnan(value)) qn__wide_see_real(facts, value))
    }
}

static void see_some(void *context, int thread) {
    work *w = context;
    (void)thread;
    for (uint64_t k; (k = atomic_fetch_add(&w->next, 1)) < w->count;) {
        const qn__arrow_number *n = &w->number[k];
        qn__wide_column_state *state = &w->gather->column[n->feature];
        for (uint64_t p = 0; p < w->table->parts; p++) {
            const cells c = cells_of(w->table, p, n->column);
            for (int64_t i = 0; i < c.rows && qn__wide_is_open(w->gather, state); i += LOOK)
                see_run(&c, i, c.rows - i < LOOK ? c.rows : i + LOOK, &state->facts);
        }
    }
}

static int64_t whole_at(const cells *c, int64_t i) {
    const char *at =
        c->values + (size_t)(c->begin + i) * (c->letter == 'i' || c->letter == 'I' ? 4 : 8);
    int64_t whole;
    int32_t half;
    if (c->letter == 'l' || c->letter == 'L') {
        memcpy(&whole, at, sizeof whole);
        return whole;
    }
    memcpy(&half, at, sizeof half);
    return c->letter == 'i' ? half : (int64_t)(uint32_t)half;
}

static void keep_part(const cells *c, uint64_t item, qn__wide_column_state *state) {
    for (int64_t i = 0; i < c->rows; i++) {
        double real;
        if (c->valid && !is_there(c, i))
            continue;
        if (c->letter != 'g') {
            qn__wide_keep_whole(state, item + (uint64_t)i, whole_at(c, i));
            continue;
        }
        memcpy(&real, c->values + (size_t)(c->begin + i) * sizeof real, sizeof real);
        if (!isnan(real))
            qn__wide_keep_real(state, item + (uint64_t)i, real);
    }
}

static qn_status keep_column(const work *w, const qn__arrow_number *n, qn_error *err) {
    uint64_t item = w->table->first;
    int keep;
    const qn_status status = qn__wide_gather_look(w->gather, n->feature, item, &keep, err);
    for (uint64_t p = 0; status == QN_OK && keep && p < w->table->parts; p++) {
        const cells c = cells_of(w->table, p, n->column);
        keep_part(&c, item, &w->gather->column[n->feature]);
        item += (uint64_t)c.rows;
    }
    return status;
}

qn_status qn__arrow_gather(const qn__arrow_table *table, const qn__arrow_number *number,
                           uint32_t count, qn__wide_gather *gather, qn__pool *pool, qn_error *err) {
    work w = {.table = table, .number = number, .count = count, .gather = gather};
    qn_status status = QN_OK;
    if (gather->live == 0)
        return QN_OK;
    run(pool, see_some, &w);
    for (uint32_t k = 0; status == QN_OK && k < count; k++)
        status = keep_column(&w, &number[k], err);
    return status;
}

/* Writing JSON lines: an object for each item, in which missing values are null. */
#include "base/memory.h"
#include "base/text/text.h"
#include "data/cells/text_set.h"
#include "data/write/formats.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PIECE = 1 << 16, SOME_ROWS = 64 };

/* Without a point it would be a whole number, and -0 have no sign. */
static void add_real(qn__text *line, double value) {
    char text[QN__REAL_TEXT];
    qn__real_text(value, text);
    qn__text_add(line, "%s%s", text, value == 0 && signbit(value) ? ".0" : "");
}

/* -0 without a point would be a whole number, which has no sign. */
static void add_float(qn__text *line, float value, int whole, int pointed) {
    char text[40];
    qn__written_float(value, whole, text);
    qn__text_add(line, "%s%s", text, pointed || (value == 0 && signbit(value)) ? ".0" : "");
}

static void add_moment(qn__text *line, int64_t moment, int time, int zone) {
    char text[QN__MOMENT_TEXT];
    qn__moment_text(moment, time, zone, text);
    qn__text_add_json(line, text);
}

/* Values of some items of a column. */
typedef struct part {
    union {
        uint8_t u8[SOME_ROWS];
        int32_t i32[SOME_ROWS];
        uint32_t u32[SOME_ROWS];
        int64_t i64[SOME_ROWS];
        float f32[SOME_ROWS];
        double f64[SOME_ROWS];
    } value;
    uint8_t valid[SOME_ROWS / 8 + 1];
} part;

static void add_value(qn__text *line, const qn__written_column *c, const part *p, size_t i,
                      int pointed) {
    if (!(p->valid[i / 8] >> i % 8 & 1)) {
        qn__text_add(line, "null");
        return;
    }
    switch (c->type) {
    case QN__WRITTEN_U8:
        qn__text_add(line, "%d", p->value.u8[i]);
        return;
    case QN__WRITTEN_I32:
        qn__text_add(line, "%" PRId32, p->value.i32[i]);
        return;
    case QN__WRITTEN_I64:
        qn__text_add(line, "%" PRId64, p->value.i64[i]);
        return;
    case QN__WRITTEN_F32:
        add_float(line, p->value.f32[i], c->whole, pointed);
        return;
    case QN__WRITTEN_F64:
        add_real(line, p->value.f64[i]);
        return;
    case QN__WRITTEN_TEXT:
        qn__text_add_json(line, qn__written_text(c, p->value.u32[i]));
        return;
    case QN__WRITTEN_DAY:
        add_moment(line, p->value.i32[i] * QN__DAY_MICROSECONDS, 0, 0);
        return;
    default:
        add_moment(line, p->value.i64[i], 1, c->zone);
    }
}

/* An object holds each key once. */
static qn_status check_names(const qn__written_columns *columns, qn_error *err) {
    qn__text_set names = {0};
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < columns->count && status == QN_OK; i++) {
        const char *name = columns->column[i].name;
        const qn__cell cell = {.text = name, .size = strlen(name)};
        if (qn__text_set_find(&names, &cell) == QN__NO_TEXT) {
            status = qn__text_set_add(&names, &cell, err);
            continue;
        }
        qn__fail(err, QN_INPUT,
                 "two columns are called \"%.40s\", and a JSON object holds a key once", name);
        status = qn__remedy(err, QN_INPUT, "rename one, or write the table as Parquet or CSV");
    }
    qn__text_set_release(&names);
    return status;
}

/* The columns of the next items. */
static void fill(const qn__written_columns *columns, uint64_t first, uint64_t rows, part *parts) {
    for (uint32_t k = 0; k < columns->count; k++)
        qn__written_fill(&columns->column[k], first, rows, &parts[k].value, parts[k].valid);
}

/* `pointed`: numbers of features are written with a point, so that the type stays. */
static void add_item(qn__text *text, const qn__written_columns *columns, const part *parts,
                     size_t i, int pointed) {
    for (uint32_t k = 0; k < columns->count; k++) {
        const qn__written_column *c = &columns->column[k];
        qn__text_add(text, k ? ", " : "{");
        qn__text_add_json(text, c->name);
        qn__text_add(text, ": ");
        add_value(text, c, &parts[k], i, pointed && c->use == QN__WRITTEN_FEATURE);
    }
    qn__text_add(text, "}\n");
}

static qn_status put_items(const qn__written_columns *columns, part *parts, qn__writer *writer,
                           qn_error *err) {
    const int pointed = qn__looks_like_bytes(columns->column[0].data);
    qn__text text = {0};
    qn_status status = QN_OK;
    for (uint64_t row = 0; row < columns->rows && status == QN_OK; row++) {
        if (row % SOME_ROWS == 0) {
            const uint64_t left = columns->rows - row;
            fill(columns, row, left < SOME_ROWS ? left : SOME_ROWS, parts);
        }
        add_item(&text, columns, parts, (size_t)(row % SOME_ROWS), pointed && row == 0);
        if (text.failed)
            status = qn__fail_memory(err, text.size, 2);
        else if (text.size > PIECE || row + 1 == columns->rows) {
            status = qn__writer_add(writer, text.data, text.size, err);
            text.size = 0;
        }
    }
    qn__text_release(&text);
    return status;
}

static qn_status write_file(const qn__written_columns *columns, const char *path,
                            qn__writer_batch *batch, qn_error *err) {
    qn__writer *writer = NULL;
    part *parts = qn__alloc(columns->count, sizeof *parts, err);
    qn_status status = parts ? check_names(columns, err) : QN_MEMORY;
    if (status == QN_OK)
        status = qn__writer_create(path, &writer, err);
    if (status == QN_OK)
        status = put_items(columns, parts, writer, err);
    status = qn__writer_finish(writer, batch, status, err);
    qn__free(parts);
    return status;
}

const qn__format qn__json_format = {.name = "json",
                                    .shown = "JSON lines",
                                    .about = "the same in JSON lines",
                                    .endings = {".jsonl", ".ndjson", ".json"},
                                    .categories = 1,
                                    .weights = 1,
                                    .several = 1,
                                    .typed = 1,
                                    .counts = 1,
                                    .columns = write_file};

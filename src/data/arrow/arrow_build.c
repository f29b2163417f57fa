/* Columns in the layout of the Arrow columnar format: a bit for each value that is not missing, and
 * the values; texts have offsets of 64 bits and bytes. */
#include "data/arrow/arrow_build.h"
#include "base/memory.h"
#include "data/arrow/arrow_parts.h"
#include "data/arrow/arrow_table.h"
#include "data/table/growing.h"
#include <errno.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

typedef struct build_column {
    char *name;
    qn__build_type type;
    uint64_t rows, missing;
    qn__growing valid;  /* a bit a value; no bytes while nothing is missing */
    qn__growing values; /* TEXT: offsets, one more than values */
    qn__growing text;
    const void *buffers[3];
} build_column;

struct qn__arrow_build {
    build_column *column;
    uint64_t columns, capacity;
    int given;     /* the part was handed out */
    qn__pile pile; /* what the stream handed out */
};

/* Sets bit `at`, which is the last one or after it. */
static qn_status put_bit(qn__growing *m, uint64_t at, int bit, qn_error *err) {
    const uint8_t zero = 0;
    if (at / 8 >= m->size && qn__growing_add(m, &zero, 1, err) != QN_OK)
        return QN_MEMORY;
    m->bytes[at / 8] = (uint8_t)(m->bytes[at / 8] | bit << at % 8);
    return QN_OK;
}

/* ------------------------------------------------------------------ columns */

qn_status qn__build_create(qn__arrow_build **out, qn_error *err) {
    *out = qn__alloc(1, sizeof **out, err);
    return *out ? QN_OK : QN_MEMORY;
}

void qn__build_destroy(qn__arrow_build *build) {
    if (!build)
        return;
    for (uint64_t i = 0; i < build->columns; i++) {
        build_column *c = &build->column[i];
        qn__free(c->name);
        qn__growing_release(&c->valid);
        qn__growing_release(&c->values);
        qn__growing_release(&c->text);
    }
    qn__free(build->column);
    qn__pile_release(&build->pile);
    qn__free(build);
}

static qn_status begin_texts(build_column *c, qn_error *err) {
    const int64_t zero = 0;
    return qn__growing_add(&c->values, &zero, sizeof zero, err);
}

static qn_status more_columns(qn__arrow_build *build, qn_error *err) {
    if (build->columns < build->capacity)
        return QN_OK;
    const uint64_t capacity = build->capacity ? 2 * build->capacity : FIRST_CAPACITY;
    build_column *more = qn__alloc(capacity, sizeof *more, err);
    if (!more)
        return QN_MEMORY;
    if (build->columns > 0)
        memcpy(more, build->column, (size_t)build->columns * sizeof *more);
    qn__free(build->column);
    build->column = more;
    build->capacity = capacity;
    return QN_OK;
}

qn_status qn__build_add(qn__arrow_build *build, const char *name, size_t size, qn__build_type type,
                        qn_error *err) {
    if (more_columns(build, err) != QN_OK)
        return QN_MEMORY;
    build_column *c = &build->column[build->columns];
    *c = (build_column){.type = type, .name = qn__copy_unquoted(name, size, 0, err)};
    if (!c->name)
        return QN_MEMORY;
    build->columns++;
    return type == QN__BUILD_TEXT ? begin_texts(c, err) : QN_OK;
}

uint64_t qn__build_columns(const qn__arrow_build *build) { return build->columns; }

qn__build_type qn__build_type_of(const qn__arrow_build *build, uint64_t column) {
    return build->column[column].type;
}

uint64_t qn__build_rows(const qn__arrow_build *build, uint64_t column) {
    return build->column[column].rows;
}

static uint64_t memory_of(const qn__growing *g) { return g->file ? 0 : g->capacity; }

uint64_t qn__build_bytes(const qn__arrow_build *build) {
    uint64_t bytes = build->capacity * sizeof *build->column;
    for (uint64_t i = 0; i < build->columns; i++) {
        const build_column *c = &build->column[i];
        bytes += memory_of(&c->valid) + memory_of(&c->values) + memory_of(&c->text);
    }
    return bytes;
}

/* ------------------------------------------------------------------ values */

/* Notes whether the next value is there. The bits begin with the first missing value. */
static qn_status count(build_column *c, int there, qn_error *err) {
    const uint8_t full = 0xFF;
    if (!there && c->missing++ == 0) {
        for (uint64_t i = 0; i < c->rows / 8; i++)
            if (qn__growing_add(&c->valid, &full, 1, err) != QN_OK)
                return QN_MEMORY;
        for (uint64_t i = c->rows / 8 * 8; i < c->rows; i++)
            if (put_bit(&c->valid, i, 1, err) != QN_OK)
                return QN_MEMORY;
    }
    if (c->missing > 0 && put_bit(&c->valid, c->rows, there, err) != QN_OK)
        return QN_MEMORY;
    c->rows++;
    return QN_OK;
}

/* What stands in the place of a missing value. */
static qn_status put_nothing(build_column *c, qn_error *err) {
    const int64_t zero = 0, end = (int64_t)c->text.size;
    switch (c->type) {
    case QN__BUILD_BOOL:
        return put_bit(&c->values, c->rows, 0, err);
    case QN__BUILD_INT:
    case QN__BUILD_DOUBLE:
        return qn__growing_add(&c->values, &zero, sizeof zero, err);
    case QN__BUILD_FLOAT:
        return qn__growing_add(&c->values, &zero, sizeof(float), err);
    case QN__BUILD_TEXT:
        return qn__growing_add(&c->values, &end, sizeof end, err);
    default:
        return QN_OK;
    }
}

qn_status qn__build_put_whole(qn__arrow_build *build, uint64_t column, int64_t value,
                              qn_error *err) {
    build_column *c = &build->column[column];
    const qn_status status = c->type == QN__BUILD_BOOL
                                 ? put_bit(&c->values, c->rows, value != 0, err)
                                 : qn__growing_add(&c->values, &value, sizeof value, err);
    return status == QN_OK ? count(c, 1, err) : status;
}

qn_status qn__build_put_number(qn__arrow_build *build, uint64_t column, double value,
                               qn_error *err) {
    build_column *c = &build->column[column];
    const float rounded = (float)value;
    const qn_status status = c->type == QN__BUILD_FLOAT
                                 ? qn__growing_add(&c->values, &rounded, sizeof rounded, err)
                                 : qn__growing_add(&c->values, &value, sizeof value, err);
    return status == QN_OK ? count(c, 1, err) : status;
}

qn_status qn__build_put_text(qn__arrow_build *build, uint64_t column, const char *text, size_t size,
                             qn_error *err) {
    build_column *c = &build->column[column];
    qn_status status = qn__growing_add(&c->text, text, size, err);
    const int64_t end = (int64_t)c->text.size;
    if (status == QN_OK)
        status = qn__growing_add(&c->values, &end, sizeof end, err);
    return status == QN_OK ? count(c, 1, err) : status;
}

qn_status qn__build_put_missing(qn__arrow_build *build, uint64_t column, qn_error *err) {
    build_column *c = &build->column[column];
    const qn_status status = put_nothing(c, err);
    return status == QN_OK ? count(c, 0, err) : status;
}

qn_status qn__build_pad(qn__arrow_build *build, uint64_t rows, qn_error *err) {
    for (uint64_t i = 0; i < build->columns; i++)
        while (build->column[i].rows < rows)
            if (qn__build_put_missing(build, i, err) != QN_OK)
                return QN_MEMORY;
    return QN_OK;
}

/* ------------------------------------------------------------------ types */

/* All values so far are missing, and get their places. */
static qn_status set_first_type(build_column *c, qn__build_type type, qn_error *err) {
    const uint64_t rows = c->rows;
    qn_status status = type == QN__BUILD_TEXT ? begin_texts(c, err) : QN_OK;
    c->type = type;
    for (c->rows = 0; c->rows < rows && status == QN_OK; c->rows++)
        status = put_nothing(c, err);
    c->rows = rows;
    return status;
}

static qn_status make_doubles(build_column *c, qn_error *err) {
    qn__growing to = {0};
    for (uint64_t i = 0; i < c->rows; i++) {
        int64_t whole = 0;
        if (c->type == QN__BUILD_BOOL)
            whole = c->values.bytes[i / 8] >> i % 8 & 1;
        else
            memcpy(&whole, c->values.bytes + i * sizeof whole, sizeof whole);
        const double number = (double)whole;
        if (qn__growing_add(&to, &number, sizeof number, err) != QN_OK) {
            qn__growing_release(&to);
            return QN_MEMORY;
        }
    }
    qn__growing_release(&c->values);
    c->values = to;
    c->type = QN__BUILD_DOUBLE;
    return QN_OK;
}

int qn__build_widen(qn__arrow_build *build, uint64_t column, qn__build_type type, qn_status *status,
                    qn_error *err) {
    build_column *c = &build->column[column];
    *status = QN_OK;
    if (c->type == type)
        return 1;
    if (c->type == QN__BUILD_EMPTY)
        *status = set_first_type(c, type, err);
    else if (type == QN__BUILD_DOUBLE && (c->type == QN__BUILD_BOOL || c->type == QN__BUILD_INT))
        *status = make_doubles(c, err);
    else
        return 0;
    return *status == QN_OK;
}

/* ------------------------------------------------------------------ the stream */

static const char *const formats[] = {"n", "b", "l", "f", "g", "U"};

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    qn__arrow_build *b = stream->private_data;
    qn__column_type *type = qn__pile_alloc(&b->pile, b->columns, sizeof *type, NULL);
    for (uint64_t i = 0; type && i < b->columns; i++)
        type[i] =
            (qn__column_type){.name = b->column[i].name, .format = formats[b->column[i].type]};
    return type && qn__parts_schema(&b->pile, type, b->columns, out, NULL) == QN_OK ? 0 : ENOMEM;
}

static void fill_array(build_column *c, struct ArrowArray *to) {
    static const int buffers[] = {0, 2, 2, 2, 2, 3};
    static const uint8_t none[8]; /* a column without values has a buffer of them */
    c->buffers[0] = c->missing ? c->valid.bytes : NULL;
    c->buffers[1] = c->values.bytes ? c->values.bytes : none;
    c->buffers[2] = c->text.bytes ? c->text.bytes : none;
    to->null_count = (int64_t)c->missing;
    to->n_buffers = buffers[c->type];
    to->buffers = c->buffers;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    qn__arrow_build *b = stream->private_data;
    const int64_t rows = b->columns ? (int64_t)b->column[0].rows : 0;
    *out = (struct ArrowArray){0};
    if (b->given)
        return 0;
    b->given = 1;
    if (qn__parts_array(&b->pile, b->columns, rows, out, NULL) != QN_OK)
        return ENOMEM;
    for (uint64_t i = 0; i < b->columns; i++)
        fill_array(&b->column[i], out->children[i]);
    return 0;
}

static void release_stream(struct ArrowArrayStream *stream) {
    qn__build_destroy(stream->private_data);
    stream->release = NULL;
}

void qn__build_stream(qn__arrow_build *build, struct ArrowArrayStream *out) {
    *out = (struct ArrowArrayStream){.get_schema = get_schema,
                                     .get_next = get_next,
                                     .release = release_stream,
                                     .private_data = build};
}

qn_status qn__build_fill(qn__arrow_build **build, const char *name, const qn_data_options *options,
                         qn_data *data, qn_error *err) {
    struct ArrowArrayStream stream;
    qn__build_stream(*build, &stream);
    *build = NULL;
    const qn_status status =
        qn__arrow_fill(&(qn__arrow_source){.stream = &stream, .name = name}, options, data, err);
    stream.release(&stream);
    return status;
}

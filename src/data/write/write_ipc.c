/* Writing Arrow IPC files (format/Columnar.rst, Message.fbs, Schema.fbs and File.fbs of Apache
 * Arrow): nothing is compressed, texts are dictionaries, and a batch has some rows of all columns.
 */
#include "data/write/write_ipc.h"
#include "base/memory.h"
#include "data/write/formats.h"
#include <string.h>

enum { V5 = 4, ALIGN = 8, BLOCK = 24, BUFFER = 16, NODE = 16 };
/* Kinds of messages and of types, as their unions number them. */
enum { SCHEMA = 1, DICTIONARY = 2, BATCH = 3 };
enum { INT = 2, FLOAT = 3, UTF8 = 5, DATE = 8, STAMP = 10 };
enum { SINGLE = 1, DOUBLE = 2, DAYS = 0, MICROSECONDS = 2 };

/* ------------------------------------------------------------------ the schema */

static size_t add_int(qn__flat_out *out, unsigned bits, int is_signed) {
    const size_t table = qn__flat_add_table(out, "41");
    qn__flat_set(out, table, 0, 4, bits);
    qn__flat_set(out, table, 1, 1, (uint64_t)is_signed);
    return table;
}

/* A table of a type with one number, its precision or unit. */
static size_t add_unit(qn__flat_out *out, unsigned unit) {
    const size_t table = qn__flat_add_table(out, "2");
    qn__flat_set(out, table, 0, 2, unit);
    return table;
}

static size_t add_stamp(qn__flat_out *out, int zone) {
    const size_t table = qn__flat_add_table(out, zone ? "24" : "2");
    qn__flat_set(out, table, 0, 2, MICROSECONDS);
    if (zone)
        qn__flat_point_field(out, table, 1, qn__flat_add_text(out, "UTC"));
    return table;
}

static uint64_t kind_of(const qn__written_column *c) {
    static const uint8_t kinds[QN__WRITTEN_TYPES] = {INT,   INT,  INT,  FLOAT,
                                                     FLOAT, UTF8, DATE, STAMP};
    return kinds[c->type];
}

static size_t add_type(qn__flat_out *out, const qn__written_column *c) {
    switch (c->type) {
    case QN__WRITTEN_U8:
        return add_int(out, 8, 0);
    case QN__WRITTEN_I32:
        return add_int(out, 32, 1);
    case QN__WRITTEN_I64:
        return add_int(out, 64, 1);
    case QN__WRITTEN_F32:
        return add_unit(out, SINGLE);
    case QN__WRITTEN_F64:
        return add_unit(out, DOUBLE);
    case QN__WRITTEN_DAY:
        return add_unit(out, DAYS);
    case QN__WRITTEN_MOMENT:
        return add_stamp(out, c->zone);
    default:
        return qn__flat_add_table(out, "");
    }
}

/* Of pandas and others a dictionary of texts is a column of categories. */
static size_t add_dictionary(qn__flat_out *out, uint64_t number) {
    const size_t table = qn__flat_add_table(out, "84");
    qn__flat_set(out, table, 0, 8, number);
    qn__flat_point_field(out, table, 1, add_int(out, 32, 1));
    return table;
}

/* Name, whether values may be missing, kind, type, dictionary, children. */
static size_t add_field(qn__flat_out *out, const qn__written_column *c, uint64_t number) {
    const size_t field = qn__flat_add_table(out, c->type == QN__WRITTEN_TEXT ? "411444" : "411404");
    qn__flat_point_field(out, field, 0, qn__flat_add_text(out, c->name));
    qn__flat_set(out, field, 1, 1, 1);
    qn__flat_set(out, field, 2, 1, kind_of(c));
    qn__flat_point_field(out, field, 3, add_type(out, c));
    if (c->type == QN__WRITTEN_TEXT)
        qn__flat_point_field(out, field, 4, add_dictionary(out, number));
    qn__flat_point_field(out, field, 5, qn__flat_add_vector(out, 0, 4));
    return field;
}

static size_t add_schema(qn__flat_out *out, const qn__written_columns *columns) {
    const size_t schema = qn__flat_add_table(out, "24");
    const size_t fields = qn__flat_add_vector(out, columns->count, 4);
    qn__flat_point_field(out, schema, 1, fields);
    for (uint32_t i = 0; i < columns->count; i++)
        qn__flat_point(out, fields + 4 + 4 * (size_t)i, add_field(out, &columns->column[i], i));
    return schema;
}

/* ------------------------------------------------------------------ messages */

/* Version, kind, header, bytes of the body. Returns the message. */
static size_t begin_message(qn__flat_out *out, unsigned kind, uint64_t body) {
    const size_t root = qn__flat_begin(out), message = qn__flat_add_table(out, "2148");
    qn__flat_point(out, root, message);
    qn__flat_set(out, message, 0, 2, V5);
    qn__flat_set(out, message, 1, 1, kind);
    qn__flat_set(out, message, 3, 8, body);
    return message;
}

void qn__ipc_schema_message(const qn__written_columns *columns, qn__flat_out *out) {
    qn__flat_out message = {0};
    const size_t table = begin_message(&message, SCHEMA, 0);
    qn__flat_point_field(&message, table, 2, add_schema(&message, columns));
    qn__flat_pad(&message, ALIGN);
    const size_t head = qn__flat_begin(out), size = qn__flat_begin(out);
    qn__flat_put(out, head, 4, UINT32_MAX);
    qn__flat_put(out, size, 4, message.size);
    for (size_t i = 0; i < message.size && !message.failed; i += 4) {
        uint32_t word;
        memcpy(&word, message.bytes + i, sizeof word);
        qn__flat_put(out, qn__flat_begin(out), 4, word);
    }
    out->failed |= message.failed;
    qn__flat_out_release(&message);
}

/* ------------------------------------------------------------------ batches */

/* A place in the list of batches that ends the file. */
typedef struct block {
    uint64_t at, head, body;
} block;

/* The file on its way. */
typedef struct file {
    const qn__written_columns *columns;
    qn__writer *writer;
    uint64_t at; /* bytes that were written */
    block *block;
    size_t blocks, dictionaries; /* all; those of dictionaries, which are first */
    uint8_t *values, *valid;     /* of a column of a batch */
    qn__flat_out head;
} file;

static uint64_t padded(uint64_t size) { return (size + ALIGN - 1) / ALIGN * ALIGN; }

static qn_status put(file *f, const void *bytes, uint64_t size, qn_error *err) {
    static const uint8_t zeros[ALIGN];
    qn_status status = qn__writer_add(f->writer, bytes, (size_t)size, err);
    if (status == QN_OK && padded(size) > size)
        status = qn__writer_add(f->writer, zeros, (size_t)(padded(size) - size), err);
    f->at += padded(size);
    return status;
}

/* Writes the message in f->head, and notes where it is. */
static qn_status put_message(file *f, uint64_t body, qn_error *err) {
    uint8_t begin[8] = {0xFF, 0xFF, 0xFF, 0xFF};
    qn__flat_pad(&f->head, ALIGN);
    if (f->head.failed)
        return qn__fail_memory(err, f->head.size, 1);
    for (int i = 0; i < 4; i++)
        begin[4 + i] = (uint8_t)(f->head.size >> 8 * i);
    f->block[f->blocks++] = (block){f->at, sizeof begin + f->head.size, body};
    const qn_status status = put(f, begin, sizeof begin, err);
    return status == QN_OK ? put(f, f->head.bytes, f->head.size, err) : status;
}

/* The table of a batch of `nodes` columns with `buffers` buffers; sets the places of the two
 * lists. */
static size_t add_batch(qn__flat_out *out, uint64_t rows, size_t nodes, size_t buffers,
                        size_t lists[2]) {
    const size_t batch = qn__flat_add_table(out, "844");
    qn__flat_set(out, batch, 0, 8, rows);
    lists[0] = qn__flat_add_vector(out, nodes, NODE);
    qn__flat_point_field(out, batch, 1, lists[0]);
    lists[1] = qn__flat_add_vector(out, buffers, BUFFER);
    qn__flat_point_field(out, batch, 2, lists[1]);
    return batch;
}

/* Sets buffer `i` to the next `size` bytes of the body. */
static void set_buffer(qn__flat_out *out, size_t list, size_t i, uint64_t size, uint64_t *body) {
    const size_t place = list + 4 + BUFFER * i;
    qn__flat_put(out, place, 8, *body);
    qn__flat_put(out, place + 8, 8, size);
    *body += padded(size);
}

static void set_node(qn__flat_out *out, size_t list, size_t i, uint64_t rows, uint64_t missing) {
    const size_t place = list + 4 + NODE * i;
    qn__flat_put(out, place, 8, rows);
    qn__flat_put(out, place + 8, 8, missing);
}

/* The values of a column, and the bits of those that are there where some are not. */
static qn_status put_column(file *f, const qn__written_column *c, uint64_t first, uint64_t rows,
                            int missing, qn_error *err) {
    qn__written_fill(c, first, rows, f->values, f->valid);
    qn_status status = missing ? put(f, f->valid, (rows + 7) / 8, err) : QN_OK;
    return status == QN_OK ? put(f, f->values, rows * qn__written_width[c->type], err) : status;
}

static qn_status put_batch(file *f, uint64_t first, uint64_t rows, qn_error *err) {
    const qn__written_columns *columns = f->columns;
    uint64_t body = 0;
    size_t lists[2];
    f->head.size = 0;
    const size_t message = begin_message(&f->head, BATCH, 0);
    const size_t batch =
        add_batch(&f->head, rows, columns->count, 2 * (size_t)columns->count, lists);
    qn__flat_point_field(&f->head, message, 2, batch);
    uint8_t *some = qn__alloc(columns->count, 1, err); /* 1: values are missing */
    if (!some)
        return QN_MEMORY;
    for (uint32_t i = 0; i < columns->count; i++) {
        const qn__written_column *c = &columns->column[i];
        const uint64_t missing = qn__written_fill(c, first, rows, f->values, f->valid);
        some[i] = missing > 0;
        set_node(&f->head, lists[0], i, rows, missing);
        set_buffer(&f->head, lists[1], 2 * (size_t)i, missing ? (rows + 7) / 8 : 0, &body);
        set_buffer(&f->head, lists[1], 2 * (size_t)i + 1, rows * qn__written_width[c->type], &body);
    }
    qn__flat_set(&f->head, message, 3, 8, body);
    qn_status status = put_message(f, body, err);
    for (uint32_t i = 0; i < columns->count && status == QN_OK; i++)
        status = put_column(f, &columns->column[i], first, rows, some[i], err);
    qn__free(some);
    return status;
}

/* The texts of column `number`: where each begins, and their bytes. */
static qn_status put_dictionary(file *f, uint32_t number, qn_error *err) {
    const qn__written_column *c = &f->columns->column[number];
    uint64_t body = 0, size = 0;
    size_t lists[2];
    int32_t *begin = qn__alloc((uint64_t)c->texts + 1, sizeof *begin, err);
    if (!begin)
        return QN_MEMORY;
    for (uint32_t i = 0; i < c->texts; i++) {
        size += strlen(qn__written_text(c, i));
        begin[i + 1] = (int32_t)(size < INT32_MAX ? size : INT32_MAX);
    }
    char *texts = qn__alloc(size + 1, 1, err);
    for (uint32_t i = 0; texts && i < c->texts; i++)
        memcpy(texts + begin[i], qn__written_text(c, i), strlen(qn__written_text(c, i)));
    f->head.size = 0;
    const size_t message = begin_message(&f->head, DICTIONARY, 0),
                 table = qn__flat_add_table(&f->head, "84");
    qn__flat_point_field(&f->head, message, 2, table);
    qn__flat_set(&f->head, table, 0, 8, number);
    qn__flat_point_field(&f->head, table, 1, add_batch(&f->head, c->texts, 1, 3, lists));
    set_node(&f->head, lists[0], 0, c->texts, 0);
    set_buffer(&f->head, lists[1], 0, 0, &body);
    set_buffer(&f->head, lists[1], 1, 4 * ((uint64_t)c->texts + 1), &body);
    set_buffer(&f->head, lists[1], 2, size, &body);
    qn__flat_set(&f->head, message, 3, 8, body);
    qn_status status = texts ? put_message(f, body, err) : QN_MEMORY;
    if (status == QN_OK)
        status = put(f, begin, 4 * ((uint64_t)c->texts + 1), err);
    if (status == QN_OK)
        status = put(f, texts, size, err);
    qn__free(begin);
    qn__free(texts);
    return status;
}

/* ------------------------------------------------------------------ the file */

static size_t add_blocks(qn__flat_out *out, const block *list, size_t count) {
    const size_t vector = qn__flat_add_vector(out, count, BLOCK);
    for (size_t i = 0; i < count; i++) {
        const size_t place = vector + 4 + BLOCK * i;
        qn__flat_put(out, place, 8, list[i].at);
        qn__flat_put(out, place + 8, 4, list[i].head);
        qn__flat_put(out, place + 16, 8, list[i].body);
    }
    return vector;
}

/* The end of the stream, and the list of its batches. */
static qn_status put_footer(file *f, qn_error *err) {
    static const uint8_t end[8] = {0xFF, 0xFF, 0xFF, 0xFF};
    uint8_t tail[10] = {0, 0, 0, 0, 'A', 'R', 'R', 'O', 'W', '1'};
    qn__flat_out *out = &f->head;
    out->size = 0;
    const size_t root = qn__flat_begin(out), footer = qn__flat_add_table(out, "2444");
    qn__flat_point(out, root, footer);
    qn__flat_set(out, footer, 0, 2, V5);
    qn__flat_point_field(out, footer, 1, add_schema(out, f->columns));
    qn__flat_point_field(out, footer, 2, add_blocks(out, f->block, f->dictionaries));
    qn__flat_point_field(out, footer, 3,
                         add_blocks(out, f->block + f->dictionaries, f->blocks - f->dictionaries));
    if (out->failed)
        return qn__fail_memory(err, out->size, 1);
    for (int i = 0; i < 4; i++)
        tail[i] = (uint8_t)(out->size >> 8 * i);
    qn_status status = put(f, end, sizeof end, err);
    if (status == QN_OK)
        status = qn__writer_add(f->writer, out->bytes, out->size, err);
    return status == QN_OK ? qn__writer_add(f->writer, tail, sizeof tail, err) : status;
}

static qn_status put_file(file *f, qn_error *err) {
    static const uint8_t magic[8] = "ARROW1";
    const qn__written_columns *columns = f->columns;
    qn__ipc_schema_message(columns, &f->head);
    if (f->head.failed)
        return qn__fail_memory(err, f->head.size, 1);
    qn_status status = put(f, magic, sizeof magic, err);
    if (status == QN_OK)
        status = put(f, f->head.bytes, f->head.size, err);
    for (uint32_t i = 0; i < columns->count && status == QN_OK; i++)
        if (columns->column[i].type == QN__WRITTEN_TEXT)
            status = put_dictionary(f, i, err);
    f->dictionaries = f->blocks;
    for (uint64_t row = 0; row < columns->rows && status == QN_OK; row += columns->group) {
        const uint64_t left = columns->rows - row;
        status = put_batch(f, row, left < columns->group ? left : columns->group, err);
    }
    return status == QN_OK ? put_footer(f, err) : status;
}

static qn_status write_file(const qn__written_columns *columns, const char *path,
                            qn__writer_batch *batch, qn_error *err) {
    file f = {.columns = columns};
    const uint64_t groups = columns->rows / columns->group + 1;
    f.block = qn__alloc(groups + columns->count, sizeof *f.block, err);
    f.values = qn__alloc(columns->group, 8, err);
    f.valid = qn__alloc(columns->group / 8 + 1, 1, err);
    qn_status status = f.block && f.values && f.valid ? QN_OK : QN_MEMORY;
    if (status == QN_OK)
        status = qn__writer_create(path, &f.writer, err);
    if (status == QN_OK)
        status = put_file(&f, err);
    status = qn__writer_finish(f.writer, batch, status, err);
    qn__flat_out_release(&f.head);
    qn__free(f.block);
    qn__free(f.values);
    qn__free(f.valid);
    return status;
}

const qn__format qn__ipc_format = {.name = "arrow",
                                   .shown = "Arrow IPC",
                                   .about = "the same in Arrow IPC (Feather)",
                                   .endings = {".arrow", ".feather"},
                                   .categories = 1,
                                   .weights = 1,
                                   .several = 1,
                                   .typed = 1,
                                   .counts = 1,
                                   .columns = write_file};

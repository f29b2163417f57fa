/* Writing Parquet files (parquet.thrift and Encodings.md of Apache Parquet): nothing is compressed,
 * so the bytes depend on no library. Texts and bytes are numbers of a dictionary, packed with as
 * many bits as they need. Each chunk has one page of values, with a check sum. */
#include "base/digest/crc32.h"
#include "base/memory.h"
#include "data/write/formats.h"
#include "data/write/write_ipc.h"
#include <stdlib.h>
#include <string.h>

enum { INT32 = 1, INT64 = 2, FLOAT = 4, DOUBLE = 5, BYTES = 6 }; /* physical types */
enum { PLAIN = 0, RLE = 3, RLE_DICTIONARY = 8, DATA_PAGE = 0, DICTIONARY_PAGE = 2 };
enum { OPTIONAL = 1, BYTES_OF_U8 = 256 };
enum { I32 = 5, I64 = 6, BINARY = 8, LIST = 9, STRUCT = 12, TRUE = 1, FALSE = 2, I8 = 3 };

/* ------------------------------------------------------------------ Thrift's compact protocol */

/* Growing bytes. `failed`: memory is short. */
typedef struct bytes {
    uint8_t *at;
    size_t size, capacity;
    int failed;
} bytes;

static void add_bytes(bytes *b, const void *from, size_t size) {
    if (b->failed || size == 0)
        return;
    if (size > b->capacity - b->size) {
        const size_t capacity = (b->capacity + size) * 2;
        uint8_t *more = realloc(b->at, capacity);
        if (!more) {
            b->failed = 1;
            return;
        }
        b->at = more;
        b->capacity = capacity;
    }
    memcpy(b->at + b->size, from, size);
    b->size += size;
}

static void add_byte(bytes *b, unsigned byte) {
    const uint8_t one = (uint8_t)byte;
    add_bytes(b, &one, 1);
}

static void add_varint(bytes *b, uint64_t number) {
    for (; number > 127; number >>= 7)
        add_byte(b, (unsigned)(number & 127) | 128);
    add_byte(b, (unsigned)number);
}

static void add_zigzag(bytes *b, int64_t number) {
    add_varint(b, (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0));
}

static void add_little(bytes *b, uint32_t number) {
    const uint8_t four[] = {(uint8_t)number, (uint8_t)(number >> 8), (uint8_t)(number >> 16),
                            (uint8_t)(number >> 24)};
    add_bytes(b, four, sizeof four);
}

/* A struct: `before` is the number of the last field. */
typedef struct record {
    bytes *b;
    int before;
} record;

static void add_head(record *r, int id, int type) {
    add_byte(r->b, (unsigned)(id - r->before) << 4 | (unsigned)type);
    r->before = id;
}

static void add_number(record *r, int id, int type, int64_t number) {
    add_head(r, id, type);
    add_zigzag(r->b, number);
}

static void add_text(record *r, int id, const char *text, size_t size) {
    add_head(r, id, BINARY);
    add_varint(r->b, size);
    add_bytes(r->b, text, size);
}

static record begin_struct(record *r, int id) {
    add_head(r, id, STRUCT);
    return (record){r->b, 0};
}

static void begin_list(record *r, int id, int type, uint64_t count) {
    add_head(r, id, LIST);
    if (count < 15) {
        add_byte(r->b, (unsigned)count << 4 | (unsigned)type);
        return;
    }
    add_byte(r->b, 15u << 4 | (unsigned)type);
    add_varint(r->b, count);
}

static void end_struct(record *r) { add_byte(r->b, 0); }

/* A struct without fields, as unions have them. */
static void add_empty(record *r, int id) {
    record none = begin_struct(r, id);
    end_struct(&none);
}

/* ------------------------------------------------------------------ types */

static int physical_of(const qn__written_column *c) {
    static const uint8_t types[QN__WRITTEN_TYPES] = {INT32,  INT32, INT64, FLOAT,
                                                     DOUBLE, BYTES, INT32, INT64};
    return types[c->type];
}

/* The older name of the type; -1: it has none. */
static int converted_of(const qn__written_column *c) {
    switch (c->type) {
    case QN__WRITTEN_U8:
        return 11;
    case QN__WRITTEN_TEXT:
        return 0;
    case QN__WRITTEN_DAY:
        return 6;
    case QN__WRITTEN_MOMENT:
        return c->zone ? 10 : -1; /* it means UTC */
    default:
        return -1;
    }
}

static void add_logical(record *element, const qn__written_column *c) {
    record logical = begin_struct(element, 10);
    if (c->type == QN__WRITTEN_TEXT) {
        add_empty(&logical, 1);
    } else if (c->type == QN__WRITTEN_DAY) {
        add_empty(&logical, 6);
    } else if (c->type == QN__WRITTEN_MOMENT) {
        record stamp = begin_struct(&logical, 8);
        add_head(&stamp, 1, c->zone ? TRUE : FALSE);
        record unit = begin_struct(&stamp, 2);
        add_empty(&unit, 2); /* microseconds */
        end_struct(&unit);
        end_struct(&stamp);
    } else {
        record integer = begin_struct(&logical, 10);
        add_head(&integer, 1, I8);
        add_byte(integer.b, 8);
        add_head(&integer, 2, FALSE);
        end_struct(&integer);
    }
    end_struct(&logical);
}

static void add_element(bytes *b, const qn__written_column *c) {
    record element = {b, 0};
    const int converted = converted_of(c);
    add_number(&element, 1, I32, physical_of(c));
    add_number(&element, 3, I32, OPTIONAL);
    add_text(&element, 4, c->name, strlen(c->name));
    if (converted >= 0)
        add_number(&element, 6, I32, converted);
    if (converted >= 0 || c->type == QN__WRITTEN_MOMENT)
        add_logical(&element, c);
    end_struct(&element);
}

/* ------------------------------------------------------------------ pages */

/* A chunk, as the description of the file names it. */
typedef struct chunk {
    uint64_t begin, data, size; /* places of the first page and of that of the values; bytes */
    int packed;                 /* 1: it has a dictionary */
} chunk;

typedef struct file {
    const qn__written_columns *columns;
    qn__writer *writer;
    uint64_t at, groups;
    chunk *chunk; /* [group][column] */
    uint8_t *values, *valid;
    bytes page, head;
} file;

static qn_status put(file *f, const bytes *b, qn_error *err) {
    if (b->failed)
        return qn__fail_memory(err, b->capacity, 2);
    f->at += b->size;
    return qn__writer_add(f->writer, b->at, b->size, err);
}

/* Writes f->page, after its header. */
static qn_status put_page(file *f, int kind, uint64_t count, int encoding, qn_error *err) {
    if (f->page.failed)
        return qn__fail_memory(err, f->page.capacity, 2);
    record head = {&f->head, 0};
    f->head.size = 0;
    add_number(&head, 1, I32, kind);
    add_number(&head, 2, I32, (int64_t)f->page.size);
    add_number(&head, 3, I32, (int64_t)f->page.size);
    add_number(&head, 4, I32, (int32_t)qn__crc32(0, f->page.at, f->page.size));
    record of_kind = begin_struct(&head, kind == DATA_PAGE ? 5 : 7);
    add_number(&of_kind, 1, I32, (int64_t)count);
    add_number(&of_kind, 2, I32, encoding);
    if (kind == DATA_PAGE) {
        add_number(&of_kind, 3, I32, RLE);
        add_number(&of_kind, 4, I32, RLE);
    }
    end_struct(&of_kind);
    end_struct(&head);
    const qn_status status = put(f, &f->head, err);
    return status == QN_OK ? put(f, &f->page, err) : status;
}

/* Which values are there: one run, or a bit each. */
static void add_levels(file *f, uint64_t rows, uint64_t missing) {
    bytes *b = &f->page, levels = {0};
    if (missing == 0) {
        add_varint(&levels, rows << 1);
        add_byte(&levels, 1);
    } else {
        add_varint(&levels, (rows + 7) / 8 << 1 | 1);
        add_bytes(&levels, f->valid, (size_t)(rows + 7) / 8);
    }
    add_little(b, (uint32_t)levels.size);
    add_bytes(b, levels.at, levels.size);
    b->failed |= levels.failed;
    free(levels.at);
}

static unsigned bits_of(uint32_t entries) {
    unsigned bits = 0;
    while (bits < 32 && entries > (uint64_t)1 << bits)
        bits++;
    return bits;
}

/* Numbers of a dictionary, packed in groups of 8 with the lowest bits first. */
static void add_packed(bytes *b, const uint32_t *number, uint64_t count, unsigned bits) {
    uint64_t word = 0;
    unsigned have = 0;
    add_byte(b, bits);
    add_varint(b, (count + 7) / 8 << 1 | 1);
    for (uint64_t i = 0; i < (count + 7) / 8 * 8; i++) {
        word |= (uint64_t)(i < count ? number[i] : 0) << have;
        for (have += bits; have >= 8; have -= 8, word >>= 8)
            add_byte(b, (unsigned)(word & 255));
    }
}

/* A byte is its own number in the dictionary. */
static void add_bytes_packed(bytes *b, const uint8_t *value, uint64_t count) {
    static const uint8_t zeros[8];
    add_byte(b, 8);
    add_varint(b, (count + 7) / 8 << 1 | 1);
    add_bytes(b, value, (size_t)count);
    add_bytes(b, zeros, (size_t)((8 - count % 8) % 8));
}

static qn_status put_dictionary(file *f, const qn__written_column *c, qn_error *err) {
    const uint32_t count = c->type == QN__WRITTEN_U8 ? BYTES_OF_U8 : c->texts;
    f->page.size = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (c->type == QN__WRITTEN_U8) {
            add_little(&f->page, i);
            continue;
        }
        const char *text = qn__written_text(c, i);
        add_little(&f->page, (uint32_t)strlen(text));
        add_bytes(&f->page, text, strlen(text));
    }
    return put_page(f, DICTIONARY_PAGE, count, PLAIN, err);
}

/* Moves the values that are there to the beginning; returns how many. */
static uint64_t gather(uint8_t *values, const uint8_t *valid, uint64_t rows, size_t width) {
    uint64_t there = 0;
    for (uint64_t i = 0; i < rows; i++)
        if (valid[i / 8] >> i % 8 & 1) {
            if (there < i)
                memcpy(values + there * width, values + i * width, width);
            there++;
        }
    return there;
}

static qn_status put_chunk(file *f, const qn__written_column *c, uint64_t first, uint64_t rows,
                           chunk *out, qn_error *err) {
    const size_t width = qn__written_width[c->type];
    *out = (chunk){.begin = f->at};
    out->packed = c->type == QN__WRITTEN_U8 || c->type == QN__WRITTEN_TEXT;
    qn_status status = out->packed ? put_dictionary(f, c, err) : QN_OK;
    out->data = f->at;
    const uint64_t missing = qn__written_fill(c, first, rows, f->values, f->valid);
    f->page.size = 0;
    add_levels(f, rows, missing);
    const uint64_t there = missing ? gather(f->values, f->valid, rows, width) : rows;
    if (c->type == QN__WRITTEN_U8)
        add_bytes_packed(&f->page, f->values, there);
    else if (c->type == QN__WRITTEN_TEXT)
        add_packed(&f->page, (const void *)f->values, there, bits_of(c->texts));
    else
        add_bytes(&f->page, f->values, (size_t)there * width);
    if (status == QN_OK)
        status = put_page(f, DATA_PAGE, rows, out->packed ? RLE_DICTIONARY : PLAIN, err);
    out->size = f->at - out->begin;
    return status;
}

/* ------------------------------------------------------------------ the description */

static void add_chunk(bytes *b, const qn__written_column *c, const chunk *from, uint64_t rows) {
    record outer = {b, 0};
    add_number(&outer, 2, I64, (int64_t)from->begin);
    record data = begin_struct(&outer, 3);
    add_number(&data, 1, I32, physical_of(c));
    begin_list(&data, 2, I32, 2u + (unsigned)from->packed);
    add_zigzag(b, PLAIN);
    add_zigzag(b, RLE);
    if (from->packed)
        add_zigzag(b, RLE_DICTIONARY);
    begin_list(&data, 3, BINARY, 1);
    add_varint(b, strlen(c->name));
    add_bytes(b, c->name, strlen(c->name));
    add_number(&data, 4, I32, 0); /* not compressed */
    add_number(&data, 5, I64, (int64_t)rows);
    add_number(&data, 6, I64, (int64_t)from->size);
    add_number(&data, 7, I64, (int64_t)from->size);
    add_number(&data, 9, I64, (int64_t)from->data);
    if (from->packed)
        add_number(&data, 11, I64, (int64_t)from->begin);
    end_struct(&data);
    end_struct(&outer);
}

static uint64_t rows_of(const file *f, uint64_t group) {
    const uint64_t left = f->columns->rows - group * f->columns->group;
    return left < f->columns->group ? left : f->columns->group;
}

static void add_group(bytes *b, const file *f, uint64_t group) {
    const qn__written_columns *columns = f->columns;
    record r = {b, 0};
    uint64_t size = 0;
    begin_list(&r, 1, STRUCT, columns->count);
    for (uint32_t i = 0; i < columns->count; i++) {
        const chunk *c = &f->chunk[group * columns->count + i];
        add_chunk(b, &columns->column[i], c, rows_of(f, group));
        size += c->size;
    }
    add_number(&r, 2, I64, (int64_t)size);
    add_number(&r, 3, I64, (int64_t)rows_of(f, group));
    end_struct(&r);
}

static void add_base64(bytes *b, const uint8_t *from, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        const size_t have = size - i < 3 ? size - i : 3;
        const uint32_t word = (uint32_t)from[i] << 16 |
                              (have > 1 ? (uint32_t)from[i + 1] << 8 : 0) |
                              (have > 2 ? from[i + 2] : 0);
        for (size_t k = 0; k < 4; k++)
            add_byte(b, (unsigned)(k <= have ? digits[word >> (18 - 6 * k) & 63] : '='));
    }
}

/* The columns as Arrow describes them, by which pandas knows categories. */
static void add_arrow_schema(record *footer, const qn__written_columns *columns) {
    static const char key[] = "ARROW:schema";
    qn__flat_out message = {0};
    bytes text = {0};
    qn__ipc_schema_message(columns, &message);
    if (!message.failed)
        add_base64(&text, message.bytes, message.size);
    begin_list(footer, 5, STRUCT, 1);
    record pair = {footer->b, 0};
    add_text(&pair, 1, key, sizeof key - 1);
    add_text(&pair, 2, (const char *)text.at, text.size);
    end_struct(&pair);
    footer->b->failed |= text.failed | message.failed;
    qn__flat_out_release(&message);
    free(text.at);
}

static qn_status put_footer(file *f, qn_error *err) {
    const qn__written_columns *columns = f->columns;
    bytes *b = &f->head;
    record footer = {b, 0}, root = {b, 0};
    b->size = 0;
    add_number(&footer, 1, I32, 2); /* the version of the format */
    begin_list(&footer, 2, STRUCT, (uint64_t)columns->count + 1);
    add_text(&root, 4, "schema", 6);
    add_number(&root, 5, I32, columns->count);
    end_struct(&root);
    for (uint32_t i = 0; i < columns->count; i++)
        add_element(b, &columns->column[i]);
    add_number(&footer, 3, I64, (int64_t)columns->rows);
    begin_list(&footer, 4, STRUCT, f->groups);
    for (uint64_t g = 0; g < f->groups; g++)
        add_group(b, f, g);
    add_arrow_schema(&footer, columns);
    add_text(&footer, 6, "Quern", 5);
    end_struct(&footer);
    add_little(b, (uint32_t)b->size);
    add_bytes(b, "PAR1", 4);
    if (b->size <= INT32_MAX)
        return put(f, b, err);
    qn__fail(err, QN_INPUT, "the table has too many columns for the description of a Parquet file");
    return qn__remedy(err, QN_INPUT, "write it as NPZ or Arrow IPC");
}

/* ------------------------------------------------------------------ the file */

static qn_status put_file(file *f, qn_error *err) {
    const qn__written_columns *columns = f->columns;
    qn_status status = qn__writer_add(f->writer, "PAR1", 4, err);
    f->at = 4;
    for (uint64_t g = 0; g < f->groups && status == QN_OK; g++)
        for (uint32_t i = 0; i < columns->count && status == QN_OK; i++)
            status = put_chunk(f, &columns->column[i], g * columns->group, rows_of(f, g),
                               &f->chunk[g * columns->count + i], err);
    return status == QN_OK ? put_footer(f, err) : status;
}

static qn_status write_file(const qn__written_columns *columns, const char *path,
                            qn__writer_batch *batch, qn_error *err) {
    file f = {.columns = columns, .groups = (columns->rows + columns->group - 1) / columns->group};
    f.chunk = qn__alloc(f.groups * columns->count, sizeof *f.chunk, err);
    f.values = qn__alloc(columns->group, 8, err);
    f.valid = qn__alloc(columns->group / 8 + 1, 1, err);
    qn_status status = f.chunk && f.values && f.valid ? QN_OK : QN_MEMORY;
    if (status == QN_OK)
        status = qn__writer_create(path, &f.writer, err);
    if (status == QN_OK)
        status = put_file(&f, err);
    status = qn__writer_finish(f.writer, batch, status, err);
    free(f.page.at);
    free(f.head.at);
    qn__free(f.chunk);
    qn__free(f.values);
    qn__free(f.valid);
    return status;
}

const qn__format qn__parquet_format = {.name = "parquet",
                                       .shown = "Parquet",
                                       .about = "the same with the type of each column",
                                       .endings = {".parquet"},
                                       .categories = 1,
                                       .weights = 1,
                                       .several = 1,
                                       .typed = 1,
                                       .counts = 1,
                                       .columns = write_file};

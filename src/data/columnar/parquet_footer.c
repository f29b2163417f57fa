/* The description of a Parquet file, FileMetaData of parquet.thrift. Numbers of fields are those
 * there. */
#include "data/columnar/parquet.h"
#include "data/bytes/descriptor.h"
#include "data/columnar/thrift.h"
#include <stdio.h>
#include <string.h>

typedef struct reading {
    qn__thrift t;
    qn__pile *pile;
    qn_error *err;
    uint64_t file_size;
    qn__parquet_footer *out;
} reading;

/* An element of the schema: a column or a group of them. */
typedef struct element {
    int64_t type, fixed, repetition, children, converted, scale, precision;
    int logical, logical_bits, logical_unsigned;
    int utc, unit; /* of times: 1: milliseconds, 2: microseconds, 3: nanoseconds */
    const uint8_t *name;
    size_t name_size;
} element;

/* Logical types by their fields in the union, and converted types, their predecessors. */
enum { STRING = 1, MAP, LIST, ENUM, DECIMAL, DATE, TIME, TIMESTAMP, INTEGER = 10, NOTHING, JSON };
enum { BSON = 13, UUID, FLOAT16, VARIANT, GEOMETRY, GEOGRAPHY };
enum { WAS_STRING, WAS_MAP, WAS_MAP_PAIR, WAS_LIST, WAS_ENUM, WAS_DECIMAL, WAS_DATE };
enum { WAS_TIME_MILLI = 7, WAS_TIME_MICRO, WAS_STAMP_MILLI, WAS_STAMP_MICRO, WAS_UINT_8 };
enum { WAS_UINT_64 = 14, WAS_JSON = 19, WAS_BSON, WAS_INTERVAL };
enum { REQUIRED = 0, OPTIONAL = 1 };

static qn_status refuse(const reading *r) {
    qn__fail(r->err, QN_INPUT, "the description of the Parquet file is broken");
    return qn__remedy(r->err, QN_INPUT, "copy the file, or write it again");
}

/* ------------------------------------------------------------------ the schema */

static void take_integer(qn__thrift *t, element *e) {
    qn__thrift_field field = {0};
    while (qn__thrift_next(t, &field)) {
        if (field.id == 2)
            e->logical_unsigned = field.type != QN__THRIFT_TRUE;
        else if (field.id == 1 && t->at < t->size)
            e->logical_bits = t->bytes[t->at++];
        else
            qn__thrift_skip(t, field.type);
    }
}

/* Of DECIMAL: scale and precision. */
static void take_decimal(qn__thrift *t, element *e) {
    qn__thrift_field field = {0};
    while (qn__thrift_next(t, &field)) {
        if (field.id == 1)
            e->scale = qn__thrift_int(t);
        else if (field.id == 2)
            e->precision = qn__thrift_int(t);
        else
            qn__thrift_skip(t, field.type);
    }
}

/* Of TIME and TIMESTAMP: whether it is UTC, and the unit, a union. */
static void take_time(qn__thrift *t, element *e) {
    qn__thrift_field field = {0}, unit = {0};
    while (qn__thrift_next(t, &field)) {
        if (field.id == 1)
            e->utc = field.type == QN__THRIFT_TRUE;
        else if (field.id == 2 && field.type == QN__THRIFT_STRUCT)
            while (qn__thrift_next(t, &unit)) {
                e->unit = unit.id;
                qn__thrift_skip(t, unit.type);
            }
        else
            qn__thrift_skip(t, field.type);
    }
}

static void take_logical(qn__thrift *t, element *e) {
    qn__thrift_field field = {0};
    while (qn__thrift_next(t, &field)) {
        e->logical = field.id;
        if (field.id == INTEGER && field.type == QN__THRIFT_STRUCT)
            take_integer(t, e);
        else if (field.id == DECIMAL && field.type == QN__THRIFT_STRUCT)
            take_decimal(t, e);
        else if ((field.id == TIME || field.id == TIMESTAMP) && field.type == QN__THRIFT_STRUCT)
            take_time(t, e);
        else
            qn__thrift_skip(t, field.type);
    }
}

static element take_element(qn__thrift *t) {
    element e = {.type = -1, .converted = -1, .repetition = REQUIRED};
    qn__thrift_field field = {0};
    while (qn__thrift_next(t, &field)) {
        int64_t *const to = field.id == 1   ? &e.type
                            : field.id == 2 ? &e.fixed
                            : field.id == 3 ? &e.repetition
                            : field.id == 5 ? &e.children
                            : field.id == 6 ? &e.converted
                            : field.id == 7 ? &e.scale
                            : field.id == 8 ? &e.precision
                                            : NULL;
        if (to)
            *to = qn__thrift_int(t);
        else if (field.id == 4)
            e.name = qn__thrift_text(t, &e.name_size);
        else if (field.id == 10 && field.type == QN__THRIFT_STRUCT)
            take_logical(t, &e);
        else
            qn__thrift_skip(t, field.type);
    }
    return e;
}

static int is_any(int64_t value, int64_t a, int64_t b, int64_t c) {
    return value == a || value == b || value == c;
}

/* The format of dates and times; NULL: it is something else. Those of 96 bits, which Spark and
 * Impala write, are days and nanoseconds, and become microseconds. */
static const char *time_format(const element *e) {
    static const char *const times[] = {"tt", "ttm", "ttu", "ttn"},
                             *const stamps[][4] = {{"ts", "tsm:", "tsu:", "tsn:"},
                                                   {"ts", "tsm:UTC", "tsu:UTC", "tsn:UTC"}};
    const int unit = e->unit >= 1 && e->unit <= 3 ? e->unit : 0;
    if (e->type == QN__PARQUET_INT96)
        return "tsu:";
    if (e->logical == DATE || (!e->logical && e->converted == WAS_DATE))
        return "tdD";
    if (e->logical == TIME)
        return times[unit];
    if (e->logical == TIMESTAMP)
        return stamps[e->utc != 0][unit];
    if (!e->logical && e->converted >= WAS_TIME_MILLI && e->converted <= WAS_TIME_MICRO)
        return times[1 + e->converted - WAS_TIME_MILLI];
    if (!e->logical && e->converted >= WAS_STAMP_MILLI && e->converted <= WAS_STAMP_MICRO)
        return stamps[1][1 + e->converted - WAS_STAMP_MILLI];
    return NULL;
}

static int is_decimal(const element *e) {
    return (e->logical == DECIMAL || e->converted == WAS_DECIMAL) &&
           e->type != QN__PARQUET_BOOLEAN && e->type != QN__PARQUET_FLOAT &&
           e->type != QN__PARQUET_DOUBLE && e->type != QN__PARQUET_INT96;
}

/* Types that Arrow has as extensions, or not at all. NULL: it is none. */
static const char *extension_of(const element *e) {
    switch (e->logical) {
    case JSON:
        return "arrow.json";
    case BSON:
        return "parquet.bson";
    case UUID:
        return "arrow.uuid";
    case VARIANT:
        return "parquet.variant";
    case GEOMETRY:
    case GEOGRAPHY:
        return "geoarrow.wkb";
    default:
        return e->converted == WAS_JSON       ? "arrow.json"
               : e->converted == WAS_BSON     ? "parquet.bson"
               : e->converted == WAS_INTERVAL ? "parquet.interval"
                                              : NULL;
    }
}

static int is_text(const element *e) {
    return is_any(e->logical, STRING, ENUM, JSON) ||
           is_any(e->converted, WAS_STRING, WAS_ENUM, WAS_JSON);
}

static const char *format_of(const element *e) {
    const int natural =
        e->logical_unsigned || (e->converted >= WAS_UINT_8 && e->converted <= WAS_UINT_64);
    const char *time = time_format(e);
    if (time)
        return time;
    if (e->logical == NOTHING) /* all values are missing, whatever they are stored as */
        return "n";
    switch (e->type) {
    case QN__PARQUET_BOOLEAN:
        return "C"; /* a byte each here */
    case QN__PARQUET_INT32:
        return natural ? "I" : "i";
    case QN__PARQUET_INT64:
        return natural ? "L" : "l";
    case QN__PARQUET_FLOAT:
        return "f";
    case QN__PARQUET_DOUBLE:
        return "g";
    case QN__PARQUET_BYTES:
        return is_text(e) ? "vu" : "vz";
    default:
        return e->logical == FLOAT16 && e->fixed == 2 ? "e" : "w";
    }
}

/* Decimals have the width of their integers, or that of 128 or 256 bits which their bytes need. */
static qn_status set_decimal(const reading *r, const element *e, qn__parquet_column *c) {
    char format[64];
    const int bytes = e->type == QN__PARQUET_BYTES;
    const int large = bytes ? e->precision > 38 : e->fixed > 16;
    c->decimal = e->type == QN__PARQUET_INT32   ? 4
                 : e->type == QN__PARQUET_INT64 ? 8
                 : large                        ? 32
                                                : 16;
    c->readable = e->type != QN__PARQUET_FIXED || (e->fixed > 0 && e->fixed <= 32);
    const int size = snprintf(format, sizeof format, "d:%d,%d,%d", (int)(e->precision & 0xFFFF),
                              e->scale < -9999 || e->scale > 9999 ? 9999 : (int)e->scale,
                              c->readable ? 8 * (int)c->decimal : 0);
    c->format = qn__pile_text(r->pile, format, (size_t)size, r->err);
    return c->format ? QN_OK : QN_MEMORY;
}

static qn_status set_type(const reading *r, const element *e, qn__parquet_column *c) {
    static const uint32_t widths[] = {1, 4, 8, 12, 4, 8, 16};
    c->width = e->type == QN__PARQUET_FIXED ? (uint32_t)e->fixed : widths[e->type];
    c->extension = extension_of(e);
    if (is_decimal(e))
        return set_decimal(r, e, c);
    c->format = format_of(e);
    c->readable = *c->format != 'w' && strcmp(c->format, "ts") != 0 &&
                  strcmp(c->format, "tt") != 0 && !(strcmp(c->format, "vz") == 0 && c->extension);
    return QN_OK;
}

static const char *group_format(const element *e) {
    return e->repetition > OPTIONAL || e->logical == LIST ||
                   (!e->logical && e->converted == WAS_LIST)
               ? "+l"
           : e->logical == MAP ||
                   (!e->logical && (e->converted == WAS_MAP || e->converted == WAS_MAP_PAIR))
               ? "+m"
               : "+s";
}

enum { LIST_DEPTH = 2 };

/* Skips what is nested in a group: the elements that follow. Returns how many they are; `first` has
 * the first ones. */
static int64_t skip_group(reading *r, int64_t children, int64_t *left, element first[LIST_DEPTH]) {
    int64_t count = 0;
    for (; children > 0 && *left > 0 && !r->t.broken; children--, count++) {
        const element e = take_element(&r->t);
        if (count < LIST_DEPTH)
            first[count] = e;
        --*left;
        children += e.children > 0 && e.children <= *left ? e.children : 0;
        r->out->leaves += e.children <= 0;
    }
    return count;
}

/* A list: a repeated group of one element, or, as old writers have it, a repeated element. */
static qn_status take_words(const reading *r, const element in[LIST_DEPTH], int64_t count,
                            qn__parquet_column *c) {
    static const char *const formats[] = {"i", "I", "l", "L", "vu"};
    const element *word = &in[count - 1];
    if (count > LIST_DEPTH || in->repetition <= OPTIONAL || word->children > 0 ||
        (count == LIST_DEPTH && word->repetition > OPTIONAL) ||
        (word->type != QN__PARQUET_INT32 && word->type != QN__PARQUET_INT64 &&
         word->type != QN__PARQUET_BYTES))
        return QN_OK;
    qn__parquet_column leaf = {.type = (qn__parquet_type)word->type};
    const qn_status status = set_type(r, word, &leaf);
    for (size_t i = 0; status == QN_OK && i < sizeof formats / sizeof *formats; i++)
        if (!leaf.extension && strcmp(leaf.format, formats[i]) == 0) {
            c->words = formats[i];
            c->words_optional = count == LIST_DEPTH && word->repetition == OPTIONAL;
            c->format = "+L";
            c->type = leaf.type;
            c->width = leaf.width;
            c->readable = 1;
        }
    return status;
}

static qn_status take_nested(reading *r, const element *e, int64_t *left, qn__parquet_column *c) {
    element in[LIST_DEPTH] = {0};
    const int64_t count = skip_group(r, e->children, left, in);
    return count > 0 && e->repetition <= OPTIONAL && strcmp(c->format, "+l") == 0 && !r->t.broken
               ? take_words(r, in, count, c)
               : QN_OK;
}

static qn_status take_column(reading *r, int64_t *left) {
    const element e = take_element(&r->t);
    qn__parquet_column *c = &r->out->column[r->out->columns++];
    --*left;
    if (r->t.broken || !e.name || e.children > *left ||
        (e.children <= 0 &&
         (e.type < QN__PARQUET_BOOLEAN || e.type > QN__PARQUET_FIXED ||
          (e.type == QN__PARQUET_FIXED && (e.fixed < 0 || e.fixed > INT32_MAX)))))
        return refuse(r);
    *c = (qn__parquet_column){.type = (qn__parquet_type)e.type,
                              .optional = e.repetition == OPTIONAL,
                              .leaf = r->out->leaves,
                              .fixed = e.fixed,
                              .name = qn__pile_text(r->pile, e.name, e.name_size, r->err)};
    if (!c->name)
        return QN_MEMORY;
    if (e.children > 0 || e.repetition > OPTIONAL) {
        c->format = group_format(&e);
        c->extension = e.logical == VARIANT ? extension_of(&e) : NULL;
        if (e.children > 0)
            return take_nested(r, &e, left, c);
        r->out->leaves++;
        return QN_OK;
    }
    r->out->leaves++;
    return set_type(r, &e, c);
}

static qn_status take_schema(reading *r) {
    int type;
    int64_t left = (int64_t)qn__thrift_list(&r->t, &type);
    if (left < 1 || type != QN__THRIFT_STRUCT)
        return refuse(r);
    const element root = take_element(&r->t);
    left--;
    if (root.children < 0 || root.children > left)
        return refuse(r);
    r->out->column =
        qn__pile_alloc(r->pile, (uint64_t)root.children, sizeof *r->out->column, r->err);
    if (!r->out->column)
        return QN_MEMORY;
    qn_status status = QN_OK;
    for (int64_t i = 0; i < root.children && status == QN_OK; i++)
        status = left > 0 ? take_column(r, &left) : refuse(r);
    return status;
}

/* ------------------------------------------------------------------ row groups */

static void take_chunk_data(qn__thrift *t, qn__parquet_chunk *chunk) {
    qn__thrift_field field = {0};
    int64_t codec = 0, values = 0, unpacked = 0, size = 0, data = 0, dictionary = 0;
    while (qn__thrift_next(t, &field)) {
        int64_t *const to = field.id == 4    ? &codec
                            : field.id == 5  ? &values
                            : field.id == 6  ? &unpacked
                            : field.id == 7  ? &size
                            : field.id == 9  ? &data
                            : field.id == 11 ? &dictionary
                                             : NULL;
        if (to)
            *to = qn__thrift_int(t);
        else
            qn__thrift_skip(t, field.type);
    }
    chunk->values = values;
    chunk->codec = codec >= 0 && codec < 100 ? (int)codec : 100;
    chunk->begin = (uint64_t)(dictionary > 0 && dictionary < data ? dictionary : data);
    chunk->size = (uint64_t)size;
    chunk->unpacked = unpacked > 0 ? (uint64_t)unpacked : 0;
}

static qn_status take_chunk(reading *r, qn__parquet_chunk *chunk) {
    qn__thrift_field field = {0};
    while (qn__thrift_next(&r->t, &field)) {
        if (field.id == 1 || field.id == 8)
            chunk->elsewhere = 1;
        if (field.id == 3 && field.type == QN__THRIFT_STRUCT)
            take_chunk_data(&r->t, chunk);
        else
            qn__thrift_skip(&r->t, field.type);
    }
    return chunk->size > r->file_size || chunk->begin > r->file_size - chunk->size ? refuse(r)
                                                                                   : QN_OK;
}

static qn_status take_group(reading *r, size_t group) {
    qn__thrift_field field = {0};
    const size_t leaves = r->out->leaves;
    qn_status status = QN_OK;
    size_t count = 0;
    r->out->rows[group] = -1;
    while (status == QN_OK && qn__thrift_next(&r->t, &field)) {
        int type;
        if (field.id == 3) {
            r->out->rows[group] = qn__thrift_int(&r->t);
        } else if (field.id == 1 && field.type == QN__THRIFT_LIST && count == 0) {
            count = qn__thrift_list(&r->t, &type);
            for (size_t i = 0; i < count && status == QN_OK; i++)
                status = i < leaves && type == QN__THRIFT_STRUCT
                             ? take_chunk(r, &r->out->chunk[group * leaves + i])
                             : refuse(r);
        } else {
            qn__thrift_skip(&r->t, field.type);
        }
    }
    const int64_t rows = r->out->rows[group];
    if (status != QN_OK)
        return status;
    return r->t.broken || count != leaves || rows < 0 || rows > (int64_t)1 << 48 ? refuse(r)
                                                                                 : QN_OK;
}

static qn_status take_groups(reading *r) {
    int type;
    qn__parquet_footer *out = r->out;
    const size_t groups = qn__thrift_list(&r->t, &type);
    /* A chunk takes more than a byte of the description. */
    if (out->leaves == 0 || out->groups > 0 || groups > r->t.size / out->leaves)
        return refuse(r);
    out->rows = qn__pile_alloc(r->pile, groups, sizeof *out->rows, r->err);
    out->chunk = qn__pile_alloc(r->pile, groups * out->leaves, sizeof *out->chunk, r->err);
    if (!out->rows || !out->chunk)
        return QN_MEMORY;
    out->groups = groups;
    qn_status status = groups == 0 || type == QN__THRIFT_STRUCT ? QN_OK : refuse(r);
    for (size_t i = 0; i < groups && status == QN_OK; i++)
        status = take_group(r, i);
    return status;
}

/* The metadata of pandas, among those that programs add. */
static void take_metadata(reading *r) {
    int type;
    for (size_t left = qn__thrift_list(&r->t, &type); left > 0 && !r->t.broken; left--) {
        const uint8_t *key = NULL, *value = NULL;
        size_t key_size = 0, value_size = 0;
        qn__thrift_field field = {0};
        while (type == QN__THRIFT_STRUCT && qn__thrift_next(&r->t, &field)) {
            if (field.id == 1)
                key = qn__thrift_text(&r->t, &key_size);
            else if (field.id == 2)
                value = qn__thrift_text(&r->t, &value_size);
            else
                qn__thrift_skip(&r->t, field.type);
        }
        if (type != QN__THRIFT_STRUCT)
            r->t.broken = 1;
        if (key && value && key_size == strlen("pandas") && memcmp(key, "pandas", key_size) == 0) {
            r->out->pandas = value;
            r->out->pandas_size = value_size;
        }
    }
}

qn_status qn__parquet_read_footer(const uint8_t *bytes, size_t size, uint64_t file_size,
                                  qn__pile *pile, qn__parquet_footer *out, qn_error *err) {
    reading r = {.t = {.bytes = bytes, .size = size},
                 .pile = pile,
                 .err = err,
                 .file_size = file_size,
                 .out = out};
    qn__thrift_field field = {0};
    qn_status status = QN_OK;
    *out = (qn__parquet_footer){0};
    while (status == QN_OK && qn__thrift_next(&r.t, &field)) {
        if (field.id == 2 && field.type == QN__THRIFT_LIST && !out->column)
            status = take_schema(&r);
        else if (field.id == 4 && field.type == QN__THRIFT_LIST)
            status = take_groups(&r);
        else if (field.id == 5 && field.type == QN__THRIFT_LIST)
            take_metadata(&r);
        else
            qn__thrift_skip(&r.t, field.type);
    }
    return status == QN_OK && (r.t.broken || !out->column) ? refuse(&r) : status;
}

/* ------------------------------------------------------------------ the end of a file */

enum { MAGIC = 4, TAIL = 8 }; /* the file ends with the size of its description and the magic */
static const char magic[] = "PAR1", encrypted_magic[] = "PARE";

static qn_status refuse_end(const char *path, uint64_t at, const char *what, const char *remedy,
                            qn_error *err) {
    qn__fail(err, QN_INPUT, "%s", what);
    qn__at(err, "%s, byte %llu", path, (unsigned long long)at);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

/* The magic is not at the end: the beginning tells whether the file was one of Parquet. */
static qn_status refuse_other(int file, uint64_t size, const char *path, qn_error *err) {
    char first[MAGIC] = {0};
    if (size >= MAGIC && qn__descriptor_read_at(file, path, 0, first, MAGIC, err) != QN_OK)
        return QN_IO;
    if (memcmp(first, magic, MAGIC) == 0)
        return refuse_end(path, size, "the Parquet file is cut off",
                          "copy the file, or write it again", err);
    qn__fail(err, QN_INPUT, "only Parquet files have a description of their columns");
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_INPUT, "describe it by its rows: quern data info");
}

qn_status qn__parquet_find_footer(int file, uint64_t size, const char *path, qn__pile *pile,
                                  qn__parquet_footer *out, qn_error *err) {
    uint8_t tail[TAIL];
    if (size < MAGIC + TAIL)
        return refuse_other(file, size, path, err);
    const uint64_t end = size - TAIL;
    qn_status status = qn__descriptor_read_at(file, path, end, tail, TAIL, err);
    if (status != QN_OK)
        return status;
    if (memcmp(tail + 4, encrypted_magic, MAGIC) == 0)
        return refuse_end(path, end, "the Parquet file is encrypted", "write it without encryption",
                          err);
    if (memcmp(tail + 4, magic, MAGIC) != 0)
        return refuse_other(file, size, path, err);
    const uint64_t own = (uint64_t)tail[0] | (uint64_t)tail[1] << 8 | (uint64_t)tail[2] << 16 |
                         (uint64_t)tail[3] << 24;
    if (own > end - MAGIC)
        return refuse_end(path, end, "the description of the Parquet file is broken",
                          "copy the file, or write it again", err);
    uint8_t *bytes = qn__pile_alloc(pile, own, 1, err);
    if (!bytes)
        return QN_MEMORY;
    status = qn__descriptor_read_at(file, path, end - own, bytes, (size_t)own, err);
    if (status == QN_OK)
        status = qn__parquet_read_footer(bytes, (size_t)own, size, pile, out, err);
    if (status == QN_INPUT)
        qn__at(err, "%s, byte %llu", path, (unsigned long long)(end - own));
    return status;
}

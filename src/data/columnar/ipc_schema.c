/* Types of columns (format/Schema.fbs of Apache Arrow). */
#include "data/arrow/arrow_time.h"
#include "data/columnar/ipc.h"
#include <stdio.h>
#include <string.h>

enum { DEEPEST = 64 };

/* Fields of the tables. */
enum { SCHEMA_ENDIANNESS = 0, SCHEMA_FIELDS = 1, SCHEMA_METADATA = 2 };
enum { FIELD_NAME, FIELD_NULLABLE, FIELD_KIND, FIELD_TYPE, FIELD_DICTIONARY, FIELD_CHILDREN };
enum { FIELD_METADATA = 6, PAIR_KEY = 0, PAIR_VALUE = 1, EXTENSION_MOST = 255 };
enum { DICTIONARY_ID = 0, DICTIONARY_INDEX = 1 };

enum { INT = 2, FLOAT = 3, DECIMAL = 7, DATE = 8, TIME = 9, STAMP = 10, INTERVAL = 11 };
enum { UNION = 14, SPAN = 18, KINDS = 27 };

static qn_status refuse(qn_error *err) {
    qn__fail(err, QN_INPUT, "the description of the Arrow table is broken");
    return qn__remedy(err, QN_INPUT, "copy the file, or write it again");
}

static qn__ipc_type int_type(qn__flat *flat, size_t table) {
    static const char *const formats[2][4] = {{"C", "S", "I", "L"}, {"c", "s", "i", "l"}};
    const int64_t bits = qn__flat_get(flat, table, 0, 4, 0);
    const int is_signed = qn__flat_get(flat, table, 1, 1, 0) != 0;
    for (int i = 0; i < 4; i++)
        if (bits == 8 << i)
            return (qn__ipc_type){formats[is_signed][i], 2, 0, (uint64_t)bits, 0};
    return (qn__ipc_type){0};
}

static qn__ipc_type float_type(qn__flat *flat, size_t table) {
    static const char *const formats[] = {"e", "f", "g"};
    const int64_t precision = qn__flat_get(flat, table, 0, 2, 0);
    if (precision < 0 || precision > 2)
        return (qn__ipc_type){0};
    return (qn__ipc_type){formats[precision], 2, 0, (uint64_t)16 << precision, 0};
}

static qn__ipc_type decimal_type(qn__flat *flat, size_t table, qn__pile *pile, qn_error *err) {
    const int64_t bits = qn__flat_get(flat, table, 2, 4, 128);
    const int precision = (int)qn__flat_get(flat, table, 0, 4, 0),
              scale = (int)qn__flat_get(flat, table, 1, 4, 0);
    char format[64];
    const int size = snprintf(format, sizeof format, "d:%d,%d,%d", precision, scale, (int)bits);
    return (qn__ipc_type){qn__pile_text(pile, format, (size_t)size, err), 2, 0,
                          bits > 0 && bits <= 256 ? (uint64_t)bits : 0, 0};
}

/* Dates and times, with their unit. Those of an unknown one keep the beginning of their format. */
static qn__ipc_type time_type(qn__flat *flat, int64_t kind, size_t table) {
    static const char *const formats[][4] = {/* from DATE on */ [0] = {"tdD", "tdm", "td", "td"},
                                             [TIME - DATE] = {"tts", "ttm", "ttu", "ttn"},
                                             [STAMP - DATE] = {"tss:", "tsm:", "tsu:", "tsn:"},
                                             [INTERVAL - DATE] = {"tiM", "tiD", "tin", "ti"},
                                             [SPAN - DATE] = {"tDs", "tDm", "tDu", "tDn"}};
    static const char *const zoned[] = {"tss:UTC", "tsm:UTC", "tsu:UTC", "tsn:UTC"};
    const int milliseconds = kind == DATE || kind == TIME || kind == SPAN; /* by default */
    const int64_t unit = qn__flat_get(flat, table, 0, 2, milliseconds);
    const int known = unit >= 0 && unit < 4;
    const size_t zone = kind == STAMP ? qn__flat_table(flat, table, 1) : 0; /* a text */
    const char *format = zone && known && qn__flat_number(flat, zone, 4) > 0
                             ? zoned[unit]
                             : formats[kind - DATE][known ? unit : 3];
    qn__time_type read;
    const uint64_t bits = qn__time_type_of(format, &read) ? 8 * read.width : 0;
    return (qn__ipc_type){format, 2, 0, bits, 0};
}

/* `format` of what is returned is NULL where the type is unknown. Formats of columns that are not
 * read only have to begin as the interface says. */
static qn__ipc_type type_of(qn__flat *flat, int64_t kind, size_t table, int version, qn__pile *pile,
                            qn_error *err) {
    static const qn__ipc_type types[KINDS] = {{0},
                                              {"n", 0, 0, 0, 0},
                                              {0},
                                              {0},
                                              {"z", 3, 0, 32, 4},
                                              {"u", 3, 0, 32, 4},
                                              {"b", 2, 0, 1, 0},
                                              {0},
                                              {0},
                                              {0},
                                              {0},
                                              {0},
                                              {"+l", 2, 0, 32, 4},
                                              {"+s", 1, 0, 0, 0},
                                              {0},
                                              {"w", 2, 0, 0, 0},
                                              {"+w", 1, 0, 0, 0},
                                              {"+m", 2, 0, 0, 0},
                                              {0},
                                              {"Z", 3, 0, 64, 8},
                                              {"U", 3, 0, 64, 8},
                                              {"+L", 2, 0, 64, 8},
                                              {"+r", 0, 0, 0, 0},
                                              {"vz", 2, 1, 128, 0},
                                              {"vu", 2, 1, 128, 0},
                                              {"+vl", 3, 0, 0, 0},
                                              {"+vL", 3, 0, 0, 0}};
    if (kind == INT)
        return int_type(flat, table);
    if (kind == FLOAT)
        return float_type(flat, table);
    if (kind == DECIMAL)
        return decimal_type(flat, table, pile, err);
    if ((kind >= DATE && kind <= INTERVAL) || kind == SPAN)
        return time_type(flat, kind, table);
    if (kind == UNION) { /* dense ones have offsets; before V5 all had bits of missing values */
        const int dense = qn__flat_get(flat, table, 0, 2, 0) == 1;
        return (qn__ipc_type){"+u", 1 + dense + (version < 4), 0, 0, 0};
    }
    return kind > 0 && kind < KINDS ? types[kind] : (qn__ipc_type){0};
}

static qn_status add_node(qn__ipc_schema *schema, const qn__ipc_type *type, qn__pile *pile,
                          qn_error *err) {
    if (schema->nodes == schema->capacity) {
        const size_t capacity = schema->capacity ? 2 * schema->capacity : 64;
        qn__ipc_type *more = qn__pile_alloc(pile, capacity, sizeof *more, err);
        if (!more)
            return QN_MEMORY;
        if (schema->nodes > 0)
            memcpy(more, schema->node, schema->nodes * sizeof *more);
        schema->node = more;
        schema->capacity = capacity;
    }
    schema->node[schema->nodes++] = *type;
    return QN_OK;
}

typedef struct reading {
    qn__flat *flat;
    int version;
    qn__pile *pile;
    qn__ipc_schema *out;
} reading;

/* Adds the types of a field and of all that is nested in it. */
static qn_status add_field(const reading *r, size_t field, int depth, qn__ipc_type *type,
                           qn_error *err) {
    qn__flat *flat = r->flat;
    *type = type_of(flat, qn__flat_get(flat, field, FIELD_KIND, 1, 0),
                    qn__flat_table(flat, field, FIELD_TYPE), r->version, r->pile, err);
    const size_t dictionary = qn__flat_table(flat, field, FIELD_DICTIONARY);
    static const qn__ipc_type index = {"i", 2, 0, 32, 0};
    qn__ipc_type node = *type;
    if (dictionary) {
        const size_t of = qn__flat_table(flat, dictionary, DICTIONARY_INDEX);
        node = of ? int_type(flat, of) : index;
    }
    if (flat->broken || !type->format || !node.format || depth > DEEPEST)
        return refuse(err);
    qn_status status = add_node(r->out, &node, r->pile, err);
    if (dictionary || status != QN_OK)
        return status;
    size_t count;
    const size_t children = qn__flat_vector(flat, field, FIELD_CHILDREN, 4, &count);
    for (size_t i = 0; i < count && status == QN_OK; i++) {
        qn__ipc_type nested;
        status = add_field(r, qn__flat_follow(flat, children + 4 * i), depth + 1, &nested, err);
    }
    return status;
}

/* A list whose elements are neither nested nor those of a dictionary. */
static void take_words(const reading *r, size_t field, qn__ipc_column *column) {
    qn__flat *flat = r->flat;
    size_t count;
    const size_t children = qn__flat_vector(flat, field, FIELD_CHILDREN, 4, &count);
    const char *format = column->type.format;
    if (column->has_dictionary || column->nodes != 2 || count != 1 ||
        (strcmp(format, "+l") != 0 && strcmp(format, "+L") != 0))
        return;
    if (!qn__flat_table(flat, qn__flat_follow(flat, children), FIELD_DICTIONARY))
        column->words = r->out->node[column->first + 1].format;
}

/* The name of the column's extension type, which its metadata hold. */
static qn_status take_extension(const reading *r, size_t field, const char **name, qn_error *err) {
    static const char wanted[] = "ARROW:extension:name";
    qn__flat *flat = r->flat;
    size_t count, size;
    const size_t pairs = qn__flat_vector(flat, field, FIELD_METADATA, 4, &count);
    *name = NULL;
    for (size_t i = 0; i < count && !*name; i++) {
        const size_t pair = qn__flat_follow(flat, pairs + 4 * i),
                     key = qn__flat_vector(flat, pair, PAIR_KEY, 1, &size);
        if (flat->broken || size != sizeof wanted - 1 ||
            memcmp(flat->bytes + key, wanted, size) != 0)
            continue;
        const size_t text = qn__flat_vector(flat, pair, PAIR_VALUE, 1, &size);
        if (flat->broken)
            break;
        *name = qn__pile_text(r->pile, flat->bytes + text,
                              size < EXTENSION_MOST ? size : EXTENSION_MOST, err);
        if (!*name)
            return QN_MEMORY;
    }
    return flat->broken ? refuse(err) : QN_OK;
}

static qn_status add_column(const reading *r, size_t field, qn__ipc_column *column, qn_error *err) {
    qn__flat *flat = r->flat;
    size_t length;
    column->first = r->out->nodes;
    const qn_status status = add_field(r, field, 0, &column->values, err);
    if (status != QN_OK)
        return status;
    column->nodes = r->out->nodes - column->first;
    column->type = r->out->node[column->first];
    const size_t dictionary = qn__flat_table(flat, field, FIELD_DICTIONARY);
    column->has_dictionary = dictionary != 0;
    column->dictionary = dictionary ? qn__flat_get(flat, dictionary, DICTIONARY_ID, 8, 0) : 0;
    take_words(r, field, column);
    const size_t name = qn__flat_vector(flat, field, FIELD_NAME, 1, &length);
    if (flat->broken)
        return refuse(err);
    column->name = qn__pile_text(r->pile, flat->bytes + name, length, err);
    return column->name ? take_extension(r, field, &column->extension, err) : QN_MEMORY;
}

/* The metadata of pandas, among those that programs add. Broken ones do not matter. */
static void take_metadata(const reading *r, size_t schema) {
    qn__flat flat = *r->flat;
    size_t count, key_size, size;
    const size_t pairs = qn__flat_vector(&flat, schema, SCHEMA_METADATA, 4, &count);
    for (size_t i = 0; i < count && !flat.broken; i++) {
        const size_t pair = qn__flat_follow(&flat, pairs + 4 * i);
        const size_t key = qn__flat_vector(&flat, pair, PAIR_KEY, 1, &key_size);
        const size_t value = qn__flat_vector(&flat, pair, PAIR_VALUE, 1, &size);
        if (!flat.broken && key_size == strlen("pandas") &&
            memcmp(flat.bytes + key, "pandas", key_size) == 0) {
            r->out->pandas = flat.bytes + value;
            r->out->pandas_size = size;
        }
    }
}

qn_status qn__ipc_read_schema(qn__flat *flat, size_t schema, int version, qn__pile *pile,
                              qn__ipc_schema *out, qn_error *err) {
    const reading r = {flat, version, pile, out};
    *out = (qn__ipc_schema){0};
    if (qn__flat_get(flat, schema, SCHEMA_ENDIANNESS, 2, 0) != 0) {
        qn__fail(err, QN_INPUT, "the numbers of the Arrow file are big-endian");
        return qn__remedy(err, QN_INPUT, "write it on a little-endian processor, or as CSV");
    }
    const size_t fields = qn__flat_vector(flat, schema, SCHEMA_FIELDS, 4, &out->columns);
    if (flat->broken || schema == 0)
        return refuse(err);
    out->column = qn__pile_alloc(pile, out->columns, sizeof *out->column, err);
    qn_status status = out->column ? QN_OK : QN_MEMORY;
    for (size_t i = 0; i < out->columns && status == QN_OK; i++)
        status = add_column(&r, qn__flat_follow(flat, fields + 4 * i), &out->column[i], err);
    if (status == QN_OK)
        take_metadata(&r, schema);
    return status;
}

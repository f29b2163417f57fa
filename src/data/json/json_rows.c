/* JSON lines: objects one after the other, or an array of them, each an item
 * (docs/exactness.md 2.1.12). A key is a column, in the order of first appearance. */
#include "base/memory.h"
#include "data/arrow/arrow_build.h"
#include "data/cells/folder_values.h"
#include "data/cells/readers.h"
#include "data/cells/text_column.h"
#include "data/json/json_token.h"
#include "data/tokens/text_items.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Cells that a text may demand: 16 for each of its bytes, and 4 Mi more (docs/formats.md). A key
 * that few objects have is a column of all. */
#define CELLS_PER_BYTE 16.0
#define CELLS_FREE 0x1p22

typedef struct rows {
    qn__json_scan scan;
    const char *path, *begin;
    size_t size;
    qn__text_set keys;
    qn__arrow_build *build;
    uint64_t rows;
    uint64_t first;    /* the first row of this file */
    uint64_t expected; /* the column of the next key, where objects are alike */
    int words;         /* 1: an array is a text of its words */
    uint64_t zeros;    /* U+0000 and surrogates alone, which became U+FFFD */
    char zeroed[256];  /* where the first one is */
} rows;

static qn_status refuse_at(const rows *r, const char *at, const char *remedy, qn_error *err) {
    qn__at(err, "%s, line %" PRIu64 ", byte %zu", r->path, r->scan.line, (size_t)(at - r->begin));
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

static qn_status refuse(const rows *r, const char *what, const char *remedy, qn_error *err) {
    qn__fail(err, QN_INPUT, "%s", what);
    return refuse_at(r, r->scan.at, remedy, err);
}

static const char objects_remedy[] = "write one object a line, such as {\"age\": 31, \"city\": "
                                     "\"Bern\"}, or an array of such objects";

/* The key of a column, for messages. */
static const char *show_key(const rows *r, uint64_t column, char text[64]) {
    const char *key = r->keys.text[column];
    qn__cell_show(&(qn__cell){.text = key, .size = strlen(key)}, text);
    return text;
}

/* ------------------------------------------------------------------ columns */

static qn_status check_cells(const rows *r, uint64_t columns, uint64_t count, const char *at,
                             qn_error *err) {
    if ((double)columns * (double)count <= CELLS_PER_BYTE * (double)r->size + CELLS_FREE)
        return QN_OK;
    qn__fail(err, QN_INPUT,
             "%" PRIu64 " different keys in %" PRIu64
             " objects are too many for a text of %zu bytes",
             columns, count, r->size);
    return refuse_at(r, at, "write fewer keys, which all objects have", err);
}

static qn_status find_column(rows *r, const qn__token *key, const char *at, uint64_t *column,
                             qn_error *err) {
    const qn__cell cell = {.text = key->text, .size = key->size};
    const char *next = r->expected < r->keys.count ? r->keys.text[r->expected] : NULL;
    if (next && strlen(next) == key->size && memcmp(next, key->text, key->size) == 0) {
        *column = r->expected;
        return QN_OK;
    }
    const uint32_t known = qn__text_set_find(&r->keys, &cell);
    *column = known;
    if (known != QN__NO_TEXT)
        return QN_OK;
    *column = r->keys.count;
    qn_status status = check_cells(r, *column + 1, r->rows + 1, at, err);
    if (status == QN_OK)
        status = qn__text_set_add(&r->keys, &cell, err);
    if (status == QN_OK)
        status = qn__build_add(r->build, key->text, key->size, QN__BUILD_EMPTY, err);
    return status;
}

/* Missing values for the objects without this key. */
static qn_status fill_up(rows *r, uint64_t column, qn_error *err) {
    while (qn__build_rows(r->build, column) < r->rows)
        if (qn__build_put_missing(r->build, column, err) != QN_OK)
            return QN_MEMORY;
    return QN_OK;
}

static const char *type_name(qn__build_type type) {
    return type == QN__BUILD_BOOL ? "booleans" : type == QN__BUILD_TEXT ? "texts" : "numbers";
}

static qn_status refuse_type(const rows *r, uint64_t column, qn__build_type type, const char *at,
                             qn_error *err) {
    char key[64];
    static const char *const one[] = {"nothing",  "a boolean", "a number",
                                      "a number", "a number",  "a text"};
    qn__fail(err, QN_INPUT, "the key \"%s\" has %s, and here %s", show_key(r, column, key),
             type_name(qn__build_type_of(r->build, column)), one[type]);
    return refuse_at(r, at, "write all values of a key as one type, and missing ones as null", err);
}

static qn_status refuse_nested(const rows *r, uint64_t column, qn__token_kind kind, const char *at,
                               qn_error *err) {
    char key[64], remedy[224];
    show_key(r, column, key);
    qn__fail(err, QN_INPUT, "the key \"%s\" holds %s; values are numbers, texts, booleans or null",
             key, kind == QN__TOKEN_OBJECT ? "an object" : "an array");
    snprintf(remedy, sizeof remedy,
             "write its parts under keys of their own, or leave it out: jq -c 'del(.[\"%s\"])' OLD "
             "> NEW",
             key);
    return refuse_at(r, at, remedy, err);
}

static qn_status refuse_words(const rows *r, uint64_t column, const char *what, qn_error *err) {
    char key[64];
    qn__fail(err, QN_INPUT, "the key \"%s\" holds an array, and here %s", show_key(r, column, key),
             what);
    return refuse_at(r, r->scan.at,
                     "an array is read as a text of words: write texts without white space, or "
                     "whole numbers",
                     err);
}

static qn_status put(rows *r, uint64_t column, const qn__token *value, const char *at,
                     qn_error *err) {
    static const qn__build_type types[] = {[QN__TOKEN_TEXT] = QN__BUILD_TEXT,
                                           [QN__TOKEN_BOOL] = QN__BUILD_BOOL,
                                           [QN__TOKEN_WHOLE] = QN__BUILD_INT,
                                           [QN__TOKEN_NUMBER] = QN__BUILD_DOUBLE};
    if (value->kind == QN__TOKEN_NULL)
        return qn__build_put_missing(r->build, column, err);
    qn_status status = QN_OK;
    qn__build_type type = types[value->kind];
    const qn__build_type own = qn__build_type_of(r->build, column);
    if (type == QN__BUILD_INT && own == QN__BUILD_DOUBLE)
        type = QN__BUILD_DOUBLE;
    const int mixed = own == QN__BUILD_BOOL && type != QN__BUILD_BOOL;
    if (own != type && (mixed || !qn__build_widen(r->build, column, type, &status, err)))
        return status == QN_OK ? refuse_type(r, column, type, at, err) : status;
    if (type == QN__BUILD_TEXT)
        return qn__build_put_text(r->build, column, value->text, value->size, err);
    if (type == QN__BUILD_DOUBLE)
        return qn__build_put_number(
            r->build, column, value->kind == QN__TOKEN_WHOLE ? (double)value->whole : value->number,
            err);
    return qn__build_put_whole(r->build, column, value->whole, err);
}

/* ------------------------------------------------------------------ objects */

static qn_status refuse_token(const rows *r, const qn__token *token, qn_error *err) {
    return refuse(r, r->scan.at < r->scan.end ? token->what : "the text ends too early",
                  "write JSON, as Python's json.dumps or pandas' to_json does", err);
}

/* The byte that has to come next, which is skipped. */
static qn_status need(rows *r, char byte, qn_error *err) {
    char what[64];
    const char next = qn__json_next(&r->scan);
    if (next == byte && r->scan.at < r->scan.end) {
        r->scan.at++;
        return QN_OK;
    }
    if (r->scan.at == r->scan.end)
        return refuse_token(r, NULL, err);
    snprintf(what, sizeof what, "a '%c' is missing", byte);
    return refuse(r, what, "write JSON, as Python's json.dumps or pandas' to_json does", err);
}

static qn_status read_value(rows *r, uint64_t column, qn_error *err) {
    qn__token value;
    qn__json_next(&r->scan);
    const char *at = r->scan.at;
    qn__json_token(&r->scan, &value);
    if (value.kind == QN__TOKEN_ARRAY && r->words) {
        qn__json_words(&r->scan, &value);
        if (value.kind == QN__TOKEN_ARRAY)
            return refuse_words(r, column, value.what, err);
    }
    if (value.kind == QN__TOKEN_BAD)
        return refuse_token(r, &value, err);
    if (value.kind == QN__TOKEN_OBJECT || value.kind == QN__TOKEN_ARRAY)
        return refuse_nested(r, column, value.kind, at, err);
    return put(r, column, &value, at, err);
}

static qn_status read_member(rows *r, qn_error *err) {
    qn__token key;
    uint64_t column;
    char shown[64], what[128];
    qn__json_next(&r->scan);
    const char *at = r->scan.at;
    r->scan.strict = 1;
    qn__json_token(&r->scan, &key);
    r->scan.strict = 0;
    if (key.kind == QN__TOKEN_BAD)
        return refuse_token(r, &key, err);
    if (key.kind != QN__TOKEN_TEXT)
        return refuse(r, "a key is not a text", objects_remedy, err);
    qn_status status = find_column(r, &key, at, &column, err);
    if (status == QN_OK)
        status = need(r, ':', err);
    if (status == QN_OK && qn__build_rows(r->build, column) > r->rows) {
        snprintf(what, sizeof what, "the key \"%s\" stands twice in an object",
                 show_key(r, column, shown));
        qn__fail(err, QN_INPUT, "%s", what);
        return refuse_at(r, at, "write each key once", err);
    }
    if (status == QN_OK)
        status = fill_up(r, column, err);
    r->expected = column + 1;
    return status == QN_OK ? read_value(r, column, err) : status;
}

/* An object; `at` is at its brace. */
static qn_status read_object(rows *r, qn_error *err) {
    qn_status status = QN_OK;
    const char *begin = r->scan.at++;
    r->expected = 0;
    for (int more = qn__json_next(&r->scan) != '}'; more && status == QN_OK;) {
        status = read_member(r, err);
        more = status == QN_OK && qn__json_next(&r->scan) == ',';
        r->scan.at += more;
    }
    if (status == QN_OK)
        status = need(r, '}', err);
    r->rows++;
    return status == QN_OK ? check_cells(r, r->keys.count, r->rows, begin, err) : status;
}

/* Objects with white space between them, or with commas inside an array. */
static qn_status read_objects(rows *r, qn_error *err) {
    const int array = qn__json_next(&r->scan) == '[';
    r->scan.at += array;
    for (;;) {
        const char next = qn__json_next(&r->scan);
        if (r->scan.at == r->scan.end || (array && next == ']' && r->rows == r->first))
            break;
        if (next != '{')
            return refuse(r, "an item is not an object", objects_remedy, err);
        const qn_status status = read_object(r, err);
        if (status != QN_OK)
            return status;
        if (array && qn__json_next(&r->scan) != ',')
            break;
        r->scan.at += array;
    }
    if (!array)
        return QN_OK;
    const qn_status status = need(r, ']', err);
    if (status != QN_OK || (!qn__json_next(&r->scan) && r->scan.at == r->scan.end))
        return status;
    return refuse(r, "more text follows the array", objects_remedy, err);
}

/* ------------------------------------------------------------------ files */

/* Where a plain file ends early, what is there may be no JSON: say why. */
static qn_status check_size(const qn__source *source, size_t size, qn_error *err) {
    if (qn__source_packing(source) || qn__source_part(source) ||
        size >= qn__source_file_size(source))
        return QN_OK;
    qn__fail(err, QN_INPUT, "the file became shorter while it was read");
    qn__at(err, "%s, byte %zu", qn__source_path(source), size);
    return qn__remedy(err, QN_INPUT, "read it when nothing writes to it any more");
}

/* Reads the objects of a file. The text may change: tokens are decoded in their places. */
static qn_status read_file(rows *r, qn__source *source, qn_error *err) {
    qn__contents text;
    const qn_status status = qn__source_contents_of_any_size(source, 1, &text, err);
    if (status != QN_OK)
        return status;
    char *begin = (char *)(uintptr_t)text.data;
    r->path = qn__source_path(source);
    r->begin = begin;
    r->size += text.size;
    r->first = r->rows;
    r->scan = (qn__json_scan){.at = begin, .end = begin + text.size, .line = 1};
    if (text.size >= 3 && memcmp(begin, "\xEF\xBB\xBF", 3) == 0)
        r->scan.at += 3;
    qn_status read = check_size(source, text.size, err);
    if (read == QN_OK)
        read = read_objects(r, err);
    qn__contents_release(&text);
    if (r->zeros == 0 && r->scan.zeros > 0)
        snprintf(r->zeroed, sizeof r->zeroed, "%.200s, line %" PRIu64, r->path, r->scan.zeroed);
    r->zeros += r->scan.zeros;
    return read;
}

static qn_status note_zeros(const rows *r, qn_data *data, qn_error *err) {
    char note[400];
    if (r->zeros == 0)
        return QN_OK;
    snprintf(note, sizeof note, QN__ZEROS_NOTE " %s", r->zeros, r->zeroed);
    return qn__data_add_note(data, note, err);
}

static qn_status put_key(rows *r, uint64_t column, qn__key_kind kind, const char *value,
                         qn_error *err) {
    return *value == '\0' ? qn__build_put_missing(r->build, column, err)
           : kind == QN__HIVE_WHOLE
               ? qn__build_put_whole(r->build, column, qn__key_whole(value), err)
           : kind == QN__HIVE_NUMBER
               ? qn__build_put_number(r->build, column, (double)qn__key_number(value), err)
               : qn__build_put_text(r->build, column, value, strlen(value), err);
}

/* Adds a column that folders tell; `end`: the rows of each file end there. */
static qn_status add_key(rows *r, const qn__file_list *list, size_t k, const uint64_t *end,
                         qn_error *err) {
    static const qn__build_type types[] = {[QN__HIVE_WHOLE] = QN__BUILD_INT,
                                           [QN__HIVE_NUMBER] = QN__BUILD_FLOAT,
                                           [QN__HIVE_TEXT] = QN__BUILD_TEXT};
    const char *name = list->file[0].key[k].name;
    const qn__key_kind kind = qn__file_list_key_kind(list, k);
    const uint64_t column = qn__build_columns(r->build);
    qn_status status = qn__build_add(r->build, name, strlen(name), types[kind], err);
    uint64_t row = 0;
    for (size_t i = 0; i < list->count; i++)
        for (; row < end[i] && status == QN_OK; row++)
            status = put_key(r, column, kind, list->file[i].key[k].value, err);
    return status;
}

static qn_status add_keys(rows *r, const qn__file_list *list, const uint64_t *end, qn_error *err) {
    qn_status status = QN_OK;
    for (size_t k = 0; k < list->keys && status == QN_OK; k++) {
        const char *name = list->file[0].key[k].name;
        const qn__cell cell = {.text = name, .size = strlen(name)};
        if (qn__text_set_find(&r->keys, &cell) == QN__NO_TEXT) /* or objects have the key */
            status = add_key(r, list, k, end, err);
    }
    return status;
}

static qn_status read_rows(rows *r, qn__part_files *files, uint64_t *end, qn_error *err) {
    qn_status status = qn__build_create(&r->build, err);
    for (size_t i = 0; i < files->list->count && status == QN_OK; i++) {
        qn__source *source;
        status = qn__part_files_open(files, i, &source, err);
        if (status == QN_OK)
            status = qn__part_files_close(source, read_file(r, source, err), err);
        end[i] = r->rows;
    }
    r->path = files->name;
    if (status == QN_OK && r->keys.count == 0) {
        qn__fail(err, QN_INPUT, "no object has a key");
        qn__at(err, "%s", r->path);
        status = qn__remedy(err, QN_INPUT, "%s", objects_remedy);
    }
    if (status == QN_OK)
        status = qn__build_pad(r->build, r->rows, err);
    return status == QN_OK ? add_keys(r, files->list, end, err) : status;
}

static qn_status read_json(qn__part_files *files, const qn_data_options *options, qn__pool *pool,
                           qn_data *data, qn_error *err) {
    rows r = {.path = files->name, .words = qn__text_items_wanted(options)};
    (void)pool;
    uint64_t *end = qn__alloc(files->list->count, sizeof *end, err);
    qn_status status = end ? read_rows(&r, files, end, err) : QN_MEMORY;
    if (status == QN_OK)
        status = qn__build_fill(&r.build, files->name, options, data, err);
    if (status == QN_OK)
        status = note_zeros(&r, data, err);
    qn__build_destroy(r.build);
    qn__text_set_release(&r.keys);
    qn__free(end);
    return status;
}

static size_t skip_space(const uint8_t *first, size_t size, size_t at) {
    while (at < size && (first[at] == ' ' || (first[at] >= '\t' && first[at] <= '\r')))
        at++;
    return at;
}

/* A brace, then a quote or a brace; before it perhaps a bracket. */
static int probe(const uint8_t *first, size_t size, const char *path) {
    size_t at = size >= 3 && memcmp(first, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    (void)path;
    at = skip_space(first, size, at);
    if (at < size && first[at] == '[')
        at = skip_space(first, size, at + 1);
    if (at == size || first[at] != '{')
        return QN__PROBE_NO;
    at = skip_space(first, size, at + 1);
    return at < size && (first[at] == '"' || first[at] == '}') ? QN__PROBE_MAGIC : QN__PROBE_NO;
}

const qn__reader qn__json_reader = {
    .name = QN__PACKED_NAMES("json"),
    .about = "JSON lines: an object for each item",
    .endings = {"json", "jsonl", "ndjson"},
    .text = 1,
    .columns = 1,
    .weights = 1,
    .quantities = 1,
    .typed = 1,
    .labels_remedy =
        "leave out `data.labels_path` and name the label's key with `data.label_column`",
    .probe = probe,
    .read_parts = read_json,
};

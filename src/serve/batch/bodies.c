/* Bodies go through the readers of files, rows as files in memory: what a cell means is decided in
 * one place, and is what it is for `quern predict`. That takes some 20 microseconds for a row. */
#include "serve/batch/body_state.h"

#include "base/files/write_whole.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "data/images/image_bytes.h"
#include "data/text/csv_header.h"
#include "image/image_head.h"
#include "model/formats/model_kind.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PEEKED = 512 };

typedef struct body_kind {
    const char *format; /* as qn_data_format has it */
    const char *said;   /* in messages */
    const char *type[6];
} body_kind;

static const body_kind kinds[] = {
    [QN__BODY_JSON] = {"json",
                       "rows as JSON",
                       {"application/json", "application/x-ndjson", "application/jsonl",
                        "application/json-lines"}},
    [QN__BODY_CSV] = {"csv", "rows as CSV", {"text/csv", "application/csv"}},
    [QN__BODY_IMAGE] = {
        "images",
        "an image",
        {"image/jpeg", "image/png", "image/webp", "image/gif", "image/tiff", "image/bmp"}}};
enum { KINDS = sizeof kinds / sizeof *kinds, TYPES = sizeof kinds->type / sizeof *kinds->type };

/* ------------------------------------------------------------------------------------ the reader
 */

/* A list of columns as qn_data_options has it: names in quotes where there are any, and places. */
static void add_column(qn__text *list, const char *name, int named, uint32_t place) {
    if (named) {
        qn__text_add(list, "%s\"", list->size ? "," : "");
        for (const char *c = name ? name : ""; *c; ++c)
            qn__text_add(list, *c == '"' ? "\"\"" : "%c", *c);
        qn__text_add(list, "\"");
    }
    qn__text_add(list, "%s%u", list->size ? "," : "", place);
}

/* The columns of categories, those of texts too; or those of texts alone. *out is NULL where there
 * are none. */
static qn_status list_columns(const qn__body_reader *r, int texts, char **out, qn_error *err) {
    qn__text list = {0};
    const qn__schema *table = r->model->table;
    for (uint32_t k = 0; table && k < table->features; ++k)
        if (table->feature[k].text || (!texts && table->feature[k].categories))
            add_column(&list, table->feature[k].name, r->named, k + 1);
    *out = list.size ? qn__text_take(&list, err) : NULL;
    return *out || !list.failed ? QN_OK : QN_MEMORY;
}

qn_status qn__body_reader_make(const qn_model *model, qn__body_reader **out, qn_error *err) {
    qn__body_reader *r = qn__alloc(1, sizeof *r, err);
    *out = NULL;
    if (!r)
        return QN_MEMORY;
    r->model = model;
    r->numbers = qn__takes_number_rows(model);
    for (uint32_t k = 0; model->table && k < model->table->features; ++k)
        r->named |= model->table->feature[k].name != NULL;
    qn_status status = list_columns(r, 0, &r->categories, err);
    if (status == QN_OK)
        status = list_columns(r, 1, &r->texts, err);
    if (status == QN_OK)
        *out = r;
    else
        qn__body_reader_free(r);
    return status;
}

void qn__body_reader_free(qn__body_reader *r) {
    if (!r)
        return;
    qn__free(r->categories);
    qn__free(r->texts);
    qn__free(r);
}

int qn__body_has_header(const qn__body_reader *r) { return r->named; }

/* Whether a cell that is a text begins as a number: one with a decimal comma, or a date. */
static int begins_as_number(const char *at, const char *end) {
    while (at < end && *at && strchr("\"+-. ", *at))
        ++at;
    return at < end && *at >= '0' && *at <= '9';
}

int qn__body_is_header(const qn__body_reader *r, const char *line, size_t size) {
    const char *end = line + size;
    qn__csv_prefix before;
    if (r->named || r->categories || r->texts)
        return r->named;
    while (end > line && qn__csv_is_ending(end[-1]))
        --end;
    line = qn__csv_skip_prefix(line, end, &before);
    if (line == end || begins_as_number(line, end))
        return 0;
    const qn__csv_line cells = qn__csv_line_walk(line, end, qn__csv_find_separator(line, end));
    return cells.texts == cells.columns;
}

/* As `quern predict` reads the data of this model, without labels. */
static void set_options(const qn__body_reader *r, qn__body_kind kind, qn_data_options *o) {
    const qn_model *m = r->model;
    qn_data_options_init(o);
    o->unlabelled = 1;
    o->no_cache = 1;
    o->threads = 1;
    o->expected_rules = qn_model_rules(m);
    o->expected_features = qn_model_inputs(m);
    if (kind == QN__BODY_IMAGE) {
        o->expected_resize = qn_model_resize(m);
        return;
    }
    o->header = kind == QN__BODY_CSV && r->named ? "yes" : NULL;
    o->expected_categories = r->categories;
    o->expected_text = r->texts;
    o->date_format = qn_model_date_format(m);
    o->expected_tokens = qn_model_tokens(m);
    o->expected_tokenizer = qn_model_tokenizer(m);
    o->expected_context = qn_model_context(m);
    if (m->next && m->tokenizer && *m->tokenizer) { /* each text is an item */
        o->task = "next";
        o->item = "row";
        o->text = "text";
    }
}

/* ------------------------------------------------------------------------------------- its kind */

static size_t first_letter(const uint8_t *body, size_t size) {
    static const uint8_t mark[3] = {0xef, 0xbb, 0xbf};
    size_t at = size >= 3 && memcmp(body, mark, 3) == 0 ? 3 : 0;
    while (at < size && (body[at] == ' ' || (body[at] >= '\t' && body[at] <= '\r')))
        ++at;
    return at;
}

static int is_image(const uint8_t *body, size_t size) {
    qn__image_head head;
    qn__image_head_read(body, size, &head, NULL);
    return head.kind >= QN__IMAGE_JPEG;
}

/* Whether the bytes may be a text: neither an archive nor something packed. */
static int is_text(const uint8_t *body, size_t size) {
    static const char *const packed[] = {"BZh", "\xfd\x37zXZ", "\x28\xb5\x2f\xfd", "PAR1",
                                         "SQLite"};
    for (size_t k = 0; k < sizeof packed / sizeof *packed; ++k)
        if (size >= strlen(packed[k]) && memcmp(body, packed[k], strlen(packed[k])) == 0)
            return 0;
    for (size_t k = 0; k < size && k < PEEKED; ++k)
        if (body[k] < ' ' && !(body[k] >= '\t' && body[k] <= '\r'))
            return 0;
    return 1;
}

static int is_of(qn__body_kind kind, const uint8_t *body, size_t size) {
    const size_t at = first_letter(body, size);
    const int brace = at < size && (body[at] == '{' || body[at] == '[');
    if (kind == QN__BODY_IMAGE)
        return is_image(body, size);
    return at < size && is_text(body, size) && (kind == QN__BODY_JSON) == brace;
}

static qn_status refuse_type(const char *type, qn_error *err) {
    qn__fail(err, QN_UNSUPPORTED, "a body of the type \"%.100s\" is not read", type);
    return qn__remedy(err, QN_UNSUPPORTED,
                      "send application/json, text/csv, image/jpeg, image/png, image/webp, "
                      "image/gif, image/tiff or image/bmp");
}

qn_status qn__body_kind_of(const char *content_type, const void *body, size_t size,
                           qn__body_kind *out, qn_error *err) {
    const size_t length = content_type ? strcspn(content_type, "; \t") : 0;
    for (unsigned k = 0; k < KINDS; ++k) {
        if (length == 0 && is_of(k, body, size)) {
            *out = k;
            return QN_OK;
        }
        for (unsigned t = 0; t < TYPES && kinds[k].type[t] && length; ++t)
            if (strlen(kinds[k].type[t]) == length &&
                strncasecmp(kinds[k].type[t], content_type, length) == 0) {
                *out = k;
                return QN_OK;
            }
    }
    return refuse_type(length ? content_type : "", err);
}

/* ------------------------------------------------------------------------------------ reading it
 */

/* Whether the text is an object, or a list that begins with one. *empty: a list of nothing. */
static int has_objects(const uint8_t *body, size_t size, int *empty) {
    size_t at = first_letter(body, size);
    const int list = at < size && body[at] == '[';
    if (list)
        at += 1 + first_letter(body + at + 1, size - at - 1);
    *empty = list && at < size && body[at] == ']';
    return at == size || body[at] == '{';
}

static qn_status refuse_body(qn__body_kind kind, const void *body, size_t size, qn_error *err) {
    int empty = 0;
    if (kind == QN__BODY_JSON)
        (void)has_objects(body, size, &empty);
    qn__fail(err, QN_INPUT,
             empty  ? "this is a list without %s"
             : size ? "this is not %s"
                    : "this is empty, and not %s",
             empty ? "rows" : kinds[kind].said);
    return qn__remedy(
        err, QN_INPUT,
        kind == QN__BODY_JSON ? "send a list of objects such as [{\"age\": 41, \"city\": \"Bern\"}]"
        : kind == QN__BODY_CSV ? "send a line with the names of the columns, and a line for each "
                                 "row; plain, not packed"
                               : "send the bytes of a JPEG, PNG, WebP, GIF, TIFF or BMP file");
}

/* A file in memory with these bytes, which nobody changes; -1: there is none. */
static int make_file(const void *body, size_t size, qn_error *err) {
    const int file = memfd_create("body", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file >= 0 && qn__write_whole(file, body, size) == 0 &&
        fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) == 0)
        return file;
    qn__fail_errno(err, "keep", "the body");
    if (file >= 0)
        close(file);
    return -1;
}

/* "/proc/self/fd/7, line 2" becomes "the body, line 2". */
static void name_body(const char *path, qn_error *err) {
    char place[sizeof err->where];
    const char *found = err ? strstr(err->where, path) : NULL;
    if (!found)
        return;
    snprintf(place, sizeof place, "%.*sthe body%s", (int)(found - err->where), err->where,
             found + strlen(path));
    qn__at_of(err, place);
}

static qn_status check_format(qn__body_kind kind, qn_data **data, qn_error *err) {
    if (strcmp(qn_data_format(*data), kinds[kind].format) == 0)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the body is not %s, but of the format %s", kinds[kind].said,
             qn_data_format(*data));
    qn_data_close(*data);
    *data = NULL;
    return qn__remedy(err, QN_INPUT, "say so with its content type, or send %s", kinds[kind].said);
}

qn_status qn__body_read(const qn__body_reader *reader, qn__body_kind kind, const void *body,
                        size_t size, qn_data **out, qn_error *err) {
    qn_data_options options;
    char path[32];
    *out = NULL;
    if (kind == QN__BODY_JSON && reader->numbers && qn__number_rows(reader, body, size, out))
        return QN_OK;
    if (!is_of(kind, body, size) || (kind == QN__BODY_JSON && !has_objects(body, size, &(int){0})))
        return refuse_body(kind, body, size, err);
    set_options(reader, kind, &options);
    if (kind == QN__BODY_IMAGE)
        return qn__image_of_bytes(body, size, "the body", &options, out, err);
    const int file = make_file(body, size, err);
    if (file < 0)
        return QN_IO;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    const qn_status status = qn_data_open(path, &options, out, err);
    close(file);
    if (status == QN_OK)
        return check_format(kind, out, err);
    name_body(path, err);
    return status;
}

/* ----------------------------------------------------------------------------------------- texts
 */

static qn_status refuse_texts(const qn_model *m, qn_error *err) {
    qn__fail(err, QN_UNSUPPORTED, "the model does not take a text alone");
    return qn__remedy(err, QN_UNSUPPORTED,
                      m->table ? "send rows with the names of its columns"
                               : "send what the model was trained on");
}

/* A JSON string of `size` bytes, which may hold a NUL. 0: memory is short. */
static int add_string(qn__text *rows, const qn__body_text *text, qn_error *err) {
    char *copy = qn__alloc(text->size + 1, 1, err);
    if (!copy)
        return 0;
    memcpy(copy, text->text, text->size);
    for (size_t k = 0; k < text->size; ++k)
        copy[k] = copy[k] ? copy[k] : ' ';
    qn__text_add_json(rows, copy);
    qn__free(copy);
    return 1;
}

qn_status qn__body_of_texts(const qn__body_reader *reader, const qn__body_text *text,
                            uint64_t count, qn_data **out, qn_error *err) {
    const qn_model *m = reader->model;
    qn__text rows = {0};
    int good = 1;
    *out = NULL;
    const int column = m->table && m->table->features == 1 && m->table->feature[0].text;
    if (!column && !(m->tokenizer && *m->tokenizer))
        return refuse_texts(m, err);
    const char *name = m->table && m->table->features == 1 ? m->table->feature[0].name : NULL;
    for (uint64_t i = 0; good && i < count; ++i) {
        qn__text_add(&rows, "{");
        qn__text_add_json(&rows, name ? name : "text");
        qn__text_add(&rows, ":");
        good = add_string(&rows, &text[i], err);
        qn__text_add(&rows, "}\n");
    }
    qn_status status = !good ? QN_MEMORY : rows.failed ? qn__fail_memory(err, rows.size, 1) : QN_OK;
    if (status == QN_OK)
        status = qn__body_read(reader, QN__BODY_JSON, rows.data, rows.size, out, err);
    qn__text_release(&rows);
    return status;
}

#include "serve/watch/watch_results.h"

#include "base/encoding.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "data/write/sink.h"
#include "model/formats/model.h"
#include "predict/tag_lines.h"
#include "serve/watch/watch_masks.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Columns before the prediction: file, version where there is one, item. */
enum { FILE_COLUMN, VERSION_COLUMN, KEYS };

struct qn__watch_results {
    const qn_model *model;
    qn__sink *sink;
    qn__sink_column *column;
    char (*name)[24]; /* of columns of outputs */
    uint32_t columns, keys;
    uint32_t outputs; /* columns of them; 0: none */
    uint32_t each;    /* numbers of an answer */
    int layer;        /* they are those of a layer */
    int texts;        /* answers are texts */
    int single;       /* there is one prediction of an item */
    int score;        /* and its score */
    int tags;
    int masks; /* the prediction is a file */
};

/* ---------------------------------------------------------------------------------- its columns */

static int is_named(const qn_model *m) { return qn_model_class_name(m, 0) != NULL; }

static void find_shape(qn__watch_results *r, const qn__watch_table *how) {
    const qn_model *m = r->model;
    r->layer = how->values > 0;
    r->each = r->layer ? how->values : m->outputs;
    r->texts = how->texts;
    if (r->layer)
        r->outputs = how->values;
    if (r->layer || r->texts)
        return;
    const int components = m->kind->predicted == QN_PREDICTS_COMPONENTS;
    r->tags = m->answers && m->tokens && m->mask.height > 0;
    r->masks = qn__watch_has_masks(m);
    r->single = r->tags || !(m->answers || components);
    r->score = r->single && !r->tags && m->classes > 0;
    r->outputs = r->tags || r->masks                            ? 0
                 : !r->single || (how->all_outputs && r->score) ? m->outputs
                                                                : 0;
}

static void add_column(qn__watch_results *r, const char *name, qn__sink_type type) {
    r->column[r->columns++] = (qn__sink_column){.name = name, .type = type};
}

/* Labels have columns with their names. */
static void add_outputs(qn__watch_results *r) {
    for (uint32_t o = 0; o < r->outputs; ++o) {
        const int labels = r->model->answers && !r->layer;
        const char *label = labels ? qn_model_class_name(r->model, o) : NULL;
        snprintf(r->name[o], sizeof r->name[o], "%.10s%u", r->layer ? "f" : r->model->kind->output,
                 o);
        add_column(r, label ? label : r->name[o], QN__SINK_SINGLE);
    }
}

static qn_status make_columns(qn__watch_results *r, int versions, qn_error *err) {
    r->column = qn__alloc(r->outputs + 9, sizeof *r->column, err);
    r->name = qn__alloc(r->outputs + 1, sizeof *r->name, err);
    if (!r->column || !r->name)
        return QN_MEMORY;
    add_column(r, "file", QN__SINK_TEXT);
    if (versions)
        add_column(r, "version", QN__SINK_TEXT);
    add_column(r, "item", QN__SINK_INTEGER);
    r->keys = r->columns;
    if (r->texts) {
        add_column(r, "text", QN__SINK_TEXT);
        add_column(r, "end", QN__SINK_TEXT);
    }
    if (r->masks)
        add_column(r, "mask", QN__SINK_TEXT);
    if (r->single)
        add_column(r, "prediction",
                   r->tags || is_named(r->model) ? QN__SINK_TEXT
                   : r->score                    ? QN__SINK_INTEGER
                                                 : QN__SINK_SINGLE);
    if (r->score)
        add_column(r, "score", QN__SINK_SINGLE);
    add_outputs(r);
    add_column(r, "error", QN__SINK_TEXT);
    return QN_OK;
}

qn_status qn__watch_results_open(const qn_model *model, const qn__watch_table *how,
                                 qn__watch_results **out, qn_error *err) {
    *out = NULL;
    qn__watch_results *r = qn__alloc(1, sizeof *r, err);
    if (!r)
        return QN_MEMORY;
    r->model = model;
    find_shape(r, how);
    qn_status status = make_columns(r, how->versions, err);
    const qn__sink_table table = {.name = r->layer   ? "outputs"
                                          : r->texts ? "answers"
                                                     : "predictions",
                                  .column = r->column,
                                  .columns = r->columns,
                                  .keys = r->keys};
    if (status == QN_OK)
        status = qn__sink_open(how->to, &table, &r->sink, err);
    if (status == QN_OK)
        *out = r;
    else
        qn__watch_results_close(r);
    return status;
}

void qn__watch_results_close(qn__watch_results *r) {
    if (!r)
        return;
    qn__sink_close(r->sink);
    qn__free(r->column);
    qn__free(r->name);
    qn__free(r);
}

/* ------------------------------------------------------------------------------------- its rows */

/* Texts that rows point to. */
typedef struct texts {
    char **at;
    uint64_t count;
} texts;

static qn__sink_cell missing(void) { return (qn__sink_cell){.type = QN__SINK_MISSING}; }

static qn__sink_cell text_cell(const char *text) {
    return text ? (qn__sink_cell){.type = QN__SINK_TEXT, .of.text = text} : missing();
}

static qn__sink_cell whole_cell(int64_t whole) {
    return (qn__sink_cell){.type = QN__SINK_INTEGER, .of.whole = whole};
}

static qn__sink_cell number_cell(float value) {
    return isfinite(value)
               ? (qn__sink_cell){.type = QN__SINK_SINGLE, .of.number = (double)(value + 0.0f)}
               : missing(); /* no "-0" */
}

static qn__sink_cell class_cell(const qn_model *m, int32_t class) {
    if (class < 0)
        return missing();
    return is_named(m) ? text_cell(qn_model_class_name(m, (uint32_t) class)) : whole_cell(class);
}

static qn__sink_cell tags_cell(const qn__watch_results *r, const qn__watch_unit *u, uint64_t item,
                               texts *own) {
    const qn_model *m = r->model;
    const qn__tag_lines lines = {.data = u->data,
                                 .answers = u->answer.answers,
                                 .positions = m->answers,
                                 .rows = qn__recipe_vocabulary(qn__model_recipe_of(m)),
                                 .table = m->table};
    return text_cell(own->at[own->count++] = qn__tag_line(&lines, item, NULL));
}

/* "\\xff" in a name itself, which must not look like the byte. */
static int is_escape(const char *text) {
    return text[0] == '\\' && text[1] == 'x' && qn__hex_digit(text[2]) >= 0 &&
           qn__hex_digit(text[3]) >= 0;
}

/* The key of a file. Databases take UTF-8 alone, and file systems any bytes: others are written as
 * "\\xff", and the backslash of such a text as "\\x5c". NULL: memory is short. */
static char *key_of(const char *file) {
    qn__text text = {0};
    for (size_t length; *file; file += length) {
        length = is_escape(file) ? 0 : qn__utf8_length(file, strnlen(file, 4));
        if (length > 0)
            qn__text_add(&text, "%.*s", (int)length, file);
        else
            qn__text_add(&text, "\\x%02x", (unsigned char)*file);
        length = length > 0 ? length : 1;
    }
    return qn__text_take(&text, NULL);
}

/* The cells of an item between its key and the error. */
static void add_answer(const qn__watch_results *r, const qn__watch_unit *u, uint64_t item,
                       texts *own, qn__sink_cell *cell) {
    const qn_model *m = r->model;
    if (r->texts) {
        *cell++ = text_cell(u->prompts->answer[item].text);
        *cell = text_cell(qn__watch_end_name(u->prompts->answer[item].end));
        return;
    }
    if (r->masks && u->mask && u->mask[0])
        *cell = text_cell(own->at[own->count++] = key_of(u->mask));
    else if (r->tags)
        *cell++ = tags_cell(r, u, item, own);
    else if (r->single)
        *cell++ =
            r->score ? class_cell(m, u->answer.classes[item]) : number_cell(u->answer.scores[item]);
    if (r->score)
        *cell++ = number_cell(u->answer.scores[item]);
    for (uint32_t o = 0; o < r->outputs; ++o)
        *cell++ = number_cell(u->answer.outputs[item * r->each + o]);
}

static const char *after(const char *where, const char *word) {
    const size_t size = strlen(word);
    if (strncmp(where, word, size) != 0)
        return where;
    where += size;
    return where + strspn(where, ", 0123456789");
}

/* "line 2, column 3: ...": the body that was read is the file, and a row is a line of it. */
static char *error_text(const qn__watch_unit *u) {
    qn__text text = {0};
    const char *where = after(u->error.where, "the body");
    if (u->lines)
        where = after(where, "line ");
    if (u->lines || (u->prompts && u->prompts->count == 1))
        where = after(where, "prompt ");
    qn__text_add(&text, "%s%s%s", where, *where ? ": " : "", u->error.what);
    return qn__text_take(&text, NULL);
}

static uint64_t rows_of(const qn__watch_unit *u) {
    return u->skip ? 0 : u->status == QN_OK ? u->items : 1;
}

static void add_rows(const qn__watch_results *r, const qn__watch_unit *u, texts *own,
                     qn__sink_cell **at) {
    char *file = rows_of(u) > 0 ? own->at[own->count++] = key_of(u->file) : NULL;
    for (uint64_t i = 0; i < rows_of(u); ++i, *at += r->columns) {
        qn__sink_cell *cell = *at;
        for (uint32_t k = 0; k < r->columns; ++k)
            cell[k] = missing();
        cell[FILE_COLUMN] = text_cell(file);
        if (r->keys > KEYS)
            cell[VERSION_COLUMN] = text_cell(u->version ? u->version : "");
        cell[r->keys - 1] = whole_cell(u->first + (int64_t)i);
        if (u->status == QN_OK)
            add_answer(r, u, i, own, cell + r->keys);
        else
            cell[r->columns - 1] = text_cell(own->at[own->count++] = error_text(u));
    }
}

qn_status qn__watch_results_put(qn__watch_results *r, const qn__watch_unit *units, qn_error *err) {
    uint64_t rows = 0;
    for (const qn__watch_unit *u = units; u; u = u->next)
        rows += rows_of(u);
    if (rows == 0)
        return QN_OK;
    qn__sink_cell *cells = qn__alloc(rows, r->columns * sizeof *cells, err);
    texts own = {.at = cells ? qn__alloc(2 * rows, sizeof *own.at, err) : NULL};
    qn__sink_cell *at = cells;
    for (const qn__watch_unit *u = units; own.at && u; u = u->next)
        add_rows(r, u, &own, &at);
    const qn_status status = own.at ? qn__sink_put(r->sink, cells, rows, err) : QN_MEMORY;
    while (own.at && own.count > 0)
        qn__free(own.at[--own.count]);
    qn__free(own.at);
    qn__free(cells);
    return status;
}

qn_status qn__watch_results_last(qn__watch_results *r, const char *file, const char *version,
                                 int64_t *last, qn_error *err) {
    char *text = key_of(file);
    const qn__sink_cell key[KEYS] = {text_cell(text), text_cell(version ? version : "")};
    const qn_status status =
        text ? qn__sink_last(r->sink, key, last, err) : qn__fail_memory(err, strlen(file), 1);
    qn__free(text);
    return status;
}

int qn__watch_results_file(const qn__watch_results *r, struct stat *info) {
    return qn__sink_file(r->sink, info);
}

#include "data/open/documents.h"

#include "base/memory.h"
#include "base/system/threads.h"
#include "data/table/part_reading.h"
#include "data/table/table_space.h"
#include "data/table/token_names.h"
#include "data/tokens/item_tokens.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

int qn__documents_wanted(const qn_data_options *o) {
    if (o->item)
        return strcmp(o->item, "row") == 0;
    return o->text && strcmp(o->text, "none") != 0 && o->tokens &&
           strcmp(o->tokens, QN__TOKENS_IDS) != 0 && o->task && strcmp(o->task, "next") == 0;
}

int qn__lines_wanted(const qn_data_options *o) { return o->item && strcmp(o->item, "line") == 0; }

qn_data_options qn__documents_table(const qn_data_options *o) {
    qn_data_options table = *o;
    table.features = table.text = o->text;
    table.drop = NULL;
    table.tokens = table.expected_tokens = table.expected_tokenizer = NULL;
    table.item = NULL;
    table.context = table.expected_context = 0;
    table.expected_features = 0;
    table.task = "auto";
    table.unlabelled = 1;
    table.expected_label = NULL;
    return table;
}

/* Of a column that has no text. */
static int is_blank(const qn_data *table) {
    const float *value = (const float *)(const void *)table->values;
    uint64_t i = 0;
    while (table->type == QN_F32 && i < table->items && isnan(value[i]))
        i++;
    return i == table->items;
}

static qn_status check_column(const qn_data *table, const char *text, const char *path,
                              qn_error *err) {
    const qn__text_list *list = table->listed;
    if (qn_data_features(table) == 1 && list->feature == 1 && list->missing < list->count)
        return QN_OK;
    if (qn_data_features(table) == 1 && is_blank(table))
        qn__part_is_empty(table->part);
    if (qn_data_features(table) == 1)
        qn__fail(err, QN_INPUT, "the column \"%.100s\" has no texts", text);
    else
        qn__fail(err, QN_USAGE, "the documents of a corpus are texts of one column");
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_INPUT, "name the column of the documents with `data.text`");
}

/* `keep`: items without a text have a place, with the bytes NULL. */
static qn_status list_texts(const qn_data *table, const char *text, const char *path, int keep,
                            qn__documents_of *out, qn_error *err) {
    *out = (qn__documents_of){.missing = 0};
    const qn_status status = check_column(table, text, path, err);
    if (status != QN_OK)
        return status;
    qn__span *span = qn__text_list_end(table->listed);
    uint64_t count = 0;
    for (uint64_t i = 0; i < table->listed->count; i++)
        if (span[i].bytes || keep)
            span[count++] = span[i];
    *out = (qn__documents_of){.texts = {.text = span, .count = count},
                              .missing = table->listed->missing};
    return QN_OK;
}

qn_status qn__documents_list(const qn_data *table, const char *text, const char *path,
                             qn__documents_of *out, qn_error *err) {
    return list_texts(table, text, path, 0, out, err);
}

static qn_status note_missing(const qn__documents_of *d, uint64_t rows, int kept, qn_data *data,
                              qn_error *err) {
    char note[160];
    if (d->missing == 0)
        return QN_OK;
    snprintf(note, sizeof note, "%llu of %llu rows have no text, and %s",
             (unsigned long long)d->missing, (unsigned long long)rows,
             kept ? "so no tokens" : "are left out");
    return qn__data_add_note(data, note, err);
}

static qn_status finish(int threads, qn_data *data, qn_error *err) {
    qn__pool *pool = NULL;
    const qn_status status = qn__pool_create(threads ? threads : qn__cores(), 0, &pool, err);
    if (status != QN_OK)
        return status;
    qn__data_finish(data, pool);
    qn__pool_destroy(pool);
    return QN_OK;
}

static qn_status row_tokens(const qn__corpus *rows, const qn_data_options *options,
                            const char *path, qn_data *data, qn_error *err) {
    (void)path;
    return qn__item_tokens(rows, options, data, err);
}

qn_status qn__documents_tokens(const qn_data *table, const qn_data_options *options,
                               const char *path, qn_data *data, qn_error *err) {
    qn__documents_of d;
    const int rows = options->item != NULL;
    qn_status status = list_texts(table, options->text, path, rows, &d, err);
    data->format = qn_data_format(table);
    if (status == QN_OK)
        status = (rows ? row_tokens : qn__corpus_table)(&d.texts, options, path, data, err);
    if (status == QN_OK)
        status = note_missing(&d, qn_data_items(table), rows, data, err);
    if (status == QN_OK)
        status = finish(options->threads, data, err);
    return status;
}

/* The lines of texts. A line ends before a line feed, or a carriage return and a line feed. */
static qn_status cut_lines(const qn__corpus *files, qn__growing *lines, qn_error *err) {
    qn_status status = QN_OK;
    for (size_t k = 0; k < files->count; k++) {
        const uint8_t *at = files->text[k].bytes, *const end = at + files->text[k].size;
        for (const uint8_t *next; at < end && status == QN_OK; at = next) {
            const uint8_t *feed = memchr(at, '\n', (size_t)(end - at));
            size_t size = (size_t)((feed ? feed : end) - at);
            next = feed ? feed + 1 : end;
            size -= feed && size > 0 && at[size - 1] == '\r';
            status =
                qn__growing_add(lines, &(qn__token_text){at, size}, sizeof(qn__token_text), err);
        }
    }
    return status;
}

static qn_status line_tokens(const qn__file_list *list, const qn__corpus *files,
                             const qn_data_options *options, qn_data *data, qn_error *err) {
    qn__growing line = {0};
    qn_status status = cut_lines(files, &line, err);
    if (status == QN_OK && line.size == 0) {
        qn__fail(err, QN_INPUT, "the text has no line");
        qn__at(err, "%.300s", list->file[0].path);
        status = qn__remedy(err, QN_INPUT, "give a text with at least one line");
    }
    const qn__corpus lines = {.text = (qn__token_text *)(void *)line.bytes,
                              .count = line.size / sizeof *lines.text};
    if (status == QN_OK)
        status = qn__item_tokens(&lines, options, data, err);
    qn__growing_release(&line);
    return status;
}

qn_status qn__lines_tokens(const qn__file_list *list, const qn_data_options *options, qn_data *data,
                           qn_error *err) {
    qn__corpus files;
    const char **paths = (const char **)qn__alloc(list->count, sizeof *paths, err);
    if (!paths)
        return QN_MEMORY;
    for (size_t i = 0; i < list->count; i++)
        paths[i] = list->file[i].path;
    const qn__table_space space = {.no_file = options->no_cache == 1,
                                   .path = list->file[0].path,
                                   .entry = "",
                                   .ranks = qn__part_ranks(data->part)};
    data->format = "txt";
    qn_status status = qn__corpus_open(paths, list->count, &files, err);
    qn__free((void *)paths);
    if (status != QN_OK)
        return status;
    data->buffer = &space;
    status = line_tokens(list, &files, options, data, err);
    data->buffer = NULL;
    status = qn__corpus_end(&files, status, err);
    qn__corpus_close(&files);
    return status == QN_OK ? finish(options->threads, data, err) : status;
}

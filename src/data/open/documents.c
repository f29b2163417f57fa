#include "data/open/documents.h"

#include "base/memory.h"
#include "base/system/threads.h"
#include "data/table/token_names.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

int qn__documents_wanted(const qn_data_options *o) {
    return o->text && strcmp(o->text, "none") != 0 && o->tokens &&
           strcmp(o->tokens, QN__TOKENS_IDS) != 0 && o->task && strcmp(o->task, "next") == 0;
}

qn_data_options qn__documents_table(const qn_data_options *o) {
    qn_data_options table = *o;
    table.features = table.text = o->text;
    table.drop = NULL;
    table.tokens = table.expected_tokens = table.expected_tokenizer = NULL;
    table.context = table.expected_context = 0;
    table.expected_features = 0;
    table.task = "auto";
    table.unlabelled = 1;
    table.expected_label = NULL;
    return table;
}

static qn_status check_column(const qn_data *table, const char *text, const char *path,
                              qn_error *err) {
    if (qn_data_features(table) == 1 && qn_data_categories(table, 0) > 0)
        return QN_OK;
    if (qn_data_features(table) == 1)
        qn__fail(err, QN_INPUT, "the column \"%.100s\" has no texts", text);
    else
        qn__fail(err, QN_USAGE, "the documents of a corpus are texts of one column");
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_INPUT, "name the column of the documents with `data.text`");
}

qn_status qn__documents_list(const qn_data *table, const char *text, const char *path,
                             qn__documents_of *out, qn_error *err) {
    const uint64_t items = qn_data_items(table);
    const float *index = qn_data_values(table);
    *out = (qn__documents_of){.missing = 0};
    const qn_status status = check_column(table, text, path, err);
    if (status != QN_OK)
        return status;
    out->texts.text = qn__alloc(items, sizeof *out->texts.text, err);
    for (uint64_t i = 0; out->texts.text && i < items; i++) {
        if (isnan(index[i])) {
            ++out->missing;
            continue;
        }
        const char *own = qn_data_category(table, 0, (uint32_t)index[i]);
        out->texts.text[out->texts.count++] = (qn__token_text){(const uint8_t *)own, strlen(own)};
    }
    return out->texts.text ? QN_OK : QN_MEMORY;
}

static qn_status note_missing(const qn__documents_of *d, qn_data *data, qn_error *err) {
    char note[160];
    if (d->missing == 0)
        return QN_OK;
    snprintf(note, sizeof note, "%llu of %llu rows have no text, and are left out",
             (unsigned long long)d->missing, (unsigned long long)(d->missing + d->texts.count));
    return qn__data_add_note(data, note, err);
}

qn_status qn__documents_tokens(const qn_data *table, const qn_data_options *options,
                               const char *path, qn_data *data, qn_error *err) {
    qn__documents_of d;
    qn__pool *pool = NULL;
    const int threads = options->threads ? options->threads : qn__cores();
    qn_status status = qn__documents_list(table, options->text, path, &d, err);
    data->format = qn_data_format(table);
    if (status == QN_OK)
        status = qn__corpus_table(&d.texts, options, path, data, err);
    if (status == QN_OK)
        status = note_missing(&d, data, err);
    if (status == QN_OK)
        status = qn__pool_create(threads, 0, &pool, err);
    if (status == QN_OK)
        qn__data_finish(data, pool);
    if (pool)
        qn__pool_destroy(pool);
    qn__free(d.texts.text);
    return status;
}

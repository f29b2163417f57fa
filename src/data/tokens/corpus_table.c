/* Texts as a table of tokens (docs/exactness.md 25.44). */
#include "data/tokens/corpus_table.h"

#include "base/memory.h"
#include "data/table/part_reading.h"
#include "data/table/table_space.h"
#include "data/table/token_row.h"
#include "data/tokens/data_tokenizer.h"

enum { LEAST_CAPACITY = 1 << 16 };

/* Bytes by which a table in a file grows. */
#define STEP ((uint64_t)64 << 20)

/* The tokenizer of the table, and its type. */
static qn_status begin(const qn__learned_from *from, const qn_data_options *o, qn_data *data,
                       qn_tokenizer **out, qn_error *err) {
    const qn_status status = qn__data_tokenizer(from, o, data, out, err);
    if (status != QN_OK && err && !*err->where)
        qn__at(err, "`data.tokens` \"%.200s\"", o->tokens);
    data->features = 1;
    return status;
}

/* Makes space for `more` tokens after data->items of them. */
static qn_status reserve(qn_data *data, uint64_t more, uint64_t *capacity, qn_error *err) {
    const uint64_t kept = data->items;
    uint64_t wanted = kept + more;
    if (wanted <= *capacity)
        return QN_OK;
    if (data->in_file)
        wanted += STEP / qn__element_of(data->type)->size;
    else if (wanted < *capacity + *capacity / 2) /* several files: it grows by half */
        wanted = *capacity + *capacity / 2;
    data->items = wanted < LEAST_CAPACITY ? LEAST_CAPACITY : wanted;
    *capacity = data->items;
    const qn_status status = qn__table_space_grow(data, kept, err);
    data->items = kept;
    return status;
}

static qn_status add_numbers(qn_data *data, const uint32_t *numbers, uint64_t count,
                             uint64_t *capacity, qn_error *err) {
    const qn_status status = reserve(data, count, capacity, err);
    uint16_t *narrow = qn__table_space_values(data);
    uint32_t *wide = qn__table_space_values(data);
    for (uint64_t i = 0; status == QN_OK && i < count; i++)
        if (data->type == QN_TOKENS16)
            narrow[data->items + i] = (uint16_t)numbers[i];
        else
            wide[data->items + i] = numbers[i];
    if (status != QN_OK)
        return status;
    data->items += count;
    qn__table_space_wrote(data, data->items);
    return QN_OK;
}

/* Adds the tokens of texts; `follows`: others came before. */
static qn_status add_texts(qn_data *data, const qn_tokenizer *t, const qn__corpus *corpus,
                           int follows, uint64_t *capacity, int threads, qn_error *err) {
    qn__part_reading *part = data->part;
    qn__documents d = {
        .text = corpus->text, .count = corpus->count, .follows = follows || part != NULL};
    qn__token_ids ids = {0};
    uint32_t used = 0;
    const size_t block = qn__token_block();
    qn_status status = qn__token_threads((uint32_t)threads, &used, err);
    if (status == QN_OK)
        status = qn__token_end_of_text(t, &d.end, err);
    if (part && part->documents == 0 && d.count > 0)
        part->before = (uint32_t)d.end.count;
    if (part)
        part->documents += d.count;
    while (status == QN_OK && d.at < d.count) {
        ids.count = 0;
        status = qn__token_encode_some(t, &d, block, used, &ids, err);
        if (status == QN_OK)
            status = add_numbers(data, ids.number, ids.count, capacity, err);
    }
    qn__token_ids_release(&ids);
    qn__token_ids_release(&d.end);
    return status;
}

qn_status qn__corpus_table(const qn__corpus *corpus, const qn_data_options *options,
                           const char *path, qn_data *data, qn_error *err) {
    qn_tokenizer *t = NULL;
    uint64_t capacity = 0;
    const qn__learned_from from = {.text = corpus->text, .count = corpus->count};
    qn_status status = begin(&from, options, data, &t, err);
    if (status == QN_OK)
        status = add_texts(data, t, corpus, 0, &capacity, options->threads, err);
    qn_tokenizer_free(t);
    return status == QN_OK ? qn__token_row_cut(data, qn__token_row_context(options), path, err)
                           : status;
}

static qn_status add_file(qn__part_files *files, size_t i, const qn_tokenizer *t,
                          uint64_t *capacity, int threads, qn_data *data, qn_error *err) {
    qn__corpus corpus;
    qn__source *source;
    qn_status status = qn__part_files_open(files, i, &source, err);
    if (status == QN_OK)
        status = qn__corpus_of_source(source, &corpus, err);
    if (status != QN_OK)
        return status;
    status = add_texts(data, t, &corpus, i > 0, capacity, threads, err);
    status = qn__corpus_end(&corpus, status, err);
    qn__corpus_close(&corpus);
    return status;
}

qn_status qn__corpus_table_of_files(qn__part_files *files, const qn_data_options *options,
                                    qn_data *data, qn_error *err) {
    const size_t count = files->list->count;
    qn_tokenizer *t = NULL;
    uint64_t capacity = 0;
    const char **paths = (const char **)qn__alloc(count, sizeof *paths, err);
    for (size_t i = 0; paths && i < count; i++)
        paths[i] = files->list->file[i].path;
    const qn__learned_from from = {.path = paths, .count = count};
    qn_status status = paths ? begin(&from, options, data, &t, err) : QN_MEMORY;
    for (size_t i = 0; status == QN_OK && i < count; i++)
        status = add_file(files, i, t, &capacity, options->threads, data, err);
    qn_tokenizer_free(t);
    qn__free((void *)paths);
    return status == QN_OK
               ? qn__token_row_cut(data, qn__token_row_context(options), files->name, err)
               : status;
}

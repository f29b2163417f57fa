/* Texts as a table of tokens (docs/exactness.md 25.44). */
#include "data/tokens/corpus_table.h"

#include "base/memory.h"
#include "data/table/token_row.h"
#include "data/tokens/data_tokenizer.h"
#include <string.h>

/* Bytes of text that are encoded before their tokens are put into the table. */
#define BLOCK ((size_t)64 << 20)

enum { LEAST_CAPACITY = 1 << 16 };

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
    const size_t size = qn__element_of(data->type)->size;
    if (data->items + more <= *capacity)
        return QN_OK;
    uint64_t wanted = data->items + more;
    if (wanted < *capacity + *capacity / 2) /* several files: it grows by half */
        wanted = *capacity + *capacity / 2;
    wanted = wanted < LEAST_CAPACITY ? LEAST_CAPACITY : wanted;
    void *longer = qn__alloc(wanted, size, err);
    if (!longer)
        return QN_MEMORY;
    if (data->items > 0)
        memcpy(longer, data->memory, (size_t)data->items * size);
    qn__free(data->memory);
    data->memory = longer;
    data->values = longer;
    data->release = qn__free;
    *capacity = wanted;
    return QN_OK;
}

static qn_status add_numbers(qn_data *data, const uint32_t *numbers, uint64_t count,
                             uint64_t *capacity, qn_error *err) {
    const qn_status status = reserve(data, count, capacity, err);
    uint16_t *narrow = data->memory;
    uint32_t *wide = data->memory;
    for (uint64_t i = 0; status == QN_OK && i < count; i++)
        if (data->type == QN_TOKENS16)
            narrow[data->items + i] = (uint16_t)numbers[i];
        else
            wide[data->items + i] = numbers[i];
    data->items += status == QN_OK ? count : 0;
    return status;
}

/* Adds the tokens of texts; `follows`: others came before. */
static qn_status add_texts(qn_data *data, const qn_tokenizer *t, const qn__corpus *corpus,
                           int follows, uint64_t *capacity, int threads, qn_error *err) {
    qn__documents d = {.text = corpus->text, .count = corpus->count, .follows = follows};
    qn__token_ids ids = {0};
    uint32_t used = 0;
    qn_status status = qn__token_threads((uint32_t)threads, &used, err);
    if (status == QN_OK)
        status = qn__token_end_of_text(t, &d.end, err);
    while (status == QN_OK && d.at < d.count) {
        ids.count = 0;
        status = qn__token_encode_some(t, &d, BLOCK, used, &ids, err);
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

static qn_status add_file(const char *path, const qn_tokenizer *t, int follows, uint64_t *capacity,
                          int threads, qn_data *data, qn_error *err) {
    qn__corpus corpus;
    qn_status status = qn__corpus_open(&path, 1, &corpus, err);
    if (status != QN_OK)
        return status;
    status = add_texts(data, t, &corpus, follows, capacity, threads, err);
    status = qn__corpus_end(&corpus, status, err);
    qn__corpus_close(&corpus);
    return status;
}

qn_status qn__corpus_table_of_files(const char *const *paths, size_t count,
                                    const qn_data_options *options, const char *path, qn_data *data,
                                    qn_error *err) {
    qn_tokenizer *t = NULL;
    uint64_t capacity = 0;
    qn_status status =
        begin(&(qn__learned_from){.path = paths, .count = count}, options, data, &t, err);
    for (size_t i = 0; status == QN_OK && i < count; i++)
        status = add_file(paths[i], t, i > 0, &capacity, options->threads, data, err);
    qn_tokenizer_free(t);
    return status == QN_OK ? qn__token_row_cut(data, qn__token_row_context(options), path, err)
                           : status;
}

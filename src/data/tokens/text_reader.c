/* The reader of texts whose tokens are a corpus (docs/exactness.md 25.44). */
#include "base/memory.h"
#include "data/cells/readers.h"
#include "data/table/token_row.h"
#include "data/tokens/corpus.h"
#include "data/tokens/data_tokenizer.h"
#include "data/tokens/tokenizer.h"
#include <string.h>

/* Tokens of a text of bytes that are made at a time take four times its size. */
enum { LEAST_CAPACITY = 1 << 16 };

/* The tokenizer of files, which may learn from them. */
static qn_status open_tokenizer(const qn__part_files *files, const qn_data_options *o,
                                qn_data *data, qn_tokenizer **out, qn_error *err) {
    const size_t count = files->list->count;
    const char **paths = (const char **)qn__alloc(count, sizeof *paths, err);
    for (size_t i = 0; paths && i < count; i++)
        paths[i] = files->list->file[i].path;
    const qn_status status =
        paths ? qn__data_tokenizer(&(qn__learned_from){.path = paths, .count = count}, o, data, out,
                                   err)
              : QN_MEMORY;
    qn__free((void *)paths);
    if (status != QN_OK && err && !*err->where)
        qn__at(err, "`data.tokens` \"%.200s\"", o->tokens);
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

static qn_status add_text(qn_data *data, const qn_tokenizer *t, const qn__token_text *text,
                          uint64_t *capacity, int threads, qn_error *err) {
    qn_tokens *tokens = NULL;
    qn_status status =
        qn_tokenizer_encode(t, text->bytes, text->size, (uint32_t)threads, &tokens, err);
    if (status == QN_OK)
        status =
            add_numbers(data, qn_tokens_numbers(tokens), qn_tokens_count(tokens), capacity, err);
    qn_tokens_free(tokens);
    return status;
}

static qn_status add_texts(qn__part_files *files, const qn_data_options *o, const qn_tokenizer *t,
                           qn_data *data, qn_error *err) {
    uint64_t capacity = 0;
    qn__token_ids end = {0};
    qn_status status = qn__token_end_of_text(t, &end, err);
    for (size_t i = 0; status == QN_OK && i < files->list->count; i++) {
        const char *path = files->list->file[i].path;
        qn__corpus corpus;
        if (i > 0)
            status = add_numbers(data, end.number, end.count, &capacity, err);
        if (status == QN_OK)
            status = qn__corpus_open(&path, 1, &corpus, err);
        if (status != QN_OK)
            break;
        status = add_text(data, t, &corpus.text[0], &capacity, o->threads, err);
        status = qn__corpus_end(&corpus, status, err);
        qn__corpus_close(&corpus);
    }
    qn__token_ids_release(&end);
    return status;
}

static qn_status read_text(qn__part_files *files, const qn_data_options *options, qn__pool *pool,
                           qn_data *data, qn_error *err) {
    qn_tokenizer *t = NULL;
    (void)pool;
    qn_status status = open_tokenizer(files, options, data, &t, err);
    data->features = 1;
    if (status == QN_OK)
        status = add_texts(files, options, t, data, err);
    qn_tokenizer_free(t);
    return status == QN_OK
               ? qn__token_row_cut(data, qn__token_row_context(options), files->name, err)
               : status;
}

/* Any text may be one: only the options tell. */
static int probe(const uint8_t *first, size_t size, const char *path) {
    (void)first, (void)size, (void)path;
    return QN__PROBE_NO;
}

const qn__reader qn__txt_reader = {
    .name = QN__PACKED_NAMES("txt"),
    .about = "a text to be tokenised, if the user says so",
    .tokens = 1,
    .labels_remedy = "a row of tokens has no labels",
    .probe = probe,
    .read_parts = read_text,
};

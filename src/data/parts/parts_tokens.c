#include "data/parts/parts_tokens.h"

#include "base/files/cache_file.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "data/table/table_space.h"
#include "data/table/token_row.h"
#include "data/tokens/data_tokenizer.h"
#include "data/tokens/shared_words.h"
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ a vocabulary of all */

static qn_status take_all(const qn_parts *parts, const qn__parts_blobs *blobs,
                          qn__word_table *words, qn_error *err) {
    qn_status status = QN_OK;
    qn__word_table_release(words);
    for (uint32_t r = 0; r < parts->ranks && status == QN_OK; r++)
        status = qn__shared_words_add(blobs->all + r * blobs->each, blobs->size[r], words, err);
    return status;
}

static qn_status join(void *user, struct qn__word_table *words, qn_status status, qn_error *err) {
    qn__part_tokens *t = user;
    const qn_parts *parts = t->parts;
    qn__parts_blobs blobs = {.all = NULL};
    qn__text own = {0};
    t->joined = 1;
    if (status == QN_OK)
        status = qn__shared_words_write(words, &own, err);
    status = qn__parts_agree(parts, status, err);
    if (status == QN_OK)
        status = qn__parts_gather_blobs(parts, own.data, own.size, &blobs, err);
    qn__text_release(&own);
    if (status == QN_OK)
        status = qn__parts_agree(parts, take_all(parts, &blobs, words, err), err);
    qn__parts_blobs_release(&blobs);
    t->failed = status != QN_OK;
    return status;
}

void qn__part_tokens_begin(qn__part_tokens *t, const qn_parts *parts,
                           const qn_data_options *options) {
    *t = (qn__part_tokens){.parts = parts, .learns = qn__data_tokenizer_learns(options)};
    t->reading.user = t;
    t->reading.join = join;
    t->reading.ranks = qn__parts_beside(parts);
}

qn_status qn__part_tokens_read(qn__part_tokens *t, qn_status status, qn_error *err) {
    if (t->learns && !t->joined) { /* it has no file, or failed before */
        qn__word_table none = {0};
        status = join(t, &none, status, err);
        qn__word_table_release(&none);
    }
    return t->failed ? status : qn__parts_agree(t->parts, status, err);
}

qn_status qn__parts_keep_tokenizer(qn_parts *parts, qn_error *err) {
    const qn_data *own = parts->own;
    if (parts->tokenizer || !own || !own->tokenizer)
        return QN_OK;
    snprintf(parts->tokens, sizeof parts->tokens, "%.*s", (int)strcspn(own->tokens, " "),
             own->tokens);
    parts->tokenizer = qn__copy_text(own->tokenizer, err);
    return parts->tokenizer ? QN_OK : QN_MEMORY;
}

void qn__parts_forget_tokens(qn_parts *parts) {
    qn__part_row_free(parts->row);
    parts->row = NULL;
    qn__free(parts->tokenizer);
    parts->tokenizer = NULL;
}

void qn__parts_know_tokenizer(const qn_parts *parts, qn_data_options *o) {
    if (parts->row)
        o->task = "next"; /* else texts might be items, since they have a tokenizer */
    if (!parts->tokenizer || o->expected_tokenizer)
        return;
    o->tokens = parts->tokens;
    o->expected_tokenizer = parts->tokenizer;
}

/* ------------------------------------------------------------------ one row of all */

/* What a rank tells of its part. */
typedef struct told {
    uint8_t present[8]; /* not 0 */
    uint64_t tokens, documents;
    uint32_t has, is_row, type, before;
} told;

static told own_of(const qn_parts *parts, const qn__part_reading *reading) {
    const qn_data *own = parts->own;
    return (told){.present = {1},
                  .tokens = own && reading->is_row ? own->items : 0,
                  .documents = reading->documents,
                  .has = own != NULL,
                  .is_row = reading->is_row != 0,
                  .type = own ? (uint32_t)own->type : 0,
                  .before = reading->before};
}

/* Fails alike on all ranks, which have the same `all`. *row: whether there is a row. */
static qn_status compare(const qn_parts *parts, const told *all, int *row, qn_error *err) {
    uint32_t lead = parts->ranks;
    *row = 0;
    for (uint32_t r = 0; r < parts->ranks; r++) {
        if (!all[r].has)
            continue;
        lead = lead < parts->ranks ? lead : r;
        *row |= (int)all[r].is_row;
        const int same = all[r].is_row == all[lead].is_row;
        if (same && (!*row || all[r].type == all[lead].type))
            continue;
        qn__fail(err, QN_MISMATCH, "the part of %s is not one row of tokens with that of %s: %s",
                 qn_cluster_name(parts->cluster, r), qn_cluster_name(parts->cluster, lead),
                 same ? "one has 16 bits a token, and the other 32"
                      : "one is a row, and the other has items");
        qn__at(err, "%s", parts->name[r]);
        return qn__remedy(err, QN_MISMATCH, "give all parts in the same form");
    }
    return QN_OK;
}

/* Numbers of tokens and items of all ranks. */
static qn_status place(const qn_parts *parts, const told *all, uint32_t context, qn__part_row *row,
                       qn_error *err) {
    uint64_t documents = 0;
    for (uint32_t r = 0; r < parts->ranks; r++) {
        row->before[r] = documents == 0 && all[r].before <= all[r].tokens ? all[r].before : 0;
        documents += all[r].documents;
        row->token[r + 1] = row->token[r] + all[r].tokens - row->before[r];
    }
    const uint64_t tokens = row->token[parts->ranks];
    const qn_status status = qn__token_row_check(tokens, context, parts->name[0], err);
    if (status != QN_OK)
        return status;
    const uint64_t items = (tokens - 1) / context;
    row->context = context;
    row->left = tokens - 1 - items * context;
    memcpy(row->origin, row->token, (parts->ranks + (size_t)1) * sizeof *row->token);
    for (uint32_t r = 0; r <= parts->ranks; r++) {
        const uint64_t first = (row->token[r] + context - 1) / context;
        row->first[r] = first < items ? first : items;
    }
    return QN_OK;
}

static qn_status make_row(qn_parts *parts, qn_error *err) {
    qn__part_row *row = parts->row = qn__alloc(1, sizeof *row, err);
    if (!row)
        return QN_MEMORY;
    const uint64_t ranks = (uint64_t)parts->ranks + 1;
    row->token = qn__alloc(ranks, sizeof *row->token, err);
    row->first = row->token ? qn__alloc(ranks, sizeof *row->first, err) : NULL;
    row->origin = row->first ? qn__alloc(ranks, sizeof *row->origin, err) : NULL;
    row->before = row->origin ? qn__alloc(ranks, sizeof *row->before, err) : NULL;
    return row->before ? QN_OK : QN_MEMORY;
}

/* The first tokens of each rank: items of ranks before it end there. */
static qn_status gather_heads(qn_parts *parts, qn_error *err) {
    qn__part_row *row = parts->row;
    const uint64_t count = row->token[parts->rank + 1] - row->token[parts->rank];
    const uint64_t size = count > 0 ? qn__element_of(parts->own->type)->size : 0;
    const uint8_t *from = count > 0 ? parts->own->values + row->before[parts->rank] * size : NULL;
    return qn__parts_gather_blobs(parts, from, (count < row->context ? count : row->context) * size,
                                  &row->head, err);
}

static qn_status cut_own(qn_parts *parts, const qn_data_options *options, qn_error *err) {
    const uint64_t *first = parts->row->first + parts->rank;
    if (first[1] > first[0])
        return qn__part_row_cut(parts, parts->rank, options, parts->own, err);
    qn_data_close(parts->own);
    parts->own = NULL;
    return QN_OK;
}

qn_status qn__parts_row(qn_parts *parts, const qn__part_reading *reading,
                        const qn_data_options *options, qn_error *err) {
    const told own = own_of(parts, reading);
    told *all = qn__alloc(parts->ranks, sizeof *all, err);
    int is_row = 0;
    if (!all)
        return qn__parts_fail(parts, QN_MEMORY, err);
    qn_status status = qn__parts_gather_each(parts, &own, sizeof own, all, err);
    if (status == QN_OK)
        status = compare(parts, all, &is_row, err);
    if (status == QN_OK && is_row) {
        status = make_row(parts, err);
        if (status == QN_OK)
            status = place(parts, all, qn__token_row_context(options), parts->row, err);
        status = qn__parts_agree(parts, status, err);
        if (status == QN_OK)
            status = gather_heads(parts, err);
        if (status == QN_OK)
            status = qn__parts_agree(parts, cut_own(parts, options, err), err);
    }
    qn__free(all);
    return status;
}

/* ------------------------------------------------------------------ the items of a rank */

/* Space for `all` tokens, of which the first `kept` are there. */
static qn_status extend(qn_data *data, uint64_t kept, uint64_t all, qn_error *err) {
    const qn_data old = *data;
    if (all <= kept)
        return QN_OK;
    data->items = all;
    if (!data->in_file || !qn__mapped_file_is_borrowed(data->in_file))
        return qn__table_space_grow(data, kept, err);
    data->release = NULL; /* the file is the user's: its tokens are copied */
    const qn_status status = qn__table_space_make(data, err);
    if (status != QN_OK) {
        *data = old;
        return status;
    }
    memcpy(qn__table_space_values(data), old.values, (size_t)kept * qn__element_of(old.type)->size);
    old.release(old.memory);
    return QN_OK;
}

/* Tokens from the beginnings of the ranks after `rank`. */
static void take_heads(const qn_parts *parts, uint32_t rank, uint64_t count, size_t size,
                       uint8_t *to) {
    const qn__part_row *row = parts->row;
    uint64_t bytes = count * size;
    for (uint32_t r = 0; r < parts->ranks && bytes > 0; r++) {
        if (row->origin[r] < row->token[rank + 1])
            continue;
        const uint64_t some = row->head.size[r] < bytes ? row->head.size[r] : bytes;
        memcpy(to, row->head.all + r * row->head.each, (size_t)some);
        to += some;
        bytes -= some;
    }
}

qn_status qn__part_row_cut(const qn_parts *parts, uint32_t rank, const qn_data_options *options,
                           qn_data *data, qn_error *err) {
    const qn__part_row *row = parts->row;
    const size_t size = qn__element_of(data->type)->size;
    const uint64_t items = row->first[rank + 1] - row->first[rank], kept = data->items;
    const uint64_t skip = row->before[rank] + row->first[rank] * row->context - row->token[rank];
    const uint64_t all = skip + items * row->context + 1;
    if (kept != row->token[rank + 1] - row->token[rank] + row->before[rank])
        return qn__fail(err, QN_MISMATCH, "the files have other tokens than before");
    const qn__table_space space = {
        .no_file = options->no_cache == 1,
        .path = parts->name[rank],
        .entry = "",
        .ranks = qn__parts_beside(parts),
        .before =
            data->in_file ? (uint64_t)(data->values - qn__mapped_file_bytes(data->in_file)) : 0};
    data->buffer = &space;
    const qn_status status = extend(data, kept, all, err);
    data->buffer = NULL;
    if (status != QN_OK)
        return status;
    if (all > kept)
        take_heads(parts, rank, all - kept, size,
                   (uint8_t *)qn__table_space_values(data) + kept * size);
    if (all > kept && data->in_file)
        qn__mapped_file_written(data->memory);
    data->values += skip * size;
    data->values_digest = NULL;
    data->items = items;
    data->features = row->context + 1;
    data->context = row->context;
    return QN_OK;
}

void qn__part_row_free(qn__part_row *row) {
    if (!row)
        return;
    qn__free(row->token);
    qn__free(row->origin);
    qn__free(row->first);
    qn__free(row->before);
    qn__parts_blobs_release(&row->head);
    qn__free(row);
}

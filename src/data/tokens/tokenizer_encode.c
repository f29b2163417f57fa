/* From texts to numbers of tokens, on several threads, and back. */
#include "data/tokens/tokenizer.h"

#include "base/argument.h"
#include "base/memory.h"
#include "base/system/available.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a piece that a thread takes: large enough that the cuts cost nothing, small enough that
 * the threads end together. Where few bytes are encoded at once, pieces are smaller. */
#define PIECE ((size_t)1 << 20)
enum { PIECES_LEAST = 4 };

/* Bytes that are encoded at once. */
#define BLOCK_LEAST ((size_t)256 << 10)
#define BLOCK_MOST ((size_t)64 << 20)

/* A part of a text, from `begin` to `end`; or several whole texts. */
typedef struct piece {
    size_t first, texts;
    size_t begin, end;
    qn__token_ids ids;
} piece;

/* Pieces of texts, encoded by several threads in any order and joined in theirs. */
typedef struct pieces {
    qn_tokenizer *tokenizer; /* its workers come and go, under its lock */
    const qn__documents *documents;
    piece *piece;
    size_t count, capacity;
    atomic_size_t next;
    atomic_int failed;
    qn_status status;
    qn_error error; /* of the thread that failed first */
} pieces;

/* A worker for a thread, and back. */
static qn_status take_worker(qn_tokenizer *t, void **worker, qn_error *err) {
    *worker = NULL;
    if (!t->kind->worker)
        return QN_OK;
    pthread_mutex_lock(&t->lock);
    if (t->idle_count)
        *worker = t->idle[--t->idle_count];
    pthread_mutex_unlock(&t->lock);
    if (!*worker)
        *worker = t->kind->worker(t->state, err);
    return *worker ? QN_OK : QN_MEMORY;
}

static void leave_worker(qn_tokenizer *t, void *worker) {
    if (!worker)
        return;
    pthread_mutex_lock(&t->lock);
    const int kept = t->idle_count < QN__IDLE_WORKERS;
    if (kept)
        t->idle[t->idle_count++] = worker;
    pthread_mutex_unlock(&t->lock);
    if (!kept)
        t->kind->worker_free(t->state, worker);
}

static void fail(pieces *all, qn_status status, const qn_error *error) {
    if (atomic_exchange(&all->failed, 1))
        return;
    all->status = status;
    all->error = *error;
}

/* The end of a document stands before the next one. */
static qn_status encode_piece(const pieces *all, void *worker, piece *p, qn_error *err) {
    const qn__documents *d = all->documents;
    const qn_tokenizer *t = all->tokenizer;
    qn_status status = QN_OK;
    for (size_t k = p->first; status == QN_OK && k < p->first + p->texts; k++) {
        const qn__token_text *text = &d->text[k];
        const size_t begin = p->texts > 1 ? 0 : p->begin, end = p->texts > 1 ? text->size : p->end;
        if (begin == 0 && (k > 0 || d->follows) && d->end.count) {
            status = qn__token_ids_reserve(&p->ids, 1, err);
            if (status == QN_OK)
                qn__token_ids_add(&p->ids, d->end.number[0]);
        }
        if (status == QN_OK)
            status = t->kind->encode(t->state, worker, text->bytes + begin, end - begin, begin > 0,
                                     &p->ids, err);
    }
    return status;
}

static void encode_pieces(void *context, int thread) {
    (void)thread;
    pieces *all = context;
    qn_tokenizer *t = all->tokenizer;
    void *worker;
    qn_error error = {0};
    qn__float_state_set();
    qn_status status = take_worker(t, &worker, &error);
    for (size_t k; status == QN_OK && !atomic_load(&all->failed) &&
                   (k = atomic_fetch_add(&all->next, 1)) < all->count;) {
        status = encode_piece(all, worker, &all->piece[k], &error);
    }
    leave_worker(t, worker);
    if (status != QN_OK)
        fail(all, status, &error);
}

static qn_status add_piece(pieces *all, piece own, qn_error *err) {
    if (all->count == all->capacity) {
        const size_t capacity = all->capacity ? 2 * all->capacity : 64;
        piece *longer = realloc(all->piece, capacity * sizeof *longer);
        if (!longer)
            return qn__fail_memory(err, capacity, sizeof *longer);
        all->piece = longer;
        all->capacity = capacity;
    }
    all->piece[all->count++] = own;
    return QN_OK;
}

/* Texts from `first` on that make a piece of at most `most` bytes together; *size: their bytes. */
static size_t small_texts(const qn__documents *d, size_t first, size_t most, size_t *size) {
    size_t k = first;
    for (*size = 0; k < d->count && *size + d->text[k].size <= most; k++)
        *size += d->text[k].size;
    return k - first;
}

/* Cuts from where the documents are on, at most about `most` bytes, and goes on. */
static qn_status cut_pieces(pieces *all, qn__documents *d, size_t most, qn_error *err) {
    const qn_tokenizer *t = all->tokenizer;
    const size_t own = most / PIECES_LEAST < PIECE ? most / PIECES_LEAST : PIECE;
    qn_status status = QN_OK;
    for (size_t done = 0; status == QN_OK && d->at < d->count && done < most;) {
        const qn__token_text *text = &d->text[d->at];
        size_t size;
        const size_t texts = d->byte == 0 ? small_texts(d, d->at, own, &size) : 0;
        if (texts > 1) {
            status = add_piece(all, (piece){.first = d->at, .texts = texts}, err);
            d->at += texts;
            done += size;
            continue;
        }
        const size_t left = text->size - d->byte;
        const size_t wanted = left > own + own / 2 ? d->byte + own : text->size;
        const size_t end =
            wanted < text->size ? t->kind->cut(t->state, text->bytes, text->size, wanted) : wanted;
        status =
            add_piece(all, (piece){.first = d->at, .texts = 1, .begin = d->byte, .end = end}, err);
        done += end - d->byte;
        d->byte = end < text->size ? end : 0;
        d->at += end == text->size;
    }
    return status;
}

static qn_status join(pieces *all, qn__token_ids *ids, qn_error *err) {
    size_t total = 0;
    for (size_t k = 0; k < all->count; k++)
        total += all->piece[k].ids.count;
    qn_status status = qn__token_ids_reserve(ids, total, err);
    for (size_t k = 0; status == QN_OK && k < all->count; k++) {
        qn__token_ids *own = &all->piece[k].ids;
        if (own->count)
            memcpy(ids->number + ids->count, own->number, own->count * sizeof *own->number);
        ids->count += own->count;
        qn__token_ids_release(own);
    }
    return status;
}

static qn_status encode_on(pieces *all, uint32_t threads, qn__token_ids *ids, qn_error *err) {
    qn__pool *pool = NULL;
    const int useful = (int)(threads < all->count ? threads : (uint32_t)all->count);
    qn_status status = qn__pool_create(useful, 0, &pool, err);
    if (status != QN_OK)
        return status;
    qn__pool_run(pool, encode_pieces, all);
    qn__pool_destroy(pool);
    if (!atomic_load(&all->failed))
        return join(all, ids, err);
    if (err)
        *err = all->error;
    return all->status;
}

size_t qn__token_block(void) {
    const uint64_t part = qn__available_memory() / 32;
    return part < BLOCK_LEAST ? BLOCK_LEAST : part > BLOCK_MOST ? BLOCK_MOST : (size_t)part;
}

qn_status qn__token_encode_some(const qn_tokenizer *tokenizer, qn__documents *documents,
                                size_t most, uint32_t threads, qn__token_ids *ids, qn_error *err) {
    pieces all = {.tokenizer = tokenizer->self, .documents = documents};
    qn_status status = cut_pieces(&all, documents, most, err);
    if (status == QN_OK && all.count)
        status = encode_on(&all, threads, ids, err);
    for (size_t k = 0; k < all.count; k++)
        qn__token_ids_release(&all.piece[k].ids);
    free(all.piece);
    return status;
}

static qn_status encode_small(qn_tokenizer *t, const uint8_t *text, size_t size, qn__token_ids *ids,
                              qn_error *err) {
    void *worker;
    qn_status status = take_worker(t, &worker, err);
    if (status == QN_OK)
        status = t->kind->encode(t->state, worker, text, size, 0, ids, err);
    leave_worker(t, worker);
    return status;
}

qn_status qn__token_encode(const qn_tokenizer *tokenizer, const uint8_t *text, size_t size,
                           uint32_t threads, qn__token_ids *ids, qn_error *err) {
    const qn__token_text one = {text, size};
    qn__documents documents = {.text = &one, .count = 1};
    return size <= PIECE || threads == 1
               ? encode_small(tokenizer->self, text, size, ids, err)
               : qn__token_encode_some(tokenizer, &documents, SIZE_MAX, threads, ids, err);
}

qn_status qn__token_end_of_text(const qn_tokenizer *tokenizer, qn__token_ids *ids, qn_error *err) {
    static const char *const texts[] = {"<|endoftext|>", "<|end_of_text|>", "</s>"};
    qn_status status = QN_OK;
    qn__token_ids one = {0};
    for (size_t i = 0; tokenizer->kind->ends && status == QN_OK && one.count != 1 && i < 3; i++) {
        one.count = 0;
        status =
            qn__token_encode(tokenizer, (const uint8_t *)texts[i], strlen(texts[i]), 1, &one, err);
    }
    if (status == QN_OK && one.count == 1)
        status = qn__token_ids_reserve(ids, 1, err);
    if (status == QN_OK && one.count == 1)
        qn__token_ids_add(ids, one.number[0]);
    qn__token_ids_release(&one);
    return status;
}

qn_status qn_tokenizer_encode(const qn_tokenizer *tokenizer, const void *text, size_t size,
                              uint32_t threads, qn_tokens **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(tokenizer, err);
    if (size)
        QN__NEED(text, err);
    qn_status status = qn__token_threads(threads, &threads, err);
    if (status != QN_OK)
        return status;
    qn_tokens *tokens = qn__alloc(1, sizeof *tokens, err);
    if (!tokens)
        return QN_MEMORY;
    status = qn__token_encode(tokenizer, text, size, threads, &tokens->ids, err);
    if (status != QN_OK) {
        qn_tokens_free(tokens);
        return status;
    }
    *out = tokens;
    return QN_OK;
}

uint64_t qn_tokens_count(const qn_tokens *tokens) { return tokens ? tokens->ids.count : 0; }

const uint32_t *qn_tokens_numbers(const qn_tokens *tokens) {
    return tokens ? tokens->ids.number : NULL;
}

void qn_tokens_free(qn_tokens *tokens) {
    if (tokens)
        qn__token_ids_release(&tokens->ids);
    qn__free(tokens);
}

qn_status qn_tokenizer_decode(const qn_tokenizer *tokenizer, const uint32_t *tokens, uint64_t count,
                              void *text, size_t capacity, size_t *size, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(size, err);
    *size = 0;
    QN__NEED(tokenizer, err);
    if (count)
        QN__NEED(tokens, err);
    if (capacity)
        QN__NEED(text, err);
    const uint32_t limit = qn_tokenizer_size(tokenizer);
    for (uint64_t k = 0; k < count; k++)
        if (tokens[k] >= limit) {
            qn__fail(err, QN_INPUT, "token %llu has the number %u; the tokenizer has %u tokens",
                     (unsigned long long)k, (unsigned)tokens[k], (unsigned)limit);
            return qn__remedy(err, QN_INPUT, "use the tokenizer that encoded the text");
        }
    qn__token_output output = {.text = text, .capacity = capacity};
    tokenizer->kind->decode(tokenizer->state, tokens, count, &output);
    *size = output.size;
    return QN_OK;
}

/* From texts to numbers of tokens, on several threads, and back. */
#include "data/tokens/tokenizer.h"

#include "base/argument.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include <stdatomic.h>
#include <string.h>

/* Bytes of a piece that a thread takes: large enough that the cuts cost nothing, small enough that
 * the threads end together. */
#define PIECE ((size_t)1 << 20)

typedef struct piece {
    size_t begin, end;
    qn__token_ids ids;
} piece;

/* Pieces of a text, encoded by several threads in any order and joined in theirs. */
typedef struct pieces {
    qn_tokenizer *tokenizer; /* its workers come and go, under its lock */
    const uint8_t *text;
    piece *piece;
    size_t count;
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
        piece *p = &all->piece[k];
        status = t->kind->encode(t->state, worker, all->text + p->begin, p->end - p->begin, &p->ids,
                                 &error);
    }
    leave_worker(t, worker);
    if (status != QN_OK)
        fail(all, status, &error);
}

static void cut_pieces(pieces *all, size_t size) {
    for (size_t at = 0; at < size; all->count++) {
        const size_t wanted = size - at > PIECE + PIECE / 2 ? at + PIECE : size;
        const size_t end = wanted < size ? all->tokenizer->kind->cut(all->tokenizer->state,
                                                                     all->text, size, wanted)
                                         : size;
        all->piece[all->count] = (piece){.begin = at, .end = end};
        at = end;
    }
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

static qn_status encode_small(qn_tokenizer *t, const uint8_t *text, size_t size, qn__token_ids *ids,
                              qn_error *err) {
    void *worker;
    qn_status status = take_worker(t, &worker, err);
    if (status == QN_OK)
        status = t->kind->encode(t->state, worker, text, size, ids, err);
    leave_worker(t, worker);
    return status;
}

qn_status qn__token_encode(const qn_tokenizer *tokenizer, const uint8_t *text, size_t size,
                           uint32_t threads, qn__token_ids *ids, qn_error *err) {
    qn_tokenizer *t = tokenizer->self;
    if (size <= PIECE || threads == 1)
        return encode_small(t, text, size, ids, err);
    pieces all = {.tokenizer = t, .text = text};
    all.piece = qn__alloc(size / PIECE + 1, sizeof *all.piece, err);
    if (!all.piece)
        return QN_MEMORY;
    cut_pieces(&all, size);
    const qn_status status = encode_on(&all, threads, ids, err);
    for (size_t k = 0; k < all.count; k++)
        qn__token_ids_release(&all.piece[k].ids);
    qn__free(all.piece);
    return status;
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

#include "data/tokens/models/merges.h"

#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

/* Tokens of a word from which on a heap finds the next merge. Below it a search is faster. */
enum { SEARCHED = 48 };

qn_status qn__merges_make(qn__merges *merges, qn__merge *merge, uint32_t count, uint32_t *twice,
                          qn_error *err) {
    *merges = (qn__merges){.merge = merge, .count = count, .slots = 16};
    while (merges->slots < 2 * (uint64_t)count)
        merges->slots *= 2;
    merges->slot = qn__alloc(merges->slots, sizeof *merges->slot, err);
    if (!merges->slot)
        return QN_MEMORY;
    for (uint32_t k = 0; k < merges->slots; k++)
        merges->slot[k].pair = QN__PAIR_NONE;
    for (*twice = 0; *twice < count; ++*twice) {
        const qn__merge *m = &merge[*twice];
        const uint64_t pair = (uint64_t)m->left << 32 | m->right;
        uint32_t at = (uint32_t)(pair * 0x9E3779B97F4A7C15u >> 32) & (merges->slots - 1);
        while (merges->slot[at].pair != QN__PAIR_NONE && merges->slot[at].pair != pair)
            at = (at + 1) & (merges->slots - 1);
        if (merges->slot[at].pair == pair)
            return QN_OK;
        merges->slot[at] = (qn__merge_slot){pair, *twice, m->made};
    }
    return QN_OK;
}

void qn__merges_release(qn__merges *merges) {
    qn__free(merges->merge);
    qn__free(merges->slot);
    *merges = (qn__merges){0};
}

void qn__merge_worker_release(qn__merge_worker *worker) {
    free(worker->place);
    free(worker->heap);
    *worker = (qn__merge_worker){0};
}

/* ---- short words: the rank of each pair is kept, and the least one is searched ---- */

static uint32_t rank_of(const qn__merges *merges, const uint32_t *token, uint32_t *made) {
    const qn__merge_slot *slot = qn__merges_find(merges, token[0], token[1]);
    *made = slot ? slot->made : 0;
    return slot ? slot->rank : UINT32_MAX;
}

static size_t apply_short(const qn__merges *merges, uint32_t *token, size_t count) {
    uint32_t rank[SEARCHED], made[SEARCHED];
    for (size_t k = 0; k + 1 < count; k++)
        rank[k] = rank_of(merges, token + k, &made[k]);
    while (count > 1) {
        size_t best = 0;
        for (size_t k = 1; k + 1 < count; k++)
            if (rank[k] < rank[best])
                best = k;
        if (rank[best] == UINT32_MAX)
            return count;
        token[best] = made[best];
        count--;
        const size_t rest = count - best - 1;
        memmove(token + best + 1, token + best + 2, rest * sizeof *token);
        memmove(rank + best, rank + best + 1, rest * sizeof *rank);
        memmove(made + best, made + best + 1, rest * sizeof *made);
        if (best + 1 < count)
            rank[best] = rank_of(merges, token + best, &made[best]);
        if (best > 0)
            rank[best - 1] = rank_of(merges, token + best - 1, &made[best - 1]);
    }
    return count;
}

/* ---- long words: tokens in a list, pairs in a heap by rank and place ---- */

typedef struct place {
    uint32_t token;
    uint32_t before, after; /* NONE at the ends */
    uint32_t is_gone;
} place;

typedef struct pair {
    uint32_t rank, at, left, right;
} pair;

#define NONE UINT32_MAX

typedef struct heap {
    pair *pair;
    size_t count;
} heap;

static int is_before(const pair *a, const pair *b) {
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void push(heap *h, pair new) {
    size_t at = h->count++;
    for (; at > 0 && is_before(&new, &h->pair[(at - 1) / 2]); at = (at - 1) / 2)
        h->pair[at] = h->pair[(at - 1) / 2];
    h->pair[at] = new;
}

static pair pop(heap *h) {
    const pair top = h->pair[0], last = h->pair[--h->count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < h->count; at = child) {
        child += child + 1 < h->count && is_before(&h->pair[child + 1], &h->pair[child]);
        if (!is_before(&h->pair[child], &last))
            break;
        h->pair[at] = h->pair[child];
    }
    h->pair[at] = last;
    return top;
}

static void push_pair(const qn__merges *merges, heap *h, const place *p, uint32_t at) {
    const uint32_t after = at == NONE ? NONE : p[at].after;
    if (after == NONE)
        return;
    const qn__merge_slot *slot = qn__merges_find(merges, p[at].token, p[after].token);
    if (slot)
        push(h, (pair){slot->rank, at, p[at].token, p[after].token});
}

/* Each merge adds two pairs at most, so 3 * count are enough. */
static qn_status reserve(qn__merge_worker *worker, size_t count, qn_error *err) {
    if (count <= worker->places)
        return QN_OK;
    if (count >= UINT32_MAX / 4)
        return qn__fail(err, QN_INPUT, "a word of the text has 1 GiB or more");
    qn__merge_worker_release(worker);
    worker->place = malloc(count * sizeof(place));
    worker->heap = malloc(3 * count * sizeof(pair));
    if (!worker->place || !worker->heap)
        return qn__fail_memory(err, count, 3 * sizeof(pair) + sizeof(place));
    worker->places = count;
    return QN_OK;
}

static void merge_long(const qn__merges *merges, heap *h, place *p) {
    while (h->count > 0) {
        const pair top = pop(h);
        place *left = &p[top.at];
        if (left->is_gone || left->token != top.left || left->after == NONE ||
            p[left->after].token != top.right)
            continue;
        place *right = &p[left->after];
        left->token = merges->merge[top.rank].made;
        right->is_gone = 1;
        left->after = right->after;
        if (left->after != NONE)
            p[left->after].before = top.at;
        push_pair(merges, h, p, left->before);
        push_pair(merges, h, p, top.at);
    }
}

static size_t apply_long(const qn__merges *merges, qn__merge_worker *worker, uint32_t *token,
                         size_t count) {
    place *p = worker->place;
    heap h = {worker->heap, 0};
    for (size_t k = 0; k < count; k++)
        p[k] = (place){token[k], k ? (uint32_t)k - 1 : NONE, k + 1 < count ? (uint32_t)k + 1 : NONE,
                       0};
    for (size_t k = 0; k + 1 < count; k++)
        push_pair(merges, &h, p, (uint32_t)k);
    merge_long(merges, &h, p);
    size_t left = 0;
    for (uint32_t at = 0; at != NONE; at = p[at].after)
        token[left++] = p[at].token;
    return left;
}

size_t qn__merges_apply(const qn__merges *merges, qn__merge_worker *worker, uint32_t *token,
                        size_t count, qn_status *status, qn_error *err) {
    *status = QN_OK;
    if (count <= SEARCHED)
        return apply_short(merges, token, count);
    *status = reserve(worker, count, err);
    return *status == QN_OK ? apply_long(merges, worker, token, count) : 0;
}

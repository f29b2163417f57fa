#include "data/tokens/models/pair_counts.h"

#include <stdlib.h>
#include <string.h>

static uint32_t place_of(const qn__pair_counts *c, uint64_t pair) {
    uint64_t hash = pair * 0x9E3779B97F4A7C15u;
    uint32_t at = (uint32_t)(hash >> 32) & (c->slots - 1);
    while (c->slot[at].is_used && c->slot[at].pair != pair)
        at = (at + 1) & (c->slots - 1);
    return at;
}

static qn_status grow(qn__pair_counts *c, qn_error *err) {
    const qn__pair_counts old = *c;
    if (old.slots >= (uint32_t)1 << 31)
        return qn__fail_memory(err, 2 * (uint64_t)old.slots, sizeof *c->slot);
    c->slots = old.slots ? 2 * old.slots : 1 << 12;
    c->slot = calloc(c->slots, sizeof *c->slot);
    if (!c->slot) {
        *c = old;
        return qn__fail_memory(err, 2 * (uint64_t)old.slots, sizeof *c->slot);
    }
    for (uint32_t k = 0; k < old.slots; k++)
        if (old.slot[k].is_used)
            c->slot[place_of(c, old.slot[k].pair)] = old.slot[k];
    free(old.slot);
    return QN_OK;
}

/* Makes room for one more element of an array. */
static qn_status room(void **array, size_t count, size_t *capacity, size_t size, qn_error *err) {
    if (count < *capacity)
        return QN_OK;
    const size_t wanted = *capacity ? 2 * *capacity : 16;
    void *grown = realloc(*array, wanted * size);
    if (!grown)
        return qn__fail_memory(err, wanted, size);
    *array = grown;
    *capacity = wanted;
    return QN_OK;
}

static qn_status add_word(qn__pair_count *p, uint32_t word, qn_error *err) {
    if (p->words && p->word[p->words - 1] == word)
        return QN_OK;
    if (p->words == p->capacity) {
        const uint32_t capacity = p->capacity ? 2 * p->capacity : 2;
        uint32_t *grown = realloc(p->word, capacity * sizeof *grown);
        if (!grown)
            return qn__fail_memory(err, capacity, sizeof *grown);
        p->word = grown;
        p->capacity = capacity;
    }
    p->word[p->words++] = word;
    return QN_OK;
}

qn_status qn__pair_counts_add(qn__pair_counts *counts, uint32_t left, uint32_t right,
                              int64_t change, uint32_t word, qn_error *err) {
    const uint64_t pair = (uint64_t)left << 32 | right;
    if (counts->used >= counts->slots / 2 && grow(counts, err) != QN_OK)
        return QN_MEMORY;
    qn__pair_count *p = &counts->slot[place_of(counts, pair)];
    if (!p->is_used) {
        *p = (qn__pair_count){.pair = pair, .is_used = 1, .step = UINT32_MAX};
        counts->used++;
    }
    p->count += change;
    if (change <= 0)
        return QN_OK;
    if (p->step != counts->step) {
        p->step = counts->step;
        void *more = counts->more;
        const qn_status status =
            room(&more, counts->more_count, &counts->more_capacity, sizeof *counts->more, err);
        counts->more = more;
        if (status != QN_OK)
            return status;
        counts->more[counts->more_count++] = pair;
    }
    return add_word(p, word, err);
}

static int is_first(qn__pair_entry a, qn__pair_entry b) {
    return a.count != b.count ? a.count > b.count : a.pair < b.pair;
}

static qn_status push(qn__pair_counts *c, qn__pair_entry entry, qn_error *err) {
    void *heap = c->heap;
    const qn_status status = room(&heap, c->heaped, &c->heap_capacity, sizeof entry, err);
    c->heap = heap;
    if (status != QN_OK)
        return status;
    size_t at = c->heaped++;
    for (; at > 0 && is_first(entry, c->heap[(at - 1) / 2]); at = (at - 1) / 2)
        c->heap[at] = c->heap[(at - 1) / 2];
    c->heap[at] = entry;
    return QN_OK;
}

/* Puts an entry at the top, in place of the one there. */
static void sink(qn__pair_counts *c, qn__pair_entry entry) {
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < c->heaped; at = child) {
        child += child + 1 < c->heaped && is_first(c->heap[child + 1], c->heap[child]);
        if (!is_first(c->heap[child], entry))
            break;
        c->heap[at] = c->heap[child];
    }
    c->heap[at] = entry;
}

static void drop_top(qn__pair_counts *c) {
    const qn__pair_entry last = c->heap[--c->heaped];
    if (c->heaped)
        sink(c, last);
}

qn_status qn__pair_counts_step(qn__pair_counts *counts, uint64_t merged, qn_error *err) {
    qn_status status = QN_OK;
    if (merged != UINT64_MAX)
        counts->slot[place_of(counts, merged)].count = 0;
    for (size_t k = 0; status == QN_OK && k < counts->more_count; k++) {
        const qn__pair_count *p = &counts->slot[place_of(counts, counts->more[k])];
        status = push(counts, (qn__pair_entry){p->count, p->pair}, err);
    }
    counts->more_count = 0;
    counts->step++;
    return status;
}

int qn__pair_counts_next(qn__pair_counts *counts, uint64_t *pair, uint32_t **word,
                         uint32_t *words) {
    while (counts->heaped) {
        const qn__pair_entry top = counts->heap[0];
        qn__pair_count *p = &counts->slot[place_of(counts, top.pair)];
        if (p->count != top.count) { /* it became less frequent since */
            if (p->count > 0)
                sink(counts, (qn__pair_entry){p->count, top.pair});
            else
                drop_top(counts);
            continue;
        }
        if (top.count < 2)
            return 0;
        drop_top(counts);
        *pair = top.pair;
        *word = p->word;
        *words = p->words;
        p->word = NULL;
        p->words = p->capacity = 0;
        return 1;
    }
    return 0;
}

void qn__pair_counts_release(qn__pair_counts *counts) {
    for (uint32_t k = 0; k < counts->slots; k++)
        free(counts->slot[k].word);
    free(counts->slot);
    free(counts->heap);
    free(counts->more);
    *counts = (qn__pair_counts){0};
}

#include "device/gpu/gpu_turns.h"

#include "base/memory.h"
#include <string.h>

enum { WORD = 64 };

static uint64_t *words_of(const qn__gpu_turns *t, uint32_t node) {
    return t->taken + (size_t)node * t->words;
}

qn_status qn__gpu_turns_create(uint32_t buffers, uint32_t windows, qn__gpu_turns *out,
                               qn_error *err) {
    *out = (qn__gpu_turns){.leaves = 1, .words = windows / WORD + 1};
    while (out->leaves < buffers)
        out->leaves *= 2;
    out->taken = qn__alloc(2 * (uint64_t)out->leaves * out->words, sizeof *out->taken, err);
    if (!out->taken)
        return QN_MEMORY;
    qn__gpu_turns_forget(out);
    return QN_OK;
}

void qn__gpu_turns_free(qn__gpu_turns *t) {
    qn__free(t->taken);
    *t = (qn__gpu_turns){0};
}

void qn__gpu_turns_forget(qn__gpu_turns *t) {
    memset(t->taken, 0xFF, 2 * (size_t)t->leaves * t->words * sizeof *t->taken);
}

/* The windows from `first` to `last` that are in word `word`. */
static uint64_t mask_of(uint32_t first, uint32_t last, uint32_t word) {
    const uint64_t from = word == first / WORD ? UINT64_MAX << first % WORD : UINT64_MAX;
    const uint64_t to = word == last / WORD ? UINT64_MAX >> (WORD - 1 - last % WORD) : UINT64_MAX;
    return from & to;
}

/* The windows of an array: one range, or two where it is computed again. */
typedef struct ranges {
    uint32_t count, first[2], last[2];
} ranges;

static ranges ranges_of(const qn__place *p) {
    return (ranges){
        p->again ? 2 : 1, {p->first, p->again}, {p->again ? p->gone : p->last, p->last}};
}

/* Whether all buffers below the node are taken in one of the windows. */
static int is_full(const qn__gpu_turns *t, uint32_t node, const ranges *r) {
    const uint64_t *taken = words_of(t, node);
    for (uint32_t i = 0; i < r->count; ++i)
        for (uint32_t w = r->first[i] / WORD; w <= r->last[i] / WORD; ++w)
            if (taken[w] & mask_of(r->first[i], r->last[i], w))
                return 1;
    return 0;
}

uint32_t qn__gpu_turns_find(qn__gpu_turns *t, const qn__place *array) {
    const ranges r = ranges_of(array);
    uint32_t node = 1;
    for (;;) {
        ++t->steps;
        if (!is_full(t, node, &r)) {
            if (node >= t->leaves)
                return node - t->leaves;
            node = 2 * node + 1;
            continue;
        }
        while (node > 1 && node % 2 == 0) /* both children of its parent are full */
            node /= 2;
        if (node == 1)
            return UINT32_MAX;
        --node;
    }
}

/* The words of the nodes above a leaf. */
static void carry_up(qn__gpu_turns *t, uint32_t leaf, uint32_t first, uint32_t last) {
    for (uint32_t node = (t->leaves + leaf) / 2; node > 0; node /= 2) {
        const uint64_t *left = words_of(t, 2 * node), *right = words_of(t, 2 * node + 1);
        ++t->steps;
        for (uint32_t w = first; w <= last; ++w)
            words_of(t, node)[w] = left[w] & right[w];
    }
}

void qn__gpu_turns_add(qn__gpu_turns *t, uint32_t buffer) {
    memset(words_of(t, t->leaves + buffer), 0, t->words * sizeof *t->taken);
    carry_up(t, buffer, 0, t->words - 1);
}

void qn__gpu_turns_take(qn__gpu_turns *t, uint32_t buffer, const qn__place *array) {
    const ranges r = ranges_of(array);
    uint64_t *taken = words_of(t, t->leaves + buffer);
    for (uint32_t i = 0; i < r.count; ++i) {
        for (uint32_t w = r.first[i] / WORD; w <= r.last[i] / WORD; ++w)
            taken[w] |= mask_of(r.first[i], r.last[i], w);
        carry_up(t, buffer, r.first[i] / WORD, r.last[i] / WORD);
    }
}

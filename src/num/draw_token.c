#include "num/draw_token.h"

#include "num/elementary.h"
#include "num/philox.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Units of probabilities: 2^-38, so that the sum over 2^24 tokens fits 63 bits. A difference below
 * LEAST has less than half a unit. */
#define UNIT 0x1p38f
#define LEAST (-28.0f)

/* Units of each token, and tokens in some order. */
typedef struct drawn {
    uint64_t *units;
    uint32_t *token, count; /* those that remain */
} drawn;

size_t qn__draw_space(uint32_t tokens) {
    return (size_t)tokens * (sizeof(uint64_t) + sizeof(uint32_t));
}

static float greatest_of(uint32_t tokens, const float *logits) {
    float greatest = logits[0];
    for (uint32_t v = 1; v < tokens; ++v)
        greatest = logits[v] > greatest ? logits[v] : greatest;
    return greatest;
}

static uint64_t units_of(float difference) {
    return difference < LEAST ? 0 : (uint64_t)llrintf(qn__exp(difference) * UNIT);
}

void qn__draw_penalty(float repetition, const uint32_t *text, size_t count, uint32_t tokens,
                      float *logits, void *space) {
    uint8_t *seen = space;
    if (repetition == 1.0f)
        return;
    memset(seen, 0, tokens);
    for (size_t i = 0; i < count; ++i) {
        float *z = &logits[text[i]];
        if (seen[text[i]]++)
            continue;
        *z = *z > 0.0f ? *z / repetition : *z * repetition;
        seen[text[i]] = 1;
    }
}

/* ------------------------------------------------------------------------------------- the order
 */

/* Whether token a comes before b: by its logit, then by its number. */
static int comes_before(const float *logits, uint32_t a, uint32_t b) {
    return logits[a] > logits[b] || (!(logits[a] < logits[b]) && a < b);
}

/* A heap whose first one comes before all others. */
static void sift(const float *logits, uint32_t *heap, uint32_t count, uint32_t at) {
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && comes_before(logits, heap[child + 1], heap[child]))
            ++child;
        if (!comes_before(logits, heap[child], heap[at]))
            return;
        const uint32_t own = heap[at];
        heap[at] = heap[child];
        heap[child] = own;
    }
}

/* Takes the first of a heap of *count, and puts it after the others. */
static uint32_t pop(const float *logits, uint32_t *heap, uint32_t *count) {
    const uint32_t first = heap[0];
    heap[0] = heap[--*count];
    heap[*count] = first;
    sift(logits, heap, *count, 0);
    return first;
}

/* Whether `sum` is at least P of `all`: both below 2^63, P in units of 2^-32. */
static int is_share(uint64_t sum, uint64_t all, uint64_t p) {
    const uint64_t high = (all >> 32) * p, low = (all & 0xffffffffu) * p;
    return sum >= high + (low >> 32);
}

static int by_number(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* 25.73: leaves the tokens that may be drawn, in ascending order. Returns the sum of their units.
 */
static uint64_t cut(const qn__drawing *how, uint32_t tokens, const float *logits, uint64_t all,
                    drawn *d) {
    const uint32_t most = how->top_k && how->top_k < tokens ? how->top_k : tokens;
    const uint64_t p = (uint64_t)llrint((double)how->top_p * 0x1p32);
    uint32_t left = tokens, kept = 0;
    uint64_t sum = 0;
    for (uint32_t at = tokens / 2; at-- > 0;)
        sift(logits, d->token, tokens, at);
    if (most < tokens) /* the share is one of these */
        for (all = 0; tokens - left < most;)
            all += d->units[pop(logits, d->token, &left)];
    while (kept < most && (kept == 0 || how->top_p >= 1.0f || !is_share(sum, all, p))) {
        if (kept == tokens - left)
            pop(logits, d->token, &left);
        sum += d->units[d->token[tokens - ++kept]];
    }
    memmove(d->token, d->token + (tokens - kept), kept * sizeof *d->token);
    d->count = kept;
    qsort(d->token, kept, sizeof *d->token, by_number);
    return sum;
}

static uint32_t greedy(uint32_t tokens, const float *logits) {
    uint32_t best = 0;
    for (uint32_t v = 1; v < tokens; ++v)
        best = logits[v] > logits[best] ? v : best;
    return best;
}

uint32_t qn__draw_token(const qn__drawing *how, uint32_t tokens, const float *logits, uint64_t word,
                        void *space) {
    drawn d = {.units = space, .count = tokens};
    d.token = (uint32_t *)(void *)(d.units + tokens);
    if (how->temperature == 0.0f)
        return greedy(tokens, logits);
    const float greatest = greatest_of(tokens, logits);
    uint64_t all = 0;
    for (uint32_t v = 0; v < tokens; ++v) {
        d.units[v] = units_of((logits[v] - greatest) / how->temperature);
        d.token[v] = v;
        all += d.units[v];
    }
    if (how->top_p < 1.0f || (how->top_k && how->top_k < tokens))
        all = cut(how, tokens, logits, all, &d);
    /* The upper half of word * all. */
    const uint64_t low = (word & 0xffffffffu) * (all & 0xffffffffu);
    const uint64_t one = (word >> 32) * (all & 0xffffffffu) + (low >> 32);
    const uint64_t two = (word & 0xffffffffu) * (all >> 32) + (one & 0xffffffffu);
    uint64_t target = (word >> 32) * (all >> 32) + (one >> 32) + (two >> 32);
    uint32_t i = 0;
    while (i + 1 < d.count && target >= d.units[d.token[i]])
        target -= d.units[d.token[i++]];
    return d.token[i];
}

qn__log_scale qn__draw_log_scale(uint32_t tokens, const float *logits) {
    const float greatest = greatest_of(tokens, logits);
    uint64_t all = 0;
    for (uint32_t v = 0; v < tokens; ++v)
        all += units_of(logits[v] - greatest);
    return (qn__log_scale){greatest, qn__log((float)all * 0x1p-38f)};
}

float qn__draw_log_probability(qn__log_scale scale, float logit) {
    return (logit - scale.greatest) - scale.log;
}

uint32_t qn__draw_greatest(uint32_t tokens, const float *logits, uint32_t most, uint32_t *token) {
    uint32_t count = 0;
    for (uint32_t v = 0; v < tokens; ++v) {
        if (count == most && logits[v] <= logits[token[count - 1]])
            continue;
        uint32_t at = count < most ? count++ : most - 1;
        for (; at > 0 && logits[v] > logits[token[at - 1]]; --at)
            token[at] = token[at - 1];
        token[at] = v;
    }
    return count;
}

uint64_t qn__draw_word(uint64_t seed, const uint8_t prompt[32], uint32_t answer, uint32_t place) {
    uint64_t item = 0;
    uint32_t words[4];
    for (int i = 6; i-- > 0;)
        item = item << 8 | prompt[i];
    qn__words(seed, QN__PURPOSE_TOKENS, 0, answer, item, place / 2, words);
    const uint32_t *own = words + place % 2 * 2;
    return (uint64_t)own[0] << 32 | own[1];
}

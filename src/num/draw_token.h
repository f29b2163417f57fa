/* The choice of the next token from a network's logits: docs/exactness.md 25.71 to 25.74. All sums
 * are of integers, so they have no order. */
#ifndef QN_NUM_DRAW_TOKEN_H
#define QN_NUM_DRAW_TOKEN_H

#include <stddef.h>
#include <stdint.h>

/* Options of 25.72 and 25.73. */
typedef struct qn__drawing {
    float temperature; /* 0: the greatest logit */
    uint32_t top_k;    /* 0: all */
    float top_p;       /* above 0; 1: all */
    float repetition;  /* above 0; 1: none */
} qn__drawing;

/* Working memory for `tokens` logits: so many bytes, aligned to 8. */
size_t qn__draw_space(uint32_t tokens);

/* 25.71: the penalty of the `count` tokens of the text so far, each once. `space` as below. */
void qn__draw_penalty(float repetition, const uint32_t *text, size_t count, uint32_t tokens,
                      float *logits, void *space);

/* The token drawn with the random number `word`. The logits are finite. */
uint32_t qn__draw_token(const qn__drawing *how, uint32_t tokens, const float *logits, uint64_t word,
                        void *space);

/* 25.75: what the log-probabilities of a position share, and the one of a token with that logit. */
typedef struct qn__log_scale {
    float greatest, log;
} qn__log_scale;
qn__log_scale qn__draw_log_scale(uint32_t tokens, const float *logits);
float qn__draw_log_probability(qn__log_scale scale, float logit);

/* The tokens with the greatest logits, in descending order, of equal ones that with the smallest
 * number first: `most` of them, at least 1. Returns their number, which is less where there are not
 * so many. */
uint32_t qn__draw_greatest(uint32_t tokens, const float *logits, uint32_t most, uint32_t *token);

/* The random number of 25.74, for the text's next token, whose place in it is `place`. `prompt`:
 * the digest of the prompt. */
uint64_t qn__draw_word(uint64_t seed, const uint8_t prompt[32], uint32_t answer, uint32_t place);

#endif

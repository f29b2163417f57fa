/* The score of a token as the package tokenizers reads it (docs/exactness.md 25.59). */
#ifndef QN_DATA_TOKENS_MODELS_TOKEN_SCORE_H
#define QN_DATA_TOKENS_MODELS_TOKEN_SCORE_H

/* The value of a number of JSON: not the nearest one, but its digits as a whole number, rounded,
 * and then multiplied with or divided by a power of ten. Infinite where it is beyond binary64. */
double qn__token_score(const char *digits);

#endif

/* How the tokens of a table were made, as recipes name it: "ids", or the kind of a tokenizer, a
 * space and its digest, and " words" where each word of a text is encoded by itself (25.47). */
#ifndef QN_DATA_TABLE_TOKEN_NAMES_H
#define QN_DATA_TABLE_TOKEN_NAMES_H

#include "base/error.h"

/* The longest such text, with its NUL. */
enum { QN__TOKENS_TEXT = 96 };

/* Numbers that were tokens before they came here. */
#define QN__TOKENS_IDS "ids"

/* Whether this is a text that a table may have. */
int qn__tokens_are_known(const char *text);

/* The 64 digits of the digest in it; NULL: it has none, or is NULL. */
const char *qn__tokens_digest(const char *text);

#define QN__TOKENS_WORDS " words"

/* Whether each word was encoded by itself, 0 for NULL; whether two texts differ in that alone. */
int qn__tokens_are_words(const char *text);
int qn__tokens_are_alike(const char *one, const char *other);

/* Whether `tokenizer`, the text of one, has that digest. */
int qn__tokens_are_of(const char *text, const char *tokenizer);

/* Checks `tokens` and `expected_tokens` of qn_data_options. *out is that one of them which holds;
 * NULL: the values are not tokens. Fails with QN_USAGE. */
qn_status qn__tokens_choose(const char *given, const char *expected, const char **out,
                            qn_error *err);

#endif

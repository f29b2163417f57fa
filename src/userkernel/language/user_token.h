/* The tokens of a user kernel's text: names, numbers and punctuators of C.
 *
 * Comments and blanks separate tokens. A line that begins with # is refused unless it includes
 * <quern/kernel_file.h>, which is for editors and compilers and is skipped. So there are no macros:
 * a token means what it says. */
#ifndef QN_USERKERNEL_LANGUAGE_USER_TOKEN_H
#define QN_USERKERNEL_LANGUAGE_USER_TOKEN_H

#include "base/error.h"
#include <stdint.h>

/* A longer text is refused; a name has at most so many bytes. */
enum { QN__USER_TEXT_MAX = 1 << 16, QN__USER_NAME_MAX = 40 };

typedef enum qn__user_token_kind {
    QN__USER_NAME,
    QN__USER_INTEGER,
    QN__USER_REAL,
    QN__USER_SIGN, /* a punctuator */
    QN__USER_END
} qn__user_token_kind;

typedef struct qn__user_token {
    qn__user_token_kind kind;
    uint32_t at, size; /* bytes in the text */
    uint32_t line;     /* from 1 */
} qn__user_token;

/* The text with its tokens, the last of which is QN__USER_END. */
typedef struct qn__user_tokens {
    const char *text, *name; /* the caller's; `name` is for messages */
    qn__user_token *token;
    uint32_t count;
} qn__user_tokens;

/* Cuts a text, which ends with a NUL. `name` is what messages call it: the file. On success
 * qn__user_tokens_release frees the tokens; `text` and `name` must stay. Fails with QN_INPUT, with
 * line and column, or QN_MEMORY. */
qn_status qn__user_tokens_read(const char *text, const char *name, qn__user_tokens *out,
                               qn_error *err);
void qn__user_tokens_release(qn__user_tokens *tokens);

/* Returns an array with the capacity for one more than its `count` elements: `from`, or a larger
 * one in its place. Without memory *failed becomes 1, and `from` stays. */
void *qn__user_one_more(void *from, uint32_t count, uint32_t *capacity, size_t size, int *failed);

/* 1 if the token is this name or punctuator. */
int qn__user_token_is(const qn__user_tokens *all, const qn__user_token *token, const char *word);

/* Sets the place of an error to a token, "FILE, line N, column M". */
void qn__user_token_place(const qn__user_tokens *all, const qn__user_token *token, qn_error *err);

#endif

/* Answers and parts of them as JSON, as clients of /v1/completions and /v1/chat/completions read
 * them. */
#ifndef QN_SERVE_TEXT_TEXT_PIECES_H
#define QN_SERVE_TEXT_TEXT_PIECES_H

#include "base/text/text.h"
#include "serve/text/text_ask.h"

/* How much of an answer was written, and in how many characters. */
typedef struct qn__written {
    size_t bytes, characters;
    uint32_t tokens;
} qn__written;

/* Appends the element of "choices" for what an answer has more than `written`, which moves on.
 * `stream`: as a part of a stream. */
void qn__pieces_add_choice(const qn__texts *texts, const qn__ask *ask, const qn__text_news *news,
                           int stream, qn__written *written, qn__text *to);

#endif

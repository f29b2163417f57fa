/* The words of a model text, one at a time, and messages that point at them. */
#ifndef QN_LAYER_TOKENS_H
#define QN_LAYER_TOKENS_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* The current word is `size` bytes at text + at. Each of ; { | } is a word of its own, and at the
 * end of the text the word is empty. Begin with {text, 0, 0, err} and qn__tokens_next. */
typedef struct qn__tokens {
    const char *text;
    size_t at, size;
    qn_error *err;
    const char *name, *lines; /* for messages: as of qn__tokens_point; NULL: "model", one line */
} qn__tokens;

void qn__tokens_next(qn__tokens *tokens);

/* Makes `where` point at byte `at` of a text. With `lines`, the same bytes as they were written, it
 * names the line, counted from 1, and the layer, counted from 0; `name` is that of the file. */
void qn__tokens_point(qn_error *err, const char *name, const char *text, const char *lines,
                      size_t at);

/* Where a layer's text begins, by its number in the flat list of all layers. */
size_t qn__tokens_layer_begin(const char *text, uint32_t layer);

/* Whether the words of the layer are used up: at ; | } or the end. */
int qn__tokens_ended(const qn__tokens *tokens);

/* Whether the current word is `name`, in lower case; the word's own case does not matter. */
int qn__tokens_is(const qn__tokens *tokens, const char *name);

/* The current word for messages, cut at 60 bytes. */
const char *qn__tokens_quote(const qn__tokens *tokens, char word[64]);

/* Fails with QN_USAGE at byte `at`; both texts are fixed. */
qn_status qn__tokens_fail(const qn__tokens *tokens, size_t at, const char *what,
                          const char *remedy);

/* The same at the current word, which is quoted after `what`. The remedy says how words are
 * separated where the word has a comma, a parenthesis or "=". */
qn_status qn__tokens_invalid(const qn__tokens *tokens, const char *what, const char *remedy);

/* Reads a number from 1 to `most` into *out, and goes on to the next word. `name` is "width":
 * messages are "the layer's width is missing" and "invalid width". */
qn_status qn__tokens_count(qn__tokens *tokens, const char *name, uint32_t most, const char *remedy,
                           uint32_t *out);

/* Reads one number for height and width, "3", or two, "3x5", into out[2], and goes on to the next
 * word. Each is from `least` to `most`. */
qn_status qn__tokens_pair(qn__tokens *tokens, const char *name, uint32_t least, uint32_t most,
                          const char *remedy, uint32_t out[2]);

#endif

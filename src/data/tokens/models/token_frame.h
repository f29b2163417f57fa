/* The tokens that the post-processor of a tokenizer.json puts before and after a text, such as
 * [CLS] and [SEP] (docs/exactness.md 25.57). Start with {0}. */
#ifndef QN_DATA_TOKENS_MODELS_TOKEN_FRAME_H
#define QN_DATA_TOKENS_MODELS_TOKEN_FRAME_H

#include "base/text/json.h"
#include "base/text/text.h"
#include "data/tokens/models/token_ids.h"

enum { QN__FRAME_MOST = 16 };

typedef struct qn__token_frame {
    uint32_t number[QN__FRAME_MOST]; /* those before the text, then those after it */
    char *text[QN__FRAME_MOST];
    uint32_t before, after; /* how many */
} qn__token_frame;

/* Reads `post_processor`, NULL where there is none. All numbers are below `size`. Fails with
 * QN_FORMAT, QN_UNSUPPORTED, by name, or QN_MEMORY. */
qn_status qn__token_frame_read(qn__token_frame *frame, const qn__json_node *node, uint32_t size,
                               qn_error *err);
/* Writes it in its canonical form: null where there are no such tokens. */
void qn__token_frame_write(const qn__token_frame *frame, qn__text *json);
/* Appends its tokens before a text, or with `after` 1 those after it. */
qn_status qn__token_frame_add(const qn__token_frame *frame, int after, qn__token_ids *ids,
                              qn_error *err);
void qn__token_frame_release(qn__token_frame *frame);

#endif

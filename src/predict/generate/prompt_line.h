/* Prompts that are JSON: docs/exactness.md 25.78. */
#ifndef QN_PREDICT_GENERATE_PROMPT_LINE_H
#define QN_PREDICT_GENERATE_PROMPT_LINE_H

#include "predict/generate/codec.h"

/* What a line says, or else what the options say. */
typedef struct qn__prompt_line {
    char *text; /* for qn__free: what is encoded, with the marks of the chat */
    uint32_t tokens;
    uint64_t seed;
} qn__prompt_line;

/* `options` are checked; `index` of the prompt is for messages. Fails with QN_INPUT. */
qn_status qn__prompt_line_read(const char *line, uint32_t index, const qn_generate_options *options,
                               qn__prompt_line *out, qn_error *err);

#endif

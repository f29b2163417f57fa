/* Prompts of a file or a row, and the texts with which a model of next tokens continues them. */
#ifndef QN_SERVE_WATCH_WATCH_PROMPTS_H
#define QN_SERVE_WATCH_WATCH_PROMPTS_H

#include "predict/generate/text_service.h"

/* An answer, in UTF-8: what is not a character, or is a zero byte, is U+FFFD. */
typedef struct qn__watch_text {
    char *text;
    qn_answer_end end;
} qn__watch_text;

/* The failure is NULL when all have answers. */
typedef void qn__watch_asked(void *user, const qn_error *failure);

typedef struct qn__watch_prompts {
    uint32_t count;
    qn__text_prompt *prompt;
    qn__watch_text *answer;
    char *bytes; /* of all prompts */
    int lines;   /* 1: each is a line of JSON, as of qn_generate_options */
    int failed;  /* memory was short for an answer */
    qn__watch_asked *done;
    void *user;
} qn__watch_prompts;

/* One prompt without the line ends after it, or with `lines` each line that is not blank. The
 * caller owns *out. Fails with QN_INPUT or QN_MEMORY. */
qn_status qn__watch_prompts_read(const char *bytes, size_t size, int lines, qn__watch_prompts **out,
                                 qn_error *err);
void qn__watch_prompts_free(qn__watch_prompts *prompts); /* accepts NULL */

/* Hands them over. After QN_OK `done` is called once, on another thread. Fails as qn__texts_submit,
 * but with QN_INPUT where the prompts are too long. */
qn_status qn__watch_prompts_ask(qn__texts *texts, const qn_generate_options *options,
                                qn__watch_prompts *prompts, qn__watch_asked *done, void *user,
                                qn_error *err);

/* "length", "end" or "stop", as quern generate writes it. */
const char *qn__watch_end_name(qn_answer_end end);

#endif

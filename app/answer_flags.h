/* The options of texts that a model of next tokens writes, which `quern generate` and `quern watch`
 * have. */
#ifndef APP_ANSWER_FLAGS_H
#define APP_ANSWER_FLAGS_H

#include "options.h"
#include <quern/generate.h>

typedef struct answer_flags {
    text_list stop;
    const char *chat, *system;
    uint32_t tokens, top_k, batch;
    uint64_t seed;
    float temperature, top_p, repetition;
} answer_flags;

extern const option answer_options[];       /* what is drawn */
extern const option answer_chat_options[];  /* how prompts are written */
extern const option answer_batch_options[]; /* what changes the time alone */

/* The defaults, for options_read. */
answer_flags answer_flags_usual(void);
/* Reports too many texts of --stop, with an exit code; -1: there are not. */
int answer_flags_check(const answer_flags *flags);
/* The defaults with these options; the texts stay the caller's. */
qn_generate_options answer_flags_take(const answer_flags *flags);
/* Whether they are not the defaults. */
int answer_flags_given(const answer_flags *flags);

#endif

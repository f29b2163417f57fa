/* Answers that grow together. Any answer joins and leaves between two steps. A step adds a token to
 * each of those whose prompts the network has read:
 *
 *     waiting     7 8 9 ...           added, in their order, without a sequence of the reader
 *     sequences   0 | 4 | 2 | 6       one answer each: it reads its prompt, or it grows
 *     a step      rows without logits     some tokens before the last one of those that read
 *                 rows with logits        the last token of those that grow, then a draw for each
 *
 * An answer that is complete gives its sequence to the next one that waits. Each row's numbers
 * depend on its own sequence alone, and so do draws. So who is there decides no answer. */
#ifndef QN_PREDICT_GENERATE_ENGINE_H
#define QN_PREDICT_GENERATE_ENGINE_H

#include "predict/generate/answer.h"
#include "predict/generate/reader.h"

typedef struct qn__engine qn__engine;

typedef struct qn__engine_plan {
    uint32_t sequences; /* answers that grow together */
    uint32_t positions; /* of a sequence: enough for all answers, or the context of the model */
    uint32_t beside;    /* While answers grow, a step reads so many tokens of prompts at most, in
                           equal parts; and one pass of the reader else. 0: it reads all prompts. */
    /* Called for each answer that has a further token, in a step. It may release the answer if that
     * is complete, but not add or remove others. NULL: nobody is told. */
    void (*grown)(void *context, qn__answer *answer);
    void *context;
} qn__engine_plan;

/* For the checked model, which must outlive *out, and its codec. `compute` and `members` are as for
 * qn__reader_open, and so are the failures. */
qn_status qn__engine_open(const qn_model *model, const qn_compute *compute,
                          const qn__member *members, uint32_t count, const qn__codec *codec,
                          const qn__engine_plan *plan, qn__engine **out, qn_error *err);
void qn__engine_close(qn__engine *engine); /* accepts NULL */

/* The answer waits for a sequence. It must stay where it is until it is complete or removed. */
void qn__engine_add(qn__engine *engine, qn__answer *answer);
/* The answer waits or grows. Not in a step. */
void qn__engine_remove(qn__engine *engine, qn__answer *answer);

/* Answers that have a sequence, and those that wait. */
uint32_t qn__engine_active(const qn__engine *engine);
uint32_t qn__engine_waiting(const qn__engine *engine);

/* A step. *more becomes 0 when all answers are complete. *failed becomes NULL, or after QN_NUMERIC
 * the answer whose network gave a number that is not finite: it was removed, the others go on with
 * the next step. After other failures the engine can only be closed. */
qn_status qn__engine_step(qn__engine *engine, int *more, qn__answer **failed, qn_error *err);

#endif

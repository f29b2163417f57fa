/* A thread that writes large answers, so that the devices and small requests do not wait for the
 * text of a large one. It is started with the first answer. */
#ifndef QN_SERVE_BATCH_ANSWER_WRITER_H
#define QN_SERVE_BATCH_ANSWER_WRITER_H

#include "serve/batch/batcher.h"

typedef struct qn__answer_writer qn__answer_writer;

qn_status qn__answer_writer_make(qn__answer_writer **out, qn_error *err);

/* Copies the answer, which has QN_OK, and calls `done` with the copy on the thread of the writer,
 * after those before it. Fails with QN_MEMORY (also without a thread): `done` is not called then.
 */
qn_status qn__answer_writer_add(qn__answer_writer *writer, const qn__batch_answer *answer,
                                qn__batch_done *done, void *user, qn_error *err);

/* Returns after the last answer. Accepts NULL. */
void qn__answer_writer_free(qn__answer_writer *writer);

#endif

/* The network of a model as a reader of sequences: it reads one position after the other, and keeps
 * the keys and values of attention (docs/exactness.md 25.70). */
#ifndef QN_PREDICT_GENERATE_READER_H
#define QN_PREDICT_GENERATE_READER_H

#include "model/formats/model.h"
#include "team/team.h"

typedef struct qn__reader qn__reader;

/* The most positions of a sequence: what the model was trained on. */
uint32_t qn__reader_context(const qn_model *model);

/* Refuses a model that is not a network for next tokens (QN_USAGE), or has a layer that needs later
 * positions (QN_UNSUPPORTED). */
qn_status qn__reader_check(const qn_model *model, qn_error *err);

/* For so many sequences of so many positions at most. `compute` has no cluster. `members` NULL:
 * they come from compute->devices. The model, which was checked, must outlive *out. Fails with
 * QN_USAGE (threads), QN_UNSUPPORTED (devices), QN_DEVICE, QN_MEMORY. */
qn_status qn__reader_open(const qn_model *model, const qn_compute *compute,
                          const qn__member *members, uint32_t count, uint32_t sequences,
                          uint32_t positions, qn__reader **out, qn_error *err);
void qn__reader_close(qn__reader *reader); /* accepts NULL */

/* The size of the vocabulary. */
uint32_t qn__reader_tokens(const qn__reader *reader);
/* The most rows of an extension. */
uint32_t qn__reader_rows(const qn__reader *reader);

/* As qn__team_extend. */
qn_status qn__reader_extend(qn__reader *reader, const qn__extension *extension, uint32_t *bad,
                            qn_error *err);

#endif

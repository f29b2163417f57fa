/* Predictions of data in parts: each rank predicts its own items, and writes its own file. */
#ifndef APP_PREDICT_PARTS_H
#define APP_PREDICT_PARTS_H

#include "predict.h"
#include <quern/predict.h>

/* Checks the options, makes the parts the data, and names the file of this rank in f->out. Returns
 * -1, or an exit code after a message. For predict_parts_release in any case. */
int predict_parts_take(predict_flags *f);
void predict_parts_release(predict_flags *f);

/* Collective: makes what each rank predicted those of the whole. `status` and `err` are those of
 * this rank's prediction. Where a rank has ended and another one has its rows now, *again is 1:
 * all predict again. Returns -1, or an exit code after a message. */
int predict_parts_join(qn_predictions *predictions, qn_parts *parts, int evaluated,
                       qn_status status, const qn_error *err, int *again);

/* Writes what is of the rows that `rank` had; `labels` is NULL where --output-labels is not given.
 */
typedef qn_status predict_parts_writer(void *user, uint32_t rank, const char *out,
                                       const char *labels, qn_error *err);

/* Collective: each rank writes its own, and that of ranks that have ended. Returns as above. */
int predict_parts_write(const predict_flags *flags, qn_parts *parts, predict_parts_writer *write,
                        void *user, int *again);

#endif

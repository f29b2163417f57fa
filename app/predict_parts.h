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
 * this rank's prediction. Returns -1, or an exit code after a message. */
int predict_parts_join(qn_predictions *predictions, const qn_parts *parts, int evaluated,
                       qn_status status, const qn_error *err);

/* Collective: each rank writes its own by `write`. Returns as above. */
int predict_parts_write(const predict_flags *flags, qn_status (*write)(void *user, qn_error *err),
                        void *user);

#endif

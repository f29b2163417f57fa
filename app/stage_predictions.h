/* Predictions of the validation and test sets after each stage of a training: --predictions DIR. */
#ifndef APP_STAGE_PREDICTIONS_H
#define APP_STAGE_PREDICTIONS_H

#include "sources.h"
#include <quern/train.h>

/* Makes the folder `path`, if that is not NULL. Returns -1, or an exit code after a message. */
int stage_predictions_open(const char *path, const sources *from);

/* Writes DIR/stage1-valid.csv and DIR/stage1-test.csv with the model of this moment, from a
 * callback. */
qn_status stage_predictions_write(const char *path, const qn_train *train, const sources *from,
                                  uint32_t stage, qn_error *err);

#endif

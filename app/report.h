/* The result of a run on stdout: accuracy, the confusion matrix, speed, the work of each device;
 * with `verbose` also the times. */
#ifndef APP_REPORT_H
#define APP_REPORT_H

#include <quern/train.h>

void report_print(const qn_train_report *report, int verbose);
/* The same as fields of a JSON event that has begun. */
void report_fields(const qn_train_report *report);

#endif

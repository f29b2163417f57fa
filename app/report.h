/* How a run went, on stdout: accuracy, the confusion matrix, speed, what each device did; with
 * `verbose` also where the time went. */
#ifndef APP_REPORT_H
#define APP_REPORT_H

#include <quern/train.h>

void report_print(const qn_train_report *report, int verbose);
/* The same as fields of a JSON event that was begun. */
void report_fields(const qn_train_report *report);

#endif

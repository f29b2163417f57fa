/* How a run went, on stdout: accuracy, the table of confusions, time against its bound, the workers
 * and their cores. */
#ifndef APP_REPORT_H
#define APP_REPORT_H

#include <quern/train.h>

void report_print(const qn_train_report *report);
/* The same as fields of a JSON event that was begun. */
void report_fields(const qn_train_report *report);

#endif

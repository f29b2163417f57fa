/* The result of a run on stdout: accuracy, the confusion matrix, speed, the work of each device;
 * with `verbose` also the times. */
#ifndef APP_REPORT_H
#define APP_REPORT_H

#include <quern/train.h>
#include <stdio.h>

void report_print(const qn_train_report *report, int verbose);
/* The same as fields of a JSON event that has begun. */
void report_fields(const qn_train_report *report);

/* The errors of real labels that are known, "MAE 1.5, RMSE 2, R2 0.9, "; and as fields. */
void report_errors(FILE *to, const qn_score *score);
void report_error_fields(const qn_score *score);

#endif

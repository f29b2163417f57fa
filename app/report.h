/* The result of a run on stdout: accuracy, the confusion matrix, speed, the work of each device;
 * with `verbose` also the times. */
#ifndef APP_REPORT_H
#define APP_REPORT_H

#include <quern/train.h>
#include <stdio.h>

void report_print(const qn_train_report *report, int verbose);
/* The same as fields of a JSON event that has begun. */
void report_fields(const qn_train_report *report);

/* What the devices and the ranks did; nothing of a single rank. */
void report_devices(const qn_worker_report *const *worker, uint32_t workers, uint32_t ranks,
                    int verbose);
void report_ranks(const qn_rank_report *const *rank, uint32_t ranks, int verbose);
/* The same as the fields `workers` and `ranks`. */
void report_device_fields(const qn_worker_report *const *worker, uint32_t workers);
void report_rank_fields(const qn_rank_report *const *rank, uint32_t ranks);
/* The line of the bound W/S of a time. */
void report_bound(double bound, double seconds);

/* The errors of real labels that are known, "MAE 1.5, RMSE 2, R2 0.9, "; and as fields. */
void report_errors(FILE *to, const qn_score *score);
void report_error_fields(const qn_score *score);

#endif

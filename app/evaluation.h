/* Evaluations: one line by default, tables on request, JSON fields for programs. */
#ifndef APP_EVALUATION_H
#define APP_EVALUATION_H

#include <quern/evaluate.h>
#include <stdio.h>

/* Classes of which a table fits a screen. */
enum { EVALUATION_CLASSES = 20 };

/* The part of the items whose class is right; NaN without items. */
double evaluation_accuracy(const qn_score *score);

/* "macro F1 0.9, AUC 0.95, log loss 0.2, calibration error 0.01": what is defined. Nothing for NULL
 * and for real labels. `loss` 0: without the log loss, where a loss was printed before. */
void evaluation_line(FILE *to, const qn_evaluation *e, int loss);

/* A line for each class and for the means over the classes. */
void evaluation_table(FILE *to, const qn_evaluation *e);

/* A line for each bin of confidences that has items. */
void evaluation_bins(FILE *to, const qn_evaluation *e);

/* A field with all numbers; NULL: null. */
void evaluation_field(const char *key, const qn_evaluation *e);

#endif

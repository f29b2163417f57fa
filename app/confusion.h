/* The confusion matrix of the test set: on stdout, and in the "end" event. */
#ifndef APP_CONFUSION_H
#define APP_CONFUSION_H

#include <quern/train.h>

/* A table, or with many classes a list of the most frequent mistakes. Nothing without a test set.
 */
void confusion_print(const qn_train_report *report);

/* The fields "class_names" and "confusion" of a JSON line. */
void confusion_fields(const qn_train_report *report);

#endif

/* What `quern data info` counts in a data set, also in the parts of several ranks. */
#ifndef APP_DATA_SUMMARY_H
#define APP_DATA_SUMMARY_H

#include "columns.h"
#include <quern/parts.h>

typedef struct range {
    double least, greatest;
} range;

/* Facts that have to be counted; the data set has the others. */
typedef struct data_summary {
    double least, greatest; /* of all values */
    uint64_t *counts;       /* items of each class; NULL without labels, or with too many classes */
    column *column;         /* of each feature; NULL for images of bytes */
    uint32_t classes, rows, columns;
    uint64_t ignored; /* of several targets, those that do not count */
    uint64_t padding; /* values that are not tokens, where others are */
    range targets, weights;
} data_summary;

/* Collective where `data` is in parts: each rank counts in its own, and all get those of the whole.
 * For data_summary_release in any case. Returns -1, or an exit code after a message. */
int data_summary_make(const qn_data *data, data_summary *s);
void data_summary_release(data_summary *s);

#endif

/* quern search --lr-range: the range of learning rates of one training. */
#ifndef APP_LR_RANGE_H
#define APP_LR_RANGE_H

#include "train_flags.h"

typedef struct lr_range_job {
    const train_flags *train;     /* the recipe, the data and the model to start from */
    const compute_flags *compute; /* what computes it */
    const char *range;            /* "1e-6,10", with ",100" steps or without; "auto" */
    const char *folder;           /* for the files; NULL: none */
    const char *command;          /* the line that trains, without a rate */
    int json;
} lr_range_job;

/* Whether the text is a range. Returns -1, or an exit code after a message. */
int lr_range_check(const char *range);

/* Among ranks collective. Returns an exit code; messages were printed. */
int lr_range_find(const lr_range_job *job);

#endif

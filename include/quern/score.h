/* How well predictions agree with the labels of a set. */
#ifndef QUERN_SCORE_H
#define QUERN_SCORE_H

#include <stdint.h>

/* Scores over a set of items. Numbers that were not computed are NaN. Without a set, `items` is 0
 * and all others are NaN; in a prediction `loss` is NaN. Of its training items a training computes
 * only the loss; what does not follow from it is NaN. The last three are of real labels and in
 * their units. */
typedef struct qn_score {
    uint64_t items;
    uint64_t correct; /* items whose class is their label; 0 for real labels */
    double loss;      /* mean over the items; of real labels in units of their deviation */
    double mae;       /* mean absolute error */
    double rmse;      /* root of the mean squared error */
    double r2;        /* 1 - squared errors / squared differences from the mean label */
} qn_score;

#endif

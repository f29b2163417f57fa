/* The runs of a search: each setting on each fold. Whole runs are shared among workers, so the
 * numbers do not depend on how many workers there are. */
#ifndef APP_SEARCH_RUNS_H
#define APP_SEARCH_RUNS_H

#include <quern/train.h>

typedef enum search_metric {
    SEARCH_ACCURACY,
    SEARCH_F1,
    SEARCH_AUC,
    SEARCH_LOG_LOSS,
    SEARCH_LOSS,
    SEARCH_RMSE,
    SEARCH_MAE,
    SEARCH_R2,
    SEARCH_METRICS
} search_metric;

typedef struct search_result {
    int done;       /* 1: the other members are set */
    uint64_t items; /* validation items; 0: the training left the range of float32 */
    double number[SEARCH_METRICS];
    char digest[65]; /* of the model */
    double seconds;
} search_result;

typedef struct search_runs {
    const qn_data *data;
    uint32_t settings, folds;
    uint64_t seed; /* of the folds */
    int stratify;
    const qn_train_options *options; /* of each setting */
    search_result *result;           /* settings x folds; those that are done are not run again */
    int threads;                     /* all together; 0: every core */
    const char *devices;             /* NULL: the CPU; a list: a worker for each */
    /* After each run, one at a time. Returns QN_OK, or why the search ends. */
    qn_status (*on_result)(void *user, uint32_t setting, uint32_t fold, qn_error *err);
    void *user;
} search_runs;

/* Runs what is not done. A training whose numbers leave the range of float32 is a result; any other
 * failure ends the search, with the number of the setting in *failed. */
qn_status search_run(const search_runs *runs, uint32_t *failed, qn_error *err);

#endif

/* The members of qn_search. */
#ifndef QN_SEARCH_SEARCH_STATE_H
#define QN_SEARCH_SEARCH_STATE_H

#include "search/search_file.h"
#include <stdatomic.h>

struct qn_search {
    qn_search_options options;
    qn_train_options *setting; /* of each: its recipe alone */
    char **network;            /* of each that names none: its text */
    const qn_data *data;
    qn_cluster *cluster; /* NULL: one process */
    char *key;           /* which search it is, a line */
    qn__search_table table;
    qn__search_file file;
    char *part_folder; /* of this part; NULL: all runs are this process's */
    atomic_int stopping;
};

static inline uint64_t qn__search_runs(const qn_search *s) {
    return (uint64_t)s->table.settings * s->table.folds;
}

/* The place among the results of run number `run`. Runs are numbered fold by fold, so that few
 * folds are in memory. */
static inline uint64_t qn__search_place(const qn_search *s, uint64_t run) {
    return run % s->table.settings * s->table.folds + run / s->table.settings;
}

/* Appends "(setting lr 0.1)" to the message, where there are several. Returns `status`. */
qn_status qn__search_name_error(const qn_search *s, uint32_t setting, qn_status status,
                                qn_error *err);

/* search_settings.c: checks all settings on the data, and makes `setting` and `key`. *first is the
 * recipe of the first as JSON, for qn__free. Fails as qn_search_open does. */
qn_status qn__search_settings(qn_search *s, char **first, qn_error *err);

#endif

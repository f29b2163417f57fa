/* Answers as rows of the table, and what is stored there already. */
#ifndef QN_SERVE_WATCH_RESULTS_H
#define QN_SERVE_WATCH_RESULTS_H

#include "serve/watch/watch_units.h"
#include <sys/stat.h>

typedef struct qn__watch_results qn__watch_results;

/* How the table is made. */
typedef struct qn__watch_table {
    const char *to;
    int all_outputs;
    int texts;       /* 1: texts that continue prompts, in the place of predictions */
    uint32_t values; /* of a layer, in the place of predictions; 0: these */
    int versions;    /* 1: files have versions, in a column after that of the files */
} qn__watch_table;

/* Opens the table. Fails as qn_watch_make. */
qn_status qn__watch_results_open(const qn_model *model, const qn__watch_table *table,
                                 qn__watch_results **out, qn_error *err);
void qn__watch_results_close(qn__watch_results *results); /* accepts NULL */

/* Stores the rows of all units of the list, or none. After a failure it can be repeated. */
qn_status qn__watch_results_put(qn__watch_results *results, const qn__watch_unit *units,
                                qn_error *err);

/* The greatest number of an item of this version of `file` that is stored; -1: none is. */
qn_status qn__watch_results_last(qn__watch_results *results, const char *file, const char *version,
                                 int64_t *last, qn_error *err);

/* *info is that of the table, where it is a file: 1. */
int qn__watch_results_file(const qn__watch_results *results, struct stat *info);

#endif

/* What a search has done, in a folder: search.csv. An interrupted search goes on from it. */
#ifndef APP_SEARCH_FILE_H
#define APP_SEARCH_FILE_H

#include "search_runs.h"

typedef struct search_file {
    int file; /* -1: none */
    char path[4200];
} search_file;

extern const char *const search_metric_names[SEARCH_METRICS];

/* Opens the file in `folder`, which is made if it is missing, and reads results into `runs`. `key`,
 * a line, must be that with which the file began. Returns -1, or an exit code after a message. */
int search_file_open(search_file *f, const char *folder, const char *key, search_runs *runs);

/* Appends a result with one write. */
qn_status search_file_add(const search_file *f, const search_runs *runs, uint32_t setting,
                          uint32_t fold, qn_error *err);
void search_file_close(search_file *f);

#endif

/* The results of a search: means over the folds, best setting first. */
#ifndef APP_SEARCH_TABLE_H
#define APP_SEARCH_TABLE_H

#include "search_grid.h"
#include "search_runs.h"

typedef struct search_table {
    const search_runs *runs;
    const grid *grid;
    search_metric by;
    int real;
    char *const *command; /* of each setting, to train it */
} search_table;

/* The metric of a name, or -1. */
int search_metric_named(const char *name);

/* Prints the table, or one JSON object. Returns the best setting. */
uint32_t search_table_print(const search_table *t, int json);

#endif

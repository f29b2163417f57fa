/* The results of a search: means over the folds, best setting first. */
#ifndef APP_SEARCH_TABLE_H
#define APP_SEARCH_TABLE_H

#include "search_grid.h"
#include <quern/search.h>

typedef struct search_table {
    const qn_search *search;
    const grid *grid;
    uint32_t folds;
    qn_search_metric by;
    int real;
    char *const *command; /* the command that trains each setting */
} search_table;

/* The metric of a name, or -1. */
int search_metric_named(const char *name);

/* Prints the table, or one JSON object, of settings in this order. */
void search_table_print(const search_table *t, const uint32_t *order, int json);

#endif

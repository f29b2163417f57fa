/* Prints the statistics of a data set. */
#ifndef APP_STATS_H
#define APP_STATS_H

#include <quern/statistics.h>

enum { STATS_QUANTILES = 100 };

/* What to print, and of which data. */
typedef struct stats_wanted {
    const qn_data *data;   /* of one process all items; of data in parts those of this rank */
    const qn_parts *parts; /* NULL: the data is not in parts */
    const char *path;      /* as the user wrote it */
    int by_class;
    double quantile[STATS_QUANTILES];
    uint32_t quantile_count;
} stats_wanted;

/* Items of the whole. */
uint64_t stats_items(const stats_wanted *wanted);

/* Tables for a person, 80 columns wide. */
void stats_print(const qn_statistics *found, const stats_wanted *wanted);
/* One JSON object with everything. */
void stats_print_json(const qn_statistics *found, const stats_wanted *wanted);

#endif

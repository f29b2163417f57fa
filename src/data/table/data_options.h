/* The options of a caller who opens data. */
#ifndef QN_DATA_TABLE_DATA_OPTIONS_H
#define QN_DATA_TABLE_DATA_OPTIONS_H

#include "base/error.h"
#include <quern/data.h>

/* qn_data_options.no_cache inside the library: the table is no entry of the cache, but a file of
 * its folder may have the values where memory does not. */
enum { QN__NO_ENTRY = 2 };

/* Defaults, overlaid with the options that the caller's version of the struct has. `given` may be
 * NULL, `function` is for messages. Fails with QN_USAGE when options contradict each other. */
qn_status qn__data_options_take(const char *function, const qn_data_options *given,
                                qn_data_options *options, qn_error *err);

#endif

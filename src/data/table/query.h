/* The text of a query (qn_data_options.query), checked before a database sees it. */
#ifndef QN_DATA_TABLE_QUERY_H
#define QN_DATA_TABLE_QUERY_H

#include "base/error.h"

/* One statement that begins with SELECT, WITH, VALUES or TABLE and has ORDER BY outside
 * parentheses: else the order of the items, and so the model, would be the database's choice. Fails
 * with QN_USAGE; `path` is for the message. */
qn_status qn__query_check(const char *query, const char *path, qn_error *err);

#endif

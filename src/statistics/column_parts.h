/* Columns of a table whose rows are with several ranks (quern/parts.h). */
#ifndef QN_STATISTICS_COLUMN_PARTS_H
#define QN_STATISTICS_COLUMN_PARTS_H

#include "data/parts/parts.h"
#include "statistics/column_job.h"

/* As qn__columns_describe, for job->data = parts->own. Collective: each rank adds up its own rows,
 * and the sums and counts of all ranks are added. Every rank gets the results of the whole. Fails
 * with QN_MEMORY, QN_UNSUPPORTED (too many quantiles or bins), or as qn__parts_add. */
qn_status qn__columns_describe_parts(const qn_parts *parts, const qn__column_job *job,
                                     qn_error *err);

#endif

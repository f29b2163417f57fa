/* qn_statistics_make for other parts of the library. */
#ifndef QN_STATISTICS_STATISTICS_H
#define QN_STATISTICS_STATISTICS_H

#include "base/error.h"
#include <quern/statistics.h>

/* qn_statistics_make with complete options, after checks of the caller's own: `status` is their
 * result, with `err` (not NULL) filled if it is not QN_OK. Among ranks all fail where one does. */
qn_status qn__statistics_make(const qn_data *data, const qn_statistics_options *options,
                              qn_status status, qn_statistics **out, qn_error *err);

#endif

/* Reports of runs, for qn_report_write and for the end of a training. */
#ifndef QN_REPORT_PAGE_REPORT_WRITE_H
#define QN_REPORT_PAGE_REPORT_WRITE_H

#include "base/files/folder_lock.h"
#include "report/record/past_run.h"
#include <quern/report.h>

/* Writes what `options` say about runs that are read already; options->run is not used. `set`
 * names options->data, such as "the test set". `owner` as for qn__markup_write. */
qn_status qn__report_of(const qn_report_options *options, const qn__past_run *run,
                        const char *const *name, const char *set, const qn__owner *owner,
                        qn_error *err);

#endif

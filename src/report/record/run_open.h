/* Opens a run as a user names it: a folder, or a run in a file of runs. */
#ifndef QN_REPORT_RECORD_RUN_OPEN_H
#define QN_REPORT_RECORD_RUN_OPEN_H

#include "report/record/past_run.h"

/* Reads the record in the folder `run`, or that of "FILE:RUN" (quern/runs.h). *name, which may be
 * NULL, becomes what a page calls it, for qn__free. Fails as qn__past_run_read and qn__store_get
 * do; the caller releases *out also then. */
qn_status qn__run_open(const char *run, qn__past_run *out, char **name, qn_error *err);

#endif

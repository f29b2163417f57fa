/* The file of a trace: of this process, or of all ranks on one time line. */
#ifndef QN_TEAM_TRACE_RANKS_H
#define QN_TEAM_TRACE_RANKS_H

#include "base/system/trace.h"
#include <quern/cluster.h>

/* Writes it, on the writer rank. `together`: collective, with the events of all ranks; 0: those of
 * this one. Returns the failure of this rank to write it, with *failure filled: a run continues
 * without its trace. QN_OK on ranks that do not write, and where all ranks have failed. */
qn_status qn__trace_save(const qn__trace *trace, const char *path, qn_cluster *cluster,
                         int together, qn_error *failure);

#endif

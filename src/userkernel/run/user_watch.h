/* Reports of a run of a user kernel: its progress, its workers, its trace. */
#ifndef QN_USERKERNEL_RUN_USER_WATCH_H
#define QN_USERKERNEL_RUN_USER_WATCH_H

#include "userkernel/run/user_kernel.h"

/* Before the first item. `team` is that of the run. Fails with QN_MEMORY. */
qn_status qn__user_watch_begin(qn_kernel *kernel, const qn_kernel_options *options, qn__team *team,
                               qn_error *err);

/* Passes a note to on_note, if it is set. */
void qn__user_tell(const qn_kernel *kernel, const char *text);

/* Counts what each worker has computed up to `iteration`, because from then on those of the bit set
 * `used` take part, and grains have another size. For a run without ranks. */
void qn__user_watch_change(qn_kernel *kernel, qn__team *team, uint64_t iteration, uint64_t used);

/* After the last item of a run that succeeded: fills the report. Collective among ranks. */
qn_status qn__user_watch_report(qn_kernel *kernel, qn__team *team, qn_error *err);

/* Writes the trace; `together`: collective, with those of all ranks. */
void qn__user_watch_end(qn_kernel *kernel, int together);

#endif

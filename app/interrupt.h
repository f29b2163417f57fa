/* Ctrl-C, SIGTERM and a closed terminal: the first asks the run to stop at the end of its step, the
 * second ends the program at once. Before and after a run the first one ends it too. SIGUSR1 and
 * SIGUSR2, of which launchers and batch systems pass on the one or the other before a time limit,
 * ask likewise, and may come often. */
#ifndef APP_INTERRUPT_H
#define APP_INTERRUPT_H

#include <quern/train.h>

/* From now on an interruption stops `train`; NULL: it ends the program. `speak`: 1 to say on
 * stderr that the request was heard. */
void interrupt_watch(qn_train *train, int speak);

#endif

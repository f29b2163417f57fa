/* Ctrl-C, SIGTERM and a closed terminal: the first asks the run to stop at the end of its step, the
 * second ends the program at once. Before and after a run, and in commands without one, the first
 * one ends it too: with exit code 130, and without temporary files. SIGUSR1 and SIGUSR2, of which
 * launchers and batch systems pass on the one or the other before a time limit, ask likewise, and
 * may come often. */
#ifndef APP_INTERRUPT_H
#define APP_INTERRUPT_H

#include <quern/train.h>

/* To be called first: from now on an interruption ends the program in good order. */
void interrupt_start(void);

/* From now on an interruption stops `train`; NULL: it ends the program. `print`: 1 to say on
 * stderr that the request was heard. */
void interrupt_watch(qn_train *train, int print);

/* What an interruption that ends the program removes, beside the library's temporary files: a file
 * and, after it, a folder. NULL: none. The texts stay the caller's, and valid. */
void interrupt_removes(const char *file, const char *folder);

/* Between these two calls an interruption waits: for a few system calls that belong together. Such
 * pairs may stand within others. */
void interrupt_hold(void);
void interrupt_release(void);

#endif

/* Ctrl-C, SIGTERM and a closed terminal. During a run the first one requests a stop at the end of
 * the step, the second ends the program at once. Otherwise the first one ends it: with exit code
 * 130, and without temporary files. SIGUSR1 and SIGUSR2, which launchers and batch systems send
 * before a time limit, and SIGXCPU, which reports a limit of processor time, only request a stop,
 * and may come often. */
#ifndef APP_INTERRUPT_H
#define APP_INTERRUPT_H

#include <stdatomic.h>

#include <quern/kernel.h>
#include <quern/serve.h>
#include <quern/train.h>
#include <quern/watch.h>

/* Called first: from now on an interruption ends the program cleanly. */
void interrupt_start(void);

/* From now on an interruption stops `train`; NULL: it ends the program. `text` confirms the request
 * on stderr, NULL: nothing does. It stays the caller's, and valid. */
void interrupt_watch(qn_train *train, const char *text);

/* The same for a kernel that runs among ranks, which stop together. */
void interrupt_watch_kernel(qn_kernel *kernel, const char *text);

/* The program is a server, which has not begun yet: SIGHUP does not end it, and an interruption
 * ends it at once with exit code 0, as the end of a server that runs. */
void interrupt_serves(void);
/* The same for a server, which ends after the requests in progress; the second interruption ends it
 * at once. At SIGHUP it looks at the files of its models, also where SIGHUP came before this call.
 */
void interrupt_watch_server(qn_server *server, const char *text);
/* How often SIGHUP came to a server. */
int interrupt_hangups(void);

/* The same for a watch, which ends when what it reads is answered. */
void interrupt_watch_folder(qn_watch *watch, const char *text);

/* The same for a launcher of ranks: *stops is increased, and its own words confirm the request. */
void interrupt_watch_launch(atomic_int *stops);

/* The results are written and reported, and the output is flushed: from now on an interruption ends
 * the program with `code`, because 130 would ask the user to repeat what is done. Returns `code`.
 */
int interrupt_conclude(int code);

/* What an interruption removes when it ends the program, besides the library's temporary files: a
 * file and then a folder. NULL: none. The texts stay the caller's, and valid. */
void interrupt_removes(const char *file, const char *folder);

/* Between these two calls interruptions are deferred, for a few system calls that belong together.
 * The pairs may be nested. */
void interrupt_hold(void);
void interrupt_release(void);

#endif

/* Running another program to its end. */
#ifndef QN_BASE_SYSTEM_PROCESS_H
#define QN_BASE_SYSTEM_PROCESS_H

#include "base/error.h"
#include <stddef.h>

/* Where the standard error goes. */
typedef enum qn__process_errors {
    QN__PROCESS_ERRORS_JOIN, /* to `said`, with the standard output */
    QN__PROCESS_ERRORS_PASS  /* to that of this process */
} qn__process_errors;

/* Starts the program at the path argv[0] with the arguments `argv`, which end with NULL, and waits
 * for it. Its standard input is `text`. What it prints to the standard output, and as `errors` says
 * to the standard error, goes to `said`, cut to `capacity` bytes with the NUL. *code is its exit
 * code, or 128 and the signal that ended it. Signals are handled as in a new shell. `temporary` is
 * its TMPDIR; NULL: that of this process. It leads a process group of its own, which a sudden end
 * of this process kills (base/files/unfinished.h). After `seconds` the group is killed. Fails with
 * QN_BUSY (that happened), QN_IO (it cannot be started) or QN_MEMORY. */
qn_status qn__process_run(const char *const *argv, const char *text, const char *temporary,
                          qn__process_errors errors, double seconds, char *said, size_t capacity,
                          int *code, qn_error *err);

#endif

/* A lock file in a folder that one process at a time may use. The lock is the open file's, so it
 * goes with the process however that ends, and what a killed process left is no obstacle. The file
 * stays: who removed it could take away a lock that another one has taken meanwhile. */
#ifndef QN_RUN_FOLDER_LOCK_H
#define QN_RUN_FOLDER_LOCK_H

#include <quern/status.h>

/* Locks the file `name` in the folder and writes the number of
 * this process into it. *lock is closed by the caller to give the folder back; -1 after a failure.
 * QN_BUSY names the process that holds it; `what` is the folder for that message ("the checkpoint
 * folder"), `option` how it was named. QN_IO: the file cannot be had, is not a regular file, or
 * holds what no lock file does: it is then another one's, and left alone. */
qn_status qn__folder_lock(const char *dir, const char *name, const char *what, const char *option,
                          int *lock, qn_error *err);

#endif

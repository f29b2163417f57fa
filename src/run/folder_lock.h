/* A lock file in a folder that one process at a time may use. The lock belongs to the open file, so
 * it ends with the process; a file left by a killed process is no obstacle. The file is never
 * removed: that could remove a lock that another process has taken meanwhile. */
#ifndef QN_RUN_FOLDER_LOCK_H
#define QN_RUN_FOLDER_LOCK_H

#include <quern/status.h>

/* Locks the file `name` in the folder and writes the number of this process into it. The caller
 * closes *lock to unlock; -1 after a failure. QN_BUSY names the process that holds it; `what` is
 * the folder for that message ("the checkpoint folder"), `option` its option. QN_IO: the file
 * cannot be opened, is not a regular file, or has other content: it then belongs to someone else
 * and is left unchanged. */
qn_status qn__folder_lock(const char *dir, const char *name, const char *what, const char *option,
                          int *lock, qn_error *err);

#endif

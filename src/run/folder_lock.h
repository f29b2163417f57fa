/* A lock file, in a folder that one process at a time may use, or beside such a file. The lock
 * belongs to the open file, so it ends with the process; a file left by a killed process is no
 * obstacle. The file in a folder is never removed: that could remove a lock that another process
 * has taken meanwhile. */
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

/* The lock of a file alone: the file `path`.lock beside it. It is removed when it is unlocked or
 * this process is ended. Fails with QN_BUSY, QN_IO or QN_MEMORY as above. */
typedef struct qn__file_lock {
    int file; /* -1: it is not locked */
    int entry;
    char *path;
} qn__file_lock;
qn_status qn__file_lock_take(const char *path, const char *what, const char *option,
                             qn__file_lock *lock, qn_error *err);
void qn__file_lock_release(qn__file_lock *lock);

#endif

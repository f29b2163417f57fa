/* A lock file, in a folder that one process at a time may use, or beside such a file. The lock
 * (flock) belongs to the open file, so it ends with the process; a file left by a killed process is
 * no obstacle. The file in a folder is never removed: that could remove a lock that another process
 * has taken meanwhile.
 *
 * A process that is stopped, or whose host is cut off, still holds its flock. The ranks of a run
 * are one owner of the lock: the rank that becomes the writer takes the lock of a rank that its run
 * has excluded. It puts a new file in the place of the old one. The file holds the process, a
 * number that grows with every process that takes the lock, and the owner. A process that continues
 * afterwards finds another file or another number there: it has lost the lock, and must not write.
 *
 * At an address the lock is a lease (remote_write.h). */
#ifndef QN_BASE_FILES_FOLDER_LOCK_H
#define QN_BASE_FILES_FOLDER_LOCK_H

#include "base/files/remote_write.h"
#include <quern/status.h>
#include <stdint.h>

/* The owner of a lock: a run of several ranks. `may` says whether this rank is the one that writes;
 * it may wait for the other ranks. */
typedef struct qn__owner {
    uint64_t id; /* the same on all ranks; not 0 */
    int (*may)(void *user);
    void *user;
} qn__owner;

typedef struct qn__lock {
    int file; /* -1: it is not locked */
    char *path;
    uint64_t number;
    qn__owner owner; /* id 0: this process alone */
    int inherited;   /* a rank of the same owner had it before */
    int is_removed;  /* 1: the file is removed when it is unlocked, or when this process is ended */
    int entry;       /* base/files/unfinished.h */
    qn__lease *lease; /* of a folder or a file at an address; NULL: `file` is locked */
} qn__lock;

/* Locks the file `name` in the folder. `owner` may be NULL. QN_BUSY names the process that holds
 * it; `what` is the folder for that message ("the checkpoint folder"), `option` its option. QN_IO:
 * the file cannot be opened, is not a regular file, or has other content: it then belongs to
 * someone else and is left unchanged. QN_MEMORY. */
qn_status qn__folder_lock(const char *dir, const char *name, const char *what, const char *option,
                          const qn__owner *owner, qn__lock *lock, qn_error *err);

/* The lock of a file alone: the file `path`.lock beside it. It is removed when it is unlocked or
 * this process is ended. Fails as above. */
qn_status qn__file_lock(const char *path, const char *what, const char *option,
                        const qn__owner *owner, qn__lock *lock, qn_error *err);

/* For qn__writer_ask, with a qn__lock: 1 if this process may change what the lock protects. Its
 * owner still lets this rank write, and no other process has taken the lock. */
int qn__lock_may(void *lock);

/* The second condition alone, without asking the other ranks: no process has taken the lock. */
int qn__lock_held(qn__lock *lock);

/* Fails with QN_BUSY where qn__lock_may is 0; `path` is what was to be changed. */
qn_status qn__lock_check(qn__lock *lock, const char *path, qn_error *err);

/* Unlocks it. Has no effect on a lock that is not taken. */
void qn__lock_release(qn__lock *lock);

/* QN_IO if `path` names a FIFO, a device or a socket, which may block on open or not store bytes.
 * QN_OK for anything else, also if nothing is there. */
qn_status qn__check_place(const char *path, qn_error *err);

#endif

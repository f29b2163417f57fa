#include "run/folder_lock.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/unfinished.h"
#include "run/checkpoint_file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* O_NONBLOCK: open never blocks, whatever file is there. */
enum { FLAGS = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY };

/* The content of the file: digits and a line end, possibly truncated by a full disk. Returns 0 for
 * other content. */
static int read_holder(int lock, char holder[32]) {
    const ssize_t size = pread(lock, holder, 31, 0);
    holder[size > 0 ? size : 0] = '\0';
    const size_t digits = strspn(holder, "0123456789");
    const int is_lock = size >= 0 && (size_t)size - digits <= 1 &&
                        (holder[digits] == '\0' || strcmp(holder + digits, "\n") == 0);
    holder[digits] = '\0';
    return is_lock;
}

static qn_status busy(int lock, const char *dir, const char *what, const char *option,
                      qn_error *err) {
    char holder[32];
    (void)read_holder(lock, holder);
    qn__fail(err, QN_BUSY, "%s is in use%s%s", what, *holder ? " by process " : "", holder);
    qn__at(err, "%s", dir);
    return qn__remedy(err, QN_BUSY, "wait for that run to end, or use another place (%s)", option);
}

/* The number of the holder is for messages only; a full disk does not stop the run here. */
static qn_status take(int lock, const char *path, const char *option, qn_error *err) {
    char text[32];
    if (!read_holder(lock, text)) {
        qn__fail(err, QN_IO, "cannot use %s: it is not a lock file of Quern", path);
        qn__at(err, "%s", path);
        return qn__remedy(err, QN_IO, "move it away, or use another place (%s)", option);
    }
    const int size = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    const int named = ftruncate(lock, 0) == 0 && pwrite(lock, text, (size_t)size, 0) == size;
    (void)named;
    return QN_OK;
}

static qn_status lock_file(const char *path, const char *dir, const char *what, const char *option,
                           int *lock, qn_error *err) {
    qn_status status = qn__checkpoint_place(path, err);
    if (status != QN_OK)
        return status;
    *lock = open(path, FLAGS, 0666);
    if (*lock < 0)
        return qn__fail_errno(err, "open", path);
    if (flock(*lock, LOCK_EX | LOCK_NB) == 0)
        return take(*lock, path, option, err);
    return errno == EWOULDBLOCK ? busy(*lock, dir, what, option, err)
                                : qn__fail_errno(err, "lock", path);
}

qn_status qn__folder_lock(const char *dir, const char *name, const char *what, const char *option,
                          int *lock, qn_error *err) {
    const size_t size = strlen(dir) + strlen(name) + 2;
    *lock = -1;
    char *path = qn__alloc(size, 1, err);
    if (!path)
        return QN_MEMORY;
    snprintf(path, size, "%s/%s", dir, name);
    const qn_status status = lock_file(path, dir, what, option, lock, err);
    qn__free(path);
    if (status != QN_OK && *lock >= 0) {
        close(*lock);
        *lock = -1;
    }
    return status;
}

/* ------------------------------------------------------------------ a file alone */

/* Whether the file of that name is the one that was locked: its holder may have removed it between
 * open and flock. */
static int is_there(int lock, const char *path) {
    struct stat own, there;
    return fstat(lock, &own) == 0 && stat(path, &there) == 0 && own.st_ino == there.st_ino &&
           own.st_dev == there.st_dev;
}

qn_status qn__file_lock_take(const char *path, const char *what, const char *option,
                             qn__file_lock *lock, qn_error *err) {
    const size_t size = strlen(path) + sizeof ".lock";
    qn_status status = QN_BUSY;
    *lock = (qn__file_lock){.file = -1, .entry = -1, .path = qn__alloc(size, 1, err)};
    if (!lock->path)
        return QN_MEMORY;
    snprintf(lock->path, size, "%s.lock", path);
    for (int tries = 0; tries < 100; tries++) {
        status = lock_file(lock->path, path, what, option, &lock->file, err);
        if (status != QN_OK || is_there(lock->file, lock->path))
            break;
        close(lock->file);
        lock->file = -1;
        status = QN_BUSY;
    }
    if (status == QN_OK) {
        lock->entry = qn__unfinished_add(AT_FDCWD, lock->path);
        return QN_OK;
    }
    if (lock->file >= 0)
        close(lock->file);
    qn__free(lock->path);
    *lock = (qn__file_lock){.file = -1, .entry = -1};
    return status;
}

void qn__file_lock_release(qn__file_lock *lock) {
    if (lock->file < 0)
        return;
    unlink(lock->path);
    qn__unfinished_remove(lock->entry);
    close(lock->file);
    qn__free(lock->path);
    *lock = (qn__file_lock){.file = -1, .entry = -1};
}

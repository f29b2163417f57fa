#include "base/files/folder_lock.h"

#include "base/error.h"
#include "base/files/folder_make.h"
#include "base/files/leftovers.h"
#include "base/files/remote.h"
#include "base/files/unfinished.h"
#include "base/memory.h"
#include "base/text/text.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* O_NONBLOCK: open never blocks, whatever file is there. */
enum { FLAGS = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, TRIES = 100, CONTENT = 80 };

/* ------------------------------------------------------------------ the content */

/* What the file says. Files of earlier versions have the process only: the others are 0 then. */
typedef struct content {
    char process[24]; /* digits; empty: nobody has written it */
    uint64_t number, owner;
} content;

/* A word of digits at *at, and the byte after it. */
static size_t word_of(const char *at, const char *digits, char *to, size_t capacity) {
    const size_t size = strspn(at, digits);
    snprintf(to, capacity, "%.*s", size < capacity ? (int)size : 0, at);
    return size;
}

/* "PROCESS NUMBER OWNER\n", the owner in hexadecimal digits, possibly truncated by a full disk.
 * Returns 0 for other content. */
static int read_content(int file, content *out) {
    char text[CONTENT], number[24], owner[20];
    const ssize_t size = pread(file, text, sizeof text - 1, 0);
    *out = (content){.number = 0};
    if (size < 0)
        return 0;
    text[size] = '\0';
    const char *at = text;
    at += word_of(at, "0123456789", out->process, sizeof out->process);
    at += *at == ' ';
    const size_t digits = word_of(at, "0123456789", number, sizeof number);
    at += digits;
    at += *at == ' ';
    at += word_of(at, "0123456789abcdef", owner, sizeof owner);
    if (digits > 0 && !qn__parse_u64(number, strlen(number), &out->number))
        return 0;
    out->owner = strtoull(owner, NULL, 16);
    return at + (*at == '\n') == text + size;
}

/* A full disk does not stop the run here: without the content another rank cannot take the lock,
 * and a message names no process. */
static void write_content(const qn__lock *lock) {
    char text[CONTENT];
    const int size = snprintf(text, sizeof text, "%ld %" PRIu64 " %" PRIx64 "\n", (long)getpid(),
                              lock->number, lock->owner.id);
    const int written =
        pwrite(lock->file, text, (size_t)size, 0) == size && ftruncate(lock->file, size) == 0;
    (void)written;
}

/* ------------------------------------------------------------------ taking it */

static qn_status busy(const content *holder, const char *place, const char *what,
                      const char *option, qn_error *err) {
    const char *process = holder->process;
    qn__fail(err, QN_BUSY, "%s is in use%s%s", what, *process ? " by process " : "", process);
    qn__at(err, "%s", place);
    return qn__remedy(err, QN_BUSY, "wait for that run to end, or use another place (%s)", option);
}

static qn_status refuse_content(const char *path, const char *option, qn_error *err) {
    qn__fail(err, QN_IO, "cannot use %s: it is not a lock file of Quern", path);
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_IO, "move it away, or use another place (%s)", option);
}

/* Whether the file of that name is this one: another process may have put its own there, or may
 * have removed it between open and flock. */
static int is_there(int file, const char *path) {
    struct stat own, there;
    return fstat(file, &own) == 0 && stat(path, &there) == 0 && own.st_ino == there.st_ino &&
           own.st_dev == there.st_dev;
}

static int is_owned(const qn__lock *lock, const content *holder) {
    return lock->owner.id != 0 && holder->owner == lock->owner.id;
}

/* A file beside the lock file, locked, with the content of this process. Returns 0 with errno. */
static int make_other(qn__lock *lock, char *path) {
    int claim = -1;
    lock->file = open(path, FLAGS | O_CREAT | O_EXCL, 0666);
    if (lock->file >= 0)
        claim = qn__temporary_claim(AT_FDCWD, path, lock->file);
    if (claim < 0)
        return 0;
    /* The same lock: it belongs to the open file, not to its descriptor. */
    close(claim);
    if (flock(lock->file, LOCK_EX | LOCK_NB) != 0)
        return 0;
    write_content(lock);
    return 1;
}

static void remove_other(qn__lock *lock, const char *path) {
    unlink(path);
    if (lock->file >= 0)
        close(lock->file);
    lock->file = -1;
}

/* A name for that file; the caller releases it. */
static char *other_path(const char *path, qn_error *err) {
    const char *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash - path) + 1 : 0;
    const size_t capacity = (size_t)folder + QN__TEMPORARY_NAME;
    char name[QN__TEMPORARY_NAME], *other = qn__alloc(capacity, 1, err);
    qn__temporary_name(name);
    if (other)
        snprintf(other, capacity, "%.*s%s", folder, path, name);
    return other;
}

/* Takes the lock of a rank that this run has excluded, which may be stopped. `held` is the file
 * that it holds: if another process has locked it meanwhile, it says so. *done is 1 if the lock is
 * taken. */
static qn_status seize(qn__lock *lock, int held, const content *holder, int *done, qn_error *err) {
    content now;
    if (!lock->owner.may(lock->owner.user))
        return QN_OK;
    char *other = other_path(lock->path, err);
    if (!other)
        return QN_MEMORY;
    lock->number = holder->number + 1;
    qn_status status = QN_OK;
    const int entry = qn__unfinished_add(AT_FDCWD, other);
    if (!make_other(lock, other) || fsync(lock->file) != 0)
        status = qn__fail_errno(err, "create a file beside", lock->path);
    else if (is_there(held, lock->path) && read_content(held, &now) &&
             now.number == holder->number && is_owned(lock, &now)) {
        *done = rename(other, lock->path) == 0;
        status = *done ? QN_OK : qn__fail_errno(err, "put a new file in place of", lock->path);
    }
    if (!*done)
        remove_other(lock, other);
    qn__unfinished_remove(entry);
    qn__free(other);
    lock->inherited = *done;
    return status;
}

/* How one attempt ended. */
typedef enum attempt { TAKEN, HELD, AGAIN, LOST, FAILED } attempt;

/* The rank may have been excluded before it began, or since the last attempt. */
static int may_try(const qn__lock *lock) {
    return !lock->owner.may || lock->owner.may(lock->owner.user);
}

static attempt take_file(qn__lock *lock, int file, const char *option, qn_error *err) {
    content before;
    if (!is_there(file, lock->path)) {
        close(file);
        return AGAIN;
    }
    if (!read_content(file, &before)) {
        close(file);
        refuse_content(lock->path, option, err);
        return FAILED;
    }
    if (is_owned(lock, &before) && !may_try(lock)) { /* the rank that had it may have ended */
        close(file);
        return LOST;
    }
    lock->file = file;
    lock->inherited = is_owned(lock, &before);
    lock->number = before.number + 1;
    write_content(lock);
    return TAKEN;
}

static attempt take_other(qn__lock *lock, int held, content *holder, qn_error *err) {
    int done = 0;
    const int is_known = read_content(held, holder);
    const qn_status status =
        is_known && is_owned(lock, holder) ? seize(lock, held, holder, &done, err) : QN_OK;
    close(held);
    return status != QN_OK ? FAILED : done ? TAKEN : HELD;
}

/* Gives the file its name, unless another process was sooner. Some file systems have no links. */
static attempt name_first(const qn__lock *lock, const char *other, qn_error *err) {
    if (link(other, lock->path) == 0)
        return TAKEN;
    if (errno == EEXIST)
        return AGAIN;
    if (access(lock->path, F_OK) != 0 && rename(other, lock->path) == 0)
        return TAKEN;
    qn__fail_errno(err, "create", lock->path);
    return FAILED;
}

/* Makes the lock file with its content. A process that is stopped meanwhile holds nothing: the file
 * never has its name without the owner by which the other ranks take it. */
static attempt take_first(qn__lock *lock, qn_error *err) {
    char *other = other_path(lock->path, err);
    if (!other)
        return FAILED;
    attempt how = FAILED;
    lock->number = 1;
    const int entry = qn__unfinished_add(AT_FDCWD, other);
    if (make_other(lock, other))
        how = name_first(lock, other, err);
    else if (errno == EEXIST) /* another process has taken it for a leftover */
        how = AGAIN;
    else
        qn__fail_errno(err, "open", lock->path);
    if (how == TAKEN)
        unlink(other);
    if (how == TAKEN && !is_there(lock->file, lock->path))
        how = AGAIN;
    if (how != TAKEN)
        remove_other(lock, other);
    qn__unfinished_remove(entry);
    qn__free(other);
    return how;
}

static attempt try_once(qn__lock *lock, const char *option, content *holder, qn_error *err) {
    const int file = open(lock->path, FLAGS);
    if (file < 0 && errno == ENOENT)
        return take_first(lock, err);
    if (file < 0) {
        qn__fail_errno(err, "open", lock->path);
        return FAILED;
    }
    if (flock(file, LOCK_EX | LOCK_NB) == 0)
        return take_file(lock, file, option, err);
    if (errno == EWOULDBLOCK)
        return take_other(lock, file, holder, err);
    qn__fail_errno(err, "lock", lock->path);
    close(file);
    return FAILED;
}

static qn_status take(qn__lock *lock, const char *place, const char *what, const char *option,
                      qn_error *err) {
    content holder = {.number = 0};
    attempt how = AGAIN;
    qn_error unheard = {0};
    err = err ? err : &unheard;
    const qn_status status = qn__check_place(lock->path, err);
    for (int tries = 0; tries < TRIES && how == AGAIN && status == QN_OK; tries++)
        how = may_try(lock) ? try_once(lock, option, &holder, err) : LOST;
    if (status != QN_OK)
        return status;
    if (how == FAILED)
        return err->status;
    if (how == LOST)
        return qn__fail(err, QN_BUSY, "%s now belongs to another process", place);
    return how == TAKEN ? QN_OK : busy(&holder, place, what, option, err);
}

/* ------------------------------------------------------------------ at an address */

static qn_status take_lease(qn__lock *lock, const char *place, const char *what, const char *option,
                            qn_error *err) {
    qn__lease_holder holder = {.inherited = 0};
    const qn_status status = qn__lease_take(lock->path, lock->owner.id, lock->owner.may,
                                            lock->owner.user, &holder, &lock->lease, err);
    lock->inherited = holder.inherited;
    if (status != QN_BUSY)
        return status;
    if (!*holder.process)
        return qn__fail(err, QN_BUSY, "%s now belongs to another process", place);
    qn__fail(err, QN_BUSY, "%s is in use by process %s on %s", what, holder.process, holder.host);
    qn__at(err, "%s", place);
    return qn__remedy(err, QN_BUSY, "wait for that run to end, or use another place (%s)", option);
}

static qn_status take_any(qn__lock *lock, const char *place, const char *what, const char *option,
                          qn_error *err) {
    return qn__remote_is(place) ? take_lease(lock, place, what, option, err)
                                : take(lock, place, what, option, err);
}

/* ------------------------------------------------------------------ the calls */

static qn__lock begin(const qn__owner *owner) {
    qn__lock lock = {.file = -1, .entry = -1};
    if (owner)
        lock.owner = *owner;
    return lock;
}

static void forget(qn__lock *lock) {
    if (lock->file >= 0)
        close(lock->file);
    qn__free(lock->path);
    *lock = (qn__lock){.file = -1, .entry = -1};
}

qn_status qn__folder_lock(const char *dir, const char *name, const char *what, const char *option,
                          const qn__owner *owner, qn__lock *lock, qn_error *err) {
    *lock = begin(owner);
    qn_status status = qn__folder_path(dir, name, &lock->path, err);
    if (status == QN_OK)
        status = take_any(lock, dir, what, option, err);
    if (status != QN_OK)
        forget(lock);
    return status;
}

qn_status qn__file_lock(const char *path, const char *what, const char *option,
                        const qn__owner *owner, qn__lock *lock, qn_error *err) {
    qn__text name = {0};
    *lock = begin(owner);
    qn__text_add(&name, "%s.lock", path);
    lock->path = qn__text_take(&name, err);
    qn_status status = lock->path ? QN_OK : QN_MEMORY;
    if (status == QN_OK)
        status = take_any(lock, path, what, option, err);
    if (status != QN_OK) {
        forget(lock);
        return status;
    }
    lock->is_removed = !lock->lease;
    if (lock->is_removed)
        lock->entry = qn__unfinished_add(AT_FDCWD, lock->path);
    return QN_OK;
}

/* A number as well: flock may not reach other hosts, and one of them then has the same file. A file
 * in a folder that is not there any more was removed by hand, and nobody has taken the lock. */
int qn__lock_held(qn__lock *lock) {
    content now;
    struct stat there;
    if (lock->lease)
        return qn__lease_held(lock->lease);
    if (lock->file < 0)
        return 0;
    if (!lock->is_removed && stat(lock->path, &there) != 0 && errno == ENOENT)
        return 1;
    const int is_own = is_there(lock->file, lock->path) && read_content(lock->file, &now) &&
                       (now.number == lock->number || !*now.process);
    if (!is_own) { /* the file there belongs to another process */
        qn__unfinished_remove(lock->entry);
        lock->entry = -1;
    }
    return is_own;
}

int qn__lock_may(void *lock) {
    qn__lock *own = lock;
    return (!own->owner.may || own->owner.may(own->owner.user)) && qn__lock_held(own);
}

qn_status qn__lock_check(qn__lock *lock, const char *path, qn_error *err) {
    return qn__lock_may(lock) ? QN_OK
                              : qn__fail(err, QN_BUSY, "%s now belongs to another process", path);
}

void qn__lock_release(qn__lock *lock) {
    qn__lease_release(lock->lease);
    if (lock->lease)
        forget(lock);
    if (lock->file < 0)
        return;
    if (lock->is_removed && qn__lock_held(lock))
        unlink(lock->path);
    qn__unfinished_remove(lock->entry);
    forget(lock);
}

qn_status qn__check_place(const char *path, qn_error *err) {
    struct stat there;
    if (stat(path, &there) != 0 || S_ISREG(there.st_mode) || S_ISDIR(there.st_mode))
        return QN_OK; /* open reports the error of the folder */
    qn__fail(err, QN_IO, "cannot use %s: it is a %s, not a file", path,
             S_ISFIFO(there.st_mode)   ? "FIFO"
             : S_ISSOCK(there.st_mode) ? "socket"
                                       : "device");
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_IO, "remove it, or use another folder (`train.checkpoint_dir`)");
}

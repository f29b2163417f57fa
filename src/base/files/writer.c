/* The second part of file.h: writing files atomically. */
#include "base/files/file.h"
#include "base/files/leftovers.h"
#include "base/files/mapped_file.h"
#include "base/files/remote.h"
#include "base/files/remote_write.h"
#include "base/files/unfinished.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 1 << 16, WRITE_MOST = 1 << 30, TRIES = 100 };

struct qn__writer {
    char *path;   /* as the caller gave it, for messages */
    char *target; /* the same without symbolic links; NULL when bytes are written directly to `path`
                   */
    int is_private; /* readable by its owner only */
    int file;       /* the file being written, -1 when closed */
    int folder;     /* the folder of `target`, -1 when bytes are written directly to `path` */
    int lock;       /* holds the lock on the temporary file, -1: there is none */
    char name[QN__TEMPORARY_NAME]; /* of that file in the folder; empty when there is none */
    int unfinished;                /* its entry in the table of unfinished files, or -1 */
    qn__remote_writer *remote;     /* at an address; NULL: it is a file */
    qn_error error;                /* the first failure; nothing more is written after it */
    int (*may)(void *user);
    void *user;
    qn__writer *next; /* of its batch */
    size_t used;      /* bytes in the buffer */
    uint8_t buffer[BUFFER];
};

/* The descriptor that a name such as /dev/stdout or /dev/fd/5 refers to, or -1. Opening such a name
 * again would start at the file's first byte, and renaming would replace the shell's file. */
static int named_descriptor(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < 2; i++) {
        const size_t length = strlen(folders[i]);
        if (strncmp(path, folders[i], length) != 0)
            continue;
        char *end;
        const long number = strtol(path + length, &end, 10);
        if (end != path + length && *end == 0 && number >= 0 && number < INT_MAX)
            return (int)number;
    }
    return -1;
}

/* Devices, pipes and descriptors cannot have a temporary file in their folder: bytes are written
 * directly. */
static qn_status open_directly(qn__writer *writer, int descriptor, qn_error *err) {
    writer->file = descriptor >= 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
                                   : open(writer->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return writer->file >= 0 ? QN_OK : qn__fail_errno(err, "write to", writer->path);
}

/* The final path: the target of a symbolic link, so that the link is kept. Release the block with
 * free. */
static char *resolve(const char *path, int exists, qn_error *err) {
    struct stat link;
    if (!exists && lstat(path, &link) == 0) {
        qn__fail(err, QN_IO, "cannot write %s: it is a symbolic link to nothing", path);
        qn__remedy(err, QN_IO, "remove the link, or create what it points at");
        return NULL;
    }
    char *target = exists ? realpath(path, NULL) : strdup(path);
    if (!target)
        qn__fail_errno(err, "write", path);
    return target;
}

/* Opens the folder of `target`, so that a later change of the working folder does not matter. A
 * folder with permission to search and write but not to list can be used, though not synced. */
static qn_status open_folder(qn__writer *writer, qn_error *err) {
    char *slash = strrchr(writer->target, '/');
    const char *folder = !slash ? "." : slash == writer->target ? "/" : writer->target;
    const int flags = O_DIRECTORY | O_CLOEXEC;
    if (slash)
        *slash = 0;
    writer->folder = open(folder, flags | O_RDONLY);
    if (writer->folder < 0 && errno == EACCES)
        writer->folder = open(folder, flags | O_PATH);
    if (writer->folder < 0)
        qn__fail_errno(err, "open the folder", folder);
    if (slash)
        *slash = '/';
    return writer->folder >= 0 ? QN_OK : QN_IO;
}

static const char *base_name(const qn__writer *writer) {
    const char *slash = strrchr(writer->target, '/');
    return slash ? slash + 1 : writer->target;
}

static void finished(qn__writer *writer) {
    qn__unfinished_remove(writer->unfinished);
    writer->unfinished = -1;
}

/* Creates the temporary file under a new name. O_EXCL ensures that it is new, also between the
 * hosts of a network file system; time and process only make collisions rare. 1: it is open and
 * locked. 0: another name may be tried. */
static int open_temporary(qn__writer *writer) {
    qn__temporary_name(writer->name);
    writer->unfinished = qn__unfinished_add(writer->folder, writer->name);
    writer->file =
        openat(writer->folder, writer->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
               writer->is_private ? 0600 : 0666);
    if (writer->file >= 0)
        writer->lock = qn__temporary_claim(writer->folder, writer->name, writer->file);
    if (writer->lock >= 0)
        return 1;
    const int why = errno;
    if (writer->file >= 0) {
        unlinkat(writer->folder, writer->name, 0);
        close(writer->file);
        writer->file = -1;
    }
    finished(writer);
    errno = why;
    return 0;
}

static qn_status open_beside(qn__writer *writer, const struct stat *old, qn_error *err) {
    int made = 0;
    for (int i = 0; i < TRIES && !made; i++)
        if (!(made = open_temporary(writer)) && errno != EEXIST)
            break;
    if (!made) {
        writer->name[0] = 0;
        return qn__fail_errno(err, "create a file beside", writer->path);
    }
    if (old && !writer->is_private && fchmod(writer->file, old->st_mode & 0777) != 0)
        return qn__fail_errno(err, "set the permissions of a file beside", writer->path);
    return QN_OK;
}

/* `old` is the existing file, or NULL. Renaming over a write-protected file would succeed, but the
 * protection must be respected. */
static qn_status open_replacement(qn__writer *writer, const struct stat *old, qn_error *err) {
    if (old && faccessat(AT_FDCWD, writer->path, W_OK, AT_EACCESS) != 0)
        return qn__fail_errno(err, "write", writer->path);
    writer->target = resolve(writer->path, old != NULL, err);
    if (!writer->target)
        return QN_IO;
    qn_status status = open_folder(writer, err);
    if (status == QN_OK && *base_name(writer) == 0) {
        qn__fail(err, QN_IO, "cannot write %s: it names no file", writer->path);
        return qn__remedy(err, QN_IO, "name a file in that folder");
    }
    return status == QN_OK ? open_beside(writer, old, err) : status;
}

static qn_status open_target(qn__writer *writer, qn_error *err) {
    const char *path = writer->path;
    if (qn__remote_is(path))
        return qn__remote_writer_create(path, &writer->remote, err);
    const int descriptor = named_descriptor(path);
    if (descriptor >= 0)
        return open_directly(writer, descriptor, err);
    struct stat info;
    const int exists = stat(path, &info) == 0;
    if (!exists && errno != ENOENT)
        return qn__fail_errno(err, "write", path);
    if (exists && S_ISDIR(info.st_mode)) {
        qn__fail(err, QN_IO, "cannot write %s: it is a folder", path);
        return qn__remedy(err, QN_IO, "name a file in it");
    }
    if (exists && !S_ISREG(info.st_mode))
        return open_directly(writer, -1, err);
    return open_replacement(writer, exists ? &info : NULL, err);
}

static qn_status create(const char *path, int is_private, qn__writer **out, qn_error *err) {
    *out = NULL;
    qn__writer *writer = qn__alloc(1, sizeof *writer, err);
    if (!writer)
        return QN_MEMORY;
    writer->is_private = is_private;
    writer->file = writer->folder = writer->lock = writer->unfinished = -1;
    writer->path = qn__copy_text(path, err);
    const qn_status status = writer->path ? open_target(writer, err) : QN_MEMORY;
    if (status != QN_OK) {
        qn__writer_drop(writer);
        return status;
    }
    *out = writer;
    return QN_OK;
}

qn_status qn__writer_create(const char *path, qn__writer **out, qn_error *err) {
    return create(path, 0, out, err);
}

qn_status qn__writer_create_private(const char *path, qn__writer **out, qn_error *err) {
    return create(path, 1, out, err);
}

/* Writing past a limit or into a pipe without a reader raises a signal that ends the program; a
 * library must not cause that. The signals are sent to the writing thread, so they are blocked
 * there. A signal that was raised is removed before they are unblocked. */
static ssize_t write_quietly(int file, const uint8_t *bytes, size_t size) {
    sigset_t mine, before, pending;
    sigemptyset(&mine);
    sigaddset(&mine, SIGXFSZ);
    sigaddset(&mine, SIGPIPE);
    sigpending(&pending);
    const int others = sigismember(&pending, SIGXFSZ) || sigismember(&pending, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &mine, &before);
    const ssize_t put = write(file, bytes, size < WRITE_MOST ? size : WRITE_MOST);
    const int error = errno;
    if (put < 0 && (error == EFBIG || error == EPIPE) && !others) {
        const struct timespec at_once = {0};
        while (sigtimedwait(&mine, NULL, &at_once) < 0 && errno == EINTR)
            ;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return put;
}

static qn_status write_all(qn__writer *writer, const uint8_t *bytes, size_t size) {
    if (writer->remote)
        return qn__remote_writer_add(writer->remote, bytes, size, &writer->error);
    while (size > 0) {
        const ssize_t put = write_quietly(writer->file, bytes, size);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return qn__fail_errno(&writer->error, "write", writer->path);
        bytes += put;
        size -= (size_t)put;
    }
    return QN_OK;
}

static qn_status flush(qn__writer *writer) {
    const size_t size = writer->used;
    writer->used = 0;
    return write_all(writer, writer->buffer, size);
}

/* The writer keeps its first failure, so that a caller may check only the status of commit. */
static qn_status report(const qn__writer *writer, qn_error *err) {
    if (err && writer->error.status != QN_OK)
        *err = writer->error;
    return writer->error.status;
}

qn_status qn__writer_add(qn__writer *writer, const void *bytes, size_t size, qn_error *err) {
    if (writer->error.status == QN_OK && size > BUFFER - writer->used)
        flush(writer);
    if (writer->error.status == QN_OK && size > BUFFER)
        write_all(writer, bytes, size);
    else if (writer->error.status == QN_OK && size > 0) {
        memcpy(writer->buffer + writer->used, bytes, size);
        writer->used += size;
    }
    return report(writer, err);
}

int qn__writer_replaces(const qn__writer *writer) {
    return writer->remote ? qn__remote_writer_replaces(writer->remote) : writer->target != NULL;
}

qn_status qn__writer_replace(qn__writer *writer, const void *bytes, size_t size, qn_error *err) {
    if (writer->error.status == QN_OK)
        flush(writer);
    if (writer->error.status == QN_OK && writer->remote)
        qn__remote_writer_replace(writer->remote, bytes, size, &writer->error);
    else if (writer->error.status == QN_OK && pwrite(writer->file, bytes, size, 0) != (ssize_t)size)
        qn__fail_errno(&writer->error, "write", writer->path);
    return report(writer, err);
}

qn_status qn__writer_map(qn__writer *writer, size_t size, void **memory, qn_error *err) {
    *memory = NULL;
    if (!writer->target || writer->error.status != QN_OK)
        return report(writer, err);
    if (!qn__file_reserve(writer->file, size)) {
        if (errno == EOPNOTSUPP || errno == EINVAL || errno == ENODEV)
            return QN_OK;
        qn__fail_errno(&writer->error, "write", writer->path);
        return report(writer, err);
    }
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, writer->file, 0);
    if (bytes != MAP_FAILED)
        *memory = bytes;
    else if (ftruncate(writer->file, 0) != 0) /* it is written by add then */
        qn__fail_errno(&writer->error, "write", writer->path);
    return report(writer, err);
}

/* Closing can be the first call that reports a full network disk. On Linux the descriptor is closed
 * even after EINTR, and synced data is safe. */
static void close_file(qn__writer *writer) {
    const int file = writer->file;
    writer->file = -1;
    if (close(file) != 0 && errno != EINTR && writer->error.status == QN_OK)
        qn__fail_errno(&writer->error, "write", writer->path);
}

/* Devices and pipes cannot be synced (EINVAL, EROFS, ENOTSUP), which is not a failure. */
static void sync_file(qn__writer *writer) {
    int rc;
    do
        rc = fsync(writer->file);
    while (rc != 0 && errno == EINTR);
    if (rc != 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP)
        qn__fail_errno(&writer->error, "write", writer->path);
}

/* Until the folder is synced, a power failure may restore the old file. EBADF: it could only be
 * opened by its path (see open_folder). */
static void put_in_place(qn__writer *writer) {
    if (renameat(writer->folder, writer->name, writer->folder, base_name(writer)) != 0) {
        qn__fail_errno(&writer->error, "put the new file in place of", writer->path);
        return;
    }
    finished(writer);
    writer->name[0] = 0;
    if (fsync(writer->folder) != 0 && errno != EINVAL && errno != EBADF && errno != ENOTSUP)
        qn__fail_errno(&writer->error, "sync the folder of", writer->path);
}

void qn__writer_ask(qn__writer *writer, int (*may)(void *user), void *user) {
    writer->may = may;
    writer->user = user;
}

/* Writes what is left; the bytes are on the disk, or in the store, then. */
static void complete(qn__writer *writer) {
    if (writer->error.status == QN_OK)
        flush(writer);
    if (writer->remote) {
        if (writer->error.status == QN_OK)
            qn__remote_writer_complete(writer->remote, &writer->error);
        return;
    }
    if (writer->error.status == QN_OK)
        sync_file(writer);
    close_file(writer);
}

static qn_status put_or_drop(qn__writer *writer, qn_error *err) {
    if (writer->error.status == QN_OK && writer->may && !writer->may(writer->user))
        qn__fail(&writer->error, QN_BUSY, "%s now belongs to another process", writer->path);
    if (writer->error.status == QN_OK && writer->target)
        put_in_place(writer);
    else if (writer->error.status == QN_OK && writer->remote)
        qn__remote_writer_publish(writer->remote, &writer->error);
    const qn_status status = report(writer, err);
    qn__writer_drop(writer);
    return status;
}

qn_status qn__writer_commit(qn__writer *writer, qn_error *err) {
    complete(writer);
    return put_or_drop(writer, err);
}

qn_status qn__writer_finish(qn__writer *writer, qn__writer_batch *batch, qn_status status,
                            qn_error *err) {
    if (status != QN_OK) {
        qn__writer_drop(writer);
        return status;
    }
    complete(writer);
    if (!batch || writer->error.status != QN_OK)
        return put_or_drop(writer, err);
    if (batch->last)
        batch->last->next = writer;
    else
        batch->first = writer;
    batch->last = writer;
    return QN_OK;
}

qn_status qn__writer_batch_commit(qn__writer_batch *batch, qn_error *err) {
    qn_status status = QN_OK;
    while (batch->first && status == QN_OK) {
        qn__writer *writer = batch->first;
        batch->first = writer->next;
        status = put_or_drop(writer, err);
    }
    qn__writer_batch_drop(batch);
    return status;
}

void qn__writer_batch_drop(qn__writer_batch *batch) {
    for (qn__writer *writer = batch->first, *next; writer; writer = next) {
        next = writer->next;
        qn__writer_drop(writer);
    }
    *batch = (qn__writer_batch){NULL, NULL};
}

void qn__writer_drop(qn__writer *writer) {
    if (!writer)
        return;
    const int error = errno;
    if (writer->file >= 0)
        close(writer->file);
    if (writer->name[0])
        unlinkat(writer->folder, writer->name, 0);
    finished(writer);
    if (writer->lock >= 0) /* not earlier: whoever can lock the file removes it */
        close(writer->lock);
    if (writer->folder >= 0)
        close(writer->folder);
    qn__remote_writer_drop(writer->remote);
    free(writer->target);
    qn__free(writer->path);
    qn__free(writer);
    errno = error;
}

#include "base/files/mapped_file.h"
#include "base/files/cache_folder.h"
#include "base/files/leftovers.h"
#include "base/files/remote.h"
#include "base/files/unfinished.h"
#include "base/margin.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of a file that go to the disk at a time; a multiple of all sizes of pages. */
#define SETTLE ((size_t)8 << 20)

enum { TRIES = 100 };

struct qn__mapped_file {
    uint8_t *bytes;
    size_t size;
    int file;         /* open, for writing as long as it is made */
    int folder, lock; /* of a file that is made, else -1 */
    int unfinished;   /* its entry in the table of unfinished files, or -1 */
    char name[QN__TEMPORARY_NAME];
    size_t settled;          /* bytes of a file that is made which need no memory any more */
    int borrowed;            /* a user's file */
    struct timespec written; /* when its inode changed last, as far as this process knows */
};

static qn__mapped_file *make(qn_error *err) {
    qn__mapped_file *m = qn__alloc(1, sizeof *m, err);
    if (m)
        m->file = m->folder = m->lock = m->unfinished = -1;
    return m;
}

static void close_one(int *file) {
    if (*file >= 0)
        close(*file);
    *file = -1;
}

void qn__mapped_file_close(void *file) {
    qn__mapped_file *m = file;
    if (!m)
        return;
    if (m->bytes)
        munmap(m->bytes, m->size);
    if (m->name[0])
        unlinkat(m->folder, m->name, 0);
    qn__unfinished_remove(m->unfinished);
    if (m->borrowed)
        qn__remote_close(m->file);
    else
        close_one(&m->file);
    close_one(&m->lock); /* not earlier: whoever can lock the file removes it */
    close_one(&m->folder);
    qn__free(m);
}

static qn_status map(qn__mapped_file *m, int file, int protection, const char *path,
                     qn_error *err) {
    void *bytes = mmap(NULL, m->size, protection, MAP_SHARED, file, 0);
    if (bytes == MAP_FAILED)
        return qn__fail_errno(err, "map", path);
    m->bytes = bytes;
    return QN_OK;
}

/* As a writer does (writer.c): a new name in the folder, locked as long as the file is made. */
static int open_temporary(qn__mapped_file *m) {
    qn__temporary_name(m->name);
    m->unfinished = qn__unfinished_add(m->folder, m->name);
    m->file = openat(m->folder, m->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (m->file >= 0)
        m->lock = qn__temporary_claim(m->folder, m->name, m->file);
    if (m->lock >= 0)
        return 1;
    const int why = errno;
    if (m->file >= 0)
        unlinkat(m->folder, m->name, 0);
    close_one(&m->file);
    qn__unfinished_remove(m->unfinished);
    m->unfinished = -1;
    m->name[0] = '\0';
    errno = why;
    return 0;
}

int qn__file_reserve(int file, size_t bytes) {
    struct rlimit limit;
    int failed = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
                         bytes > limit.rlim_cur
                     ? EFBIG
                     : 0;
    while (!failed && (failed = posix_fallocate(file, 0, (off_t)bytes)) == EINTR)
        failed = 0;
    errno = failed;
    return !failed;
}

qn_status qn__mapped_file_create(const char *folder, size_t bytes, qn__mapped_file **out,
                                 qn_error *err) {
    *out = NULL;
    qn__leftovers_remove(folder);
    qn__mapped_file *m = make(err);
    if (!m)
        return QN_MEMORY;
    m->size = bytes;
    m->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int made = 0;
    for (int i = 0; m->folder >= 0 && i < TRIES && !made; i++)
        if (!(made = open_temporary(m)) && errno != EEXIST)
            break;
    qn_status status = QN_OK;
    if (!made || !qn__file_reserve(m->file, bytes))
        status = qn__fail_errno(err, "write in", folder);
    if (status == QN_OK)
        status = map(m, m->file, PROT_READ | PROT_WRITE, folder, err);
    if (status != QN_OK)
        qn__mapped_file_close(m);
    else
        *out = m;
    return status;
}

qn_status qn__mapped_file_grow(qn__mapped_file *m, size_t bytes, qn_error *err) {
    qn__mapped_file old = *m;
    if (bytes <= old.size)
        return QN_OK;
    if (!qn__file_reserve(m->file, bytes))
        return qn__fail_errno(err, "write", m->name);
    m->size = bytes;
    const qn_status status = map(m, m->file, PROT_READ | PROT_WRITE, m->name, err);
    if (status == QN_OK)
        munmap(old.bytes, old.size);
    else
        m->size = old.size;
    return status;
}

void qn__mapped_file_written(qn__mapped_file *m) {
    struct stat info;
    if (!m->borrowed && m->file >= 0 && fstat(m->file, &info) == 0)
        m->written = info.st_ctim;
}

/* The file that was made stays open, but nobody can write to it any more. */
static void read_only(qn__mapped_file *m, const char *path) {
    struct stat made, found;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (file < 0 || fstat(m->file, &made) != 0 || fstat(file, &found) != 0 ||
        made.st_ino != found.st_ino || made.st_dev != found.st_dev) {
        if (file >= 0)
            close(file);
        close_one(&m->file);
        return;
    }
    close_one(&m->file);
    m->file = file;
}

qn_status qn__mapped_file_publish(qn__mapped_file *m, const char *path, size_t bytes,
                                  qn_error *err) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (ftruncate(m->file, (off_t)bytes) != 0 || renameat(m->folder, m->name, m->folder, name) != 0)
        return qn__fail_errno(err, "write", path);
    m->name[0] = '\0';
    qn__unfinished_remove(m->unfinished);
    m->unfinished = -1;
    read_only(m, path);
    qn__mapped_file_written(m);
    close_one(&m->lock);
    close_one(&m->folder);
    (void)mprotect(m->bytes, m->size, PROT_READ); /* a guard: it works without */
    return QN_OK;
}

static qn_status open_checked(qn__mapped_file *m, int file, const char *path, qn_error *err) {
    struct stat info;
    if (fstat(file, &info) != 0)
        return qn__fail_errno(err, "look at", path);
    if (!S_ISREG(info.st_mode) || info.st_size <= 0 || (uintmax_t)info.st_size > SIZE_MAX / 2)
        return qn__fail(err, QN_IO, "%s is empty or no regular file", path);
    if (qn__cache_trust(&info, path, err) != QN_OK)
        return QN_IO;
    (void)futimens(file, NULL); /* fails where the folder is read-only: it then counts as old */
    m->size = (size_t)info.st_size;
    return map(m, file, PROT_READ, path, err);
}

qn_status qn__mapped_file_open(const char *path, qn__mapped_file **out, qn_error *err) {
    *out = NULL;
    /* Non-blocking: opening a pipe of that name must not block. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return errno == ENOENT ? QN_OK : qn__fail_errno(err, "open", path);
    qn__mapped_file *m = make(err);
    const qn_status status = m ? open_checked(m, file, path, err) : QN_MEMORY;
    if (m) {
        m->file = file;
        qn__mapped_file_written(m); /* after the time of the last use was set */
    } else {
        close(file);
    }
    if (status != QN_OK)
        qn__mapped_file_close(m);
    else
        *out = m;
    return status;
}

/* The file is opened again, because the flags of the new one will change. Memory after it is that
 * of no file: after the last page of one nothing can be read. */
static qn_status borrow(qn__mapped_file *m, int file, const struct stat *seen, const char *path,
                        size_t bytes, qn_error *err) {
    struct stat info;
    char again[64];
    snprintf(again, sizeof again, "/proc/self/fd/%d", file);
    m->file = open(again, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    m->borrowed = 1;
    qn__remote_hold(m->file);
    if (m->file < 0 || qn__remote_stat(m->file, &info) != 0)
        return qn__fail_errno(err, "open", path);
    const qn_status status = qn__remote_ensure(m->file, 0, bytes, err);
    if (status != QN_OK)
        return status;
    if (info.st_ino != seen->st_ino || info.st_dev != seen->st_dev ||
        (uint64_t)info.st_size < bytes)
        return qn__fail(err, QN_IO, "%s is another file now", path);
    void *space =
        mmap(NULL, bytes + QN__DATA_MARGIN, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (space == MAP_FAILED)
        return qn__fail_errno(err, "map", path);
    m->bytes = space;
    m->size = bytes + QN__DATA_MARGIN;
    if (mmap(space, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, m->file, 0) == MAP_FAILED)
        return qn__fail_errno(err, "map", path);
    m->written = seen->st_ctim;
    return QN_OK;
}

qn_status qn__mapped_file_borrow(int file, const struct stat *seen, const char *path, size_t bytes,
                                 qn__mapped_file **out, qn_error *err) {
    qn__mapped_file *m = make(err);
    *out = NULL;
    const qn_status status = m ? borrow(m, file, seen, path, bytes, err) : QN_MEMORY;
    if (status == QN_OK)
        *out = m;
    else
        qn__mapped_file_close(m);
    return status;
}

int qn__mapped_file_is_borrowed(const qn__mapped_file *m) { return m->borrowed; }

/* Without this the system writes pages one by one when it needs their memory, and each page that is
 * written to waits for it: twenty times as long, in a control group. */
void qn__mapped_file_wrote(qn__mapped_file *m, size_t bytes) {
    while (bytes - m->settled >= 2 * SETTLE) {
        uint8_t *at = m->bytes + m->settled;
        /* The next piece is on its way to the disk while this one is waited for. */
        (void)sync_file_range(m->file, (off_t)(m->settled + SETTLE), SETTLE, SYNC_FILE_RANGE_WRITE);
        (void)sync_file_range(m->file, (off_t)m->settled, SETTLE,
                              SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                  SYNC_FILE_RANGE_WAIT_AFTER);
        (void)madvise(at, SETTLE, MADV_DONTNEED); /* all of these are only hints */
        (void)posix_fadvise(m->file, (off_t)m->settled, SETTLE, POSIX_FADV_DONTNEED);
        m->settled += SETTLE;
    }
}

uint8_t *qn__mapped_file_bytes(const qn__mapped_file *file) { return file->bytes; }

size_t qn__mapped_file_size(const qn__mapped_file *file) { return file->size; }

int qn__mapped_file_descriptor(const qn__mapped_file *file) { return file->file; }

int qn__mapped_file_changed(const qn__mapped_file *m, char path[PATH_MAX]) {
    struct stat info;
    char link[64];
    if (m->file < 0 || qn__remote_stat(m->file, &info) != 0 ||
        (info.st_ctim.tv_sec == m->written.tv_sec && info.st_ctim.tv_nsec == m->written.tv_nsec))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", m->file);
    const ssize_t size = readlink(link, path, PATH_MAX - 1);
    path[size > 0 ? size : 0] = '\0';
    return 1;
}

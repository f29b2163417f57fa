#include "base/files/file.h"

#include "base/files/remote.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    FIRST_CAPACITY = 1 << 16, /* for files whose size is not known */
    READ_MOST = 1 << 30,      /* some systems refuse more than 2^31 - 1 bytes in one call */
    WRITER_STEP = 20,         /* milliseconds between two checks for the writer of a FIFO */
    WRITER_STEPS = 250
};

/* Fails for files without contents to read, and names their kind. Pipes are read to their end. */
static qn_status refuse_special(const struct stat *info, const char *path, qn_error *err) {
    if (S_ISREG(info->st_mode) || S_ISFIFO(info->st_mode) || S_ISSOCK(info->st_mode))
        return QN_OK;
    if (S_ISDIR(info->st_mode)) {
        qn__fail(err, QN_IO, "cannot read %s: it is a folder", path);
        return qn__remedy(err, QN_IO, "name a file in it");
    }
    qn__fail(err, QN_IO, "cannot read %s: it is a device, not a file", path);
    return qn__remedy(err, QN_IO, "name a regular file or a pipe");
}

static qn_status refuse_large(const char *path, uint64_t most, qn_error *err) {
    qn__fail(err, QN_INPUT, "the file has more than %llu bytes", (unsigned long long)most);
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_INPUT, "check that it is the file that was meant");
}

/* Allocates a block of twice the size, copies the bytes so far and frees the old one. */
static uint8_t *grow(uint8_t *data, size_t size, size_t *buffer, qn_error *err) {
    uint8_t *larger = qn__alloc(*buffer, 2, err);
    if (larger) {
        memcpy(larger, data, size);
        *buffer *= 2;
    }
    qn__free(data);
    return larger;
}

/* The first byte of a FIFO, which shows that it has a writer. */
typedef struct qn__start {
    int there;
    uint8_t byte;
} qn__start;

/* Waits until a FIFO, opened non-blocking, has a writer, then makes it blocking. Without a writer a
 * read returns the end; with a writer that has written nothing yet, it would block. */
static qn_status await_writer(int file, const char *path, qn__start *start, qn_error *err) {
    for (int i = 0; i < WRITER_STEPS; ++i) {
        const ssize_t got = read(file, &start->byte, 1);
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return qn__fail_errno(err, "read", path);
        if (got > 0 || (got < 0 && errno == EAGAIN)) {
            start->there = got > 0;
            return fcntl(file, F_SETFL, O_RDONLY) == 0 ? QN_OK : qn__fail_errno(err, "read", path);
        }
        const struct timespec step = {0, WRITER_STEP * 1000000L};
        nanosleep(&step, NULL);
    }
    qn__fail(err, QN_IO, "cannot read %s: it is a FIFO, and nobody writes to it", path);
    return qn__remedy(err, QN_IO, "start the program that writes to it, or name a regular file");
}

/* Reads to the end and ignores the size from fstat: files of /proc have size 0, and a file may grow
 * or shrink during the read. The block grows with the bytes read. */
static qn_status read_all(int file, size_t expected, const char *path, const qn__start *start,
                          qn__bytes *out, qn_error *err) {
    /* One byte more than expected, so that the end is detected without growing, and the NUL. */
    size_t capacity = expected > 0 ? expected + 2 : FIRST_CAPACITY, size = 0;
    uint8_t *data = qn__alloc(capacity, 1, err);
    if (data && start->there)
        data[size++] = start->byte;
    while (data) {
        const size_t left = capacity - 1 - size;
        const ssize_t got = read(file, data + size, left < READ_MOST ? left : READ_MOST);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            qn__fail_errno(err, "read", path);
            qn__free(data);
            return QN_IO;
        }
        size += (size_t)got;
        if (got == 0 && left > 0) {
            data[size] = 0;
            *out = (qn__bytes){.data = data, .size = size};
            return QN_OK;
        }
        if (size + 1 == capacity)
            data = grow(data, size, &capacity, err);
    }
    return QN_MEMORY;
}

/* No mmap: if another process truncates a mapped file, reading it ends this process. */
static qn_status take_bytes(int file, const char *path, uint64_t most, qn__bytes *out,
                            qn_error *err) {
    struct stat info;
    if (fstat(file, &info) != 0)
        return qn__fail_errno(err, "look at", path);
    const qn_status status = refuse_special(&info, path, err);
    if (status != QN_OK)
        return status;
    const uint64_t size = S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
    if (size > most)
        return refuse_large(path, most, err);
    if (size >= SIZE_MAX / 2)
        return qn__fail_memory(err, SIZE_MAX, 1);
    qn_status fetched = qn__remote_ensure(file, 0, UINT64_MAX, err);
    if (fetched != QN_OK)
        return fetched;
    qn__start start = {0};
    if (S_ISFIFO(info.st_mode) && await_writer(file, path, &start, err) != QN_OK)
        return QN_IO;
    return read_all(file, (size_t)size, path, &start, out, err);
}

/* An address: all of it is fetched, and read as a file. */
static qn_status read_address(const char *path, uint64_t most, qn__bytes *out, qn_error *err) {
    int file;
    qn_status status = qn__remote_open(path, &file, err);
    if (status == QN_OK)
        status = take_bytes(file, path, most, out, err);
    qn__remote_close(file);
    return status;
}

static qn_status read_most(const char *path, uint64_t most, qn__bytes *out, qn_error *err) {
    *out = (qn__bytes){0};
    if (qn__remote_is(path))
        return read_address(path, most, out, err);
    /* Without O_NONBLOCK, opening a FIFO would wait for a writer that may never come. It has no
     * effect on regular files. */
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0)
        return qn__fail_errno(err, "open", path);
    const qn_status status = take_bytes(file, path, most, out, err);
    close(file);
    return status;
}

qn_status qn__file_read(const char *path, qn__bytes *out, qn_error *err) {
    return read_most(path, UINT64_MAX, out, err);
}

qn_status qn__file_read_most(const char *path, uint64_t most, qn__bytes *out, qn_error *err) {
    const qn_status status = read_most(path, most, out, err);
    if (status != QN_OK || out->size <= most) /* a pipe does not tell its size */
        return status;
    qn__bytes_release(out);
    return refuse_large(path, most, err);
}

void qn__bytes_release(qn__bytes *bytes) {
    if (!bytes)
        return;
    qn__free((void *)(uintptr_t)bytes->data);
    *bytes = (qn__bytes){0};
}

/* Reading from a file descriptor, with interrupted calls repeated. */
#include "data/bytes/descriptor.h"
#include "base/files/remote.h"
#include <errno.h>
#include <unistd.h>

/* Linux reads at most 2 GiB per call; smaller pieces react sooner to an interruption. */
#define MOST_AT_ONCE ((size_t)1 << 26)
/* Of an address a piece is copied while the next ones are fetched. */
#define MOST_OF_ADDRESS ((size_t)1 << 23)

/* The next piece of `size` bytes from the file's position on, or from `from`. */
static qn_status prepare(int fd, int at_position, uint64_t from, size_t size, size_t *piece,
                         qn_error *err) {
    *piece = size < MOST_AT_ONCE ? size : MOST_AT_ONCE;
    if (atomic_load_explicit(&qn__remote_open_files, memory_order_relaxed) == 0 ||
        !qn__remote_has(fd))
        return QN_OK;
    *piece = size < MOST_OF_ADDRESS ? size : MOST_OF_ADDRESS;
    const off_t position = at_position ? lseek(fd, 0, SEEK_CUR) : (off_t)from;
    return position < 0 ? QN_OK : qn__remote_fetch(fd, (uint64_t)position, *piece, err);
}

qn_status qn__descriptor_read(int fd, const char *path, void *bytes, size_t size, size_t *got,
                              qn_error *err) {
    uint8_t *to = bytes;
    *got = 0;
    while (*got < size) {
        size_t piece;
        const qn_status status = prepare(fd, 1, 0, size - *got, &piece, err);
        if (status != QN_OK)
            return status;
        ssize_t now = read(fd, to + *got, piece);
        if (now < 0 && errno == EINTR)
            continue;
        if (now < 0)
            return qn__fail_errno(err, "read", path);
        if (now == 0)
            break;
        *got += (size_t)now;
    }
    return QN_OK;
}

qn_status qn__descriptor_read_at(int fd, const char *path, uint64_t from, void *bytes, size_t size,
                                 qn_error *err) {
    uint8_t *to = bytes;
    for (size_t got = 0; got < size;) {
        size_t piece;
        const qn_status status = prepare(fd, 0, from + got, size - got, &piece, err);
        if (status != QN_OK)
            return status;
        const ssize_t now = pread(fd, to + got, piece, (off_t)(from + got));
        if (now < 0 && errno == EINTR)
            continue;
        if (now < 0)
            return qn__fail_errno(err, "read", path);
        if (now == 0) {
            qn__fail(err, QN_INPUT, "the file became shorter while it was read");
            qn__at(err, "%s, byte %llu", path, (unsigned long long)(from + got));
            return qn__remedy(err, QN_INPUT, "read it when nothing writes to it any more");
        }
        got += (size_t)now;
    }
    return QN_OK;
}

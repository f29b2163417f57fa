/* Reading from a file descriptor, with interrupted calls repeated. */
#include "data/bytes/descriptor.h"
#include <errno.h>
#include <unistd.h>

/* Linux reads at most 2 GiB per call; smaller pieces react sooner to an interruption. */
#define MOST_AT_ONCE ((size_t)1 << 26)

qn_status qn__descriptor_read(int fd, const char *path, void *bytes, size_t size, size_t *got,
                              qn_error *err) {
    uint8_t *to = bytes;
    *got = 0;
    while (*got < size) {
        size_t piece = size - *got < MOST_AT_ONCE ? size - *got : MOST_AT_ONCE;
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
        const size_t piece = size - got < MOST_AT_ONCE ? size - got : MOST_AT_ONCE;
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

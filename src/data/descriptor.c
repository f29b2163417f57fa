/* Reading from a file descriptor, with interrupted calls repeated. */
#include "data/descriptor.h"
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

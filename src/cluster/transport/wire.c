#include "cluster/transport/wire.h"

#include <errno.h>
#include <sys/random.h>

void qn__random_bytes(void *to, size_t size) {
    unsigned char *at = to;
    while (size > 0) {
        const ssize_t got = getrandom(at, size, 0);
        if (got < 0 && errno != EINTR)
            break; /* ENOSYS: a kernel from before 2014, on which nothing else here works either */
        if (got > 0) {
            at += got;
            size -= (size_t)got;
        }
    }
}

void qn__wire_text(char *to, size_t capacity, const char *from, size_t size) {
    size_t i = 0;
    for (; i < size && i + 1 < capacity && from[i]; ++i)
        to[i] = from[i] > ' ' && from[i] < 127 ? from[i] : '?';
    to[i] = 0;
}

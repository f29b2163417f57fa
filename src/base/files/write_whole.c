#include "base/files/write_whole.h"

#include <errno.h>
#include <unistd.h>

int qn__write_whole(int file, const void *bytes, size_t size) {
    const char *from = bytes;
    while (size > 0) {
        const ssize_t done = write(file, from, size);
        if (done < 0 && errno == EINTR)
            continue;
        if (done == 0)
            errno = EIO;
        if (done <= 0)
            return errno;
        from += done;
        size -= (size_t)done;
    }
    return 0;
}

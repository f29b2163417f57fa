#include "outfile.h"
#include "message.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(const char *path, const char *reason, const char *remedy) {
    char what[512];
    snprintf(what, sizeof what, "cannot write \"%.400s\": %.90s", path, reason);
    return message_fail(QN_IO, what, path, remedy);
}

/* A probe beside the file: whether the folder takes a new one is what its permissions, the
 * mount and the quota say together, so it is tried. */
static int try_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) + 1 : 0;
    size_t size = strlen(path) + 32;
    char *probe = malloc(size);
    if (!probe)
        return message_fail(QN_MEMORY, "out of memory", "", "");
    snprintf(probe, size, "%.*s.quern-probe-XXXXXX", length, path);
    int file = mkstemp(probe), saved = errno;
    if (file >= 0) {
        close(file);
        unlink(probe);
    }
    free(probe);
    if (file >= 0)
        return -1;
    return refuse(path, strerror(saved),
                  saved == ENOENT ? "make the folder first, or name another with -o"
                                  : "name a file in a folder that can be written, with -o");
}

int outfile_check(const char *path, const char *const *inputs, size_t count) {
    struct stat there, input;
    if (*path == '\0' || path[strlen(path) - 1] == '/')
        return refuse(path, "this names a folder", "name a file with -o");
    if (stat(path, &there) == 0) {
        if (S_ISDIR(there.st_mode))
            return refuse(path, "this is a folder", "name a file in it with -o");
        if (!S_ISREG(there.st_mode))
            return refuse(path, "this is no plain file", "name another file with -o");
        if (access(path, W_OK) != 0)
            return refuse(path, strerror(errno), "make it writable, or name another with -o");
        for (size_t i = 0; i < count; i++)
            if (inputs[i] && stat(inputs[i], &input) == 0 && input.st_dev == there.st_dev &&
                input.st_ino == there.st_ino)
                return message_fail(QN_USAGE, "the output would replace an input", path,
                                    "name another file with -o");
    }
    return try_folder(path);
}

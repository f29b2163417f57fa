#include "outfile.h"
#include "interrupt.h"
#include "message.h"
#include <errno.h>
#include <quern/model.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* `remedy` ends where the option that names the file belongs. */
static int refuse(const char *path, const char *flag, const char *reason, const char *remedy) {
    char what[512], whole[128];
    snprintf(what, sizeof what, "cannot write \"%.400s\": %.90s", path, reason);
    snprintf(whole, sizeof whole, "%s %s", remedy, flag);
    return message_fail(QN_IO, what, path, whole);
}

/* A probe beside the file: whether the folder takes a new one is what its permissions, the
 * mount and the quota say together, so it is tried. */
static int try_folder(const char *path, const char *flag) {
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) + 1 : 0;
    size_t size = strlen(path) + 32;
    char *probe = malloc(size);
    if (!probe)
        return message_fail(QN_MEMORY, "out of memory", "", "");
    snprintf(probe, size, "%.*s.quern-probe-XXXXXX", length, path);
    interrupt_hold();
    int file = mkstemp(probe), saved = errno;
    if (file >= 0) {
        close(file);
        unlink(probe);
    }
    interrupt_release();
    free(probe);
    if (file >= 0) {
        qn_model_clear_leftovers(path);
        return -1;
    }
    return refuse(path, flag, strerror(saved),
                  saved == ENOENT ? "make the folder first, or name another with"
                                  : "name a file in a folder that can be written, with");
}

static int same_file(const char *a, const char *b) {
    struct stat at_a, at_b;
    return stat(a, &at_a) == 0 && stat(b, &at_b) == 0 && at_a.st_dev == at_b.st_dev &&
           at_a.st_ino == at_b.st_ino;
}

int outfile_check(const char *path, const char *flag, const char *const *inputs, size_t count) {
    struct stat there;
    char remedy[96];
    if (strcmp(path, "-") == 0) /* a file of this name is nobody's wish */
        return refuse(path, flag, "this cannot go to the standard output", "name a file with");
    if (*path == '\0' || path[strlen(path) - 1] == '/')
        return refuse(path, flag, "this names a folder", "name a file with");
    if (stat(path, &there) == 0) {
        if (S_ISDIR(there.st_mode))
            return refuse(path, flag, "this is a folder", "name a file in it with");
        if (!S_ISREG(there.st_mode))
            return refuse(path, flag, "this is no plain file", "name another file with");
        if (access(path, W_OK) != 0)
            return refuse(path, flag, strerror(errno), "make it writable, or name another with");
        snprintf(remedy, sizeof remedy, "name another file with %s", flag);
        for (size_t i = 0; i < count; i++)
            if (inputs[i] && same_file(path, inputs[i]))
                return message_fail(QN_USAGE, "the output would replace an input", path, remedy);
    }
    return try_folder(path, flag);
}

int outfile_apart(const char *path, const char *flag, const char *other, const char *other_flag) {
    char remedy[96];
    if (strcmp(path, other) != 0 && !same_file(path, other))
        return -1;
    snprintf(remedy, sizeof remedy, "name two files with %s and %s", other_flag, flag);
    return message_fail(QN_USAGE, "two outputs would be written to one file", path, remedy);
}

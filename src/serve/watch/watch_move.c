#include "serve/watch/watch_move.h"

#include "base/files/write_whole.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_NAMES = 10000, PIECE = 1 << 16 };

/* Makes the folders on the way to `name`. */
static int make_folders(int to, const char *name) {
    char folder[PATH_MAX];
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - name), name);
        if (mkdirat(to, folder, 0777) != 0 && errno != EEXIST)
            return errno;
    }
    return 0;
}

/* Gives `name` of the folder `from` a name in `to` that is not taken. 0, or an errno. */
static int rename_as(int from, const char *name, int to, const char *wanted) {
    char other[PATH_MAX];
    int size = snprintf(other, sizeof other, "%s", wanted);
    for (int k = 1; k < MOST_NAMES && size > 0 && (size_t)size < sizeof other; ++k) {
        if (renameat2(from, name, to, other, RENAME_NOREPLACE) == 0)
            return 0;
        if (errno != EEXIST)
            return errno;
        size = snprintf(other, sizeof other, "%s~%d", wanted, k);
    }
    return ENAMETOOLONG;
}

/* ------------------------------------------------------------------------ between file systems */

static int copy_bytes(int from, int to) {
    char bytes[PIECE];
    int error = 0;
    for (ssize_t got = 1; got != 0 && error == 0;) {
        got = read(from, bytes, sizeof bytes);
        if (got > 0)
            error = qn__write_whole(to, bytes, (size_t)got);
        else if (got < 0 && errno != EINTR)
            error = errno;
    }
    return error;
}

/* The copy keeps the time of the last change. */
static int fill_copy(int source, int copy, const struct stat *info) {
    const struct timespec times[2] = {info->st_atim, info->st_mtim};
    int error = copy_bytes(source, copy);
    if (error == 0 && fsync(copy) != 0)
        error = errno;
    if (error == 0)
        (void)futimens(copy, times);
    return error;
}

/* Where a name's last part begins. */
static size_t base_of(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash ? (size_t)(slash - name) + 1 : 0;
}

static void sync_folder(int to, const char *name) {
    char folder[PATH_MAX] = ".";
    const size_t base = base_of(name);
    if (base > 0)
        snprintf(folder, sizeof folder, "%.*s", (int)base, name);
    const int place = openat(to, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place < 0)
        return;
    (void)fsync(place);
    close(place);
}

static int copy_open(int source, const struct stat *info, int to, const char *name) {
    char hidden[PATH_MAX];
    const size_t base = base_of(name);
    const int size = snprintf(hidden, sizeof hidden, "%.*s.%s.part", (int)base, name, name + base);
    if (size < 0 || (size_t)size >= sizeof hidden)
        return ENAMETOOLONG;
    const int copy = openat(to, hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                            info->st_mode & 0777);
    if (copy < 0)
        return errno;
    int error = fill_copy(source, copy, info);
    if (close(copy) != 0 && error == 0)
        error = errno;
    if (error == 0)
        error = rename_as(to, hidden, to, name);
    if (error == 0)
        sync_folder(to, name);
    else
        (void)unlinkat(to, hidden, 0);
    return error;
}

/* What took the name meanwhile is another file, and stays. */
static int remove_copied(int from, const char *name, const struct stat *copied) {
    struct stat now;
    if (fstatat(from, name, &now, 0) != 0 || now.st_ino != copied->st_ino ||
        now.st_dev != copied->st_dev)
        return 0;
    return unlinkat(from, name, 0) == 0 || errno == ENOENT ? 0 : errno;
}

static int copy_over(int from, int to, const char *name) {
    struct stat info;
    const int source = openat(from, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (source < 0)
        return errno;
    int error = fstat(source, &info) == 0 ? 0 : errno;
    if (error == 0)
        error = S_ISREG(info.st_mode) ? copy_open(source, &info, to, name) : EINVAL;
    close(source);
    return error == 0 ? remove_copied(from, name, &info) : error;
}

int qn__watch_move(int from, int to, const char *name) {
    int error = make_folders(to, name);
    if (error == 0)
        error = rename_as(from, name, to, name);
    if (error == EXDEV)
        error = copy_over(from, to, name);
    return error == ENOENT ? 0 : error;
}

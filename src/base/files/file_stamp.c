#include "base/files/file_stamp.h"
#include "base/files/remote.h"
#include <fcntl.h>
#include <time.h>

enum { WAITS = 20, WAIT_NANOSECONDS = 1000000 };

static int is_time(const struct timespec *a, const struct timespec *b) {
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* 1 when the clock that sets the times of inodes shows a later time than `changed`, or a time that
 * is so much earlier that another clock set it. */
static int is_over(const struct timespec *changed) {
    struct timespec now;
#ifdef CLOCK_REALTIME_COARSE
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
#else
    clock_gettime(CLOCK_REALTIME, &now);
#endif
    return changed->tv_sec < now.tv_sec || changed->tv_sec > now.tv_sec + 1 ||
           (changed->tv_sec == now.tv_sec && changed->tv_nsec < now.tv_nsec);
}

static void wait_a_little(void) {
    nanosleep(&(struct timespec){.tv_nsec = WAIT_NANOSECONDS}, NULL);
}

void qn__file_stamp_wait(const struct timespec *changed) {
    for (int i = 0; i < WAITS && !is_over(changed); i++)
        wait_a_little();
}

/* A file in memory that nobody can write to any more. */
static int is_sealed(int file) {
#ifdef F_SEAL_WRITE
    const int seals = fcntl(file, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_WRITE);
#else
    (void)file;
    return 0;
#endif
}

qn_status qn__file_stamp_take(int file, const char *path, struct stat *out, qn_error *err) {
    for (int i = 0;; i++, wait_a_little()) { /* others may write during the wait */
        if (qn__remote_stat(file, out) != 0)
            return qn__fail_errno(err, "look at", path);
        if (i == WAITS || !S_ISREG(out->st_mode) || is_over(&out->st_ctim) || is_sealed(file))
            return QN_OK;
    }
}

/* Why the time of the inode may differ though nobody wrote to the file. */
static int is_explained(const struct stat *before, const struct stat *after, const char *path) {
    struct stat named;
    return before->st_nlink != after->st_nlink || before->st_mode != after->st_mode ||
           before->st_uid != after->st_uid || before->st_gid != after->st_gid ||
           stat(path, &named) != 0 || named.st_ino != after->st_ino ||
           named.st_dev != after->st_dev;
}

int qn__file_stamp_same(const struct stat *before, const struct stat *after, const char *path) {
    return before->st_dev == after->st_dev && before->st_ino == after->st_ino &&
           before->st_size == after->st_size && is_time(&before->st_mtim, &after->st_mtim) &&
           (is_time(&before->st_ctim, &after->st_ctim) || is_explained(before, after, path));
}

qn_status qn__file_stamp_refuse(const char *path, qn_status status, qn_error *err) {
    qn__fail(err, status, "the file changed while it was read");
    qn__at(err, "%s", path);
    return qn__remedy(err, status, "read it when nothing writes to it any more, or read a copy");
}

#include "base/files/files_stamp.h"
#include "base/digest/siphash.h"
#include <string.h>
#include <time.h>

/* The coarsest clock of a file system that is in use (FAT) has steps of two seconds. */
enum { SETTLES_SECONDS = 2 };

static int is_before(const struct timespec *a, const struct timespec *b) {
    return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

uint64_t qn__files_stamp_of(const struct stat *info, qn__files_stamp *stamp) {
    static const qn__siphash_key key = {{0, 0}};
    const struct timespec *const changed = &info->st_mtim, *const moved = &info->st_ctim;
    const uint64_t all[] = {(uint64_t)info->st_dev,     (uint64_t)info->st_ino,
                            (uint64_t)info->st_size,    (uint64_t)changed->tv_sec,
                            (uint64_t)changed->tv_nsec, (uint64_t)moved->tv_sec,
                            (uint64_t)moved->tv_nsec};
    if (is_before(&stamp->newest, moved))
        stamp->newest = *moved;
    return qn__siphash(&key, all, sizeof all);
}

void qn__files_stamp_add(qn__files_stamp *stamp, const char *name, uint64_t bits) {
    if (!stamp->begun)
        qn__sha256_begin(&stamp->hash);
    stamp->begun = 1;
    qn__sha256_add(&stamp->hash, name, strlen(name) + 1);
    qn__sha256_add(&stamp->hash, &bits, sizeof bits);
}

int qn__files_stamp_end(const qn__files_stamp *stamp, char text[65]) {
    struct timespec settled;
    uint8_t digest[32];
    qn__sha256 hash = stamp->hash;
    qn__sha256_end(&hash, digest);
    qn__hex(digest, text);
    clock_gettime(CLOCK_REALTIME, &settled);
    settled.tv_sec -= SETTLES_SECONDS;
    return stamp->begun && is_before(&stamp->newest, &settled);
}

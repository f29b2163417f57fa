#include "base/files/cache_space.h"
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Entries in the folder: their bytes, and the one that was not used for longest. */
typedef struct entries {
    uint64_t bytes;
    struct timespec used;
    char oldest[QN__CACHE_ENTRY];
} entries;

static int is_entry(const char *name) {
    const size_t size = strlen(name);
    return size == QN__CACHE_ENTRY - 1 && strspn(name, "0123456789abcdef") == 64 &&
           (strcmp(name + 64, QN__CACHE_IMAGES) == 0 || strcmp(name + 64, QN__CACHE_TABLES) == 0 ||
            strcmp(name + 64, QN__CACHE_STORED) == 0);
}

/* A file of a store has holes where nothing was read. */
static uint64_t bytes_of(const char *name, const struct stat *info) {
    const uint64_t size = (uint64_t)info->st_size, used = (uint64_t)info->st_blocks * 512;
    return strcmp(name + 64, QN__CACHE_STORED) == 0 && used < size ? used : size;
}

/* The map of a file of a store goes before the file. */
static int remove_entry(DIR *folder, const char *name) {
    char map[QN__CACHE_ENTRY];
    strcpy(map, name);
    strcpy(map + 64, QN__CACHE_BLOCKS);
    if (strcmp(name + 64, QN__CACHE_STORED) == 0)
        (void)unlinkat(dirfd(folder), map, 0);
    return unlinkat(dirfd(folder), name, 0);
}

static void count_entries(DIR *folder, const char *but, entries *all) {
    struct stat info;
    *all = (entries){0};
    rewinddir(folder);
    for (const struct dirent *one; (one = readdir(folder)) != NULL;) {
        if (!is_entry(one->d_name) || strcmp(one->d_name, but) == 0 ||
            fstatat(dirfd(folder), one->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        const struct timespec *used = &info.st_mtim;
        if (!all->oldest[0] || used->tv_sec < all->used.tv_sec ||
            (used->tv_sec == all->used.tv_sec && used->tv_nsec < all->used.tv_nsec)) {
            strcpy(all->oldest, one->d_name);
            all->used = *used;
        }
        all->bytes += bytes_of(one->d_name, &info);
    }
}

int qn__cache_space_make(const char *path, const char *name, uint64_t bytes) {
    struct statvfs system;
    entries all;
    DIR *folder = opendir(path);
    int fits = folder != NULL && fstatvfs(dirfd(folder), &system) == 0;
    if (fits) {
        count_entries(folder, name, &all);
        const uint64_t most = ((uint64_t)system.f_bavail * system.f_frsize + all.bytes) / 2;
        fits = bytes <= most;
        while (fits && all.oldest[0] && all.bytes + bytes > most &&
               remove_entry(folder, all.oldest) == 0)
            count_entries(folder, name, &all);
    }
    if (folder)
        closedir(folder);
    return fits;
}

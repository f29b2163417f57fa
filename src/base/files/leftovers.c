#include "base/files/leftovers.h"

#include "base/files/other_hosts.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TAG = 16, FLAGS = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY };

/* The first 64 bits of the kernel's boot id as hexadecimal digits; "0" where it is not known. */
static void boot_tag(char tag[TAG + 1]) {
    char id[QN__BOOT_ID];
    size_t digits = 0;
    qn__boot_id(id);
    for (const char *at = id; *at && digits < TAG; ++at)
        if (strchr("0123456789abcdef", *at))
            tag[digits++] = *at;
    if (digits < TAG)
        tag[0] = '0';
    tag[digits < TAG ? 1 : TAG] = '\0';
}

void qn__temporary_name(char name[QN__TEMPORARY_NAME]) {
    static atomic_uint counter;
    char tag[TAG + 1];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    boot_tag(tag);
    snprintf(name, QN__TEMPORARY_NAME, ".quern-%ld-%u-%lx-%s.tmp", (long)getpid(),
             atomic_fetch_add(&counter, 1), (unsigned long)now.tv_nsec, tag);
}

/* 1 when the name is one of qn__temporary_name; `tag` receives its boot id. */
static int is_temporary(const char *name, char tag[TAG + 1]) {
    int length = 0;
    return sscanf(name, ".quern-%*d-%*u-%*x-%16[0-9a-f].tmp%n", tag, &length) == 1 && length > 0 &&
           name[length] == '\0';
}

static int is_same(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Between creation and locking, another process may treat the file as a leftover. It then holds the
 * lock, or the name is gone. On NFS a removed file that is open keeps a link, so the name is
 * compared and not the number of links. */
int qn__temporary_claim(int folder, const char *name, int file) {
    struct stat open_file, named;
    const int lock = fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (lock < 0)
        return -1;
    const int busy = flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!busy && fstat(file, &open_file) == 0 &&
        fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && is_same(&open_file, &named))
        return lock;
    close(lock);
    errno = EEXIST;
    return -1;
}

/* Opened for writing, since NFS has exclusive locks only for such files. */
static void remove_if_dead(int folder, const char *name) {
    struct stat info;
    const int file = openat(folder, name, O_WRONLY | FLAGS);
    if (file < 0)
        return;
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && flock(file, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(file);
}

static void remove_from(DIR *folder, int shared) {
    char own[TAG + 1], tag[TAG + 1];
    boot_tag(own);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (is_temporary(entry->d_name, tag) &&
            (!shared || (strlen(own) == TAG && strcmp(tag, own) == 0)))
            remove_if_dead(dirfd(folder), entry->d_name);
}

void qn__leftovers_remove(const char *dir) {
    DIR *folder = opendir(dir);
    if (folder != NULL) {
        remove_from(folder, qn__folder_is_shared(dirfd(folder)));
        closedir(folder);
    }
}

void qn__leftovers_remove_from(const char *dir, int shared) {
    DIR *folder = opendir(dir);
    if (folder != NULL) {
        remove_from(folder, shared);
        closedir(folder);
    }
}

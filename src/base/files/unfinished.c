#include "base/files/unfinished.h"

#include <errno.h>
#include <fcntl.h>
#include <quern/files.h>
#include <stdatomic.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A thread writes one file at a time, so this many are more than enough. Attempts to remove a
 * folder, a millisecond apart. */
enum { ENTRIES = 64, TRIES = 200 };

/* `taken` reserves an entry for the thread that fills it. A signal handler reads `name`, which is
 * written last and cleared first. */
static struct {
    atomic_int taken;
    int folder;
    _Atomic(const char *) name;
} table[ENTRIES];

int qn__unfinished_add(int folder, const char *name) {
    for (int i = 0; i < ENTRIES; i++) {
        int is_free = 0;
        if (!atomic_compare_exchange_strong(&table[i].taken, &is_free, 1))
            continue;
        table[i].folder = folder;
        atomic_store(&table[i].name, name);
        return i;
    }
    return -1;
}

void qn__unfinished_remove(int entry) {
    if (entry < 0)
        return;
    atomic_store(&table[entry].name, NULL);
    atomic_store(&table[entry].taken, 0);
}

/* ---------------------------------------------------------------------------------- processes */

static _Atomic(pid_t) groups[ENTRIES];

int qn__unfinished_process(pid_t group) {
    for (int i = 0; i < ENTRIES; i++) {
        pid_t none = 0;
        if (atomic_compare_exchange_strong(&groups[i], &none, group))
            return i;
    }
    return -1;
}

void qn__unfinished_process_end(int entry) {
    if (entry >= 0)
        atomic_store(&groups[entry], 0);
}

/* ---------------------------------------------------------------------------------- removal */

/* An entry of a folder as the system call returns it. */
typedef struct entry_head {
    uint64_t number;
    int64_t offset;
    uint16_t size;
    uint8_t type;
    char name[];
} entry_head;

/* readdir asks for memory, which a signal handler must not. */
static void remove_files(int folder) {
    _Alignas(entry_head) char block[2048];
    long size;
    while ((size = syscall(SYS_getdents64, folder, block, sizeof block)) > 0)
        for (long at = 0; at < size;) {
            const entry_head *entry = (const void *)(block + at);
            unlinkat(folder, entry->name, 0); /* "." and ".." are not files */
            at += entry->size;
        }
}

/* A process that was killed may just finish the system call that makes a file. */
void qn__folder_remove(int at, const char *name) {
    static const struct timespec soon = {.tv_nsec = 1000000};
    for (int tries = 0; tries < TRIES; tries++) {
        const int folder = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder < 0)
            return;
        remove_files(folder);
        close(folder);
        if (unlinkat(at, name, AT_REMOVEDIR) == 0 || errno != ENOTEMPTY)
            return;
        nanosleep(&soon, NULL);
    }
}

/* Only system calls and lock-free loads, which are safe in a signal handler. */
void qn_files_abandon(void) {
    const int error = errno;
    for (int i = 0; i < ENTRIES; i++) {
        const pid_t group = atomic_load(&groups[i]);
        if (group > 0)
            kill(-group, SIGKILL);
    }
    for (int i = 0; i < ENTRIES; i++) {
        const char *name = atomic_load(&table[i].name);
        if (name && unlinkat(table[i].folder, name, 0) != 0 && errno == EISDIR)
            qn__folder_remove(table[i].folder, name);
    }
    errno = error;
}

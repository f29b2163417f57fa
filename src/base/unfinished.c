#include "base/unfinished.h"

#include <errno.h>
#include <fcntl.h>
#include <quern/files.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

/* A thread writes one file at a time, so this many are more than enough. */
enum { ENTRIES = 64 };

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

/* A folder is an entry behind that of the file in it. Only unlinkat and lock-free loads: both are
 * safe in a signal handler. */
void qn_files_abandon(void) {
    const int error = errno;
    for (int i = 0; i < ENTRIES; i++) {
        const char *name = atomic_load(&table[i].name);
        if (name && unlinkat(table[i].folder, name, 0) != 0 && errno == EISDIR)
            unlinkat(table[i].folder, name, AT_REMOVEDIR);
    }
    errno = error;
}

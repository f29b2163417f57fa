/* The line of a lock file: qn__folder_lock. */
#include "fuzz/fuzz.h"

#include "base/files/folder_lock.h"
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

/* Of the corpus. */
enum { OWNER = 0x5f };

static const char *folder;
static char path[64];

static int yes(void *user) {
    (void)user;
    return 1;
}

static void remove_all(void) { unlink(path); }

static void make_folder(void) {
    if (folder)
        return;
    folder = fuzz_folder();
    snprintf(path, sizeof path, "%s/lock", folder);
    atexit(remove_all);
}

static void put(const uint8_t *bytes, size_t size) {
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_MUST(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    close(file);
}

static qn_status take(const qn__owner *owner, qn__lock *lock) {
    qn_error err = {0};
    const qn_status status =
        qn__folder_lock(folder, "lock", "the folder", "`train.run_dir`", owner, lock, &err);
    if (status == QN_OK)
        FUZZ_MUST(qn__lock_held(lock));
    else
        FUZZ_MUST(err.status == status && *err.what && lock->file < 0 && !lock->path);
    return status;
}

/* Nobody holds it: it is taken with a greater number, or refused and unchanged. */
static void check_free(const uint8_t *bytes, size_t size, const qn__owner *owner) {
    char text[96] = "";
    qn__lock lock;
    put(bytes, size);
    const qn_status status = take(owner, &lock);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    FUZZ_MUST(status == QN_OK || status == QN_IO);
    if (status == QN_OK) {
        unsigned long long number = 0;
        FUZZ_MUST(sscanf(text, "%*d %llu", &number) == 1 && number == lock.number);
        FUZZ_MUST(got > 0 && text[got - 1] == '\n');
        qn__lock_release(&lock);
    } else {
        const size_t same = size < sizeof text - 1 ? size : sizeof text - 1;
        FUZZ_MUST((size_t)got == same && memcmp(text, bytes, same) == 0);
    }
}

/* Another process holds it: only ranks of the same run take it. */
static void check_held(const uint8_t *bytes, size_t size, const qn__owner *owner) {
    qn__lock lock;
    put(bytes, size);
    const int file = open(path, O_RDWR | O_CLOEXEC);
    FUZZ_MUST(flock(file, LOCK_EX | LOCK_NB) == 0);
    const qn_status status = take(owner, &lock);
    FUZZ_MUST(status == QN_BUSY || (status == QN_OK && owner));
    qn__lock_release(&lock);
    close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    const qn__owner owner = {.id = OWNER, .may = yes};
    make_folder();
    check_free(bytes, size, NULL);
    check_free(bytes, size, &owner);
    check_held(bytes, size, NULL);
    check_held(bytes, size, &owner);
    return 0;
}

/* Built programs on disk. A cached program is used only if it is ours: this user owns the folder
 * and the file, no other user may write to them, and the file's digest is correct. */
#include "base/files/program_cache.h"
#include "base/digest/sha256.h"
#include "base/files/cache_folder.h"
#include "base/files/file.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOTE = QN__PROGRAM_NOTE, LARGEST = 1 << 30, DIGITS = 64 };

/* A file: this header, the key, the program. Numbers are in the machine's byte order; a file from a
 * machine of another order has invalid lengths and is ignored. */
typedef struct header {
    char magic[16];
    uint64_t key, program; /* bytes */
    uint8_t digest[32];    /* SHA-256 of key and program */
} header;

static const char magic[16] = "quern program 1";

static void digest_of(const char *key, size_t key_bytes, const void *program, size_t bytes,
                      uint8_t digest[32]) {
    qn__sha256 hash;
    qn__sha256_begin(&hash);
    qn__sha256_add(&hash, key, key_bytes);
    qn__sha256_add(&hash, program, bytes);
    qn__sha256_end(&hash, digest);
}

/* The note for a failure: what failed, and where. */
static void note_error(char *note, const qn_error *err) {
    snprintf(note, NOTE, "programs are not cached: %.*s; QUERN_CACHE names another folder",
             NOTE - 80, err->what);
}

/* The file of a key. Without a usable folder a note is left; no note if it merely does not exist
 * and `make` is 0. */
static int path_of(const char *key, const char *ending, int make, char path[PATH_MAX], char *note) {
    qn_error err = {0};
    uint8_t digest[32];
    char hex[65];
    note[0] = '\0';
    const qn_status status = qn__cache_folder(make, path, &err);
    if (status == QN_USAGE)
        snprintf(note, NOTE, "programs are not cached: %.*s", NOTE - 80, err.what);
    else if (status != QN_OK)
        note_error(note, &err);
    if (path[0] == '\0')
        return 0;
    qn__sha256_of(key, strlen(key), digest);
    qn__hex(digest, hex);
    const size_t used = strlen(path);
    snprintf(path + used, PATH_MAX - used, "/%s%s", hex, ending);
    return 1;
}

/* Reads exactly `bytes` bytes; 0 when the file is shorter or cannot be read. */
static int read_exactly(int file, void *to, size_t bytes) {
    char *at = to;
    while (bytes > 0) {
        const ssize_t got = read(file, at, bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return 0;
        at += got;
        bytes -= (size_t)got;
    }
    return 1;
}

/* Whether the header belongs to a file of `size` bytes with this key. */
static int fits(const header *head, const char *key, uint64_t size) {
    return memcmp(head->magic, magic, sizeof magic) == 0 && head->key == strlen(key) &&
           head->program > 0 && head->program <= LARGEST && head->key <= LARGEST &&
           size == sizeof *head + head->key + head->program;
}

/* Key and program of an open file, checked; NULL with the reason in err. */
static void *read_program(int file, const char *path, const char *key, size_t *bytes,
                          qn_error *err) {
    struct stat info;
    header head;
    uint8_t digest[32];
    if (fstat(file, &info) != 0) {
        qn__fail_errno(err, "look at", path);
        return NULL;
    }
    if (!S_ISREG(info.st_mode)) {
        qn__fail(err, QN_FORMAT, "%s is not a regular file", path);
        return NULL;
    }
    if (qn__cache_trust(&info, path, err) != QN_OK)
        return NULL;
    if (!read_exactly(file, &head, sizeof head) || !fits(&head, key, (uint64_t)info.st_size)) {
        qn__fail(err, QN_FORMAT, "%s is broken or no cached program", path);
        return NULL;
    }
    const size_t key_bytes = (size_t)head.key, size = (size_t)head.program;
    char *all = qn__alloc(key_bytes + size, 1, err);
    if (!all)
        return NULL;
    if (!read_exactly(file, all, key_bytes + size) ||
        (digest_of(all, key_bytes, all + key_bytes, size, digest),
         memcmp(digest, head.digest, sizeof digest) != 0) ||
        memcmp(all, key, key_bytes) != 0) {
        qn__fail(err, QN_FORMAT, "%s is broken", path);
        qn__free(all);
        return NULL;
    }
    memmove(all, all + key_bytes, size);
    *bytes = size;
    return all;
}

void qn__program_cache_load(const char *key, const char *ending, void **program, size_t *bytes,
                            char *note) {
    char path[PATH_MAX];
    qn_error err = {0};
    *program = NULL;
    *bytes = 0;
    if (!path_of(key, ending, 0, path, note))
        return;
    /* Non-blocking: opening a pipe of that name must not block. */
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (file < 0 && errno == ENOENT)
        return;
    if (file < 0)
        qn__fail_errno(&err, "open", path);
    else
        *program = read_program(file, path, key, bytes, &err);
    if (file >= 0)
        close(file);
    if (!*program)
        snprintf(note, NOTE, "a cached program was ignored and is built again: %.*s", NOTE - 50,
                 err.what);
}

/* ------------------------------------------------------------------ space */

static int is_entry(const char *name, const char *ending) {
    return strspn(name, "0123456789abcdef") == DIGITS && strcmp(name + DIGITS, ending) == 0;
}

/* How many entries there are, and which was not written for longest. */
static uint32_t count_entries(DIR *folder, const char *ending, char oldest[QN__CACHE_NAME]) {
    struct stat info;
    struct timespec least = {0};
    uint32_t count = 0;
    rewinddir(folder);
    for (const struct dirent *one; (one = readdir(folder)) != NULL;) {
        if (!is_entry(one->d_name, ending) || strlen(one->d_name) >= QN__CACHE_NAME ||
            fstatat(dirfd(folder), one->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (count++ > 0 &&
            (info.st_mtim.tv_sec > least.tv_sec ||
             (info.st_mtim.tv_sec == least.tv_sec && info.st_mtim.tv_nsec >= least.tv_nsec)))
            continue;
        least = info.st_mtim;
        snprintf(oldest, QN__CACHE_NAME, "%.*s", QN__CACHE_NAME - 1, one->d_name);
    }
    return count;
}

void qn__program_cache_trim(const char *ending, uint32_t most) {
    char path[PATH_MAX], oldest[QN__CACHE_NAME] = "";
    DIR *folder = qn__cache_folder(0, path, NULL) == QN_OK && path[0] ? opendir(path) : NULL;
    while (folder && count_entries(folder, ending, oldest) > most &&
           unlinkat(dirfd(folder), oldest, 0) == 0) {
    }
    if (folder)
        closedir(folder);
}

/* ------------------------------------------------------------------ writing */

void qn__program_cache_store(const char *key, const char *ending, const void *program, size_t bytes,
                             char *note) {
    char path[PATH_MAX];
    qn_error err = {0};
    struct stat old;
    qn__writer *writer = NULL;
    header head = {.key = strlen(key), .program = bytes};
    if (!path_of(key, ending, 1, path, note))
        return;
    if (bytes == 0 || bytes > LARGEST) {
        snprintf(note, NOTE, "a program of %zu bytes is not cached", bytes);
        return;
    }
    /* Through a link or a pipe of that name the bytes would be written elsewhere. */
    if (lstat(path, &old) == 0 && !S_ISREG(old.st_mode) && unlink(path) != 0) {
        qn__fail_errno(&err, "replace", path);
        note_error(note, &err);
        return;
    }
    memcpy(head.magic, magic, sizeof magic);
    digest_of(key, strlen(key), program, bytes, head.digest);
    qn_status status = qn__writer_create_private(path, &writer, &err);
    if (status == QN_OK) {
        qn__writer_add(writer, &head, sizeof head, NULL);
        qn__writer_add(writer, key, strlen(key), NULL);
        qn__writer_add(writer, program, bytes, NULL);
        status = qn__writer_commit(writer, &err);
    }
    if (status != QN_OK)
        note_error(note, &err);
}

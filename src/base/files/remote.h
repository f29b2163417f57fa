/* Files at addresses, in the place of paths: "s3://bucket/key", "gs://bucket/key",
 * "https://host/path", "http://host/path". src/store implements these functions.
 *
 * An open address is a file descriptor of a sparse file of the cache folder. Its size is that of
 * the file in the store. Before bytes of it are read, qn__remote_ensure fetches those that are
 * missing. All functions accept descriptors of local files, too, and then do next to nothing. Any
 * thread. */
#ifndef QN_BASE_FILES_REMOTE_H
#define QN_BASE_FILES_REMOTE_H

#include "base/error.h"
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* 1: the path is an address. */
int qn__remote_is(const char *path);
/* 1: files of this address can be listed; those of a web server cannot. */
int qn__remote_can_list(const char *path);

/* A path as messages show it: of an address without user, password and query. */
void qn__remote_shown(const char *path, char *shown, size_t capacity);

/* The same of a word of a command line, changed in place. */
void qn__remote_hide(char *word);

enum { QN__REMOTE_TAG = 160 };

/* What a store says about a file. */
typedef struct qn__remote_about {
    uint64_t size;
    char tag[QN__REMOTE_TAG]; /* the ETag with its quotes, or the time of the last change; "": none.
                                 A change of the file changes it. */
} qn__remote_about;

/* Fails with QN_INPUT (the file is missing, or it may not be read), QN_IO, QN_UNSUPPORTED
 * (libcurl is missing) or QN_MEMORY, with the address as the place. */
qn_status qn__remote_look(const char *address, qn__remote_about *out, qn_error *err);

/* 1: the address stands for a folder: it ends in a slash, or a store that lists its files has none
 * with this address, and others below it. 0 for paths. */
int qn__remote_is_folder(const char *path);

/* 1: a folder of this machine, or such an address. */
int qn__path_is_folder(const char *path);

/* 1: there is such a file, at an address or here; folders do not count. */
int qn__remote_file_is_there(const char *path);

/* Opens it for reading. *file is the caller's, for qn__remote_close. As qn__remote_look fails. */
qn_status qn__remote_open(const char *address, int *file, qn_error *err);
/* The file will be opened soon, as one of many that are opened one after the other: its store is
 * asked meanwhile, for several files at once. A small file is then kept in memory until the end, so
 * that it is asked for once. `owner` is any address of memory of the one who tells. 0: so many wait
 * that this one does not count; say it again later. Nothing happens for a path. */
int qn__remote_soon(const void *owner, const char *address);
/* The owner opens no more of them. */
void qn__remote_soon_end(const void *owner);
/* Another descriptor of an open file, made by dup or through /proc: it counts until it is closed.
 */
void qn__remote_hold(int file);
/* Closes a descriptor of any file; -1: nothing. */
void qn__remote_close(int file);

/* Somebody waits for the end of a run. Until it is taken back, a request that reads and gets no
 * byte for a second ends, one that writes after five; and reading is not tried again. `one` is 0 at
 * first, and 1 while it counts. Async-signal-safe. */
extern atomic_int qn__remote_hurries;
static inline void qn__remote_hurry(atomic_int *one) {
    if (atomic_exchange(one, 1) == 0)
        atomic_fetch_add(&qn__remote_hurries, 1);
}
static inline void qn__remote_hurry_end(atomic_int *one) {
    if (atomic_exchange(one, 0) == 1)
        atomic_fetch_sub(&qn__remote_hurries, 1);
}

/* How many addresses are open in this process. */
extern atomic_int qn__remote_open_files;

/* 1: the descriptor is that of an address. */
int qn__remote_has(int file);
/* *out is what the store said when it was opened: 1; 0: the descriptor is not that of an address.
 */
int qn__remote_about_of(int file, qn__remote_about *out);
/* The functions below for the descriptor of an address. */
qn_status qn__remote_fetch(int file, uint64_t from, uint64_t size, qn_error *err);
int qn__remote_stat_of(int file, struct stat *info);

/* Returns when the bytes [from, from + size) are there; what is after the end of the file does not
 * count. Fails with QN_INPUT (the file has changed) or QN_IO. */
static inline qn_status qn__remote_ensure(int file, uint64_t from, uint64_t size, qn_error *err) {
    if (atomic_load_explicit(&qn__remote_open_files, memory_order_relaxed) == 0)
        return QN_OK;
    return qn__remote_fetch(file, from, size, err);
}

/* These bytes will be read soon: they are fetched meanwhile. From the first call on nothing else of
 * the file is fetched before it is read. */
void qn__remote_plan_of(int file, uint64_t from, uint64_t size);
static inline void qn__remote_plan(int file, uint64_t from, uint64_t size) {
    if (atomic_load_explicit(&qn__remote_open_files, memory_order_relaxed) > 0)
        qn__remote_plan_of(file, from, size);
}

/* fstat. The numbers and times of an address are made from the address and its tag: they change
 * with the file in the store, and not when a part of it is fetched. */
static inline int qn__remote_stat(int file, struct stat *info) {
    if (atomic_load_explicit(&qn__remote_open_files, memory_order_relaxed) == 0)
        return fstat(file, info);
    return qn__remote_stat_of(file, info);
}

/* The same of a file that a list names. */
void qn__remote_listed_stat(const char *address, const qn__remote_about *about, struct stat *info);

/* Called for each file, in the bytewise order of their addresses. A status other than QN_OK ends
 * the listing. */
typedef qn_status (*qn__remote_found)(void *user, const char *address,
                                      const qn__remote_about *about, qn_error *err);

/* Lists the files whose addresses begin with `prefix`, but not those that are empty and end in a
 * slash: they stand for a folder. At most `most` are given; 0: all. */
qn_status qn__remote_list(const char *prefix, size_t most, qn__remote_found each, void *user,
                          qn_error *err);

#endif

/* Addresses as files (base/files/remote.h). */
#include "base/files/remote.h"
#include "base/digest/sha256.h"
#include "base/memory.h"
#include "store/cached.h"
#include "store/fetch.h"
#include "store/soon.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

atomic_int qn__remote_open_files, qn__remote_hurries;

/* Files that are open, in a list. A descriptor belongs to the one whose inode it has; while the
 * file is open here, no other file gets this inode. */
static pthread_rwlock_t open_guard = PTHREAD_RWLOCK_INITIALIZER;
static qn__cached *opened;

int qn__remote_is(const char *path) { return qn__store_kind_of(path) != NULL; }

void qn__remote_shown(const char *path, char *shown, size_t capacity) {
    const qn__store_kind *kind = qn__store_kind_of(path);
    if (kind && !kind->bucket)
        qn__http_shown(path, shown, capacity);
    else
        snprintf(shown, capacity, "%s", path);
}

void qn__remote_hide(char *word) {
    char *at = strstr(word, "http://");
    at = at ? at : strstr(word, "https://");
    if (!at)
        return;
    const size_t size = strlen(at) + 1;
    char *shown = qn__alloc(size, 1, NULL);
    if (shown)
        qn__http_shown(at, shown, size);
    memcpy(at, shown ? shown : "", shown ? strlen(shown) + 1 : 1);
    qn__free(shown);
}

int qn__remote_can_list(const char *path) {
    const qn__store_kind *kind = qn__store_kind_of(path);
    return kind && (kind->bucket || kind->hdfs);
}

/* Under the guard. */
static qn__cached *find_open(int file) {
    struct stat info;
    if (file < 0 || fstat(file, &info) != 0)
        return NULL;
    qn__cached *at = opened;
    while (at && (at->inode != info.st_ino || at->device != info.st_dev))
        at = at->following;
    return at;
}

/* The file of a descriptor. It stays open while the descriptor is. */
static qn__cached *find_locked(int file) {
    pthread_rwlock_rdlock(&open_guard);
    qn__cached *found = find_open(file);
    pthread_rwlock_unlock(&open_guard);
    return found;
}

static int ends_in_slash(const char *address) {
    const size_t size = strlen(address);
    return size > 0 && address[size - 1] == '/';
}

int qn__remote_file_is_there(const char *path) {
    struct stat about;
    qn__remote_about far;
    if (qn__remote_is(path))
        return !ends_in_slash(path) && qn__remote_look(path, &far, NULL) == QN_OK;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

static qn_status note_exact(void *user, const char *address, const qn__remote_about *about,
                            qn_error *err) {
    const char **path = user;
    (void)about, (void)err;
    if (strcmp(address, *path) == 0)
        *path = NULL;
    return QN_OK;
}

static qn_status note_one(void *user, const char *address, const qn__remote_about *about,
                          qn_error *err) {
    (void)address, (void)about, (void)err;
    *(int *)user = 1;
    return QN_OK;
}

/* A store that does not list its files is taken at its word when the file is opened. */
int qn__remote_is_folder(const char *path) {
    char below[QN__ADDRESS_MOST];
    const char *missing = path;
    int found = 0;
    if (ends_in_slash(path) || !qn__remote_can_list(path))
        return ends_in_slash(path) && qn__remote_is(path);
    if (snprintf(below, sizeof below, "%s/", path) >= (int)sizeof below)
        return 0;
    if (qn__remote_list(path, 1, note_exact, &missing, NULL) != QN_OK || !missing)
        return 0;
    return qn__remote_list(below, 1, note_one, &found, NULL) == QN_OK && found;
}

int qn__path_is_folder(const char *path) {
    struct stat about;
    if (qn__remote_is(path))
        return qn__remote_is_folder(path);
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* ------------------------------------------------------------------ opening and closing */

/* A descriptor with a position of its own. */
static qn_status open_again(const qn__cached *cached, int *file, qn_error *err) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", cached->data);
    *file = open(path, O_RDONLY | O_CLOEXEC);
    return *file >= 0 ? QN_OK : qn__fail_errno(err, "open the cached part of", cached->address);
}

/* The file of this address that is open already: its readers see one state of it. */
static qn__cached *share(const char *address) {
    pthread_rwlock_wrlock(&open_guard);
    qn__cached *at = opened;
    while (at && strcmp(at->address, address) != 0)
        at = at->following;
    if (at)
        at->users++;
    pthread_rwlock_unlock(&open_guard);
    return at;
}

/* Two threads may have opened the same file at once: then the first one's is used, since an inode
 * says which file a descriptor belongs to. */
static qn__cached *insert_open(qn__cached *cached) {
    pthread_rwlock_wrlock(&open_guard);
    qn__cached *same = find_open(cached->data);
    if (same) {
        same->users++;
    } else {
        cached->following = opened;
        opened = cached;
        atomic_fetch_add(&qn__remote_open_files, 1);
    }
    pthread_rwlock_unlock(&open_guard);
    if (!same)
        return cached;
    qn__cached_free(cached);
    return same;
}

/* One user fewer; the last one closes the file. */
static void leave(qn__cached *cached) {
    pthread_rwlock_wrlock(&open_guard);
    const int is_last = --cached->users == 0;
    for (qn__cached **at = &opened; is_last && *at; at = &(*at)->following)
        if (*at == cached) {
            *at = cached->following;
            atomic_fetch_sub(&qn__remote_open_files, 1);
            break;
        }
    pthread_rwlock_unlock(&open_guard);
    if (!is_last)
        return;
    qn__fetch_stop(cached);
    qn__cached_free(cached);
}

static qn_status open_now(const char *address, int *file, qn_error *err) {
    qn_status status = QN_OK;
    *file = -1;
    qn__cached *cached = share(address);
    if (!cached) {
        status = qn__cached_open(address, &cached, err);
        if (status == QN_OK)
            cached = insert_open(cached);
    }
    if (status != QN_OK)
        return status;
    status = open_again(cached, file, err);
    if (status != QN_OK)
        leave(cached);
    return status;
}

qn_status qn__remote_open(const char *address, int *file, qn_error *err) {
    qn__soon_wait(address);
    const qn_status status = open_now(address, file, err);
    qn__soon_opened(address);
    return status;
}

void qn__remote_hold(int file) {
    if (atomic_load(&qn__remote_open_files) == 0)
        return;
    pthread_rwlock_wrlock(&open_guard);
    qn__cached *found = find_open(file);
    if (found)
        found->users++;
    pthread_rwlock_unlock(&open_guard);
}

void qn__remote_close(int file) {
    if (file < 0)
        return;
    qn__cached *found = atomic_load(&qn__remote_open_files) ? find_locked(file) : NULL;
    close(file);
    if (found)
        leave(found);
}

/* ------------------------------------------------------------------ reading */

int qn__remote_has(int file) {
    return atomic_load(&qn__remote_open_files) > 0 && find_locked(file) != NULL;
}

int qn__remote_about_of(int file, qn__remote_about *out) {
    const qn__cached *cached = atomic_load(&qn__remote_open_files) ? find_locked(file) : NULL;
    if (cached)
        *out = cached->about;
    return cached != NULL;
}

qn_status qn__remote_fetch(int file, uint64_t from, uint64_t size, qn_error *err) {
    qn__cached *cached = find_locked(file);
    return cached ? qn__cached_fetch(cached, from, size, err) : QN_OK;
}

/* More of a file is fetched when it is read. */
#define SOON_WHOLE ((uint64_t)1 << 20)

static qn_status open_soon(const char *address, int *file) {
    const qn_status status = open_now(address, file, NULL);
    qn__cached *cached = status == QN_OK ? find_locked(*file) : NULL;
    if (cached && cached->ranges && cached->about.size <= SOON_WHOLE)
        (void)qn__cached_fetch(cached, 0, cached->about.size, NULL);
    return status;
}

int qn__remote_soon(const void *owner, const char *address) {
    static const qn__soon_way way = {qn__cached_known, open_soon, qn__remote_close};
    return !qn__remote_is(address) || qn__soon_add(owner, address, &way);
}

void qn__remote_soon_end(const void *owner) { qn__soon_end(owner); }

void qn__remote_plan_of(int file, uint64_t from, uint64_t size) {
    qn__cached *cached = find_locked(file);
    if (cached)
        qn__fetch_plan(cached, from, size);
}

void qn__remote_listed_stat(const char *address, const qn__remote_about *about, struct stat *info) {
    qn__sha256 hash;
    uint64_t part[4];
    qn__sha256_begin(&hash);
    qn__sha256_add(&hash, address, strlen(address) + 1);
    qn__sha256_add(&hash, about->tag, strlen(about->tag) + 1);
    qn__sha256_end(&hash, (uint8_t *)part);
    info->st_mode = S_IFREG | 0400;
    info->st_nlink = 1;
    info->st_size = (off_t)about->size;
    info->st_dev = (dev_t)(part[0] >> 33);
    info->st_ino = (ino_t)(part[1] >> 1);
    /* Long ago, so that no reader waits for the end of the clock's tick. */
    info->st_mtim = (struct timespec){(time_t)(part[2] >> 36), (long)(part[3] % 1000000000)};
    info->st_ctim = info->st_mtim;
}

int qn__remote_stat_of(int file, struct stat *info) {
    const int result = fstat(file, info);
    const qn__cached *cached = result == 0 ? find_locked(file) : NULL;
    if (cached)
        qn__remote_listed_stat(cached->address, &cached->about, info);
    return result;
}

qn_status qn__remote_look(const char *address, qn__remote_about *out, qn_error *err) {
    qn__object_first first;
    const qn_status status = qn__object_look(address, "", &first, err);
    if (status == QN_OK) {
        *out = first.about;
        qn__free(first.bytes);
    }
    return status;
}

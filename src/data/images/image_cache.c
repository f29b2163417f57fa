#include "data/images/image_cache.h"
#include "base/files/cache_folder.h"
#include "base/files/cache_space.h"
#include "base/files/remote.h"
#include "data/images/image_names.h"
#include "data/table/data.h"
#include "image/decode.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file: the head, the values from a page on with their margin, the key and the stamp, the names,
 * the marks and the sizes of the files. Numbers have the byte order of the machine; a file of
 * another one has a wrong `order`. */
enum { VALUES = 4096, ALIGNMENT = 64, ORDER = 0x01020304 };
static const char magic[24] = "quern decoded images 4";

typedef struct head {
    char magic[24];
    uint32_t order, rows, columns, channels;
    uint64_t items, files, text; /* as in qn__image_entry */
    uint64_t turned, newer;      /* the same */
    uint64_t key;                /* bytes of the key, with its NUL; the stamp follows */
    uint8_t values_digest[32];
    uint8_t rest_digest[32]; /* SHA-256 of the head, 0 in its place, and of all after the values */
} head;

/* ------------------------------------------------------------------ which entry */

static void add_libraries_and_stamp(qn__image_cache *cache, qn__files_stamp *stamp) {
    qn__text libraries = {0};
    qn__image_libraries_add(&libraries);
    qn__files_stamp_add(stamp, libraries.data ? libraries.data : "", 0);
    cache->off |= libraries.failed || !qn__files_stamp_end(stamp, cache->stamp);
    qn__text_release(&libraries);
}

void qn__image_cache_begin(qn__image_cache *cache, const qn__source *source,
                           const qn__enclosed_files *files, const qn__resize *resize,
                           int skip_broken, int turns, int later) {
    char how[QN__RESIZE_TEXT];
    qn__files_stamp stamp = {0};
    struct stat info;
    uint8_t digest[32];
    if (cache->off)
        return;
    qn__resize_text(resize, how);
    const char *given = qn__source_path(source);
    char *path = qn__remote_is(given) ? strdup(given) : realpath(given, NULL);
    qn__text_add(&cache->key, "%s\n%s\n%s\n%s %s\n", path ? path : "", how,
                 skip_broken ? "skip" : "", turns ? "turned" : "stored",
                 later ? "old formats" : "all formats");
    cache->off = !path || cache->key.failed;
    free(path);
    if (files)
        stamp = files->stamp;
    else if (qn__remote_stat(qn__source_descriptor(source), &info) == 0)
        qn__files_stamp_add(&stamp, "", qn__files_stamp_of(&info, &stamp));
    else
        cache->off = 1;
    if (cache->off)
        return;
    add_libraries_and_stamp(cache, &stamp);
    qn__sha256_of(cache->key.data, cache->key.size, digest);
    qn__hex(digest, cache->name);
    strcat(cache->name, QN__CACHE_IMAGES);
}

void qn__image_cache_end(qn__image_cache *cache) {
    qn__text_release(&cache->key);
    qn__mapped_file_close(cache->file);
    cache->file = NULL;
}

qn__mapped_file *qn__image_cache_take(qn__image_cache *cache) {
    qn__mapped_file *file = cache->file;
    cache->file = NULL;
    return file;
}

/* ------------------------------------------------------------------ the layout */

/* Where the key begins, after the values; 0: it cannot be addressed. */
static size_t tail_of(uint64_t items, uint64_t features) {
    uint64_t values;
    if (__builtin_mul_overflow(items, features, &values) || values > SIZE_MAX / 4)
        return 0;
    return ((size_t)values + VALUES + QN__DATA_MARGIN + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static uint64_t features_of(const qn__image_entry *e) {
    return (uint64_t)e->rows * e->columns * e->channels; /* 2^34 at most */
}

static void digest_rest(const head *h, const uint8_t *tail, size_t size, uint8_t digest[32]) {
    head own = *h;
    qn__sha256 hash;
    memset(own.rest_digest, 0, sizeof own.rest_digest);
    qn__sha256_begin(&hash);
    qn__sha256_add(&hash, &own, sizeof own);
    qn__sha256_add(&hash, tail, size);
    qn__sha256_end(&hash, digest);
}

static void digest_values(const qn__image_entry *e, qn__pool *pool, uint8_t digest[32]) {
    const qn_data table = {.type = QN_U8,
                           .items = e->items,
                           .features = (uint32_t)features_of(e),
                           .values = e->values};
    qn__data_values_digest(&table, pool, digest);
}

/* ------------------------------------------------------------------ finding */

/* Bytes of the marks and the sizes. */
static uint64_t rest_of(uint64_t files) { return files * (1 + sizeof(qn__item_size)); }

/* Whether the sizes in the head are those of an entry of `size` bytes; *tail is where the key is.
 */
static int fits(const head *h, size_t size, size_t *tail) {
    const uint64_t area = (uint64_t)h->rows * h->columns;
    if (memcmp(h->magic, magic, sizeof magic) != 0 || h->order != ORDER || h->items == 0 ||
        h->items > h->files || h->files > size || h->text > size || h->key > size || area == 0 ||
        (h->channels != 1 && h->channels != 3) || area > UINT32_MAX / 3)
        return 0;
    *tail = tail_of(h->items, area * h->channels);
    return *tail != 0 && *tail <= size &&
           size - *tail ==
               h->key + sizeof((qn__image_cache *)0)->stamp + h->text + rest_of(h->files);
}

static void take_head(const head *h, const uint8_t *bytes, const uint8_t *tail,
                      qn__image_entry *out) {
    const uint8_t *names = tail + h->key + sizeof((qn__image_cache *)0)->stamp;
    *out = (qn__image_entry){.rows = h->rows,
                             .columns = h->columns,
                             .channels = h->channels,
                             .items = h->items,
                             .files = h->files,
                             /* Nobody writes to what was found; to what is made the reader does. */
                             .values = (uint8_t *)(uintptr_t)(bytes + VALUES),
                             .values_digest = bytes + offsetof(head, values_digest),
                             .names = (const char *)names,
                             .text = h->text,
                             .marks = names + h->text,
                             .sizes = names + h->text + h->files,
                             .turned = h->turned,
                             .newer = h->newer};
}

static uint64_t count_good(const qn__image_entry *e) {
    uint64_t good = 0;
    for (uint64_t i = 0; i < e->files; i++)
        good += e->marks[i] == QN__FILE_ITEM;
    return good;
}

/* Of an earlier version of Quern, which wrote a smaller number. */
static int is_older(const uint8_t *bytes) {
    const size_t number = sizeof "quern decoded images " - 1;
    return memcmp(bytes, magic, number) == 0 && bytes[number] >= '0' &&
           bytes[number] < (uint8_t)magic[number];
}

/* 1: it is the entry. 0: it is of images that have changed since, of an earlier version, or
 * damaged. */
static int is_right(const qn__image_cache *cache, qn__pool *pool, const qn__mapped_file *file,
                    qn__image_entry *out, int *damaged) {
    const uint8_t *bytes = qn__mapped_file_bytes(file);
    const size_t size = qn__mapped_file_size(file);
    uint8_t digest[32];
    size_t at = 0;
    head h;
    *damaged = size < sizeof h || !is_older(bytes);
    if (size < sizeof h)
        return 0;
    memcpy(&h, bytes, sizeof h);
    if (!fits(&h, size, &at))
        return 0;
    digest_rest(&h, bytes + at, size - at, digest);
    if (memcmp(digest, h.rest_digest, sizeof digest) != 0)
        return 0;
    *damaged = 0;
    if (h.key != cache->key.size + 1 || memcmp(bytes + at, cache->key.data, (size_t)h.key) != 0 ||
        memcmp(bytes + at + h.key, cache->stamp, sizeof cache->stamp) != 0)
        return 0;
    take_head(&h, bytes, bytes + at, out);
    if (count_good(out) != h.items)
        return 0;
    digest_values(out, pool, digest);
    *damaged = memcmp(digest, h.values_digest, sizeof digest) != 0;
    return !*damaged;
}

int qn__image_cache_load(qn__image_cache *cache, qn__pool *pool, qn__image_entry *out) {
    char path[PATH_MAX];
    qn_error err = {0};
    int damaged = 0;
    if (cache->off || qn__cache_folder(0, path, &err) != QN_OK || path[0] == '\0')
        return 0;
    snprintf(path + strlen(path), QN__CACHE_NAME, "/%s", cache->name);
    if (qn__mapped_file_open(path, &cache->file, &err) != QN_OK)
        snprintf(cache->note, sizeof cache->note,
                 "the cached images are not used, and decoded again: %.300s", err.what);
    if (!cache->file || is_right(cache, pool, cache->file, out, &damaged))
        return cache->file != NULL;
    if (damaged)
        snprintf(cache->note, sizeof cache->note,
                 "the cached images in %.300s are damaged, and decoded again", path);
    qn__mapped_file_close(cache->file);
    cache->file = NULL;
    return 0;
}

/* ------------------------------------------------------------------ making */

int qn__image_cache_make(qn__image_cache *cache, qn__image_entry *entry) {
    char folder[PATH_MAX];
    qn_error err = {0};
    const size_t tail = tail_of(entry->items, features_of(entry));
    const uint64_t rest =
        cache->key.size + 1 + sizeof cache->stamp + entry->text + rest_of(entry->files);
    if (cache->off || tail == 0)
        return 0;
    if (qn__cache_folder(1, folder, &err) == QN_OK &&
        !qn__cache_space_make(folder, cache->name, tail + rest))
        qn__fail(&err, QN_IO, "they need %llu MiB, and half of the disk's free space is less",
                 ((unsigned long long)(tail + rest) + 0xfffff) >> 20);
    if (err.status == QN_OK)
        qn__mapped_file_create(folder, tail + (size_t)rest, &cache->file, &err);
    if (cache->file) {
        entry->values = qn__mapped_file_bytes(cache->file) + VALUES;
        return 1;
    }
    snprintf(cache->note, sizeof cache->note,
             "decoded images are not cached: %.300s; QUERN_CACHE names another folder", err.what);
    return 0;
}

static uint8_t *put(uint8_t *to, const void *bytes, size_t size) {
    memcpy(to, bytes, size);
    return to + size;
}

void qn__image_cache_keep(qn__image_cache *cache, qn__image_entry *entry) {
    char path[PATH_MAX];
    struct stat info;
    qn_error err = {0};
    uint8_t *bytes = qn__mapped_file_bytes(cache->file);
    const size_t tail = tail_of(entry->items, features_of(entry));
    head h = {.order = ORDER,
              .rows = entry->rows,
              .columns = entry->columns,
              .channels = entry->channels,
              .items = entry->items,
              .files = entry->files,
              .text = entry->text,
              .turned = entry->turned,
              .newer = entry->newer,
              .key = cache->key.size + 1};
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.values_digest, entry->values_digest, sizeof h.values_digest);
    memset(bytes + VALUES + entry->items * features_of(entry), 0, QN__DATA_MARGIN);
    uint8_t *to = put(bytes + tail, cache->key.data, cache->key.size + 1);
    to = put(to, cache->stamp, sizeof cache->stamp);
    to = put(to, entry->names, (size_t)entry->text);
    to = put(to, entry->marks, (size_t)entry->files);
    to = put(to, entry->sizes, (size_t)entry->files * sizeof(qn__item_size));
    digest_rest(&h, bytes + tail, (size_t)(to - bytes) - tail, h.rest_digest);
    memcpy(bytes, &h, sizeof h);
    entry->values_digest = bytes + offsetof(head, values_digest);
    if (qn__cache_folder(1, path, &err) == QN_OK) {
        snprintf(path + strlen(path), QN__CACHE_NAME, "/%s", cache->name);
        qn__mapped_file_publish(cache->file, path, (size_t)(to - bytes), &err);
    }
    if (err.status == QN_OK)
        return;
    /* All else that may lie in its place is replaced, if the folder lets us. */
    const int in_place = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    snprintf(cache->note, sizeof cache->note, "decoded images are not cached: %.300s; %s", err.what,
             in_place ? "remove this folder, or name another cache folder with QUERN_CACHE"
                      : "QUERN_CACHE names another folder");
}

#include "data/open/table_cache.h"
#include "base/files/cache_folder.h"
#include "base/files/mapped_file.h"
#include "base/files/remote.h"
#include "base/memory.h"
#include "base/system/available.h"
#include "base/files/files_stamp.h"
#include "data/open/data_snapshot.h"
#include <quern/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Smaller files are read in less time than a user notices. */
#define LEAST_PLAIN ((uint64_t)8 << 20)
#define LEAST_PACKED ((uint64_t)1 << 20)
/* How many times the file an entry may be. */
enum { MOST_PLAIN = 2, MOST_PACKED = 16 };

/* Fewer bytes of texts always fit memory. The memory that reading texts takes, in their bytes. */
enum { LEAST_TEXTS = 1 << 22, COPIES = 8 };

/* A file: the head, the key with its NUL, and the snapshot from a multiple of 4096 bytes on.
 * Numbers have the byte order of the machine; a file of another one has a wrong `order`. */
enum { PAGE = 4096, ORDER = 0x01020304 };
static const char magic[24] = "quern table from text 3";

typedef struct head {
    char magic[24];
    uint32_t order, reserved;
    uint64_t key;      /* bytes of the key, with its NUL */
    uint64_t snapshot; /* bytes */
    char stamp[72];
    uint8_t rest_digest[32]; /* SHA-256 of the head, 0 in its place, the key, and what the snapshot
                                has beside the values, labels and weights of its own digest */
} head;

/* ------------------------------------------------------------------ which entry */

/* Each option with its name: NULL is not "". */
static void add_text(qn__text *key, const char *name, const char *value) {
    qn__text_add(key, value ? "%s=%s\n" : "%s\n", name, value ? value : "");
}

static void add_options(qn__text *key, const qn_data_options *o) {
    add_text(key, "label", o->label_column);
    add_text(key, "task", o->task);
    add_text(key, "header", o->header);
    add_text(key, "features", o->features);
    add_text(key, "drop", o->drop);
    add_text(key, "category", o->category);
    add_text(key, "text", o->text);
    add_text(key, "text features", o->text_features);
    add_text(key, "weight", o->weight);
    add_text(key, "shape", o->shape);
    add_text(key, "expected label", o->expected_label);
    add_text(key, "expected categories", o->expected_categories);
    add_text(key, "expected text", o->expected_text);
    add_text(key, "expected weight", o->expected_weight);
    add_text(key, "expected rules", o->expected_rules);
    add_text(key, "dates", o->dates);
    add_text(key, "date format", o->date_format);
    add_text(key, "tokens", o->tokens);
    add_text(key, "expected tokens", o->expected_tokens);
    qn__text_add(key, "%u %u\n", (unsigned)o->context, (unsigned)o->expected_context);
    qn__text_add(key, "%d %u %u\n", o->unlabelled, (unsigned)o->classes,
                 (unsigned)o->expected_features);
}

static uint64_t snapshot_at(uint64_t key) { return (sizeof(head) + key + PAGE - 1) / PAGE * PAGE; }

/* Adds a file to the key, with the keys of its folders, and to the stamp. 0: without memory. */
static int add_file(qn__text *key, const qn__part_files *files, size_t i, qn__files_stamp *stamp) {
    const qn__listed_file *file = &files->list->file[i];
    char *path = qn__remote_is(file->path) ? strdup(file->path) : realpath(file->path, NULL);
    if (!path)
        return 0;
    qn__text_add(key, "%s\n", path);
    for (size_t k = 0; k < files->list->keys; k++)
        qn__text_add(key, "%s=%s\n", file->key[k].name, file->key[k].value);
    qn__files_stamp_add(stamp, "", qn__files_stamp_of(&files->seen[i], stamp));
    free(path);
    return 1;
}

static uint64_t size_of_all(const qn__part_files *files) {
    uint64_t size = 0;
    for (size_t i = 0; i < files->list->count; i++)
        size += (uint64_t)files->seen[i].st_size;
    return size;
}

static void find_entry(qn__table_cache *cache, const qn__part_files *files,
                       const qn_data_options *options) {
    qn__files_stamp stamp = {0};
    uint8_t digest[32];
    const uint64_t size = size_of_all(files);
    const int packed = qn__source_packing(files->first) != QN__PLAIN;
    cache->most = size * (packed ? MOST_PACKED : MOST_PLAIN);
    if (cache->off || qn__source_is_stream(files->first) ||
        size < (packed ? LEAST_PACKED : LEAST_PLAIN)) {
        cache->off = 1;
        return;
    }
    qn__text_add(&cache->key, "%s\n", qn_version());
    for (size_t i = 0; i < files->list->count && !cache->off; i++)
        cache->off = !add_file(&cache->key, files, i, &stamp);
    add_options(&cache->key, options);
    cache->off = cache->off || cache->key.failed || !qn__files_stamp_end(&stamp, cache->stamp);
    if (cache->off)
        return;
    qn__sha256_of(cache->key.data, cache->key.size, digest);
    qn__hex(digest, cache->name);
    strcat(cache->name, QN__CACHE_TABLES);
}

void qn__table_cache_begin(qn__table_cache *cache, const qn__part_files *files,
                           const qn_data_options *options) {
    find_entry(cache, files, options);
    cache->buffer =
        (qn__table_space){.no_file = options->no_cache == 1,
                          .path = files->name,
                          .entry = cache->name,
                          .before = snapshot_at(cache->key.size + 1) + qn__data_snapshot_values()};
}

void qn__table_cache_end(qn__table_cache *cache) { qn__text_release(&cache->key); }

/* ------------------------------------------------------------------ the layout */

/* All but the values, labels and weights, whose digest the table has. */
static void digest_rest(const head *h, const char *key, const qn_data *table, uint8_t digest[32]) {
    head own = *h;
    qn__sha256 hash;
    qn__text schema = {0};
    memset(own.rest_digest, 0, sizeof own.rest_digest);
    qn__schema_add_json(table->schema, &schema);
    qn__sha256_begin(&hash);
    qn__sha256_add(&hash, &own, sizeof own);
    qn__sha256_add(&hash, key, (size_t)h->key);
    qn__sha256_add(&hash, schema.data ? schema.data : "", schema.size);
    for (uint32_t k = 0; table->schema && k < table->features; k++)
        qn__sha256_add(&hash, &(char){table->schema->feature[k].bytes != 0}, 1);
    const char *const texts[] = {qn_data_digest(table), table->format,
                                 table->note ? table->note : "", table->tokens,
                                 table->weight_name ? table->weight_name : ""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        qn__sha256_add(&hash, texts[i], strlen(texts[i]) + 1);
    const uint64_t numbers[] = {
        table->channels,        table->rows,         table->columns, table->missing ? 1u : 0u,
        (uint64_t)table->doubt, table->label_values, table->comma,   schema.failed ? 1u : 0u};
    qn__sha256_add(&hash, numbers, sizeof numbers);
    qn__sha256_end(&hash, digest);
    qn__text_release(&schema);
}

/* ------------------------------------------------------------------ finding */

/* The head of an entry that fits its `size` bytes; 0: it is none. */
static int read_head(const uint8_t *bytes, size_t size, head *h) {
    if (size < sizeof *h)
        return 0;
    memcpy(h, bytes, sizeof *h);
    return memcmp(h->magic, magic, sizeof magic) == 0 && h->order == ORDER && h->key <= size &&
           snapshot_at(h->key) <= size && size - snapshot_at(h->key) == h->snapshot;
}

/* The bytes are those that were kept: all digests are computed again. */
static int is_whole(const head *h, const uint8_t *bytes, qn__pool *pool, const qn_data *table) {
    uint8_t digest[32];
    char text[65];
    digest_rest(h, (const char *)bytes + sizeof *h, table, digest);
    if (memcmp(digest, h->rest_digest, sizeof digest) != 0)
        return 0;
    qn__data_digest(table, pool, text);
    return strcmp(text, qn_data_digest(table)) == 0;
}

static void tell_damage(qn__table_cache *cache, const char *path) {
    snprintf(cache->note, sizeof cache->note,
             "the cached table in %.300s is damaged, and the file is read again", path);
}

/* Whether memory may hold the texts of an entry, as JSON and as texts. Else the file is read again,
 * where they lie in a file. */
static int fits(uint64_t texts) {
    return texts < LEAST_TEXTS || texts < qn__available_memory() / COPIES;
}

/* 1: some texts of the table are in a file: as JSON in an entry they would need memory. */
static int has_large_texts(const qn_data *data) {
    for (uint32_t k = 0; data->schema && k < data->features; k++)
        if (qn__depot_is_large(data->schema->feature[k].texts))
            return 1;
    return 0;
}

/* 1: `data` is the table of the entry, and owns the file. */
static int take(qn__table_cache *cache, qn__pool *pool, qn__mapped_file *file, const char *path,
                qn_data *data) {
    const uint8_t *bytes = qn__mapped_file_bytes(file);
    const size_t size = qn__mapped_file_size(file);
    qn_data *table = NULL;
    head h;
    if (!read_head(bytes, size, &h)) {
        tell_damage(cache, path);
        return 0;
    }
    if (h.key != cache->key.size + 1 ||
        memcmp(bytes + sizeof h, cache->key.data, (size_t)h.key) != 0 ||
        strncmp(h.stamp, cache->stamp, sizeof h.stamp) != 0)
        return 0; /* of a file that has changed since */
    if (!fits(qn__data_snapshot_texts(bytes + snapshot_at(h.key), h.snapshot)))
        return 0;
    if (qn__data_snapshot_map(bytes + snapshot_at(h.key), h.snapshot, &table, NULL) != QN_OK ||
        !is_whole(&h, bytes, pool, table)) {
        qn_data_close(table);
        tell_damage(cache, path);
        return 0;
    }
    *data = *table;
    data->in_file = size > qn__available_memory() / 2 ? file : NULL;
    data->memory = file;
    data->release = qn__mapped_file_close;
    qn__free(table); /* what it owned is that of `data` now */
    return 1;
}

int qn__table_cache_load(qn__table_cache *cache, qn__pool *pool, qn_data *data) {
    char path[PATH_MAX];
    qn__mapped_file *file = NULL;
    qn_error err = {0};
    if (cache->off || qn__cache_folder(0, path, &err) != QN_OK || path[0] == '\0')
        return 0;
    snprintf(path + strlen(path), QN__CACHE_NAME, "/%s", cache->name);
    if (qn__mapped_file_open(path, &file, &err) != QN_OK)
        snprintf(cache->note, sizeof cache->note,
                 "the cached table is not used, and the file is read again: %.300s", err.what);
    if (!file)
        return 0;
    if (take(cache, pool, file, path, data))
        return 1;
    qn__mapped_file_close(file);
    return 0;
}

/* ------------------------------------------------------------------ keeping */

static void fill(const qn__table_cache *cache, const qn_data *data, uint64_t snapshot,
                 uint8_t *bytes) {
    head h = {.order = ORDER, .key = cache->key.size + 1, .snapshot = snapshot};
    memcpy(h.magic, magic, sizeof magic);
    strcpy(h.stamp, cache->stamp);
    digest_rest(&h, cache->key.data, data, h.rest_digest);
    memcpy(bytes, &h, sizeof h);
    memcpy(bytes + sizeof h, cache->key.data, cache->key.size + 1);
    qn__data_snapshot_write(data, bytes + snapshot_at(h.key));
}

/* A file of the folder `path` becomes the entry. */
static void publish(const qn__table_cache *cache, qn__mapped_file *file, char path[PATH_MAX],
                    uint64_t size, qn_error *err) {
    snprintf(path + strlen(path), QN__CACHE_NAME, "/%s", cache->name);
    qn__mapped_file_publish(file, path, (size_t)size, err);
}

/* The values lie in their place of an entry already; the rest is put around them. */
static void keep_file(const qn__table_cache *cache, qn_data *data, uint64_t snapshot,
                      char path[PATH_MAX], qn_error *err) {
    const uint64_t size = snapshot_at(cache->key.size + 1) + snapshot;
    qn__mapped_file *file = data->memory;
    if (qn__cache_folder(1, path, err) != QN_OK ||
        qn__mapped_file_grow(file, (size_t)size, err) != QN_OK)
        return;
    data->values = qn__mapped_file_bytes(file) + cache->buffer.before;
    fill(cache, data, snapshot, qn__mapped_file_bytes(file));
    publish(cache, file, path, size, err);
}

static void keep_copy(const qn__table_cache *cache, const qn_data *data, uint64_t snapshot,
                      char path[PATH_MAX], qn_error *err) {
    const uint64_t size = snapshot_at(cache->key.size + 1) + snapshot;
    qn__mapped_file *file = NULL;
    if (size > cache->most)
        return;
    if (qn__cache_folder(1, path, err) == QN_OK && !qn__cache_space_make(path, cache->name, size))
        qn__fail(err, QN_IO, "it needs %llu MiB, and half of the disk's free space is less",
                 ((unsigned long long)size + 0xfffff) >> 20);
    if (err->status == QN_OK)
        qn__mapped_file_create(path, (size_t)size, &file, err);
    if (file) {
        fill(cache, data, snapshot, qn__mapped_file_bytes(file));
        publish(cache, file, path, size, err);
        qn__mapped_file_close(file);
    }
}

void qn__table_cache_keep(qn__table_cache *cache, qn_data *data) {
    char path[PATH_MAX];
    qn_error err = {0};
    const int off = cache->off || has_large_texts(data);
    const uint64_t snapshot = off ? 0 : qn__data_snapshot_bytes(data);
    if (snapshot == 0)
        return;
    if (data->in_file)
        keep_file(cache, data, snapshot, path, &err);
    else
        keep_copy(cache, data, snapshot, path, &err);
    if (err.status != QN_OK)
        snprintf(cache->note, sizeof cache->note,
                 "the table is not cached: %.300s; QUERN_CACHE names another folder", err.what);
}

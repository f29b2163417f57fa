#include "model/formats/shards.h"

#include "base/digest/sha256.h"
#include "base/files/file.h"
#include "base/files/folder_make.h"
#include "base/files/remote.h"
#include "base/memory.h"
#include "base/text/json.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MOST = 4096 };

/* A tensor of the index. */
typedef struct entry {
    const char *tensor, *file;
    int found;
} entry;

typedef struct reading {
    const char *path;
    char folder[PATH_MAX]; /* of the index, with a slash; "" where the path has none */
    entry *entry;
    size_t entries;
    qn__shards *out;
    qn_error *err;
} reading;

static qn_status refuse(const reading *r, const char *what, const char *name) {
    qn__fail(r->err, QN_FORMAT, "%s", what);
    qn__at(r->err, "%.300s%s%.80s%s", r->path, *name ? ", \"" : "", name, *name ? "\"" : "");
    return qn__remedy(r->err, QN_FORMAT,
                      "copy the model again, with its index and all of its files");
}

/* ------------------------------------------------------------------ the index */

/* A name of a file and nothing else: an index leads nowhere outside its folder. */
static int is_plain_name(const char *name) {
    return *name && *name != '.' && strchr(name, '/') == NULL && strchr(name, '\\') == NULL &&
           strlen(name) < 256;
}

static int by_tensor(const void *one, const void *other) {
    const entry *a = one, *b = other;
    return strcmp(a->tensor, b->tensor);
}

static qn_status read_entries(reading *r, const qn__json_node *map) {
    const size_t count = qn__json_count(map);
    if (!qn__json_is_object(map) || count == 0)
        return refuse(r, "the index of a model has no weight_map with its tensors", "");
    r->entry = qn__alloc(count, sizeof *r->entry, r->err);
    if (!r->entry)
        return QN_MEMORY;
    for (; r->entries < count; r->entries++) {
        const qn__json_node *node = qn__json_at(map, r->entries);
        const char *file = qn__json_string(node), *tensor = qn__json_key(node);
        if (!file)
            return refuse(r, "a tensor of the index names no file", tensor);
        if (!is_plain_name(file))
            return refuse(r, "the index names a file that is not in its folder", file);
        r->entry[r->entries] = (entry){.tensor = tensor, .file = file};
    }
    qsort(r->entry, count, sizeof *r->entry, by_tensor);
    return QN_OK;
}

/* Whether the file begins as a JSON object: no safetensors file begins with 8 bytes of which none
 * is 0. Files that cannot be opened are left to the reader. */
static int is_index(const char *path) {
    char first[64] = {0};
    struct stat about;
    int file = -1;
    if (qn__remote_is(path))
        (void)qn__remote_open(path, &file, NULL);
    else if (stat(path, &about) == 0 && S_ISREG(about.st_mode))
        file = open(path, O_RDONLY | O_CLOEXEC);
    const int there = file >= 0 && qn__remote_ensure(file, 0, sizeof first, NULL) == QN_OK;
    const ssize_t got = there ? pread(file, first, sizeof first - 1, 0) : 0;
    qn__remote_close(file);
    return got >= 8 && strlen(first) >= 8 && first[strspn(first, " \t\r\n")] == '{';
}

/* ------------------------------------------------------------------ files */

/* Takes the tensors of a file; `name`: as the index has it, NULL: there is none. */
static qn_status take_views(reading *r, const qn__tensors *file, const char *name) {
    qn__shards *out = r->out;
    const size_t count = qn__tensors_count(file);
    const qn__tensor_view **more = qn__alloc(out->tensors + count, sizeof *more, r->err);
    if (!more)
        return QN_MEMORY;
    if (out->tensors > 0)
        memcpy((void *)more, (const void *)out->view, out->tensors * sizeof *more);
    qn__free((void *)out->view);
    out->view = more;
    for (size_t i = 0; i < count; i++) {
        const qn__tensor_view *view = qn__tensors_at(file, i);
        const entry wanted = {.tensor = view->name};
        entry *found =
            name ? bsearch(&wanted, r->entry, r->entries, sizeof wanted, by_tensor) : NULL;
        if (name && (!found || strcmp(found->file, name) != 0))
            return refuse(r, "a file has a tensor that the index does not have there", view->name);
        if (found)
            found->found = 1;
        out->view[out->tensors++] = view;
    }
    return QN_OK;
}

static qn_status read_shard(reading *r, const char *name) {
    char path[PATH_MAX];
    qn__shards *out = r->out;
    if (snprintf(path, sizeof path, "%s%s", r->folder, name) >= (int)sizeof path)
        return refuse(r, "the path of a file of the index is too long", name);
    const qn_status status = qn__tensors_read_any(path, &out->file[out->files], r->err);
    if (status != QN_OK)
        return status;
    return take_views(r, out->file[out->files++], name);
}

static int by_name(const void *one, const void *other) {
    return strcmp(*(const char *const *)one, *(const char *const *)other);
}

/* Each file once, ascending by name. */
static qn_status read_shards(reading *r) {
    const char **name = qn__alloc(r->entries, sizeof *name, r->err);
    size_t names = 0;
    qn_status status = name ? QN_OK : QN_MEMORY;
    for (size_t i = 0; name && i < r->entries; i++)
        name[i] = r->entry[i].file;
    if (name)
        qsort(name, r->entries, sizeof *name, by_name);
    for (size_t i = 0; name && i < r->entries; i++)
        if (names == 0 || strcmp(name[names - 1], name[i]) != 0)
            name[names++] = name[i];
    if (names > FILES_MOST)
        status = refuse(r, "the index names more than 4,096 files", "");
    r->out->file = status == QN_OK ? qn__alloc(names, sizeof *r->out->file, r->err) : NULL;
    if (status == QN_OK && !r->out->file)
        status = QN_MEMORY;
    for (size_t i = 0; i < names && status == QN_OK; i++)
        status = read_shard(r, name[i]);
    qn__free(name);
    return status;
}

static qn_status read_index(reading *r) {
    qn__json *json = NULL;
    qn__bytes text;
    qn_status status = qn__file_read(r->path, &text, r->err);
    if (status != QN_OK)
        return status;
    const char *slash = strrchr(r->path, '/');
    snprintf(r->folder, sizeof r->folder, "%.*s", slash ? (int)(slash + 1 - r->path) : 0, r->path);
    status = qn__json_parse((const char *)text.data, text.size, &json, r->err);
    qn__bytes_release(&text);
    if (status == QN_FORMAT)
        return refuse(r, "the index of the model is not valid JSON", "");
    if (status == QN_OK)
        status = read_entries(r, qn__json_get(qn__json_root(json), "weight_map"));
    if (status == QN_OK)
        status = read_shards(r);
    for (size_t i = 0; i < r->entries && status == QN_OK; i++)
        if (!r->entry[i].found)
            status = refuse(r, "a tensor of the index is not in its file", r->entry[i].tensor);
    qn__json_free(json);
    qn__free(r->entry);
    return status;
}

static qn_status read_one(reading *r) {
    qn__shards *out = r->out;
    out->file = qn__alloc(1, sizeof *out->file, r->err);
    if (!out->file)
        return QN_MEMORY;
    const qn_status status = qn__tensors_read_any(r->path, &out->file[0], r->err);
    if (status != QN_OK)
        return status;
    out->files = 1;
    return take_views(r, out->file[0], NULL);
}

/* A folder stands for the index or the file in it. */
static const char *find_path(const char *path, char found[PATH_MAX]) {
    static const char *const names[] = {"model.safetensors.index.json", "model.safetensors"};
    if (!qn__path_is_folder(path))
        return path;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const int size =
            snprintf(found, PATH_MAX, "%s%s%s", path, qn__folder_slash(path), names[i]);
        if (size < PATH_MAX && qn__remote_file_is_there(found))
            return found;
    }
    return path;
}

qn_status qn__shards_read(const char *path, qn__shards *out, qn_error *err) {
    char found[PATH_MAX];
    reading r = {.path = find_path(path, found), .out = out, .err = err};
    *out = (qn__shards){0};
    const qn_status status = is_index(r.path) ? read_index(&r) : read_one(&r);
    if (status != QN_OK)
        qn__shards_release(out);
    return status;
}

void qn__shards_release(qn__shards *shards) {
    for (size_t i = 0; i < shards->files; i++)
        qn__tensors_free(shards->file[i]);
    qn__free(shards->file);
    qn__free((void *)shards->view);
    *shards = (qn__shards){0};
}

void qn__shards_digest(const qn__shards *shards, uint8_t digest[32]) {
    uint8_t one[32];
    qn__sha256 hash;
    if (shards->files == 1) {
        qn__tensors_file_digest(shards->file[0], digest);
        return;
    }
    qn__sha256_begin(&hash);
    for (size_t i = 0; i < shards->files; i++) {
        qn__tensors_file_digest(shards->file[i], one);
        qn__sha256_add(&hash, one, sizeof one);
    }
    qn__sha256_end(&hash, digest);
}

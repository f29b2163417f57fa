#include "data/bytes/file_list.h"
#include "base/files/file.h"
#include "base/files/folder_make.h"
#include "base/files/remote.h"
#include "base/memory.h"
#include "data/bytes/descriptor.h"
#include "data/bytes/folder.h"
#include "data/bytes/glob.h"
#include "data/bytes/named_formats.h"
#include "data/bytes/server_address.h"
#include "data/bytes/standard_input.h"
#include "image/image_head.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A list of paths is not larger. */
enum { LIST_MOST = 1 << 26 };

/* What is found on the way to a list. */
typedef struct finding {
    qn__file_list *list;
    size_t *below; /* of each file: where in its path the keys of folders begin; SIZE_MAX: it was
                      named by itself */
    size_t from;   /* the first file of the argument that is looked at */
    size_t begin;  /* `below` of those */
    const char *folder;
    const char *pattern; /* of addresses; NULL: a folder */
    int by_pattern;      /* names that only other programs use are left out */
    int pictures;        /* the folder holds images */
    int images;          /* every folder does */
} finding;

static qn_status refuse(const char *path, const char *what, const char *remedy, qn_error *err) {
    qn__fail(err, QN_INPUT, "%s", what);
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

/* ------------------------------------------------------------------ adding */

static qn_status reserve(finding *f, qn_error *err) {
    qn__file_list *list = f->list;
    const size_t capacity = list->capacity ? 2 * list->capacity : 16;
    qn__listed_file *file = qn__alloc(capacity, sizeof *file, err);
    size_t *below = qn__alloc(capacity, sizeof *below, err);
    if (!file || !below) {
        qn__free(file);
        qn__free(below);
        return QN_MEMORY;
    }
    if (list->count > 0) {
        memcpy(file, list->file, list->count * sizeof *file);
        memcpy(below, f->below, list->count * sizeof *below);
    }
    qn__free(list->file);
    qn__free(f->below);
    list->file = file;
    f->below = below;
    list->capacity = capacity;
    return QN_OK;
}

static qn_status add(finding *f, const char *path, size_t below, qn_error *err) {
    qn__file_list *list = f->list;
    if ((!f->below || list->count == list->capacity) && reserve(f, err) != QN_OK)
        return QN_MEMORY;
    char *copy = qn__name_blocks_add(&list->names, path, err);
    if (!copy)
        return QN_MEMORY;
    f->below[list->count] = below;
    list->file[list->count++] = (qn__listed_file){.path = copy};
    return QN_OK;
}

static int compare_paths(const void *a, const void *b) {
    return strcmp(((const qn__listed_file *)a)->path, ((const qn__listed_file *)b)->path);
}

/* The files of this argument by their paths, each once. */
static void sort(finding *f) {
    qn__file_list *list = f->list;
    qn__listed_file *file = list->file + f->from;
    const size_t count = list->count - f->from;
    if (count < 2)
        return;
    qsort(file, count, sizeof *file, compare_paths);
    size_t kept = 1;
    for (size_t i = 1; i < count; i++)
        if (compare_paths(&file[i], &file[kept - 1]) != 0)
            file[kept++] = file[i];
    list->count = f->from + kept;
}

/* ------------------------------------------------------------------ folders */

/* Names of files that hold no rows: those of Spark, pyarrow and Hadoop begin with an underscore
 * ("_SUCCESS", "_metadata"), unless they are a key ("_id=1"). */
static int is_beside(const char *name) {
    const size_t size = strlen(name);
    const int check = size > 4 && strcmp(name + size - 4, ".crc") == 0;
    return (name[0] == '_' && !strchr(name, '=')) || check || strcmp(name, "Thumbs.db") == 0 ||
           strcmp(name, "desktop.ini") == 0;
}

static int holds_beside(const char *path) {
    char name[NAME_MAX + 1];
    while (*path) {
        const size_t size = strcspn(path, "/");
        snprintf(name, sizeof name, "%.*s", (int)size, path);
        if (is_beside(name))
            return 1;
        path += size + strspn(path + size, "/");
    }
    return 0;
}

static int is_picture(const char *path) {
    uint8_t first[160];
    size_t got = 0;
    int file = -1;
    if (!qn__remote_is(path))
        file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    else
        (void)qn__remote_open(path, &file, NULL);
    if (file < 0)
        return 0; /* whoever reads it says what is wrong */
    const qn_status status = qn__descriptor_read(file, path, first, sizeof first, &got, NULL);
    qn__remote_close(file);
    return status == QN_OK && qn__image_is(first, got);
}

static qn_status take_file(void *user, const char *name, const struct stat *info, qn_error *err) {
    finding *f = user;
    char path[PATH_MAX];
    (void)info;
    if (holds_beside(name))
        return QN_OK;
    const char *slash = qn__folder_slash(f->folder);
    if ((size_t)snprintf(path, sizeof path, "%s%s%s", f->folder, slash, name) >= sizeof path)
        return refuse(f->folder, "the path of a file is too long", "move the folder", err);
    f->pictures = is_picture(path);
    return f->pictures ? QN_INPUT : add(f, path, f->begin, err);
}

/* Leaves out the files that were added since. */
static void forget(finding *f, size_t count) { f->list->count = count; }

/* The files of a folder, or the folder itself where it holds images. */
static qn_status take_folder(finding *f, const char *path, qn_error *err) {
    const size_t before = f->list->count;
    f->folder = path;
    f->pictures = f->images;
    const qn_status status = f->images ? QN_OK : qn__folder_list(path, take_file, f, err);
    if (status != QN_OK && !f->pictures)
        return status;
    if (!f->pictures && f->list->count > before)
        return QN_OK;
    forget(f, before);
    return add(f, path, SIZE_MAX, err);
}

/* ------------------------------------------------------------------ patterns */

static qn_status take_found(void *user, const char *path, qn_error *err) {
    finding *f = user;
    struct stat info;
    if (stat(path, &info) != 0)
        return qn__fail_errno(err, "read", path);
    const char *name = strrchr(path, '/');
    if (f->by_pattern && is_beside(name ? name + 1 : path))
        return QN_OK;
    return S_ISDIR(info.st_mode) ? take_folder(f, path, err) : add(f, path, f->begin, err);
}

static qn_status take_pattern(finding *f, const char *pattern, qn_error *err) {
    const char *name = strrchr(pattern, '/');
    const size_t before = f->list->count;
    f->begin = qn__glob_begin(pattern);
    f->by_pattern = *(name ? name + 1 : pattern) != '_';
    const qn_status status = qn__glob_walk(pattern, take_found, f, err);
    if (status != QN_OK || f->list->count > before)
        return status;
    return refuse(pattern, "no file has a path of this pattern",
                  "check it; a relative path starts at the current folder", err);
}

/* ------------------------------------------------------------------ addresses */

/* A file of a list whose address begins like the folder or the pattern. The first one tells whether
 * the folder holds images: to look at each would take a request for each. */
static qn_status take_far(void *user, const char *address, const qn__remote_about *about,
                          qn_error *err) {
    finding *f = user;
    const char *below = address + strlen(f->folder);
    (void)about;
    if (f->pattern) {
        const char *matched = f->pattern + strlen(f->folder), *name = strrchr(address, '/');
        if ((!qn__glob_matches_path(matched, below) && strcmp(address, f->pattern) != 0) ||
            (f->by_pattern && name && is_beside(name + 1)))
            return QN_OK;
    } else if (below[0] == '.' || strstr(below, "/.") || holds_beside(below)) {
        return QN_OK;
    } else if (f->list->count == f->from && (f->pictures = is_picture(address))) {
        return QN_INPUT;
    }
    return add(f, address, f->begin, err);
}

static qn_status take_far_folder(finding *f, const char *path, qn_error *err) {
    const size_t before = f->list->count;
    f->folder = path;
    f->begin = strlen(path);
    f->pattern = NULL;
    f->pictures = f->images;
    const qn_status status = f->images ? QN_OK : qn__remote_list(path, 0, take_far, f, err);
    if (status != QN_OK && !f->pictures)
        return status;
    if (!f->pictures && f->list->count > before)
        return QN_OK;
    if (!f->pictures)
        return refuse(path, "no file in the store has an address that begins so",
                      "check it; case matters", err);
    forget(f, before);
    return add(f, path, SIZE_MAX, err);
}

static qn_status take_far_pattern(finding *f, const char *pattern, qn_error *err) {
    char folder[PATH_MAX];
    const char *name = strrchr(pattern, '/');
    const size_t before = f->list->count, begin = qn__glob_begin(pattern);
    snprintf(folder, sizeof folder, "%.*s", (int)begin, pattern);
    f->folder = folder;
    f->begin = begin;
    f->pattern = pattern;
    f->by_pattern = *(name ? name + 1 : pattern) != '_';
    char prefix[PATH_MAX];
    snprintf(prefix, sizeof prefix, "%.*s", (int)strcspn(pattern, "*?["), pattern);
    const qn_status status = qn__remote_list(prefix, 0, take_far, f, err);
    f->pattern = NULL;
    if (status != QN_OK || f->list->count > before)
        return status;
    return refuse(pattern, "no file in the store has an address of this pattern",
                  "check it; case matters", err);
}

/* 1: files are below the address as a folder, which is written with a slash. */
static int is_far_folder(const char *path, char folder[PATH_MAX]) {
    return snprintf(folder, PATH_MAX, "%s%s", path, qn__folder_slash(path)) < PATH_MAX &&
           qn__remote_can_list(path) && qn__remote_is_folder(path);
}

/* The address of a file, of a folder, or a pattern of addresses of a bucket. */
static qn_status take_address(finding *f, const char *path, qn_error *err) {
    char folder[PATH_MAX];
    qn_status status;
    f->from = f->list->count;
    if (strlen(path) < PATH_MAX && qn__remote_can_list(path) && qn__glob_is(path))
        status = take_far_pattern(f, path, err);
    else if (is_far_folder(path, folder))
        status = take_far_folder(f, folder, err);
    else
        return add(f, path, SIZE_MAX, err);
    if (status == QN_OK)
        sort(f);
    return status;
}

/* ------------------------------------------------------------------ arguments */

/* A path, a folder or a pattern. */
static qn_status take_path(finding *f, const char *path, qn_error *err) {
    struct stat info;
    if (qn__remote_is(path))
        return take_address(f, path, err);
    const int there = stat(path, &info) == 0;
    qn_status status;
    f->from = f->list->count;
    if (there && S_ISDIR(info.st_mode)) {
        f->begin = strlen(path);
        f->begin += path[f->begin - 1] != '/';
        status = take_folder(f, path, err);
    } else if (!there && errno == ENOENT && qn__glob_is(path)) {
        status = qn__named_address_check(path, err);
        if (status == QN_OK)
            status = take_pattern(f, path, err);
    } else {
        return add(f, path, SIZE_MAX, err);
    }
    if (status == QN_OK)
        sort(f);
    return status;
}

static qn_status read_list(const char *path, qn__bytes *text, qn_error *err) {
    struct stat info;
    *text = (qn__bytes){0};
    if (qn__remote_is(path))
        return qn__file_read_most(path, LIST_MOST, text, err);
    if (stat(path, &info) != 0)
        return qn__fail_errno(err, "open", path);
    if (!S_ISREG(info.st_mode) || info.st_size > LIST_MOST)
        return refuse(path, "the list of files is not a regular file of at most 64 MiB",
                      "@FILE names a text file with a path in each line", err);
    return qn__file_read(path, text, err);
}

/* A line of a list. A relative path starts at the folder of the list. */
static qn_status take_line(finding *f, const char *list, const char *line, size_t size, size_t at,
                           qn_error *err) {
    const char *slash = strrchr(list, '/');
    const int relative = *line != '/' && !qn__remote_is(line);
    const size_t folder = relative && slash ? (size_t)(slash - list) + 1 : 0;
    char path[PATH_MAX];
    if (size == 0 || *line == '#')
        return QN_OK;
    if (memchr(line, '\0', size) || folder + size >= sizeof path || *line == '@') {
        qn__fail(err, QN_INPUT,
                 *line == '@' ? "a list of files names a list" : "this is not a path");
        qn__at(err, "%s, line %zu", list, at);
        return qn__remedy(err, QN_INPUT,
                          "write a path in each line; one that begins with @ or # is ./@... or "
                          "./#...");
    }
    snprintf(path, sizeof path, "%.*s%.*s", (int)folder, list, (int)size, line);
    return take_path(f, path, err);
}

static qn_status take_list(finding *f, const char *path, qn_error *err) {
    qn__bytes text;
    size_t number = 1;
    const size_t before = f->list->count;
    qn_status status = read_list(path, &text, err);
    const char *at = (const char *)text.data, *end = at ? at + text.size : at;
    if (status == QN_OK && text.size >= 3 && memcmp(at, "\xEF\xBB\xBF", 3) == 0)
        at += 3;
    for (; status == QN_OK && at < end; number++) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        const char *stop = next ? next : end;
        status = take_line(f, path, at, (size_t)(stop - at) - (stop > at && stop[-1] == '\r'),
                           number, err);
        at = stop + 1;
    }
    qn__bytes_release(&text);
    if (status == QN_OK && f->list->count == before)
        return refuse(path, "the list names no file", "write a path in each line", err);
    return status;
}

/* ------------------------------------------------------------------ keys of folders */

/* Files that were named one by one have the keys of the folders below the one that holds all. */
static void begin_keys(finding *f) {
    const char *first = NULL;
    size_t same = 0, named = 0;
    for (size_t i = 0; i < f->list->count; i++) {
        const char *path = f->list->file[i].path;
        if (f->below[i] != SIZE_MAX)
            continue;
        if (named++ == 0) {
            first = path;
            same = strlen(path);
        }
        size_t k = 0;
        while (k < same && path[k] == first[k])
            k++;
        same = k;
    }
    while (same > 0 && first[same - 1] != '/')
        same--;
    for (size_t i = 0; i < f->list->count; i++)
        if (f->below[i] == SIZE_MAX)
            f->below[i] = named > 1 ? same : strlen(f->list->file[i].path);
}

static qn_status refuse_keys(const char *path, const char *what, const char *name, qn_error *err) {
    qn__fail(err, QN_INPUT,
             what[0] == 'n' ? "the file is in no folder of the key \"%.80s\", as "
                              "others are"
                            : "a folder above the file has the key \"%.80s\", which "
                              "others do not have",
             name);
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_INPUT,
                      "put all files into folders of the same keys, such as year=2026, in the same "
                      "order");
}

static qn_status read_keys(finding *f, qn_error *err) {
    qn__file_list *list = f->list;
    for (size_t i = 0; i < list->count; i++) {
        qn__listed_file *file = &list->file[i];
        size_t count = 0;
        const qn_status status =
            qn__folder_keys_read(file->path, f->below[i], &file->key, &count, err);
        const size_t keys = i == 0 ? count : list->keys;
        if (i == 0)
            list->keys = count;
        if (status != QN_OK || count < keys) {
            qn__folder_keys_free(file->key, count);
            file->key = NULL;
            return status != QN_OK
                       ? status
                       : refuse_keys(file->path, "none", list->file[0].key[count].name, err);
        }
        for (size_t k = 0; k < count; k++)
            if (k >= keys || strcmp(file->key[k].name, list->file[0].key[k].name) != 0) {
                refuse_keys(file->path, "more", file->key[k].name, err);
                qn__folder_keys_free(file->key, count);
                file->key = NULL;
                return QN_INPUT;
            }
    }
    return QN_OK;
}

/* ------------------------------------------------------------------ the list */

static int is_folder(const char *path) {
    struct stat info;
    return (qn__remote_can_list(path) && path[strlen(path) - 1] == '/') ||
           (stat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

/* Whether images may be in it; another archive is refused where it is read. */
static int may_enclose(const char *path) {
    static const char *const ends[] = {".tar", ".zip", ".tgz", ".tar.gz"};
    const size_t size = strlen(path);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (size > strlen(ends[i]) && strcmp(path + size - strlen(ends[i]), ends[i]) == 0)
            return 1;
    return is_folder(path);
}

/* What is not part of a table. Folders and archives of images are together one. */
static qn_status check_together(const qn__file_list *list, qn_error *err) {
    const int images = list->count > 1 && may_enclose(list->file[0].path);
    for (size_t i = 0; list->count > 1 && i < list->count; i++) {
        const char *path = list->file[i].path;
        if (strcmp(path, QN__STANDARD_INPUT) == 0 || qn__is_server(path))
            return refuse(qn__is_server(path) ? "a server" : QN__STANDARD_INPUT_SHOWN,
                          "this cannot be one of several files that are one table",
                          "name it alone, or save its rows to a file and name that", err);
        if (!images && is_folder(path))
            return refuse(path, "a folder of images, or without files, cannot be part of a table",
                          "name folders and archives of images alone", err);
    }
    return QN_OK;
}

static qn_status find_all(finding *f, const char *const *paths, size_t count, qn_error *err) {
    qn_status status = QN_OK;
    for (size_t i = 0; i < count && status == QN_OK; i++) {
        if (!paths[i])
            return qn__fail(err, QN_USAGE, "the path of file %zu is NULL", i);
        const int other = strcmp(paths[i], QN__STANDARD_INPUT) == 0 || qn__is_server(paths[i]);
        status = other                ? add(f, paths[i], SIZE_MAX, err)
                 : paths[i][0] == '@' ? take_list(f, paths[i] + 1, err)
                                      : take_path(f, paths[i], err);
    }
    return status == QN_OK ? check_together(f->list, err) : status;
}

qn_status qn__file_list_make(const char *const *paths, size_t count, int images, qn__file_list *out,
                             qn_error *err) {
    finding f = {.list = out, .images = images};
    *out = (qn__file_list){0};
    if (count == 0) {
        qn__fail(err, QN_USAGE, "no file is named");
        return qn__remedy(err, QN_USAGE, "name at least one");
    }
    qn_status status = find_all(&f, paths, count, err);
    if (status == QN_OK && f.below) {
        for (size_t i = 0; i < out->count; i++)
            out->file[i].below = f.below[i];
        begin_keys(&f);
        status = read_keys(&f, err);
    }
    qn__free(f.below);
    if (status != QN_OK)
        qn__file_list_release(out);
    return status;
}

void qn__file_list_release(qn__file_list *list) {
    for (size_t i = 0; i < list->count; i++)
        qn__folder_keys_free(list->file[i].key, list->keys);
    qn__name_blocks_release(&list->names);
    qn__free(list->file);
    *list = (qn__file_list){0};
}

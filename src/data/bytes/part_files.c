#include "data/bytes/part_files.h"
#include "base/files/file_stamp.h"
#include "base/memory.h"
#include "base/text/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "a.csv", or "a.csv and 11 more files". */
static char *name_all(const qn__file_list *list, const char *first, qn_error *err) {
    qn__text text = {0};
    qn__text_add(&text, "%s", first);
    if (list->count > 1)
        qn__text_add(&text, " and %zu more file%s", list->count - 1, list->count > 2 ? "s" : "");
    return qn__text_take(&text, err);
}

qn_status qn__part_files_prepare(const qn__file_list *list, qn__part_files *out, qn_error *err) {
    *out = (qn__part_files){.list = list};
    out->seen = qn__alloc(list->count, sizeof *out->seen, err);
    out->items = qn__alloc(list->count, sizeof *out->items, err);
    if (list->count > 1)
        out->ahead = qn__files_ahead_begin();
    return out->seen && out->items ? QN_OK : QN_MEMORY;
}

qn_status qn__part_files_begin(const qn__file_list *list, qn__part_files *out, qn_error *err) {
    qn_status status = qn__part_files_prepare(list, out, err);
    if (status == QN_OK)
        status = qn__source_open_any(list->file[0].path, &out->first, err);
    if (status != QN_OK)
        return status;
    out->seen[0] = *qn__source_stamp(out->first);
    out->name = name_all(list, qn__source_path(out->first), err);
    return out->name ? QN_OK : QN_MEMORY;
}

void qn__part_files_release(qn__part_files *files) {
    qn__source_close(files->first);
    qn__files_ahead_end(files->ahead);
    qn__free(files->seen);
    qn__free(files->items);
    qn__file_list_release(&files->labels);
    qn__free(files->name);
    *files = (qn__part_files){0};
}

static void path_of(const void *files, size_t i, char path[PATH_MAX]) {
    snprintf(path, PATH_MAX, "%s", ((const qn__part_files *)files)->list->file[i].path);
}

qn_status qn__part_files_open(qn__part_files *files, size_t i, qn__source **out, qn_error *err) {
    const char *path = files->list->file[i].path;
    qn__files_ahead_at(files->ahead, i, files->list->count, path_of, files);
    if (i == 0 && files->first) {
        *out = files->first;
        files->first = NULL;
        return QN_OK;
    }
    const qn_status status = qn__source_open_any(path, out, err);
    if (status != QN_OK)
        return status;
    struct stat *seen = &files->seen[i];
    const struct stat *now = qn__source_stamp(*out);
    if (seen->st_size == 0)
        *seen = *now;
    if (qn__file_stamp_same(seen, now, path))
        return QN_OK;
    qn__source_close(*out);
    *out = NULL;
    return qn__file_stamp_refuse(path, QN_INPUT, err);
}

qn_status qn__part_files_close(qn__source *source, qn_status status, qn_error *err) {
    status = qn__source_end(source, status, err);
    qn__source_close(source);
    return status;
}

typedef struct place {
    uint64_t device, inode;
    const char *part; /* of an archive */
    size_t i;
} place;

static int is_same(const place *p, const place *q) {
    return p->device == q->device && p->inode == q->inode && strcmp(p->part, q->part) == 0;
}

static int compare_places(const void *a, const void *b) {
    const place *p = a, *q = b;
    if (p->device != q->device)
        return p->device < q->device ? -1 : 1;
    if (p->inode != q->inode)
        return p->inode < q->inode ? -1 : 1;
    const int order = strcmp(p->part, q->part);
    if (order != 0)
        return order;
    return p->i < q->i ? -1 : p->i > q->i;
}

const char *qn__part_files_twice(const qn__part_files *files) {
    const size_t count = files->list->count;
    size_t twice = SIZE_MAX;
    place *all = qn__alloc(count, sizeof *all, NULL);
    for (size_t i = 0; all && i < count; i++) {
        const char *part = qn__source_part_in(files->list->file[i].path);
        all[i] = (place){(uint64_t)files->seen[i].st_dev, (uint64_t)files->seen[i].st_ino,
                         part ? part : "", i};
    }
    if (all)
        qsort(all, count, sizeof *all, compare_places);
    for (size_t i = 1; all && i < count; i++)
        if (is_same(&all[i], &all[i - 1]) && all[i].i < twice)
            twice = all[i].i;
    qn__free(all);
    return twice == SIZE_MAX ? NULL : files->list->file[twice].path;
}

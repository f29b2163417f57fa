#include "data/parts/parts_read.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "data/cells/labels.h"
#include "data/open/open_list.h"
#include "data/parts/parts_heads.h"
#include "data/parts/parts_tokens.h"
#include "data/table/data_options.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ paths */

/* A path that a rank in another folder understands, too. */
static void add_path(qn__text *text, const char *path) {
    char real[PATH_MAX];
    const char *whole = realpath(path, real) ? real : path;
    qn__text_add_bytes(text, whole, strlen(whole) + 1);
}

static uint64_t count_of(const qn__parts_blobs *blobs, uint32_t rank) {
    const uint8_t *from = blobs->all + rank * blobs->each;
    uint64_t texts = 0;
    for (uint64_t i = 1; i < blobs->size[rank]; i++)
        texts += from[i] == 0;
    return from[0] == 'l' ? texts / 2 : texts;
}

static qn_status copy_paths(qn_parts *parts, const qn__parts_blobs *blobs, uint32_t rank,
                            qn_error *err) {
    qn__part_paths *p = parts->paths;
    const char *text = (const char *)blobs->all + rank * blobs->each;
    const int labelled = *text++ == 'l';
    for (uint64_t i = p->first[rank]; i < p->first[rank + 1]; i++) {
        p->share[i] = qn__parts_place(parts, rank);
        for (int k = 0; k < 1 + labelled; k++) {
            char **to = k ? &p->labels[i] : &p->path[i];
            if (!(*to = qn__copy_text(text, err)))
                return QN_MEMORY;
            text += strlen(text) + 1;
        }
    }
    return QN_OK;
}

static qn_status take_paths(qn_parts *parts, const qn__parts_blobs *blobs, qn_error *err) {
    qn__part_paths *p = parts->paths = qn__alloc(1, sizeof *p, err);
    if (!p || !(p->first = qn__alloc((uint64_t)parts->ranks + 1, sizeof *p->first, err)))
        return QN_MEMORY;
    for (uint32_t r = 0; r < parts->ranks; r++)
        p->first[r + 1] = p->first[r] + count_of(blobs, r);
    const uint64_t all = p->first[parts->ranks];
    p->path = (char **)qn__alloc(all, sizeof *p->path, err);
    p->labels = (char **)qn__alloc(all, sizeof *p->labels, err);
    p->share = qn__alloc(all, sizeof *p->share, err);
    p->shares = qn__parts_place(parts, parts->ranks);
    qn_status status = p->path && p->labels && p->share ? QN_OK : QN_MEMORY;
    for (uint32_t r = 0; r < parts->ranks && status == QN_OK; r++) {
        p->keyed |= blobs->all[r * blobs->each] == 'k';
        status = copy_paths(parts, blobs, r, err);
    }
    return status;
}

qn_status qn__parts_keep_paths(qn_parts *parts, const qn__parts_lot *lot, qn_error *err) {
    const int labelled = lot->labels.count > 0;
    qn__parts_blobs blobs = {.all = NULL};
    qn__text text = {0};
    qn__text_add_bytes(&text, labelled ? "l" : lot->list.keys > 0 ? "k" : "n", 1);
    for (size_t i = lot->from; i < lot->to; i++) {
        add_path(&text, lot->list.file[i].path);
        if (labelled)
            add_path(&text, lot->labels.file[i].path);
    }
    qn_status status = text.failed ? qn__fail_memory(err, 1, text.size) : QN_OK;
    status = qn__parts_agree(parts, status, err);
    if (status == QN_OK)
        status = qn__parts_gather_blobs(parts, text.data, text.size, &blobs, err);
    if (status == QN_OK)
        status = qn__parts_agree(parts, take_paths(parts, &blobs, err), err);
    if (status == QN_OK) {
        parts->paths->shared = lot->shared;
        parts->paths->encloses = lot->encloses;
    }
    qn__parts_blobs_release(&blobs);
    qn__text_release(&text);
    return status;
}

void qn__parts_drop_paths(qn_parts *parts) {
    qn__part_paths *p = parts->paths;
    const uint64_t all = p && p->first ? p->first[parts->ranks] : 0;
    for (uint64_t i = 0; i < all && p->path && p->labels; i++) {
        qn__free(p->path[i]);
        qn__free(p->labels[i]);
    }
    if (p) {
        qn__free(p->first);
        qn__free((void *)p->path);
        qn__free((void *)p->labels);
        qn__free(p->share);
    }
    qn__free(p);
    parts->paths = NULL;
}

/* ------------------------------------------------------------------ reading */

qn_status qn__parts_files_of(const qn_parts *parts, uint32_t rank, qn__file_list *out,
                             qn_error *err) {
    const qn__part_paths *p = parts->paths;
    const uint64_t from = p->first[rank], all = p->first[rank + 1] - from;
    const uint64_t count = p->shared && all > 0 ? 1 : all;
    *out = (qn__file_list){.file = qn__alloc(count, sizeof *out->file, err)};
    if (!out->file)
        return QN_MEMORY;
    out->count = out->capacity = count;
    for (uint64_t i = 0; i < count; i++)
        out->file[i] = (qn__listed_file){.path = p->path[from + i],
                                         .below = SIZE_MAX,
                                         .share = p->shared ? p->share[from] : 0,
                                         .shares = p->shared ? p->shares : 0,
                                         .further = (uint32_t)(all - count)};
    return QN_OK;
}

static qn_status open_files(const qn_parts *parts, uint32_t rank, qn_data **out, qn_error *err) {
    const qn__part_paths *p = parts->paths;
    const uint64_t from = p->first[rank], count = p->first[rank + 1] - from;
    qn_data_options o = parts->options;
    qn__file_list list;
    qn_status status = qn__parts_files_of(parts, rank, &list, err);
    if (count > 0 && p->labels[from]) {
        o.labels_path = p->labels[from];
        o.labels_more = (const char *const *)(p->labels + from + 1);
        o.labels_more_count = (size_t)count - 1;
    }
    if (qn__data_target(parts->own) == QN__TARGET_REAL)
        o.task = "regress"; /* also where labels of this part alone are whole */
    if (parts->own->channels == 3 && p->encloses)
        o.expected_features = parts->own->features; /* also where images of this part are grey */
    if (!p->encloses && !o.no_cache)
        o.no_cache = QN__NO_ENTRY;
    qn__part_reading reading = {.ranks = 1}; /* the others do not read now */
    qn__parts_know_tokenizer(parts, &o);
    if (status == QN_OK)
        status = qn__data_open_list(&list, &o, &reading, out, err);
    qn__free(list.file);
    if (status == QN_OK && parts->row)
        status = qn__part_row_cut(parts, rank, &parts->options, *out, err);
    return status;
}

qn_status qn__parts_read(const qn_parts *parts, uint32_t rank, qn_data **out, qn_error *err) {
    qn_parts as = *parts;
    qn__parts_again again = {0};
    *out = as.own = NULL;
    as.in_class = NULL;
    as.rank = rank;
    if (parts->paths->first[rank] == parts->paths->first[rank + 1])
        return qn__fail(err, QN_UNSUPPORTED, "it was in the memory of that rank");
    if (parts->paths->keyed)
        return qn__fail(err, QN_UNSUPPORTED, "folders name columns of its files");
    qn_status status = open_files(parts, rank, &as.own, err);
    if (status == QN_OK)
        status = qn__data_need_schema(as.own, err);
    if (status == QN_OK) {
        as.own->schema->target = qn__data_target(as.own);
        status = qn__parts_reorder(&as, parts->heads, &parts->options, err);
    }
    if (status == QN_OK)
        status = qn__parts_columns(&as, parts->heads, &parts->options, err);
    if (status == QN_OK)
        status = qn__parts_labels(&as, parts->heads, &parts->options, &again, err);
    qn__free(as.in_class);
    if (status == QN_OK)
        *out = as.own;
    else
        qn_data_close(as.own);
    return status;
}

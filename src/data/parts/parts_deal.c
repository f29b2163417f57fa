#include "data/parts/parts_deal.h"
#include "base/digest/sha256.h"
#include "base/memory.h"
#include "data/bytes/folder.h"
#include "data/open/open_list.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes at both ends of a file that are compared. */
enum { SAMPLE = 1 << 16 };

/* Adds the first and the last bytes; what cannot be read is a matter of the reader. */
static void add_ends(qn__sha256 *hash, const char *path, uint64_t size, uint8_t *buffer) {
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return;
    const off_t at[] = {0, size > SAMPLE ? (off_t)(size - SAMPLE) : 0};
    for (int i = 0; i < (size > SAMPLE ? 2 : 1); i++) {
        const ssize_t got = pread(file, buffer, SAMPLE, at[i]);
        if (got > 0)
            qn__sha256_add(hash, buffer, (size_t)got);
    }
    close(file);
}

/* The files of a folder: their bytes, and the sum of digests of names and sizes. */
typedef struct folder {
    uint64_t size, sum[4];
} folder;

static qn_status add_listed(void *user, const char *name, const struct stat *info, qn_error *err) {
    folder *f = user;
    const uint64_t size = (uint64_t)info->st_size;
    qn__sha256 hash;
    uint64_t digest[4];
    (void)err;
    qn__sha256_begin(&hash);
    qn__sha256_add(&hash, name, strlen(name) + 1);
    qn__sha256_add(&hash, &size, sizeof size);
    qn__sha256_end(&hash, (uint8_t *)digest);
    for (int k = 0; k < 4; k++)
        f->sum[k] += digest[k];
    f->size += size;
    return QN_OK;
}

/* Adds what identifies a file or a folder. Returns 1 more than its size; 1 where that is not known.
 */
static uint64_t add_file(qn__sha256 *hash, const char *path, uint8_t *buffer) {
    struct stat info;
    uint64_t size = 0;
    folder f = {0};
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
        size = (uint64_t)info.st_size;
        add_ends(hash, path, size, buffer);
    } else if (S_ISDIR(info.st_mode) && qn__folder_list(path, add_listed, &f, NULL) == QN_OK) {
        size = f.size;
        qn__sha256_add(hash, f.sum, sizeof f.sum);
    }
    qn__sha256_add(hash, path, strlen(path) + 1);
    qn__sha256_add(hash, &size, sizeof size);
    return size + 1;
}

/* What ranks compare of their files: a digest of all in their order, and the sum of the digests of
 * each, which does not depend on the order. */
typedef struct named {
    uint8_t there; /* 1: a rank that has ended tells zeros */
    uint8_t digest[32];
    uint64_t sum[4];
} named;

static qn_status look(const qn__file_list *list, uint64_t *sizes, named *out, qn_error *err) {
    uint8_t *buffer = qn__alloc(SAMPLE, 1, err);
    qn__sha256 all, file;
    uint64_t digest[4];
    if (!buffer)
        return QN_MEMORY;
    qn__sha256_begin(&all);
    for (size_t i = 0; i < list->count; i++) {
        qn__sha256_begin(&file);
        sizes[i] = add_file(&file, list->file[i].path, buffer);
        qn__sha256_end(&file, (uint8_t *)digest);
        qn__sha256_add(&all, digest, sizeof digest);
        for (int k = 0; k < 4; k++)
            out->sum[k] += digest[k];
    }
    qn__sha256_end(&all, out->digest);
    qn__free(buffer);
    return QN_OK;
}

/* Each rank gets the files whose middle lies in its share of the bytes; of the images of one folder
 * or archive it gets as many as the others. */
static void divide(const qn_parts *parts, const uint64_t *sizes, qn__parts_lot *lot) {
    uint64_t all = 0, before = 0;
    const uint32_t place = qn__parts_place(parts, parts->rank);
    const uint32_t shares = qn__parts_place(parts, parts->ranks);
    const int there = parts->gone[parts->rank] == QN__PART_THERE;
    lot->shared = lot->encloses && lot->list.count == 1 && parts->ranks > 1;
    if (lot->shared) {
        lot->list.file[0].share = place;
        lot->list.file[0].shares = shares;
        lot->to = (size_t)there;
        return;
    }
    for (size_t i = 0; i < lot->list.count; i++)
        all += sizes[i];
    lot->from = lot->to = 0;
    if (shares == 0)
        return;
    const uint64_t share = all / shares + 1;
    for (size_t i = 0; there && i < lot->list.count; i++) {
        const uint64_t to = (before + sizes[i] / 2) / share;
        lot->from += to < place;
        lot->to += to <= place;
        before += sizes[i];
    }
}

uint32_t qn__parts_place(const qn_parts *parts, uint32_t rank) {
    uint32_t place = 0;
    for (uint32_t r = 0; r < rank; r++)
        place += parts->gone[r] == QN__PART_THERE;
    return place;
}

uint32_t qn__parts_beside(const qn_parts *parts) {
    uint32_t ranks;
    qn_cluster_local(parts->cluster, NULL, &ranks);
    return ranks;
}

/* Of a rank that has ended early the files are known where all others name the same ones. */
static qn_status check_gone(const qn_parts *parts, qn_error *err) {
    uint32_t gone = 0;
    while (gone < parts->ranks && parts->gone[gone] == QN__PART_THERE)
        gone++;
    if (gone == parts->ranks || (parts->dealt && qn__parts_place(parts, parts->ranks) > 1))
        return QN_OK;
    qn__fail(err, QN_IO, "%s is gone, and which files it reads is not known",
             qn_cluster_name(parts->cluster, gone));
    return qn__remedy(err, QN_IO, "start all ranks again");
}

/* In another order they would be read once by each rank. */
static qn_status refuse_order(qn_error *err) {
    qn__fail(err, QN_MISMATCH, "the ranks name the same files in different orders");
    return qn__remedy(err, QN_MISMATCH, "name them in the same order on all ranks");
}

/* Whether all ranks that are there name the same files: parts->dealt. */
static qn_status compare(qn_parts *parts, const named *own, qn_error *err) {
    named *all = qn__alloc(parts->ranks, sizeof *all, err);
    if (!all) {
        if (parts->cluster)
            qn__cluster_fail(parts->cluster, err);
        return QN_MEMORY;
    }
    qn_status status = qn__parts_gather_each(parts, own, sizeof *own, all, err);
    int same = status == QN_OK, sorted = same;
    for (uint32_t r = 0; r < parts->ranks && sorted; r++) {
        if (parts->gone[r] != QN__PART_THERE)
            continue;
        same = same && memcmp(all[r].digest, own->digest, sizeof own->digest) == 0;
        sorted = memcmp(all[r].sum, own->sum, sizeof own->sum) == 0;
    }
    const int told_other = status == QN_OK && parts->gone[parts->rank] == QN__PART_THERE &&
                           memcmp(&all[parts->rank], own, sizeof *own) != 0;
    qn__free(all);
    if (told_other)
        return qn__parts_differ(parts, err);
    if (status != QN_OK || parts->dealt)
        return status;
    parts->dealt = same && sorted;
    return sorted && !same ? refuse_order(err) : check_gone(parts, err);
}

static qn_status find_labels(const qn_data_options *o, qn__parts_lot *lot, qn_error *err) {
    const size_t count = 1 + o->labels_more_count;
    if (!o->labels_path)
        return QN_OK;
    const char **paths = (const char **)qn__alloc(count, sizeof *paths, err);
    if (!paths)
        return QN_MEMORY;
    paths[0] = o->labels_path;
    for (size_t i = 1; i < count; i++)
        paths[i] = o->labels_more[i - 1];
    const qn_status status = qn__file_list_make(paths, count, 0, &lot->labels, err);
    qn__free((void *)paths);
    if (status != QN_OK || lot->labels.count == lot->list.count)
        return status;
    qn__fail(err, QN_INPUT, "there are %zu files of labels for %zu files of items",
             lot->labels.count, lot->list.count);
    qn__at_of(err, lot->labels.file[0].path);
    return qn__remedy(err, QN_INPUT,
                      "name with `data.labels_path` as many as there are files of items, in the "
                      "same order");
}

qn_status qn__parts_deal(qn_parts *parts, const char *const *paths, size_t count,
                         const qn_data_options *options, qn__parts_lot *out, qn_error *err) {
    uint64_t *sizes = NULL;
    named own = {.there = 1};
    *out = (qn__parts_lot){0};
    const int images = options->skip_broken || options->resize || options->masks;
    qn_status status =
        count > 0 ? qn__file_list_make(paths, count, images, &out->list, err) : QN_OK;
    if (status == QN_OK)
        status = find_labels(options, out, err);
    if (status == QN_OK)
        sizes = qn__alloc(out->list.count, sizeof *sizes, err);
    if (status == QN_OK)
        status = sizes ? look(&out->list, sizes, &own, err) : QN_MEMORY;
    status = qn__parts_agree(parts, status, err);
    if (status == QN_OK)
        status = compare(parts, &own, err);
    out->to = out->list.count;
    out->encloses = status == QN_OK && count > 0 && qn__data_list_encloses(&out->list, options);
    if (sizes && status == QN_OK && parts->dealt)
        divide(parts, sizes, out);
    qn__free(sizes);
    return status;
}

void qn__parts_lot_release(qn__parts_lot *lot) {
    qn__file_list_release(&lot->list);
    qn__file_list_release(&lot->labels);
}

void qn__parts_name_files(const qn__file_list *list, size_t from, size_t to, char *name,
                          size_t size) {
    if (from < to)
        snprintf(name, size, "%.150s", list->file[from].path);
    if (from + 1 < to)
        snprintf(name + strlen(name), size - strlen(name), " and %zu more", to - from - 1);
}

#include "data/open/same_files.h"
#include "base/digest/sha256.h"
#include "base/memory.h"
#include "data/bytes/file_list.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* What a rank names. */
typedef struct names {
    uint32_t present;           /* 0: the rank is dead */
    uint32_t found;             /* 1: all of them are files or folders of this machine */
    uint8_t file[32], text[32]; /* digests of what the names mean, and of the names */
    char shown[184];
} names;

static int add_file(qn__sha256 *hash, const char *path) {
    struct stat info;
    if (strstr(path, "://") || stat(path, &info) != 0)
        return 0;
    const uint64_t file[] = {(uint64_t)info.st_dev, (uint64_t)info.st_ino,
                             S_ISREG(info.st_mode) ? (uint64_t)info.st_size : UINT64_MAX};
    qn__sha256_add(hash, file, sizeof file);
    return 1;
}

/* A pattern, or a list of paths. */
static int add_files(qn__sha256 *hash, const char *path) {
    qn__file_list list;
    int found = !strstr(path, "://") && qn__file_list_make(&path, 1, 0, &list, NULL) == QN_OK;
    if (!found)
        return 0;
    for (size_t i = 0; i < list.count && found; i++)
        found = add_file(hash, list.file[i].path);
    qn__file_list_release(&list);
    return found;
}

/* "a.csv b.csv", or "a.csv b.csv and 398 more files" where that is too long. */
static void show(const char *const *paths, size_t count, char *text, size_t size) {
    static const size_t rest = 40;
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t length = paths[i] ? strlen(paths[i]) : 0;
        if (i > 0 && used + length + rest >= size) {
            snprintf(text + used, size - used, " and %zu more", count - i);
            return;
        }
        snprintf(text + used, size - used, "%s%.*s", i ? " " : "", (int)(size - rest),
                 paths[i] ? paths[i] : "");
        used = strlen(text);
    }
}

static void tell(const char *const *paths, size_t count, names *out) {
    qn__sha256 file, text;
    qn__sha256_begin(&file);
    qn__sha256_begin(&text);
    *out = (names){.present = 1, .found = 1};
    for (size_t i = 0; i < count; i++) {
        const char *path = paths[i] ? paths[i] : "";
        qn__sha256_add(&text, path, strlen(path) + 1);
        out->found = out->found && (add_file(&file, path) || add_files(&file, path));
    }
    qn__sha256_end(&file, out->file);
    qn__sha256_end(&text, out->text);
    show(paths, count, out->shown, sizeof out->shown);
}

/* A file that one rank does not find is a matter of the one that reads. */
static int are_same(const names *a, const names *b) {
    if (a->found && b->found)
        return memcmp(a->file, b->file, sizeof a->file) == 0;
    return memcmp(a->text, b->text, sizeof a->text) == 0;
}

static qn_status refuse(const qn_cluster *c, const names *all, uint32_t a, uint32_t b,
                        qn_error *err) {
    qn__fail(err, QN_MISMATCH, "%s names the data %.183s, and %s, on the same machine, %.183s",
             qn_cluster_name(c, b), all[b].shown, qn_cluster_name(c, a), all[a].shown);
    return qn__remedy(err, QN_MISMATCH,
                      "name the same files on all ranks of a machine: one of them reads for all; "
                      "files that are parts of one table can be read in parts");
}

qn_status qn__same_files(qn_cluster *cluster, const char *const *paths, size_t count,
                         qn_error *err) {
    const uint32_t ranks = qn_cluster_ranks(cluster);
    names own, *all = qn__alloc(ranks, sizeof *all, err);
    if (!all) {
        qn__cluster_fail(cluster, err);
        return QN_MEMORY;
    }
    tell(paths, count, &own);
    qn_status status = qn__cluster_gather(cluster, &own, sizeof own, all, err);
    for (uint32_t b = 1; status == QN_OK && b < ranks; b++)
        for (uint32_t a = 0; status == QN_OK && a < b; a++)
            if (all[a].present && all[b].present && qn__cluster_together(cluster, a, b) &&
                !are_same(&all[a], &all[b]))
                status = refuse(cluster, all, a, b, err);
    qn__free(all);
    return status;
}

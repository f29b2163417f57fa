#include "search/search_parts.h"

#include "base/files/remote.h"
#include "base/memory.h"
#include "team/together.h"
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Of "part-1-of-4", with the digits of two large numbers. */
enum { NAME = 48 };

static uint64_t runs_of(const qn_search_options *o) { return (uint64_t)o->settings * o->folds; }

qn_status qn__search_parts_check(const qn_search_options *o, qn_error *err) {
    if (o->parts == 0 && o->part == 0)
        return o->merge && !o->folder
                   ? qn__fail(err, QN_USAGE, "the parts to merge need a folder (`search.folder`)")
                   : QN_OK;
    if (o->part < 1 || o->part > o->parts) {
        qn__fail(err, QN_USAGE, "part %u of %u cannot be (`search.part`)", o->part, o->parts);
        return qn__remedy(err, QN_USAGE, "count the parts from 1");
    }
    if (o->parts > runs_of(o)) {
        qn__fail(err, QN_USAGE,
                 "%u parts are too many (`search.part`): the search has %" PRIu64 " runs", o->parts,
                 runs_of(o));
        return qn__remedy(err, QN_USAGE, "a part needs at least one run");
    }
    if (o->merge)
        return qn__fail(err, QN_USAGE, "a part (`search.part`) cannot merge (`search.merge`)");
    if (!o->folder) {
        qn__fail(err, QN_USAGE, "the results of a part (`search.part`) need a folder");
        return qn__remedy(err, QN_USAGE, "name the folder of the search (`search.folder`)");
    }
    return QN_OK;
}

int qn__search_has(const qn_search *s, uint64_t place) {
    return s->options.parts == 0 || place % s->options.parts + 1 == s->options.part;
}

/* "FOLDER/NAME" for qn__free; NULL: QN_MEMORY. */
static char *inside(const char *folder, const char *name, qn_error *err) {
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = qn__alloc(size, 1, err);
    if (path)
        snprintf(path, size, "%s/%s", folder, name);
    return path;
}

qn_status qn__search_part_folder(qn_search *s, qn_error *err) {
    const char *folder = s->options.folder;
    char name[NAME];
    if (s->options.parts == 0)
        return QN_OK;
    snprintf(name, sizeof name, "part-%" PRIu32 "-of-%" PRIu32, s->options.part, s->options.parts);
    if (!qn__remote_is(folder) && mkdir(folder, 0777) != 0 && errno != EEXIST)
        return qn__fail_errno(err, "make the folder", folder);
    s->options.folder = s->part_folder = inside(folder, name, err);
    return s->part_folder ? QN_OK : QN_MEMORY;
}

/* ------------------------------------------------------------------------------------ merging */

/* Whether a folder has the name of a part, and of how many. */
static int is_part(const char *name, uint32_t *part, uint32_t *parts) {
    char again[NAME];
    if (sscanf(name, "part-%" SCNu32 "-of-%" SCNu32, part, parts) != 2)
        return 0;
    snprintf(again, sizeof again, "part-%" PRIu32 "-of-%" PRIu32, *part, *parts);
    return strcmp(name, again) == 0;
}

static int names_part(const struct dirent *entry) {
    uint32_t part, parts;
    return is_part(entry->d_name, &part, &parts);
}

static qn_status take_result(const qn_search *s, const qn_search_result *from, uint64_t place,
                             const char *path, qn_error *err) {
    qn_search_result *to = &s->table.result[place];
    if (!to->done) {
        *to = *from;
        return QN_OK;
    }
    if (strcmp(to->model, from->model) == 0)
        return QN_OK;
    qn__fail(err, QN_MISMATCH,
             "two parts have different models of setting %" PRIu64 ", fold %" PRIu64,
             place / s->table.folds, place % s->table.folds + 1);
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_MISMATCH,
                      "remove the folder of one part: both cannot come from this search");
}

/* Its lock says that nobody computes it now. */
static qn_status take_part(const qn_search *s, const char *name, const qn__search_table *there,
                           qn_error *err) {
    const qn__owner owner = qn__owner_of(s->cluster);
    qn__search_file file = {.file = -1, .lock.file = -1};
    char *path = inside(s->options.folder, name, err);
    qn_status status =
        path ? qn__search_file_open(&file, path, &owner, s->key, there, err) : QN_MEMORY;
    for (uint64_t i = 0; status == QN_OK && i < qn__search_runs(s); ++i)
        if (file.kept[i])
            status = take_result(s, &there->result[i], i, file.path, err);
    qn__search_file_close(&file);
    qn__free(path);
    return status;
}

/* `parts`: of the folder that was read last; 0: none was. */
static qn_status all_are_there(const qn_search *s, uint32_t parts, qn_error *err) {
    uint64_t missing = 0, first = 0;
    for (uint64_t i = qn__search_runs(s); i-- > 0;)
        if (!s->table.result[i].done) {
            ++missing;
            first = i;
        }
    if (missing == 0)
        return QN_OK;
    qn__fail(err, QN_INPUT, "%" PRIu64 " of %" PRIu64 " runs are missing in the parts", missing,
             qn__search_runs(s));
    qn__at(err, "%s", s->options.folder);
    if (parts == 0)
        return qn__remedy(err, QN_INPUT, "compute the parts first (`search.part`)");
    return qn__remedy(err, QN_INPUT, "compute part %" PRIu64 " of %u to its end (`search.part`)",
                      first % parts + 1, parts);
}

static qn_status keep_all(qn_search *s, qn_error *err) {
    const char *const *name = s->options.name;
    qn_status status = QN_OK;
    for (uint64_t run = 0; status == QN_OK && run < qn__search_runs(s); ++run) {
        const uint64_t place = qn__search_place(s, run);
        if (!s->file.kept[place])
            status = qn__search_file_add(&s->file, &s->table, place,
                                         name ? name[run % s->table.settings] : NULL, err);
    }
    return status;
}

qn_status qn__search_merge(qn_search *s, qn_error *err) {
    struct dirent **entry = NULL;
    uint32_t part, parts = 0;
    qn__search_table there = s->table;
    there.result = qn__alloc(qn__search_runs(s), sizeof *there.result, err);
    if (!there.result)
        return QN_MEMORY;
    const int count = scandir(s->options.folder, &entry, names_part, alphasort);
    qn_status status = count >= 0 ? QN_OK : qn__fail_errno(err, "read", s->options.folder);
    for (int i = 0; i < count; ++i) {
        if (status == QN_OK && is_part(entry[i]->d_name, &part, &parts))
            status = take_part(s, entry[i]->d_name, &there, err);
        free(entry[i]);
    }
    free(entry);
    qn__free(there.result);
    if (status == QN_OK)
        status = all_are_there(s, parts, err);
    return status == QN_OK ? keep_all(s, err) : status;
}

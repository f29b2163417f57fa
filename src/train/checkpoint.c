#include "train/checkpoint.h"

#include "base/error.h"
#include "base/files/folder_lock.h"
#include "base/files/folder_make.h"
#include "base/files/leftovers.h"
#include "base/files/remote.h"
#include "base/files/remote_write.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/text/text.h"
#include "train/checkpoint_file.h"
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Checkpoints that are kept, including the newest. */
enum { KEPT = 2 };
struct qn__checkpoints {
    char *dir;
    qn__lock lock;
    int cleared; /* checkpoints of later steps were removed */
};

/* The steps of the checkpoints in the folder, newest first. */
typedef struct step_list {
    uint64_t *step;
    size_t count, capacity;
} step_list;

/* ------------------------------------------------------------------------------------ names */

#define PREFIX "checkpoint-"
#define SUFFIX ".safetensors"
#define LOCK "lock"

/* NULL if out of memory. Released with qn__free. */
static char *path_of_step(const char *dir, uint64_t step, qn_error *err) {
    char name[64], *path;
    snprintf(name, sizeof name, PREFIX "%012" PRIu64 SUFFIX, step);
    return qn__folder_path(dir, name, &path, err) == QN_OK ? path : NULL;
}

/* 1 if the name is one of path_of_step; *step is its step. */
static int step_of_name(const char *name, uint64_t *step) {
    const size_t size = strlen(name), before = strlen(PREFIX), after = strlen(SUFFIX);
    char again[64];
    if (size < before + 12 + after || strncmp(name, PREFIX, before) != 0 ||
        strcmp(name + size - after, SUFFIX) != 0 ||
        !qn__parse_u64(name + before, size - before - after, step))
        return 0;
    snprintf(again, sizeof again, PREFIX "%012" PRIu64 SUFFIX, *step);
    return strcmp(again, name) == 0;
}

int qn__checkpoints_own(const char *name) {
    uint64_t step;
    return strcmp(name, LOCK) == 0 || strcmp(name, QN__CHECKPOINTS_RUN) == 0 ||
           step_of_name(name, &step);
}

/* ------------------------------------------------------------------------------- the folder */

static int newest_first(const void *one, const void *other) {
    const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a < b) - (a > b);
}

static qn_status add_step(step_list *list, uint64_t step, qn_error *err) {
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity > 0 ? 2 * list->capacity : 8;
        uint64_t *larger = qn__alloc(capacity, sizeof *larger, err);
        if (larger == NULL)
            return QN_MEMORY;
        if (list->count > 0)
            memcpy(larger, list->step, list->count * sizeof *larger);
        qn__free(list->step);
        list->step = larger;
        list->capacity = capacity;
    }
    list->step[list->count++] = step;
    return QN_OK;
}

/* errno alone distinguishes an error of readdir from the end. */
static qn_status list_open(DIR *folder, const char *dir, step_list *list, qn_error *err) {
    for (;;) {
        uint64_t step;
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (entry == NULL)
            return errno == 0 ? QN_OK : qn__fail_errno(err, "read the folder", dir);
        if (step_of_name(entry->d_name, &step) && add_step(list, step, err) != QN_OK)
            return QN_MEMORY;
    }
}

static qn_status list_local(const char *dir, step_list *list, qn_error *err) {
    DIR *folder = opendir(dir);
    if (folder == NULL)
        return qn__fail_errno(err, "read the folder", dir);
    const qn_status status = list_open(folder, dir, list, err);
    closedir(folder);
    return status;
}

static qn_status take_found(void *user, const char *address, const qn__remote_about *about,
                            qn_error *err) {
    uint64_t step;
    const char *slash = strrchr(address, '/');
    (void)about;
    return slash != NULL && step_of_name(slash + 1, &step) ? add_step(user, step, err) : QN_OK;
}

/* Folders inside the folder are listed, too: there is nothing in them that Quern writes. */
static qn_status list_remote(const char *dir, step_list *list, qn_error *err) {
    char *prefix;
    qn_status status = qn__folder_path(dir, PREFIX, &prefix, err);
    if (status == QN_OK)
        status = qn__remote_list(prefix, 0, take_found, list, err);
    qn__free(prefix);
    return status;
}

/* Lists the checkpoints in the folder; the caller always releases list->step. */
static qn_status list_steps(const char *dir, step_list *list, qn_error *err) {
    *list = (step_list){0};
    const qn_status status =
        qn__remote_is(dir) ? list_remote(dir, list, err) : list_local(dir, list, err);
    if (list->count > 0)
        qsort(list->step, list->count, sizeof *list->step, newest_first);
    return status;
}

/* Removes checkpoints that the complete one of `step` replaces: those older than the KEPT newest
 * and, the first time, those of later steps. The latter are damaged, or belong to a run that was
 * restarted, and would be taken for the last. After the first time such a file can only come from a
 * rank that continued while this one was suspended. A file that cannot be removed does no harm, so
 * nothing is reported. */
static void remove_others(qn__checkpoints *c, uint64_t step) {
    step_list list;
    size_t kept = 0;
    if (list_steps(c->dir, &list, NULL) == QN_OK)
        for (size_t i = 0; i < list.count; ++i) {
            if (list.step[i] <= step ? kept++ < KEPT : c->cleared)
                continue;
            char *path = path_of_step(c->dir, list.step[i], NULL);
            if (path != NULL && qn__remote_is(path))
                qn__remote_remove(path, NULL);
            else if (path != NULL)
                unlink(path);
            qn__free(path);
        }
    qn__free(list.step);
    c->cleared = 1;
}

qn_status qn__checkpoints_open(const char *dir, const qn__owner *owner, qn__checkpoints **out,
                               qn_error *err) {
    *out = NULL;
    const int is_remote = qn__remote_is(dir);
    if (!is_remote && mkdir(dir, 0777) != 0 && errno != EEXIST)
        return qn__fail_errno(err, "make the folder", dir);
    qn__checkpoints *c = qn__alloc(1, sizeof *c, err);
    if (c == NULL)
        return QN_MEMORY;
    c->lock.file = -1;
    c->dir = qn__copy_text(dir, err);
    const qn_status status = c->dir != NULL
                                 ? qn__folder_lock(dir, LOCK, "the checkpoint folder",
                                                   "`train.checkpoint_dir`", owner, &c->lock, err)
                                 : QN_MEMORY;
    if (status != QN_OK) {
        qn__checkpoints_close(c);
        return status;
    }
    if (!is_remote)
        qn__leftovers_remove(dir);
    *out = c;
    return QN_OK;
}

int qn__checkpoints_may(void *checkpoints) {
    qn__checkpoints *c = checkpoints;
    return qn__lock_may(&c->lock);
}

void qn__checkpoints_close(qn__checkpoints *checkpoints) {
    if (checkpoints == NULL)
        return;
    qn__lock_release(&checkpoints->lock);
    qn__free(checkpoints->dir);
    qn__free(checkpoints);
}

/* ------------------------------------------------------------------------------ write and find */

qn_status qn__checkpoints_count(qn__checkpoints *checkpoints, uint64_t *count, qn_error *err) {
    step_list list;
    const qn_status status = list_steps(checkpoints->dir, &list, err);
    *count = status == QN_OK ? list.count : 0;
    qn__free(list.step);
    return status;
}

qn_status qn__checkpoints_newest(const char *dir, uint64_t *step, int *found, qn_error *err) {
    step_list list;
    const qn_status status = list_steps(dir, &list, err);
    *found = status == QN_OK && list.count > 0;
    if (*found)
        *step = list.step[0];
    qn__free(list.step);
    return status;
}

qn_status qn__checkpoints_write(qn__checkpoints *checkpoints, const qn__snapshot *snapshot,
                                qn_error *err) {
    char *path = path_of_step(checkpoints->dir, snapshot->step, err);
    if (path == NULL)
        return QN_MEMORY;
    const qn_status status = qn__checkpoint_write(path, snapshot, &checkpoints->lock, err);
    qn__free(path);
    if (status == QN_OK && qn__lock_may(&checkpoints->lock))
        remove_others(checkpoints, snapshot->step);
    return status;
}

static void tell(qn_note_fn note, void *user, const char *path, const qn_error *why) {
    char text[1200];
    if (note == NULL)
        return;
    snprintf(text, sizeof text, "checkpoint %s is damaged (%s); the one before it is tried", path,
             why->what);
    note(user, text);
    qn__float_state_set();
}

static qn_status all_damaged(const char *dir, size_t count, const qn_error *last, qn_error *err) {
    qn__fail(err, QN_FORMAT, "none of the %zu checkpoints is complete: %s", count, last->what);
    qn__at(err, "%s", dir);
    return qn__remedy(
        err, QN_FORMAT,
        "start again without `train.resume`, in another folder (`train.checkpoint_dir`)");
}

/* Tries them from the newest on. Only damage leads to the previous one: it would hide another
 * recipe, a missing permission or a lack of memory. */
static qn_status find_whole(const char *dir, const step_list *list, qn__snapshot *into, int *found,
                            qn_note_fn note, void *user, qn_error *err) {
    qn_error why = {0};
    for (size_t i = 0; i < list->count; ++i) {
        char *path = path_of_step(dir, list->step[i], err);
        if (path == NULL)
            return QN_MEMORY;
        const qn_status status = qn__checkpoint_read(path, list->step[i], into, &why);
        if (status == QN_FORMAT)
            tell(note, user, path, &why);
        qn__free(path);
        if (status == QN_OK)
            *found = 1;
        else if (status != QN_FORMAT && err != NULL)
            *err = why;
        if (status != QN_FORMAT)
            return status;
    }
    return list->count > 0 ? all_damaged(dir, list->count, &why, err) : QN_OK;
}

qn_status qn__checkpoints_last(qn__checkpoints *checkpoints, qn__snapshot *into, int *found,
                               qn_note_fn note, void *user, qn_error *err) {
    step_list list;
    *found = 0;
    qn_status status = list_steps(checkpoints->dir, &list, err);
    if (status == QN_OK)
        status = find_whole(checkpoints->dir, &list, into, found, note, user, err);
    qn__free(list.step);
    return status;
}

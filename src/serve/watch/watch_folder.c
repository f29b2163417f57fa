/* A folder whose files are answered as they are complete. */
#include "base/memory.h"
#include "base/system/threads.h"
#include "serve/watch/watch_many.h"
#include "serve/watch/watch_move.h"
#include "serve/watch/watch_tree.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { TOLD_AGAIN = 5 };

typedef struct folder {
    qn__watch_many all;
    qn__watch_tree tree;
    int done;          /* a descriptor of the folder for files that are done; -1: none */
    uint64_t again;    /* files that came again under a name that is done */
    struct stat table; /* of the answers, which is not a file to answer */
    int has_table;
    pthread_mutex_t lock; /* of what follows */
    qn__watch_identities identities;
} folder;

static folder *folder_of(const qn__watch_many *all) { return all->own; }

/* ----------------------------------------------------------------------------------- its readers
 */

static int leads_to(const folder *f, const char *name, const struct stat *info) {
    struct stat is;
    return fstatat(f->tree.place, name, &is, 0) == 0 && is.st_ino == info->st_ino &&
           is.st_dev == info->st_dev;
}

/* A file that was read under another name, which it does not have any more. */
static int is_renamed(folder *f, const qn__watch_bytes *bytes, const char *name) {
    pthread_mutex_lock(&f->lock);
    const char *before = qn__watch_identities_find(&f->identities, &bytes->who, name);
    const int is = before && strcmp(before, name) != 0 && !leads_to(f, before, &bytes->info);
    pthread_mutex_unlock(&f->lock);
    return is;
}

static qn__skip read_file(qn__watch_many *all, const qn__watch_task *task, qn__watch_bytes *out,
                          qn__watch_unit *unit) {
    folder *f = folder_of(all);
    const qn__skip skip = qn__watch_file_read(f->tree.place, task->name, task->is_final, out, unit);
    return !skip && out->bytes && is_renamed(f, out, task->name) ? QN__SKIP_KNOWN : skip;
}

static void drop(qn__watch_many *all, const qn__watch_bytes *bytes) {
    folder *f = folder_of(all);
    pthread_mutex_lock(&f->lock);
    qn__watch_identities_forget(&f->identities, &bytes->who);
    pthread_mutex_unlock(&f->lock);
}

static void move_done(qn__watch_many *all, const char *name) {
    const folder *f = folder_of(all);
    const int error = f->done < 0 ? 0 : qn__watch_move(f->tree.place, f->done, name);
    if (error)
        qn__watch_note(all->w, "%s cannot be moved to %s: %s", name, all->w->options.move_done,
                       strerror(error));
}

/* ------------------------------------------------------------------------------------- its files
 */

static int is_changed(const qn__watch_name *entry, const struct stat *info) {
    return entry->size != (int64_t)info->st_size || entry->modified != qn__modified(info);
}

/* *info is that of a file to answer: 1. */
static int find(const folder *f, const char *name, struct stat *info) {
    return fstatat(f->tree.place, name, info, 0) == 0 && S_ISREG(info->st_mode) &&
           !(f->has_table && info->st_ino == f->table.st_ino && info->st_dev == f->table.st_dev);
}

static int note_state(qn__watch_name *entry, const struct stat *info) {
    const int same = !is_changed(entry, info);
    if (!same)
        entry->failed = 0;
    entry->size = (int64_t)info->st_size;
    entry->modified = qn__modified(info);
    return same;
}

/* One that may be incomplete. */
static qn_status take_seen(folder *f, qn__watch_name *entry, const struct stat *info,
                           qn_error *err) {
    const int same = note_state(entry, info);
    const qn__writers writers = qn__watch_writers(f->tree.place, entry->name);
    if (writers == QN__WRITERS_NONE || (writers == QN__WRITERS_UNKNOWN && same))
        return qn__watch_complete(&f->all, entry, err);
    /* One that somebody writes tells when it is complete, unless nothing does. */
    f->all.unsettled += writers == QN__WRITERS_UNKNOWN || !f->all.w->options.once;
    if (writers == QN__WRITERS_UNKNOWN)
        qn__watch_look_soon(&f->all);
    return QN_OK;
}

static qn_status take_written(folder *f, qn__watch_name *entry, const struct stat *info,
                              qn_error *err) {
    if (entry->state == QN__NAME_DONE && is_changed(entry, info) && f->again++ < TOLD_AGAIN)
        qn__watch_note(f->all.w,
                       "%s came again, and is answered already: each file needs a name of "
                       "its own",
                       entry->name);
    (void)note_state(entry, info);
    return qn__watch_complete(&f->all, entry, err);
}

/* A new file is seen when it is closed. A link is complete, and so is a file that had its content
 * before its name. */
static int is_incomplete(const folder *f, const char *name, const struct stat *info) {
    struct stat own;
    return info->st_size == 0 && info->st_nlink <= 1 &&
           fstatat(f->tree.place, name, &own, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(own.st_mode);
}

static qn_status take_file(folder *f, const char *name, int is_plain, qn__watch_why why,
                           qn_error *err) {
    struct stat info;
    const int seen = why == QN__WATCH_SEEN;
    qn__watch_name *entry = seen && is_plain ? qn__watch_saw(&f->all, name, err) : NULL;
    if (seen && is_plain && !entry)
        return QN_MEMORY;
    if (entry && entry->state != QN__NAME_NEW)
        return QN_OK;
    if (!find(f, name, &info))
        return QN_OK;
    if (why == QN__WATCH_MADE && is_incomplete(f, name, &info))
        return QN_OK;
    entry = entry ? entry : qn__watch_saw(&f->all, name, err);
    if (!entry)
        return QN_MEMORY;
    return why == QN__WATCH_WRITTEN       ? take_written(f, entry, &info, err)
           : entry->state == QN__NAME_NEW ? take_seen(f, entry, &info, err)
                                          : QN_OK;
}

/* qn__watch_found */
static qn_status take(void *user, const char *name, int is_plain, qn__watch_why why,
                      qn_error *err) {
    folder *f = user;
    const qn_status status = take_file(f, name, is_plain, why, err);
    return status == QN_OK ? qn__watch_store_meanwhile(&f->all, err) : status;
}

static qn_status look(qn__watch_many *all, qn_error *err) {
    folder *f = folder_of(all);
    const qn_status status = qn__watch_tree_walk(&f->tree, take, f, err);
    all->polls = f->tree.silent;
    return status;
}

static qn_status told(qn__watch_many *all, qn_error *err) {
    folder *f = folder_of(all);
    const qn_status status = qn__watch_tree_told(&f->tree, take, f, err);
    if (f->tree.is_lost || (f->tree.silent && !all->polls))
        qn__watch_look_soon(all);
    f->tree.is_lost = 0;
    return status;
}

/* -------------------------------------------------------------------------------------- its life
 */

static const qn__watch_place place = {
    .look = look, .told = told, .read = read_file, .drop = drop, .done = move_done};

static void note(void *user, const char *what, const char *path) {
    qn__watch_note(user, "%s: %s", path, what);
}

static qn_status open_folder(folder *f, qn_error *err) {
    const qn_watch_options *o = &f->all.w->options;
    f->tree = (qn__watch_tree){
        .place = -1, .inotify = -1, .flat = o->flat, .note = note, .note_user = f->all.w};
    const qn_status status = qn__watch_tree_open(&f->tree, o->path, o->poll, err);
    if (status != QN_OK)
        return status;
    f->all.event = f->tree.inotify;
    f->has_table = qn__watch_results_file(f->all.w->results, &f->table);
    if (o->masks)
        qn__watch_tree_leave_out(&f->tree, o->masks);
    if (!o->move_done)
        return QN_OK;
    f->done = open(o->move_done, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->done < 0)
        return qn__fail_errno(err, "open", o->move_done);
    qn__watch_tree_leave_out(&f->tree, o->move_done);
    return QN_OK;
}

qn_status qn__watch_folder(qn_watch *w, qn_error *err) {
    folder f = {.all = {.w = w, .place = &place, .event = -1}, .done = -1};
    f.all.own = &f;
    pthread_mutex_init(&f.lock, NULL);
    qn_status status = open_folder(&f, err);
    if (status == QN_OK)
        status = qn__watch_many_run(&f.all, qn__cores(), err);
    qn__watch_many_release(&f.all);
    qn__watch_identities_release(&f.identities);
    qn__watch_tree_release(&f.tree);
    if (f.done >= 0)
        close(f.done);
    pthread_mutex_destroy(&f.lock);
    return status;
}

/* A folder of a store, such as "s3://bucket/prefix/", whose objects are answered. Its list is asked
 * for again and again. An object that is listed is complete; each version of it, which its tag
 * tells, is answered once. */
#include "base/files/folder_make.h"
#include "base/files/remote.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "serve/watch/watch_many.h"
#include "serve/watch/watch_tree.h"
#include <stdio.h>
#include <string.h>

/* Threads that read, which wait for the store most of the time. */
enum { READERS = 8 };

typedef struct bucket {
    qn__watch_many all;
    char *prefix;  /* its address, with a slash at its end */
    int is_listed; /* it was, at least once */
    int is_away;   /* the last list failed */
} bucket;

static bucket *bucket_of(const qn__watch_many *all) { return all->own; }

/* ----------------------------------------------------------------------------------- its readers
 */

/* A tag without its quotes. */
static void version_of(const qn__remote_about *about, char version[QN__REMOTE_TAG]) {
    const char *tag = strncmp(about->tag, "W/", 2) == 0 ? about->tag + 2 : about->tag;
    const int size = (int)strlen(tag), quoted = size >= 2 && tag[0] == '"' && tag[size - 1] == '"';
    snprintf(version, QN__REMOTE_TAG, "%.*s", size - 2 * quoted, tag + quoted);
}

static qn_status read_all(int file, const char *address, uint64_t size, qn__watch_bytes *out,
                          qn_error *err) {
    if (size > QN__WATCH_MOST_BYTES)
        return qn__watch_refuse_size(err);
    out->bytes = qn__alloc(size + 1, 1, err);
    if (!out->bytes)
        return QN_MEMORY;
    const qn_status status = qn__remote_ensure(file, 0, size, err);
    if (status != QN_OK)
        return status;
    if (!qn__watch_read_bytes(file, size, out))
        return qn__fail_errno(err, "read", address);
    return out->size == size
               ? QN_OK
               : qn__fail(err, QN_IO, "the kept part of %.200s is too short", address);
}

/* *same 0: the object has another version now. */
static qn_status read_version(const char *address, const char *wanted, int *same,
                              qn__watch_bytes *out, qn_error *err) {
    char version[QN__REMOTE_TAG];
    qn__remote_about about;
    int file = -1;
    *same = 1;
    qn_status status = qn__remote_open(address, &file, err);
    if (status != QN_OK)
        return status;
    if (qn__remote_about_of(file, &about)) {
        version_of(&about, version);
        *same = strcmp(version, wanted) == 0;
        status = *same ? read_all(file, address, about.size, out, err) : QN_OK;
    }
    qn__remote_close(file);
    return status;
}

static qn__skip read_object(qn__watch_many *all, const qn__watch_task *task, qn__watch_bytes *out,
                            qn__watch_unit *unit) {
    bucket *b = bucket_of(all);
    char *address;
    int same = 1;
    unit->status = qn__folder_path(b->prefix, task->name, &address, &unit->error);
    if (unit->status == QN_OK)
        unit->status = read_version(address, task->version, &same, out, &unit->error);
    qn__free(address);
    /* A store that does not answer says nothing about the object. */
    if (unit->status != QN_OK && !(unit->status == QN_INPUT && task->is_final))
        return QN__SKIP_LATER;
    return same ? QN__SKIP_NOT : QN__SKIP_LATER;
}

/* ---------------------------------------------------------------------------------- its objects
 */

/* Parts of the name that are not looked at, as in folders. */
static int is_left_out(const bucket *b, const char *name) {
    char part[1024];
    const size_t depth = strcspn(name, "/");
    if (b->all.w->options.flat && name[depth])
        return 1;
    for (size_t size; *name; name += size + (name[size] == '/')) {
        size = strcspn(name, "/");
        snprintf(part, sizeof part, "%.*s", (int)size, name);
        if (qn__watch_is_temporary(part))
            return 1;
    }
    return 0;
}

static qn_status note_version(qn__watch_name *entry, const char *version, qn_error *err) {
    if (entry->version && strcmp(entry->version, version) == 0)
        return QN_OK;
    char *own = qn__copy_text(version, err);
    if (!own)
        return QN_MEMORY;
    qn__free(entry->version);
    entry->version = own;
    entry->failed = 0;
    entry->state = QN__NAME_NEW;
    return QN_OK;
}

/* qn__remote_found. One that is being read, and has another version now, is looked at again. */
static qn_status take(void *user, const char *address, const qn__remote_about *about,
                      qn_error *err) {
    bucket *b = user;
    char version[QN__REMOTE_TAG];
    const char *name = address + strlen(b->prefix);
    if (qn__watch_is_stopped(b->all.w))
        return QN_BUSY;
    if (!*name || is_left_out(b, name))
        return QN_OK;
    qn__watch_name *entry = qn__watch_saw(&b->all, name, err);
    version_of(about, version);
    qn_status status = !entry                            ? QN_MEMORY
                       : entry->state == QN__NAME_QUEUED ? QN_OK
                                                         : note_version(entry, version, err);
    if (status == QN_OK)
        status = qn__watch_complete(&b->all, entry, err);
    return status == QN_OK ? qn__watch_store_meanwhile(&b->all, err) : status;
}

static int may_pass(const bucket *b, qn_status status) {
    return b->is_listed && !b->all.w->options.once && (status == QN_IO || status == QN_INPUT);
}

static qn_status look(qn__watch_many *all, qn_error *err) {
    bucket *b = bucket_of(all);
    const qn_status status = qn__remote_list(b->prefix, 0, take, b, err);
    all->is_partial = status != QN_OK;
    if (status == QN_BUSY && qn__watch_is_stopped(all->w))
        return QN_OK;
    if (status != QN_OK && !may_pass(b, status))
        return status;
    if (status != QN_OK && !b->is_away)
        qn__watch_note(all->w,
                       "the store cannot be asked for its files, and is asked again: %.300s",
                       err->what);
    else if (status == QN_OK && b->is_away)
        qn__watch_note(all->w, "the store can be asked again");
    b->is_away = status != QN_OK;
    b->is_listed = 1;
    return QN_OK;
}

/* -------------------------------------------------------------------------------------- its life
 */

static const qn__watch_place place = {.look = look, .read = read_object};

static qn_status refuse_object(const char *path, qn_error *err) {
    qn__fail(err, QN_INPUT, "this is one file of a store, which is replaced and does not grow");
    qn__at(err, "%.400s", path);
    return qn__remedy(err, QN_INPUT,
                      "put new rows into further files of a folder of the store, and watch that "
                      "folder; quern predict answers one file");
}

static qn_status open_bucket(bucket *b, qn_error *err) {
    const char *path = b->all.w->options.path;
    const char *bucket_name = strstr(path, "://");
    const int is_whole = bucket_name && !strchr(bucket_name + 3, '/');
    if (!is_whole && qn__remote_file_is_there(path))
        return refuse_object(path, err);
    qn__text text = {0};
    qn__text_add(&text, "%s%s", path, qn__folder_slash(path));
    b->prefix = qn__text_take(&text, err);
    return b->prefix ? QN_OK : QN_MEMORY;
}

qn_status qn__watch_bucket(qn_watch *w, qn_error *err) {
    bucket b = {.all = {.w = w, .place = &place, .event = -1, .polls = 1}};
    b.all.own = &b;
    qn_status status = open_bucket(&b, err);
    if (status == QN_OK)
        status = qn__watch_many_run(&b.all, READERS, err);
    qn__watch_many_release(&b.all);
    qn__free(b.prefix);
    return status;
}

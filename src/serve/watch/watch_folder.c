/* A folder whose files are answered as they are complete.
 *
 * The thread of the watch looks at the folder, stores answers and moves files. Further threads read
 * files and submit them. Which files are done is what the table holds. */
#include "base/files/other_hosts.h"
#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include "serve/watch/watch_files.h"
#include "serve/watch/watch_names.h"
#include "serve/watch/watch_state.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { READERS = 8, EVENTS = 1 << 16, TOLD_AGAIN = 5 };

/* Seconds after which names of files that are gone are forgotten, and how many times longer than a
 * look at the folder takes. */
static const double SWEEP = 60;

/* A file that is to be read. */
typedef struct task {
    struct task *next;
    int64_t last; /* the last of its items that is stored; -1: none is */
    char name[];
} task;

typedef struct folder {
    qn_watch *w;
    qn__watch_names names;
    uint64_t looks;     /* at the folder */
    uint64_t again;     /* files that came again under a name that is done */
    uint64_t unsettled; /* files that may not be complete, at the last look */
    double sweep;       /* when to look for names that are gone */
    double next_look;   /* when to look again; 0: an event says it */
    int place, done;    /* descriptors of the folder, and of that for files that are done */
    int inotify;        /* -1: the folder does not tell what changes */
    /* Shared with the readers: */
    pthread_mutex_t lock;
    pthread_cond_t more;
    task *first, **last;
    int reading; /* tasks that readers have */
    int ending;
    qn__watch_identities identities;
    pthread_t reader[READERS];
    int readers;
} folder;

/* ----------------------------------------------------------------------------------- the readers
 */

static task *next_task(folder *f) {
    pthread_mutex_lock(&f->lock);
    while (!f->first && !f->ending)
        pthread_cond_wait(&f->more, &f->lock);
    task *t = f->ending ? NULL : f->first;
    if (t && !(f->first = t->next))
        f->last = &f->first;
    f->reading += t != NULL;
    pthread_mutex_unlock(&f->lock);
    return t;
}

static int is_renamed(folder *f, const struct stat *info, const char *name) {
    pthread_mutex_lock(&f->lock);
    const int is = qn__watch_renamed(&f->identities, info, name);
    pthread_mutex_unlock(&f->lock);
    return is;
}

static void read_task(folder *f, const task *t) {
    qn_watch *w = f->w;
    qn__watch_bytes bytes = {.bytes = NULL};
    qn_error err;
    qn__watch_unit *unit = qn__watch_unit_make(t->name, 0, &err);
    if (!unit)
        return; /* the watch finds it again */
    unit->skip = qn__watch_file_read(f->place, t->name, &bytes, unit);
    if (!unit->skip && is_renamed(f, &bytes.info, t->name))
        unit->skip = QN__SKIP_KNOWN;
    if (!unit->skip && unit->status == QN_OK)
        unit->status = qn__watch_file_items(&w->units, t->name, &bytes, &unit->data, &unit->error);
    if (!unit->skip && unit->status != QN_OK)
        unit->status = QN_INPUT; /* an image that is too large for the memory is a bad one, too */
    /* Some programs write a file in several steps, and close it after each. */
    if (!unit->skip && unit->status != QN_OK && qn__watch_is_fresh(&bytes.info))
        unit->skip = QN__SKIP_LATER;
    if (!unit->skip && unit->data && (int64_t)qn_data_items(unit->data) - 1 <= t->last)
        unit->skip = QN__SKIP_KNOWN;
    qn__free(bytes.bytes);
    qn__watch_submit(&w->units, unit);
}

static void *read_tasks(void *context) {
    folder *f = context;
    qn__float_state_set();
    for (task *t; (t = next_task(f)); qn__free(t)) {
        read_task(f, t);
        pthread_mutex_lock(&f->lock);
        --f->reading;
        pthread_mutex_unlock(&f->lock);
    }
    return NULL;
}

static qn_status start_readers(folder *f, qn_error *err) {
    const int cores = qn__cores(), most = cores < READERS ? cores : READERS;
    int error = 0;
    while (f->readers < most && error == 0) {
        error = qn__thread_start(&f->reader[f->readers], NULL, read_tasks, f);
        f->readers += error == 0;
    }
    return f->readers > 0 ? QN_OK
                          : qn__fail(err, QN_MEMORY, "cannot start a thread: %s", strerror(error));
}

/* What is read now is still submitted; what waits stays for the next run. */
static void end_readers(folder *f) {
    pthread_mutex_lock(&f->lock);
    f->ending = 1;
    pthread_cond_broadcast(&f->more);
    pthread_mutex_unlock(&f->lock);
}

static void join_readers(folder *f) {
    for (int k = 0; k < f->readers; ++k)
        pthread_join(f->reader[k], NULL);
    f->readers = 0;
}

/* ------------------------------------------------------------------------------------- its names
 */

/* Names of files that are not finished, as programs write them. */
static int is_temporary(const char *name) {
    static const char *const endings[] = {".tmp", ".part", ".partial", ".crdownload", "~"};
    const size_t size = strlen(name);
    for (size_t k = 0; k < sizeof endings / sizeof *endings; ++k) {
        const size_t end = strlen(endings[k]);
        if (size >= end && strcmp(name + size - end, endings[k]) == 0)
            return 1;
    }
    return name[0] == '.';
}

/* A name that is there already gets a number. */
static void move_done(folder *f, const char *name) {
    char to[NAME_MAX + 16];
    if (f->done < 0)
        return;
    snprintf(to, sizeof to, "%s", name);
    for (int k = 1; k < 10000; ++k) {
        if (renameat2(f->place, name, f->done, to, RENAME_NOREPLACE) == 0 || errno == ENOENT)
            return;
        if (errno != EEXIST)
            break;
        snprintf(to, sizeof to, "%s~%d", name, k);
    }
    qn__watch_note(f->w, "%s cannot be moved to %s: %s", name, f->w->options.move_done,
                   strerror(errno));
}

static qn_status queue_task(folder *f, const char *name, int64_t last, qn_error *err) {
    const size_t size = strlen(name) + 1;
    task *t = qn__alloc(1, sizeof *t + size, err);
    if (!t)
        return QN_MEMORY;
    memcpy(t->name, name, size);
    t->last = last;
    pthread_mutex_lock(&f->lock);
    *f->last = t;
    f->last = &t->next;
    pthread_cond_signal(&f->more);
    pthread_mutex_unlock(&f->lock);
    return QN_OK;
}

static void set_done(folder *f, qn__watch_name *entry) {
    entry->state = QN__NAME_DONE;
    move_done(f, entry->name);
}

/* A file is complete: it is read, unless its answer is stored. An image has one item; of a file of
 * rows some may be missing. */
static qn_status take_file(folder *f, qn__watch_name *entry, qn_error *err) {
    int64_t last;
    if (entry->state != QN__NAME_NEW)
        return QN_OK;
    const qn_status status = qn__watch_results_last(f->w->results, entry->name, &last, err);
    if (status != QN_OK)
        return status;
    if (last >= 0 && !qn__watch_may_hold_rows(entry->name)) {
        ++f->w->report.known;
        set_done(f, entry);
        return QN_OK;
    }
    entry->state = QN__NAME_QUEUED;
    return queue_task(f, entry->name, last, err);
}

/* ----------------------------------------------------------------------------------- its changes
 */

static int is_changed(const qn__watch_name *entry, const struct stat *info) {
    return entry->size != (int64_t)info->st_size || entry->modified != qn__modified(info);
}

/* One name at a look at the folder. */
static qn_status look_at(folder *f, const char *name, qn_error *err) {
    struct stat info;
    if (is_temporary(name))
        return QN_OK;
    qn__watch_name *entry = qn__watch_names_get(&f->names, name, err);
    if (!entry)
        return QN_MEMORY;
    entry->looked = f->looks;
    if (entry->state != QN__NAME_NEW || fstatat(f->place, name, &info, 0) != 0 ||
        !S_ISREG(info.st_mode))
        return QN_OK;
    const int same = !is_changed(entry, &info);
    const qn__writers writers = qn__watch_writers(f->place, name);
    entry->size = (int64_t)info.st_size;
    entry->modified = qn__modified(&info);
    if (writers == QN__WRITERS_NONE || (writers == QN__WRITERS_UNKNOWN && same))
        return take_file(f, entry, err);
    /* One that somebody writes tells when it is complete, unless nothing does. */
    f->unsettled += writers == QN__WRITERS_UNKNOWN || !f->w->options.once;
    return QN_OK;
}

static qn_status look(folder *f, qn_error *err) {
    const double begun = qn__now();
    const int place = openat(f->place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = place < 0 ? NULL : fdopendir(place);
    qn_status status = QN_OK;
    if (!list)
        return qn__fail_errno(err, "read", f->w->options.path);
    ++f->looks;
    f->unsettled = 0;
    for (const struct dirent *each; status == QN_OK && (each = readdir(list));)
        status = look_at(f, each->d_name, err);
    closedir(list);
    qn__watch_names_sweep(&f->names, f->looks);
    f->sweep = qn__now() + SWEEP + SWEEP * (qn__now() - begun);
    const int again = f->unsettled > 0 || (f->inotify < 0 && !f->w->options.once);
    f->next_look = again ? qn__now() + (double)f->w->options.poll_seconds : 0;
    return status;
}

static void look_soon(folder *f) {
    const double soon = qn__now() + (double)f->w->options.poll_seconds;
    if (f->next_look <= 0 || f->next_look > soon)
        f->next_look = soon;
}

static qn_status take_event(folder *f, const struct inotify_event *event, qn_error *err) {
    if (event->mask & IN_Q_OVERFLOW) {
        f->next_look = qn__now();
        return QN_OK;
    }
    if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)) {
        qn__fail(err, QN_INPUT, "the folder was removed or renamed");
        qn__at(err, "%.400s", f->w->options.path);
        return QN_INPUT;
    }
    struct stat info;
    if (!event->len || is_temporary(event->name) || fstatat(f->place, event->name, &info, 0) != 0 ||
        !S_ISREG(info.st_mode))
        return QN_OK;
    qn__watch_name *entry = qn__watch_names_get(&f->names, event->name, err);
    if (!entry)
        return QN_MEMORY;
    if (entry->state == QN__NAME_DONE && is_changed(entry, &info) && f->again++ < TOLD_AGAIN)
        qn__watch_note(f->w,
                       "%s came again, and is answered already: each file needs a name of "
                       "its own",
                       event->name);
    entry->size = (int64_t)info.st_size;
    entry->modified = qn__modified(&info);
    return take_file(f, entry, err);
}

static qn_status take_events(folder *f, qn_error *err) {
    static _Thread_local _Alignas(struct inotify_event) char events[EVENTS];
    qn_status status = QN_OK;
    for (ssize_t size; status == QN_OK && f->inotify >= 0 &&
                       (size = read(f->inotify, events, sizeof events)) > 0;)
        for (ssize_t at = 0; status == QN_OK && at < size;) {
            const struct inotify_event *event = (const void *)(events + at);
            at += (ssize_t)(sizeof *event + event->len);
            status = take_event(f, event, err);
        }
    return status;
}

/* ----------------------------------------------------------------------------------- its answers
 */

/* What becomes of the name of a unit, whose rows are stored. */
static qn_status settle(folder *f, const qn__watch_unit *unit, qn_error *err) {
    qn__watch_name *entry = qn__watch_names_get(&f->names, unit->file, err);
    if (!entry)
        return QN_MEMORY;
    f->w->report.known += unit->skip == QN__SKIP_KNOWN;
    if (unit->skip == QN__SKIP_LATER) {
        entry->state = QN__NAME_NEW;
        entry->size = -1;
        look_soon(f);
    } else if (unit->skip == QN__SKIP_GONE)
        entry->state = QN__NAME_NEW;
    else
        set_done(f, entry);
    return QN_OK;
}

static qn_status store(folder *f, qn_error *err) {
    qn__watch_unit *units = qn__watch_take(&f->w->units, 0);
    qn_status status = units ? qn__watch_store(f->w, units, err) : QN_OK;
    for (const qn__watch_unit *u = units; status == QN_OK && u; u = u->next)
        status = settle(f, u, err);
    qn__watch_free_all(units);
    return status;
}

/* ------------------------------------------------------------------------------------- the watch
 */

static int are_reading(folder *f) {
    pthread_mutex_lock(&f->lock);
    const int are = f->reading > 0 || (f->first && !f->ending);
    pthread_mutex_unlock(&f->lock);
    return are;
}

/* Whether all that was there is answered and stored. */
static int is_finished(folder *f) {
    return f->w->options.once && f->next_look <= 0 && !are_reading(f) &&
           qn__watch_is_idle(&f->w->units);
}

static double time_of_look(const folder *f) {
    return f->next_look > 0 && f->next_look < f->sweep ? f->next_look : f->sweep;
}

static double seconds_left(const folder *f) {
    const double left = time_of_look(f) - qn__now();
    return left > 0 ? left : 0;
}

static qn_status go_on(folder *f, qn_error *err) {
    qn_status status = look(f, err);
    while (status == QN_OK && !is_finished(f)) {
        if (qn__watch_wait(f->w, f->inotify, seconds_left(f)))
            break;
        status = take_events(f, err);
        if (status == QN_OK)
            status = store(f, err);
        if (status == QN_OK && qn__now() >= time_of_look(f))
            status = look(f, err);
    }
    return status;
}

/* What the readers have is answered and stored; after a failure it is dropped, since the next run
 * finds it again. What waits to be read stays for that run, too. */
static qn_status finish(folder *f, qn_status status, qn_error *err) {
    end_readers(f);
    while (are_reading(f) || !qn__watch_is_idle(&f->w->units)) {
        qn__watch_wait_answer(f->w);
        if (status == QN_OK)
            status = store(f, err);
        else
            qn__watch_free_all(qn__watch_take(&f->w->units, 0));
    }
    join_readers(f);
    return status;
}

static qn_status open_folder(folder *f, qn_error *err) {
    const qn_watch_options *o = &f->w->options;
    f->place = open(o->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->place < 0)
        return qn__fail_errno(err, "read", o->path);
    f->done = o->move_done ? open(o->move_done, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (o->move_done && f->done < 0)
        return qn__fail_errno(err, "open", o->move_done);
    /* The system does not tell what other hosts do. */
    if (o->poll || qn__folder_is_shared(f->place))
        return QN_OK;
    f->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (f->inotify >= 0 && inotify_add_watch(f->inotify, o->path,
                                             IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE_SELF |
                                                 IN_MOVE_SELF | IN_ONLYDIR) >= 0)
        return QN_OK;
    qn__watch_note(f->w,
                   "the system does not tell what changes in the folder (%s); it is looked at "
                   "again and again",
                   strerror(errno));
    if (f->inotify >= 0)
        close(f->inotify);
    f->inotify = -1;
    return QN_OK;
}

static void release(folder *f) {
    for (task *t = f->first, *next; t; t = next) {
        next = t->next;
        qn__free(t);
    }
    qn__watch_names_release(&f->names);
    qn__free(f->identities.slot);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->more);
    const int open_ones[] = {f->place, f->done, f->inotify};
    for (size_t k = 0; k < sizeof open_ones / sizeof *open_ones; ++k)
        if (open_ones[k] >= 0)
            close(open_ones[k]);
}

qn_status qn__watch_folder(qn_watch *w, qn_error *err) {
    folder f = {.w = w, .place = -1, .done = -1, .inotify = -1};
    f.last = &f.first;
    pthread_mutex_init(&f.lock, NULL);
    pthread_cond_init(&f.more, NULL);
    qn_status status = open_folder(&f, err);
    if (status == QN_OK)
        status = start_readers(&f, err);
    if (status == QN_OK)
        status = go_on(&f, err);
    status = finish(&f, status, err);
    release(&f);
    return status;
}

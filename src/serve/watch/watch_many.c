#include "serve/watch/watch_many.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/threads.h"

/* Seconds after which names of files that are gone are forgotten, and how many times longer than a
 * look at all files takes. */
static const double SWEEP = 60;
/* Seconds for which a file that cannot be read is tried again. */
static const double PATIENCE = 2;
enum { NOTES = 5 };

/* ----------------------------------------------------------------------------------- the readers
 */

static void read_task(void *user, const qn__watch_task *t) {
    qn__watch_many *all = user;
    const qn__watch_units *units = &all->w->units;
    qn__watch_bytes bytes = {.bytes = NULL};
    qn_error err;
    qn__watch_unit *unit = qn__watch_unit_make(t->name, 0, &err);
    if (!unit || (t->version && !(unit->version = qn__copy_text(t->version, &err)))) {
        qn__watch_unit_free(unit);
        return; /* memory is short: the next watch answers the file */
    }
    unit->skip = all->place->read(all, t, &bytes, unit);
    if (!unit->skip && unit->status == QN_OK)
        qn__watch_file_items(units, t->name, &bytes, unit);
    if (!unit->skip && unit->status != QN_OK)
        unit->status = QN_INPUT; /* an image that is too large for the memory is a bad one, too */
    /* Some programs write a file in several steps, and close it after each. */
    if (!unit->skip && unit->status != QN_OK && !t->is_final && qn__watch_is_fresh(&bytes.info)) {
        unit->skip = QN__SKIP_LATER;
        unit->status = QN_OK;
    }
    if (unit->skip == QN__SKIP_LATER && all->place->drop)
        all->place->drop(all, &bytes);
    const uint64_t rows = unit->data      ? qn_data_items(unit->data)
                          : unit->prompts ? unit->prompts->count
                                          : 1;
    if (!unit->skip && (int64_t)rows - 1 <= t->last)
        unit->skip = QN__SKIP_KNOWN;
    qn__free(bytes.bytes);
    qn__watch_submit(&all->w->units, unit);
}

/* ------------------------------------------------------------------------------------- its names
 */

qn__watch_name *qn__watch_saw(qn__watch_many *all, const char *name, qn_error *err) {
    qn__watch_name *entry = qn__watch_names_get(&all->names, name, err);
    if (entry)
        entry->looked = all->looks;
    return entry;
}

static void set_done(qn__watch_many *all, qn__watch_name *entry) {
    entry->state = QN__NAME_DONE;
    if (all->place->done)
        all->place->done(all, entry->name);
}

/* An image has one item; of a file of rows some may be missing. */
qn_status qn__watch_complete(qn__watch_many *all, qn__watch_name *entry, qn_error *err) {
    int64_t last;
    if (entry->state != QN__NAME_NEW)
        return QN_OK;
    const qn_status status = qn__watch_last(all->w, entry->name, entry->version, &last, err);
    if (status != QN_OK)
        return status;
    if (last >= 0 && !qn__watch_may_hold_rows(entry->name)) {
        ++all->w->report.known;
        set_done(all, entry);
        return QN_OK;
    }
    entry->state = QN__NAME_QUEUED;
    const int is_final = entry->failed > 0 && qn__now() - entry->failed >= PATIENCE;
    return qn__watch_readers_add(&all->readers, entry, last, is_final, err);
}

void qn__watch_look_soon(qn__watch_many *all) {
    const double soon = qn__now() + qn__watch_poll_seconds(all->w);
    if (all->next_look <= 0 || all->next_look > soon)
        all->next_look = soon;
}

static qn_status look(qn__watch_many *all, qn_error *err) {
    const double begun = qn__now();
    ++all->looks;
    all->unsettled = 0;
    all->next_look = 0; /* a file that is to be read again while this look goes on sets it */
    const qn_status status = all->place->look(all, err);
    if (status != QN_OK)
        return status;
    const double now = qn__now(), took = now - begun, every = qn__watch_poll_seconds(all->w);
    if (!all->is_partial)
        qn__watch_names_sweep(&all->names, all->looks);
    all->sweep = now + SWEEP + SWEEP * took;
    const int again = all->unsettled > 0 || (all->polls && !all->w->options.once);
    if (again)
        all->next_look = now + (took > every ? took : every);
    return QN_OK;
}

/* ----------------------------------------------------------------------------------- its answers
 */

/* What becomes of the name of a unit, whose rows are stored. */
static qn_status settle(qn__watch_many *all, const qn__watch_unit *unit, qn_error *err) {
    qn__watch_name *entry = qn__watch_names_get(&all->names, unit->file, err);
    if (!entry)
        return QN_MEMORY;
    all->w->report.known += unit->skip == QN__SKIP_KNOWN;
    if (unit->skip == QN__SKIP_LATER) {
        if (unit->status != QN_OK && all->notes++ < NOTES)
            qn__watch_note(all->w, "%.200s cannot be read, and is tried again: %.300s", unit->file,
                           unit->error.what);
        entry->state = QN__NAME_NEW;
        entry->failed = entry->failed > 0 ? entry->failed : qn__now();
        qn__watch_look_soon(all);
    } else if (unit->skip == QN__SKIP_GONE)
        entry->state = QN__NAME_NEW;
    else
        set_done(all, entry);
    return QN_OK;
}

static qn_status store(qn__watch_many *all, qn_error *err) {
    qn__watch_unit *units = qn__watch_take(&all->w->units, 0);
    qn_status status = units ? qn__watch_store(all->w, units, err) : QN_OK;
    for (const qn__watch_unit *u = units; status == QN_OK && u; u = u->next)
        status = settle(all, u, err);
    qn__watch_free_all(units);
    all->stored = qn__now();
    return status;
}

/* Each time that rows are stored costs time of the disk: more often would hold up the look. */
qn_status qn__watch_store_meanwhile(qn__watch_many *all, qn_error *err) {
    const double bound = 1e-9 * (double)all->w->options.latency;
    return qn__now() - all->stored < bound ? QN_OK : store(all, err);
}

/* ------------------------------------------------------------------------------------- the watch
 */

/* Whether all that was there is answered and stored. */
static int is_finished(qn__watch_many *all) {
    return all->w->options.once && all->next_look <= 0 &&
           !qn__watch_readers_are_busy(&all->readers) && qn__watch_is_idle(&all->w->units);
}

static double time_of_look(const qn__watch_many *all) {
    return all->next_look > 0 && all->next_look < all->sweep ? all->next_look : all->sweep;
}

static double seconds_left(const qn__watch_many *all) {
    const double left = time_of_look(all) - qn__now();
    return left > 0 ? left : 0;
}

static qn_status go_on(qn__watch_many *all, qn_error *err) {
    qn_status status = look(all, err);
    while (status == QN_OK && !is_finished(all)) {
        if (qn__watch_wait(all->w, all->event, seconds_left(all)))
            break;
        status = all->place->told ? all->place->told(all, err) : QN_OK;
        if (status == QN_OK)
            status = store(all, err);
        if (status == QN_OK && qn__now() >= time_of_look(all))
            status = look(all, err);
    }
    return status;
}

/* What the readers have is answered and stored; after a failure it is dropped, since the next run
 * finds it again. What waits to be read stays for that run, too. */
static qn_status finish(qn__watch_many *all, qn_status status, qn_error *err) {
    qn__watch_readers_end(&all->readers);
    while (qn__watch_readers_are_busy(&all->readers) || !qn__watch_is_idle(&all->w->units)) {
        qn__watch_wait_answer(all->w);
        if (status == QN_OK)
            status = store(all, err);
        else
            qn__watch_free_all(qn__watch_take(&all->w->units, 0));
    }
    return status;
}

qn_status qn__watch_many_run(qn__watch_many *all, int readers, qn_error *err) {
    qn_status status = qn__watch_readers_start(&all->readers, readers, read_task, all, err);
    if (status == QN_OK)
        status = go_on(all, err);
    status = finish(all, status, err);
    qn__watch_readers_release(&all->readers);
    return status;
}

void qn__watch_many_release(qn__watch_many *all) { qn__watch_names_release(&all->names); }

/* The versions of the state: updating members, and returning to an older version after a loss. */
#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "team/team_reduction.h"
#include <stdio.h>

/* ------------------------------------------------------------------------------------ tallies */

qn_status qn__team_add(qn__team *t, const qn__tally *part, qn_error *err) {
    if (qn__tally_add(&t->history.account.sum, part) == 0)
        return QN_OK;
    return qn__fail(err, QN_NUMERIC, "the sum of the losses became too large");
}

qn_status qn__team_report_tally(qn__team *t, qn__tally *tally, qn_error *err) {
    const qn__tally *now = &t->history.account.sum, *before = &t->history.told.sum;
    const qn__tally more = {.loss = now->loss - before->loss,
                            .correct = now->correct - before->correct,
                            .items = now->items - before->items};
    if (qn__tally_add(tally, &more) != 0)
        return qn__fail(err, QN_NUMERIC, "the sum of the losses became too large");
    t->history.told = t->history.account;
    return QN_OK;
}

static void wait_body(void *context, int index) {
    qn__team *t = context;
    qn__team_member *m = &t->member[index];
    const double begun = qn__now();
    m->part = (qn__tally){0};
    m->device->flush(m->worker, &m->part, &m->error);
    const double ended = qn__now();
    m->busy += ended - begun;
    m->training += ended - begun;
    qn__trace_span(t->reports.trace, m->track, "flush", begun, ended, (qn__trace_value){0},
                   (qn__trace_value){0});
}

qn_status qn__team_wait(qn__team *t, uint64_t but, qn_error *err) {
    uint64_t set = 0;
    for (uint32_t i = 0; i < t->count; ++i)
        if (t->member[i].worker && t->member[i].owes && !(but & QN__BIT(i)))
            set |= QN__BIT(i);
    if (!set)
        return QN_OK;
    qn_status status = qn__team_do(t, set, wait_body, t, err);
    for (uint32_t i = 0; i < t->count && status == QN_OK; ++i)
        if (set & qn__team_alive(t) & QN__BIT(i)) {
            t->member[i].owes = 0;
            status = qn__team_add(t, &t->member[i].part, err);
        }
    for (uint32_t i = 0; i < t->count && status == QN_OK; ++i)
        if (t->member[i].worker && t->member[i].version == t->history.version)
            t->member[i].account = t->history.account;
    if (status == QN_OK && (set & ~qn__team_alive(t)))
        status = QN_DEVICE;
    return status;
}

/* --------------------------------------------------------------------------------------- update */

static int slots_of(const qn__team *t) {
    int slots = 0;
    while (slots < (int)qn__program_slots(t->program) && t->history.host.state.slot[slots])
        ++slots;
    return slots;
}

static qn_status make_spare(qn__team *t, qn_error *err) {
    qn__state *s = &t->history.spare.state;
    const uint64_t n = t->program->parameters;
    if (!s->parameters && !(s->parameters = qn__alloc(n, sizeof(float), err)))
        return QN_MEMORY;
    for (int i = 0; i < slots_of(t); ++i)
        if (!s->slot[i] && !(s->slot[i] = qn__alloc(n, sizeof(float), err)))
            return QN_MEMORY;
    return QN_OK;
}

qn_status qn__team_save_from(qn__team *t, qn__state *state, qn_error *err) {
    for (uint32_t i = 0; i < t->count; ++i) {
        qn__team_member *m = &t->member[i];
        if (!m->worker || m->version != t->history.version)
            continue;
        const double begun = qn__now();
        m->error.status = QN_OK;
        m->error.where[0] = 0;
        m->device->save(m->worker, state, &m->error);
        m->busy += qn__now() - begun;
        qn__trace_span(t->reports.trace, m->track, "save", begun, qn__now(), (qn__trace_value){0},
                       (qn__trace_value){0});
        const qn_status status = qn__team_settle(t, QN__BIT(i), err);
        if (status != QN_OK || m->worker)
            return status;
    }
    return QN_DEVICE;
}

qn_status qn__team_fill_spare(qn__team *t, qn_error *err) {
    qn_status status = make_spare(t, err);
    if (status == QN_OK)
        status = qn__team_wait(t, 0, err);
    if (status != QN_OK)
        return status;
    t->history.spare.version = QN__NO_VERSION; /* while it is incomplete */
    status = qn__team_save_from(t, &t->history.spare.state, err);
    if (status == QN_OK) {
        t->history.spare.version = t->history.version;
        t->history.spare.account = t->history.account;
    }
    return status;
}

typedef struct loading {
    qn__team *team;
    const qn__state *state;
} loading;

static void load_body(void *context, int index) {
    const loading *from = context;
    const qn__team *t = from->team;
    qn__team_member *m = &t->member[index];
    const double begun = qn__now();
    m->version = QN__NO_VERSION;
    m->device->load(m->worker, from->state, &m->error);
    m->busy += qn__now() - begun;
    qn__trace_span(t->reports.trace, m->track, "load", begun, qn__now(), (qn__trace_value){0},
                   (qn__trace_value){0});
}

qn_status qn__team_update_members(qn__team *t, uint64_t set, qn_error *err) {
    uint64_t stale = 0;
    for (uint32_t i = 0; i < t->count; ++i)
        if ((set & QN__BIT(i)) && t->member[i].worker && t->member[i].version != t->history.version)
            stale |= QN__BIT(i);
    if (!stale)
        return QN_OK;
    qn_status status = QN_OK;
    if (t->history.host.version != t->history.version &&
        t->history.spare.version != t->history.version)
        status = qn__team_fill_spare(t, err);
    if (status != QN_OK)
        return status;
    loading from = {t, t->history.host.version == t->history.version ? &t->history.host.state
                                                                     : &t->history.spare.state};
    status = qn__team_do(t, stale, load_body, &from, err);
    if (status != QN_OK)
        return status;
    for (uint32_t i = 0; i < t->count; ++i)
        if (stale & qn__team_alive(t) & QN__BIT(i)) {
            t->member[i].version = t->history.version;
            t->member[i].account = t->history.account;
        }
    return (stale & ~qn__team_alive(t)) ? QN_DEVICE : QN_OK;
}

/* --------------------------------------------------------------------------------------- rewind */

int qn__team_has_version(const qn__team *t) {
    if (t->history.version == QN__NO_VERSION)
        return 0;
    for (uint32_t i = 0; i < t->count; ++i)
        if (t->member[i].worker && t->member[i].version == t->history.version)
            return 1;
    return t->history.host.version == t->history.version ||
           t->history.spare.version == t->history.version;
}

static void better(uint64_t version, const qn__account *account, uint64_t *best,
                   const qn__account **with) {
    if (version == QN__NO_VERSION || (*best != QN__NO_VERSION && version <= *best))
        return;
    *best = version;
    *with = account;
}

qn_status qn__team_rewind(qn__team *t, qn_error *err) {
    /* The steps are done again from the state that arrives. */
    const qn_status status = qn__team_catch_up(t, err);
    if (status != QN_OK && status != QN_DEVICE)
        return status;
    const qn__account *account = NULL;
    uint64_t best = QN__NO_VERSION;
    better(t->history.host.version, &t->history.host.account, &best, &account);
    better(t->history.spare.version, &t->history.spare.account, &best, &account);
    for (uint32_t i = 0; i < t->count; ++i)
        if (t->member[i].worker)
            better(t->member[i].version, &t->member[i].account, &best, &account);
    if (!account || t->history.top - best > t->history.log_space) {
        qn__fail(err, QN_DEVICE, "the newest state was lost with the worker that had it");
        return qn__remedy(err, QN_DEVICE,
                          "start again with `train.resume`; the last checkpoint is complete");
    }
    if (t->history.done > best) {
        char text[128];
        snprintf(text, sizeof text, "the newest state went with it: %llu steps are done again",
                 (unsigned long long)(t->history.done - best));
        qn__trace_mark(t->reports.trace, t->reports.track, "back", qn__now(), text);
        if (t->reports.note)
            t->reports.note(t->reports.user, text);
        qn__float_state_set();
    }
    t->history.version = best;
    t->history.account = *account;
    return QN_OK;
}

void qn__team_log(qn__team *t, const qn__batch *batch, const qn__update *update) {
    qn__logged *to = &t->history.log[t->history.top % t->history.log_space];
    to->batch = *batch;
    to->update = *update;
    if (batch->order) {
        to->order = *batch->order;
        to->batch.order = &to->order;
    }
}

qn__logged *qn__team_logged(const qn__team *t, uint64_t version) {
    return &t->history.log[version % t->history.log_space];
}

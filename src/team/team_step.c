/* One step: the members, their grains, their sums, the update; repeated if it was lost. */
#include "base/clock.h"
#include "base/memory.h"
#include "num/clip.h"
#include "team/team_reduction.h"
#include <stdio.h>
#include <string.h>

/* Fewer parameters than this are added by one thread: waking others takes longer. */
enum { ADD_ALONE = 1 << 16 };

static const qn__trace_value none = {0};

static uint32_t grains_of(const qn__team *t) {
    const uint32_t grain = t->program->grain;
    return (uint32_t)(((uint64_t)t->call.batch->items + grain - 1) / grain);
}

/* ------------------------------------------------------------------------------------- grains */

static uint64_t items_in(const qn__team *t, qn__chunk chunk) {
    const uint64_t grain = t->program->grain, end = (chunk.first + (uint64_t)chunk.count) * grain;
    return (end < t->call.batch->items ? end : t->call.batch->items) - chunk.first * grain;
}

/* Fetches the member's sums into its own array. Other members do so in parallel, and a member that
 * fails meanwhile leaves nothing in their sums. */
static void collect(qn__team *t, qn__team_member *m) {
    const uint64_t n = t->program->parameters;
    const double begun = qn__now();
    int64_t *to = m == t->call.direct ? t->call.into : m->sums;
    if (!to && !(to = m->sums = qn__alloc(n, sizeof *m->sums, &m->error)))
        return;
    if (!m->has_sums && m != t->call.direct)
        memset(to, 0, n * sizeof *to);
    else if (m == t->call.direct)
        qn__team_reduction_clear(t);
    if (!m->has_sums)
        m->part = (qn__tally){0};
    m->has_sums = 1;
    m->device->collect(m->worker, to, &m->part, &m->error);
    const double seconds = qn__now() - begun;
    m->busy += seconds;
    m->training += seconds;
    qn__trace_span(t->reports.trace, m->track, "collect", begun, begun + seconds, none, none);
}

/* Sends words of the sums while the device continues. They hold the chunk being computed, the first
 * of the part. The rank may have further ranges; the reduction accepts the announcement only if
 * these are all of its chunks. */
static void ready(void *user, uint64_t first, uint64_t words) {
    qn__team *t = user;
    const double begun = qn__now();
    qn__reduction_final(t->cluster, QN__TALLY_WORDS + first, words, t->call.range.count);
    t->reduction.sending += qn__now() - begun;
}

/* A chunk of a batch that is larger than what the worker takes at a time. */
static void compute_slices(qn__team *t, qn__team_member *m, qn__chunk chunk) {
    const qn__batch *all = t->call.batch;
    const uint32_t grain = t->program->grain;
    const uint32_t most = t->program->batch > grain ? t->program->batch / grain : 1;
    for (uint32_t done = 0; done < chunk.count && m->error.status == QN_OK;) {
        const uint32_t count = chunk.count - done < most ? chunk.count - done : most;
        qn__batch slice = *all;
        slice.first = all->first + (chunk.first + (uint64_t)done) * grain;
        slice.items = (uint32_t)items_in(t, (qn__chunk){chunk.first + done, count});
        m->device->train_grains(m->worker, &slice, 0, count, &m->error);
        done += count;
    }
}

/* Computes a chunk. 1: it was the rank's whole share, and the sums are in place; 0: the worker has
 * the sums. */
static int compute(qn__team *t, qn__team_member *m, qn__chunk chunk) {
    if (t->call.batch->items > t->program->batch) {
        compute_slices(t, m, chunk);
        return 0;
    }
    if (m != t->call.direct || !t->reduction.blank || chunk.count < t->call.range.count ||
        !m->device->train_share) {
        m->device->train_grains(m->worker, t->call.batch, chunk.first, chunk.count, &m->error);
        return 0;
    }
    /* Only one thread may call the reduction, and it is this one only if no other member takes
     * part. The part of a worker that may be lost may be computed again, so nothing of it is sent
     * early. */
    const int announces = t->cluster && !qn__many(t->call.adding) && !m->can_be_lost;
    const qn__outlet outlet = {t->call.into, announces ? ready : NULL, t};
    t->reduction.blank = 0;
    m->has_sums = 1;
    m->part = (qn__tally){0};
    m->device->train_share(m->worker, t->call.batch, chunk.first, chunk.count, &outlet, &m->part,
                           &m->error);
    return 1;
}

/* One worker in a shared step: takes chunks until there are none, then fetches its sums. */
static void grains_body(void *context, int index) {
    qn__team *t = context;
    qn__team_member *m = &t->member[index];
    qn__chunk chunk;
    int some = 0, owed = 0;
    double waiting = qn__now();
    while (m->error.status == QN_OK && qn__queue_take(&t->sharing.queue, (uint32_t)index, &chunk)) {
        const double begun = qn__now();
        if (some)
            qn__trace_span(t->reports.trace, m->track, "wait", waiting, begun, none, none);
        some = 1;
        owed |= !compute(t, m, chunk);
        waiting = qn__now();
        qn__trace_span(t->reports.trace, m->track, "grains", begun, waiting,
                       (qn__trace_value){"first", chunk.first},
                       (qn__trace_value){"grains", chunk.count});
        m->failed_at = chunk.first;
        m->busy += waiting - begun;
        m->training += waiting - begun;
        if (m->error.status != QN_OK)
            break;
        m->grains += chunk.count;
        m->items += items_in(t, chunk);
        qn__queue_done(&t->sharing.queue, (uint32_t)index, chunk, waiting - begun);
    }
    if (owed && m->error.status == QN_OK)
        collect(t, m);
    if (m->error.status == QN_DEVICE)
        qn__queue_lose(&t->sharing.queue, (uint32_t)index);
    else if (m->error.status != QN_OK)
        qn__queue_stop(&t->sharing.queue); /* the step has failed: no worker need continue */
}

/* Computes the grains of a range into the sums of members of the set. QN_DEVICE if all of them were
 * lost. */
static qn_status share_grains(qn__team *t, uint64_t set, qn__chunk range, qn_error *err) {
    for (uint32_t i = 0; i < t->count; ++i)
        t->member[i].has_sums = 0;
    t->call.range = range;
    t->call.adding = set;
    if (qn__queue_fill_range(&t->sharing.queue, range, set) != 0)
        return qn__fail_memory(err, 1, sizeof(qn__chunk));
    for (;;) {
        const uint64_t before = set & qn__team_alive(t);
        const qn_status status = qn__team_do(t, before, grains_body, err);
        if (status != QN_OK)
            return status;
        if (qn__queue_left(&t->sharing.queue) == 0)
            return QN_OK;
        set &= qn__team_alive(t);
        if (!set)
            return QN_DEVICE;
        if (set == before)
            return qn__fail(err, QN_MEMORY, "some grains of the step could not be handed out");
        qn__queue_again(&t->sharing.queue, set); /* with the grains of lost members */
    }
}

/* ----------------------------------------------------------------------------------------- sums */

/* Adds the members' sums to those at `into`, one segment for each of the members that add. */
static void add_segment(qn__team *t, uint32_t segment, uint32_t segments) {
    const uint64_t n = t->program->parameters;
    const uint64_t first = n * segment / segments, end = n * (segment + 1) / segments;
    for (uint32_t i = 0; i < t->count; ++i) {
        const int64_t *more = t->member[i].sums;
        if (!t->member[i].worker || !t->member[i].has_sums || more == t->call.into ||
            &t->member[i] == t->call.direct)
            continue;
        for (uint64_t p = first; p < end; ++p)
            t->call.into[p] += more[p];
    }
}

static void add_body(void *context, int index) {
    qn__team *t = context;
    const uint64_t set = t->call.adding;
    const uint32_t segment = (uint32_t)__builtin_popcountll(set & (QN__BIT(index) - 1));
    add_segment(t, segment, (uint32_t)__builtin_popcountll(set));
}

/* Adds the sums of all members that have some at team->call.into; if that is NULL, the first
 * member's sums become it. Adds the tally to *step. */
static qn_status add_up(qn__team *t, uint64_t set, qn__tally *step, qn_error *err) {
    uint32_t parts = 0;
    for (uint32_t i = 0; i < t->count; ++i) {
        qn__team_member *m = &t->member[i];
        if (!m->worker || !m->has_sums)
            continue;
        if (!t->call.into)
            t->call.into = m->sums;
        parts += m->sums != t->call.into && m != t->call.direct;
        if (qn__tally_add(step, &m->part) != 0)
            return qn__fail(err, QN_NUMERIC, "the sum of the losses became too large");
    }
    if (!t->call.into)
        return qn__fail(err, QN_MEMORY, "no worker has the sums of the step");
    const double begun = qn__now();
    t->call.adding = set & qn__team_alive(t);
    if (parts > 0 && t->program->parameters < ADD_ALONE)
        add_segment(t, 0, 1);
    else if (parts > 0)
        qn__drivers_run(t->drivers, t->call.adding, add_body, t);
    if (parts > 0)
        qn__trace_span(t->reports.trace, t->reports.track, "add up", begun, qn__now(), none, none);
    return QN_OK;
}

static void update_body(void *context, int index) {
    qn__team *t = context;
    qn__team_member *m = &t->member[index];
    const double begun = qn__now();
    m->device->update(m->worker, &t->call.clipped, t->call.summed, &m->error);
    const double seconds = qn__now() - begun;
    m->busy += seconds;
    m->training += seconds;
    qn__trace_span(t->reports.trace, m->track, "update", begun, begun + seconds,
                   (qn__trace_value){"step", t->call.update->step}, none);
}

/* The only member of a step writes its sums once, as it does for a reduction, whose part they
 * become. */
static qn_status prepare_direct(qn__team *t, uint64_t set, qn_error *err) {
    qn__team_member *m = &t->member[__builtin_ctzll(set)];
    if (t->cluster || qn__many(set) || !m->device->train_share)
        return QN_OK;
    if (!m->sums && !(m->sums = qn__alloc(t->program->parameters, sizeof *m->sums, err)))
        return QN_MEMORY;
    t->call.direct = m;
    t->call.into = t->reduction.part = m->sums;
    t->reduction.words = t->program->parameters;
    t->reduction.blank = 1;
    return QN_OK;
}

/* All grains of the step by this rank alone. */
static qn_status sums_alone(qn__team *t, uint64_t set, qn__tally *step, qn_error *err) {
    t->call.direct = NULL;
    t->call.into = NULL;
    *step = (qn__tally){0};
    qn_status status = prepare_direct(t, set, err);
    if (status == QN_OK)
        status = share_grains(t, set, (qn__chunk){0, grains_of(t)}, err);
    if (status == QN_OK)
        status = add_up(t, set, step, err);
    t->call.summed = t->call.into;
    return status;
}

/* The member that writes its sums directly into the reduction's part: one that cannot be lost, or
 * the only one, because the part is then computed again after a loss. */
static const qn__team_member *direct_of(const qn__team *t, uint64_t set) {
    if (!qn__many(set))
        return &t->member[__builtin_ctzll(set)];
    for (uint32_t i = 0; i < t->count; ++i)
        if ((set & QN__BIT(i)) && t->member[i].worker && !t->member[i].can_be_lost)
            return &t->member[i];
    return NULL;
}

static qn_status range_of_grains(qn__team *t, uint64_t set, qn__chunk_range range, qn_error *err) {
    t->call.direct = direct_of(t, set);
    t->call.into = t->reduction.part + QN__TALLY_WORDS;
    qn_status status = share_grains(t, set, (qn__chunk){range.first, range.count}, err);
    qn__team_reduction_clear(t); /* unless a member wrote there */
    if (status == QN_OK)
        status = add_up(t, set, &t->reduction.tally, err);
    return status;
}

/* The grains of the step by all ranks. */
static qn_status sums_of_ranks(qn__team *t, uint64_t set, qn__tally *step, qn_error *err) {
    const qn__reduction reduction = {.kind = QN__REDUCTION_STEP,
                                     .words = QN__TALLY_WORDS + t->program->parameters,
                                     .chunks = grains_of(t)};
    const qn_status status = qn__team_reduction(t, &reduction, set, range_of_grains, step, err);
    if (status == QN_OK && step->items != t->call.batch->items) {
        qn__team_reduction_reported(t);
        return qn__fail(err, QN_CLUSTER, "the sums of all ranks hold %llu items, the batch %u",
                        (unsigned long long)step->items, t->call.batch->items);
    }
    if (status == QN_OK)
        t->call.summed = t->reduction.total + QN__TALLY_WORDS;
    return status;
}

static qn_status shared_step(qn__team *t, uint64_t set, int alone, qn_error *err) {
    qn__tally step;
    qn_status status = alone ? sums_alone(t, set, &step, err) : sums_of_ranks(t, set, &step, err);
    const double begun = qn__now();
    if (status == QN_OK) {
        t->call.clipped = *t->call.update;
        qn__update_clip(t->program, t->call.summed, &t->call.clipped);
        status = qn__team_add(t, &step, err);
    }
    if (status == QN_OK)
        status = qn__team_do(t, set, update_body, err);
    if (status == QN_OK && !(set & qn__team_alive(t)))
        status = QN_DEVICE; /* nobody made the update */
    if (status == QN_OK && !alone) {
        qn__team_reduction_updated(t, qn__now() - begun);
        qn__team_reduction_end(t);
    }
    return status;
}

/* A worker that computes the whole step alone. */
static qn_status lone_step(qn__team *t, uint32_t index, qn_error *err) {
    qn__team_member *m = &t->member[index];
    const double begun = qn__now();
    m->error.status = QN_OK;
    m->error.where[0] = 0;
    m->part = (qn__tally){0};
    m->owes = m->device->flush != NULL;
    m->device->train_step(m->worker, t->call.batch, t->call.next, t->call.update, &m->part,
                          &m->error);
    const double seconds = qn__now() - begun;
    m->busy += seconds;
    m->training += seconds;
    qn__trace_span(t->reports.trace, m->track, "step", begun, begun + seconds,
                   (qn__trace_value){"step", t->call.update->step},
                   (qn__trace_value){"grains", grains_of(t)});
    const qn_status status = qn__team_settle(t, QN__BIT(index), err);
    if (status != QN_OK)
        return status;
    if (!m->worker)
        return QN_DEVICE;
    m->grains += grains_of(t);
    m->items += t->call.batch->items;
    return qn__team_add(t, &m->part, err);
}

/* ------------------------------------------------------------------------------ the whole step */

static uint64_t who(const qn__team *t) {
    const uint64_t alive = qn__team_alive(t);
    uint64_t set = alive;
    if (t->sharing.pick)
        set = t->sharing.pick(t->sharing.pick_user, t->call.update->step);
    else if (!t->sharing.fixed)
        set = qn__chooser_set(&t->sharing.chooser);
    return set & alive ? set & alive : alive;
}

/* Marks that the members of the set have the new version. */
static void done(qn__team *t, uint64_t set) {
    for (uint32_t i = 0; i < t->count; ++i) {
        qn__team_member *m = &t->member[i];
        if (!(set & QN__BIT(i)) || !m->worker)
            continue;
        m->version = t->history.version + 1;
        m->account = t->history.account;
        ++m->steps;
        if (!m->can_be_lost)
            t->history.kept_at = qn__now();
    }
}

/* The seconds of the step for the chooser. Among ranks they are scaled to the share that this rank
 * usually has. 0: not meaningful. */
static double own_seconds(const qn__team *t, double seconds) {
    const qn__team_reduction_state *r = &t->reduction;
    if (!t->cluster)
        return seconds;
    return r->seconds > 0 && r->chunks > 0
               ? r->seconds * t->sharing.chooser.grains / r->chunks +
                     qn__rank_cost_of_update(&r->cost[QN__REDUCTION_STEP])
               : 0;
}

static void choose(qn__team *t, uint64_t set, double asked, double begun) {
    const double now = qn__now(), seconds = own_seconds(t, now - begun);
    const int full = t->call.batch->items == t->program->batch && seconds > 0;
    const qn__choosing before = t->sharing.chooser.stage;
    char text[96];
    if (t->sharing.pick || t->sharing.fixed || set != qn__chooser_set(&t->sharing.chooser) ||
        !qn__chooser_step(&t->sharing.chooser, seconds, begun - asked, full, now))
        return;
    /* A new round of trials uses the share that the rank has now. */
    if (t->cluster && before == QN__CHOOSE_STAY && t->reduction.chunks > 0)
        t->sharing.chooser.grains = t->reduction.chunks;
    if (!t->reports.trace)
        return;
    size_t used = (size_t)snprintf(text, sizeof text, "%s:",
                                   t->sharing.chooser.stage == QN__CHOOSE_STAY  ? "chosen"
                                   : t->sharing.chooser.stage == QN__CHOOSE_TRY ? "trying"
                                                                                : "looking");
    for (uint32_t i = 0; i < t->count && used < sizeof text; ++i)
        if (qn__chooser_set(&t->sharing.chooser) & QN__BIT(i))
            used += (size_t)snprintf(text + used, sizeof text - used, " %s", t->member[i].name);
    qn__trace_mark(t->reports.trace, t->reports.track, "who", now, text);
}

/* The epoch's account begins with its first step. */
static qn_status open_account(qn__team *t, qn_error *err) {
    if (t->history.account.open && t->history.account.epoch == t->call.batch->epoch)
        return QN_OK;
    const qn_status status = qn__team_wait(t, 0, err);
    if (status == QN_OK)
        t->history.account = (qn__account){.epoch = t->call.batch->epoch, .open = 1};
    return status;
}

/* One attempt at the step on the team's version. QN_DEVICE if a member was lost and it has to be
 * repeated. */
static qn_status attempt(qn__team *t, qn_error *err) {
    const double asked = qn__now();
    const uint64_t set = who(t);
    const uint32_t first = (uint32_t)__builtin_ctzll(set);
    /* This rank alone repeats a step that was done before and lost. */
    const int alone = !t->cluster || t->history.version < t->history.done;
    /* Its update would begin before the norm of the whole gradient is known. */
    const int clips = t->program->clip != 0.0f;
    const int lone = !qn__many(set) && t->member[first].device->train_step && alone && !clips;
    qn_status status = open_account(t, err);
    if (status == QN_OK)
        status = qn__team_wait(t, lone ? set : 0, err);
    if (status == QN_OK)
        status = qn__team_update_members(t, set, err);
    if (status != QN_OK)
        return status;
    const double begun = qn__now();
    status = lone ? lone_step(t, first, err) : shared_step(t, set, alone, err);
    if (status != QN_OK)
        return status;
    const int waits =
        lone && !t->sharing.pick && !t->sharing.fixed && qn__chooser_waits(&t->sharing.chooser);
    done(t, set);
    if (waits) {
        /* Flushes include the new version, so it counts already. */
        ++t->history.version;
        status = qn__team_wait(t, 0, err);
        --t->history.version;
    }
    if (status == QN_OK && !(t->cluster && alone))
        choose(t, set, asked, begun);
    return status;
}

/* Selects the step of the version: from the log, unless it is the requested one. */
static void set_step(qn__team *t) {
    const qn__logged *logged = qn__team_logged(t, t->history.version);
    const int newest = t->call.asked && t->history.version + 1 == t->history.top;
    t->call.batch = newest ? t->call.asked : &logged->batch;
    t->call.next = newest ? t->call.asked_next : NULL;
    t->call.update = &logged->update;
}

qn_status qn__team_reach(qn__team *t, uint64_t wanted, qn_error *err) {
    for (;;) {
        if (!qn__team_alive(t))
            return qn__team_no_worker(err);
        if (!qn__team_has_version(t)) {
            const qn_status status = qn__team_rewind(t, err);
            if (status != QN_OK)
                return status;
        }
        if (t->history.version == wanted)
            return QN_OK;
        set_step(t);
        const int again = t->history.version < t->history.done;
        const qn_status status = attempt(t, err);
        if (status == QN_OK) {
            ++t->history.version;
            t->history.repeated += (uint64_t)again;
            t->history.done =
                t->history.version > t->history.done ? t->history.version : t->history.done;
        } else if (status != QN_DEVICE) {
            if (status == QN_NUMERIC && err && !err->where[0])
                qn__at(err, "step %llu", (unsigned long long)t->call.update->step);
            return status;
        } else {
            t->history.version =
                QN__NO_VERSION; /* a member was lost: continue from the newest version left */
        }
    }
}

qn_status qn__team_flush(qn__team *t, qn__tally *tally, qn_error *err) {
    for (;;) {
        qn_status status = qn__team_reach(t, t->history.top, err);
        if (status == QN_OK)
            status = qn__team_wait(t, 0, err);
        if (status == QN_OK)
            return qn__team_report_tally(t, tally, err);
        if (status != QN_DEVICE || !qn__team_alive(t))
            return status;
    }
}

qn_status qn__team_step(qn__team *t, const qn__batch *batch, const qn__batch *next,
                        const qn__update *update, qn__tally *tally, qn_error *err) {
    if (!t->history.told.open || t->history.told.epoch != batch->epoch) {
        const qn_status status = t->history.told.open ? qn__team_flush(t, tally, err) : QN_OK;
        if (status != QN_OK)
            return status;
        t->history.told = (qn__account){.epoch = batch->epoch, .open = 1};
    }
    qn__team_log(t, batch, update);
    t->call.asked = batch;
    t->call.asked_next = next;
    ++t->history.top;
    const qn_status status = qn__team_reach(t, t->history.top, err);
    t->call.asked = NULL;
    return status == QN_OK ? qn__team_report_tally(t, tally, err) : status;
}

/* One attempt at the sums. QN_DEVICE if a member was lost on the way. */
static qn_status gradient(qn__team *t, qn__tally *step, qn_error *err) {
    const uint64_t set = qn__team_alive(t);
    qn_status status = qn__team_wait(t, 0, err);
    if (status == QN_OK)
        status = qn__team_update_members(t, set, err);
    if (status != QN_OK)
        return status;
    return t->cluster ? sums_of_ranks(t, set, step, err) : sums_alone(t, set, step, err);
}

qn_status qn__team_gradient(qn__team *t, const qn__batch *batch, qn__tally *tally,
                            const int64_t **sums, qn_error *err) {
    qn__tally step = {0};
    qn_status status;
    t->call.batch = batch;
    t->call.next = NULL;
    for (;;) {
        if (!qn__team_alive(t))
            return qn__team_no_worker(err);
        status = qn__team_has_version(t) ? QN_OK : qn__team_rewind(t, err);
        if (status != QN_OK)
            return status;
        status = gradient(t, &step, err);
        if (status != QN_DEVICE)
            break;
        t->history.version = QN__NO_VERSION;
    }
    if (t->cluster && (status == QN_OK || status == QN_NUMERIC))
        qn__team_reduction_end(t);
    *sums = t->call.summed;
    if (status == QN_OK && qn__tally_add(tally, &step) != 0)
        return qn__fail(err, QN_NUMERIC, "the sum of the losses became too large");
    return status;
}

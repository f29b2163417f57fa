/* One step: its members, the sums of its grains, the update; repeated if it was lost. */
#include "base/system/clock.h"
#include "device/length_groups.h"
#include "num/clip.h"
#include "team/team_joint.h"
#include "team/team_share.h"
#include <stdio.h>

static const qn__trace_value none = {0};

typedef struct updating {
    qn__team *team;
    qn__update clipped; /* the update, for the sums of this step (docs/exactness.md 17.4) */
    const int64_t *sums;
} updating;

static void update_body(void *context, int index) {
    const updating *u = context;
    const qn__team *t = u->team;
    qn__team_member *m = &t->member[index];
    const double begun = qn__now();
    m->device->update(m->worker, &u->clipped, u->sums, &m->error);
    const double seconds = qn__now() - begun;
    m->busy += seconds;
    m->training += seconds;
    qn__trace_span(t->reports.trace, m->track, "update", begun, begun + seconds,
                   (qn__trace_value){"step", u->clipped.step}, none);
}

static qn_status shared_step(qn__team *t, const qn__step *step, uint64_t set, int alone,
                             qn_error *err) {
    qn__tally tally;
    updating u = {.team = t, .clipped = *step->update};
    qn__share share = qn__team_training(t, step->batch);
    share.rounds = t->program->clip == 0.0f; /* the norm is that of the exact sums */
    share.joint = alone && share.rounds && qn__team_joint_is_open(t, set);
    qn_status status = qn__team_sum(t, &share, set, alone, &u.sums, &tally, err);
    const double begun = qn__now();
    if (status == QN_OK) {
        qn__update_clip(t->program, u.sums, &u.clipped);
        status = qn__team_add(t, &tally, err);
    }
    int kept = 0;
    if (status == QN_OK)
        status = qn__team_keep_update(t, &u.clipped, u.sums, &kept, err);
    if (status == QN_OK && !kept)
        status = qn__team_do(t, set, update_body, &u, err);
    if (status == QN_OK && !(set & qn__team_alive(t)))
        status = QN_DEVICE; /* nobody made the update */
    if (status == QN_OK && !alone) {
        qn__team_reduction_updated(t, qn__now() - begun);
        qn__team_reduction_end(t);
    }
    return status;
}

/* A worker that computes the whole step alone. */
static qn_status lone_step(qn__team *t, const qn__step *step, uint32_t index, qn_error *err) {
    qn__team_member *m = &t->member[index];
    const uint32_t grains = qn__team_training(t, step->batch).grains;
    const double begun = qn__now();
    m->error.status = QN_OK;
    m->error.where[0] = 0;
    m->part = (qn__tally){0};
    m->owes = m->device->flush != NULL;
    m->device->train_step(m->worker, step->batch, step->next, step->update, &m->part, &m->error);
    const double seconds = qn__now() - begun;
    m->busy += seconds;
    m->training += seconds;
    qn__trace_span(t->reports.trace, m->track, "step", begun, begun + seconds,
                   (qn__trace_value){"step", step->update->step},
                   (qn__trace_value){"grains", grains});
    const qn_status status = qn__team_settle(t, QN__BIT(index), err);
    if (status != QN_OK)
        return status;
    if (!m->worker)
        return QN_DEVICE;
    m->grains += grains;
    m->items += step->batch->items;
    return qn__team_add(t, &m->part, err);
}

/* ------------------------------------------------------------------------------ the whole step */

static uint64_t who(const qn__team *t, const qn__step *step) {
    const uint64_t alive = qn__team_alive(t);
    uint64_t set = alive;
    if (t->following.on)
        return alive;
    if (t->sharing.pick)
        set = t->sharing.pick(t->sharing.pick_user, step->update->step);
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

static void choose(qn__team *t, const qn__step *step, uint64_t set, double asked, double begun) {
    const double now = qn__now(), seconds = own_seconds(t, now - begun);
    const int full = step->batch->items == t->program->batch && seconds > 0;
    const qn__choosing before = t->sharing.chooser.stage;
    char text[96];
    if (t->following.on || t->sharing.pick || t->sharing.fixed ||
        set != qn__chooser_set(&t->sharing.chooser) ||
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
static qn_status open_account(qn__team *t, uint32_t epoch, qn_error *err) {
    if (t->history.account.open && t->history.account.epoch == epoch)
        return QN_OK;
    const qn_status status = qn__team_wait(t, 0, err);
    if (status == QN_OK)
        t->history.account = (qn__account){.epoch = epoch, .open = 1};
    return status;
}

/* Other devices than before may add up their sums themselves: they are tried once no step is under
 * way. Its time does not count for the choice of the set. */
static qn_status prepare_joint(qn__team *t, uint64_t set, qn_error *err) {
    if (t->cluster || t->program->clip != 0.0f || !qn__team_joint_is_new(t, set))
        return QN_OK;
    const qn_status status = qn__team_wait(t, 0, err);
    if (status == QN_OK)
        qn__team_joint_choose(t, set);
    return status;
}

/* One attempt at the step on the team's version. QN_DEVICE if a member was lost and it has to be
 * repeated. */
static qn_status attempt(qn__team *t, const qn__step *step, qn_error *err) {
    const uint64_t set = who(t, step);
    qn_status status = prepare_joint(t, set, err);
    if (status != QN_OK)
        return status;
    const double asked = qn__now();
    const uint32_t first = (uint32_t)__builtin_ctzll(set);
    /* This rank alone repeats a step that was done before and lost. */
    const int alone = !t->cluster || t->history.version < t->history.done;
    /* Its update would begin before the norm of the whole gradient is known, or before all parts
     * are computed. */
    const int sums = t->program->clip != 0.0f || step->batch->items > qn__program_part(t->program);
    const int lone = !qn__many(set) && t->member[first].device->train_step && alone && !sums;
    status = open_account(t, step->batch->epoch, err);
    if (status == QN_OK)
        status = qn__team_wait(t, lone ? set : 0, err);
    if (status == QN_OK && !t->following.on)
        status = qn__team_update_members(t, set, err);
    if (status != QN_OK)
        return status;
    const double begun = qn__now();
    status = lone ? lone_step(t, step, first, err) : shared_step(t, step, set, alone, err);
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
        choose(t, step, set, asked, begun);
    return status;
}

/* The step after the version: from the log, unless it is the one that is asked for. */
static qn__step step_after(const qn__team *t, const qn__step *asked) {
    qn__logged *logged = qn__team_logged(t, t->history.version);
    if (asked && t->history.version + 1 == t->history.top)
        return (qn__step){asked->batch, asked->next, &logged->update};
    if (logged->batch.groups)
        logged->batch.places = qn__length_groups_places(logged->batch.groups, &logged->batch, 1);
    return (qn__step){&logged->batch, NULL, &logged->update};
}

qn_status qn__team_reach(qn__team *t, uint64_t wanted, const qn__step *asked, qn_error *err) {
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
        const qn__step step = step_after(t, asked);
        const int again = t->history.version < t->history.done;
        const qn_status status = attempt(t, &step, err);
        if (status == QN_OK) {
            ++t->history.version;
            t->history.repeated += (uint64_t)again;
            t->history.done =
                t->history.version > t->history.done ? t->history.version : t->history.done;
        } else if (status != QN_DEVICE) {
            if (status == QN_NUMERIC && err && !err->where[0])
                qn__at(err, "step %llu", (unsigned long long)step.update->step);
            return status;
        } else {
            t->history.version =
                QN__NO_VERSION; /* a member was lost: continue from the newest version left */
        }
    }
}

qn_status qn__team_flush(qn__team *t, qn__tally *tally, qn_error *err) {
    for (;;) {
        qn_status status = qn__team_catch_up(t, err);
        if (status == QN_OK)
            status = qn__team_reach(t, t->history.top, NULL, err);
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
    ++t->history.top;
    const qn_status status =
        qn__team_reach(t, t->history.top, &(qn__step){batch, next, update}, err);
    return status == QN_OK ? qn__team_report_tally(t, tally, err) : status;
}

/* One attempt at the sums. QN_DEVICE if a member was lost on the way. */
static qn_status gradient(qn__team *t, const qn__batch *batch, qn__tally *tally,
                          const int64_t **sums, qn_error *err) {
    const uint64_t set = qn__team_alive(t);
    qn_status status = qn__team_wait(t, 0, err);
    if (status == QN_OK)
        status = qn__team_update_members(t, set, err);
    if (status != QN_OK)
        return status;
    const qn__share share = qn__team_training(t, batch);
    return qn__team_sum(t, &share, set, !t->cluster, sums, tally, err);
}

qn_status qn__team_gradient(qn__team *t, const qn__batch *batch, qn__tally *tally,
                            const int64_t **sums, qn_error *err) {
    qn__tally step = {0};
    qn_status status;
    *sums = NULL;
    for (;;) {
        if (!qn__team_alive(t))
            return qn__team_no_worker(err);
        status = qn__team_has_version(t) ? QN_OK : qn__team_rewind(t, err);
        if (status != QN_OK)
            return status;
        status = gradient(t, batch, &step, sums, err);
        if (status != QN_DEVICE)
            break;
        t->history.version = QN__NO_VERSION;
    }
    if (t->cluster && (status == QN_OK || status == QN_NUMERIC))
        qn__team_reduction_end(t);
    if (status == QN_OK && qn__tally_add(tally, &step) != 0)
        return qn__fail(err, QN_NUMERIC, "the sum of the losses became too large");
    return status;
}

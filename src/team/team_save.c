/* Loading and saving a state. */
#include "base/system/clock.h"
#include "team/team_reduction.h"
#include <string.h>

/* Interval in seconds of copying the newest state to the host; longer if copying would take more
 * than 1 % of the time. */
#define SAVE_EVERY 2.0
#define SAVE_PART 100.0

static void copy_state(const qn__team *t, const qn__state *from, qn__state *to) {
    const size_t bytes = t->program->parameters * sizeof(float);
    memcpy(to->parameters, from->parameters, bytes);
    for (int i = 0; i < QN__SLOTS; ++i)
        if (from->slot[i] && to->slot[i])
            memcpy(to->slot[i], from->slot[i], bytes);
}

qn_status qn__team_load(qn__team *t, const qn__state *state, qn_error *err) {
    /* Current steps belong to a state that is replaced. */
    qn_status status = qn__team_wait(t, 0, NULL);
    if (status != QN_OK && !qn__team_alive(t))
        return qn__team_no_worker(err);
    for (uint32_t i = 0; i < t->count; ++i)
        t->member[i].version = QN__NO_VERSION;
    qn__team_reduction_end(t);
    qn__team_follow_end(t);
    t->history.top = t->history.version = t->history.done = 0;
    t->history.account = t->history.told = (qn__account){0};
    t->history.host = (qn__copy){.state = *state};
    t->history.spare.version = QN__NO_VERSION;
    t->history.kept_at = qn__now();
    if (qn__many(qn__team_alive(t)))
        return QN_OK; /* each when it first takes part */
    status = qn__team_update_members(t, qn__team_alive(t), err);
    return status == QN_DEVICE ? qn__team_no_worker(err) : status;
}

int qn__team_may_save(const qn__team *t) { return t->history.log_space > 1; }

static qn_status save_once(qn__team *t, qn__state *state, qn_error *err) {
    const int kept = state->parameters == t->history.host.state.parameters;
    qn_status status = qn__team_catch_up(t, err);
    if (status == QN_OK)
        status = qn__team_reach(t, t->history.top, NULL, err);
    if (status == QN_OK)
        status = qn__team_wait(t, 0, err);
    if (status != QN_OK)
        return status;
    if (t->history.host.version == t->history.version) {
        if (!kept)
            copy_state(t, &t->history.host.state, state);
        return QN_OK;
    }
    if (!qn__team_may_save(t)) {
        status = qn__team_save_from(t, state, err);
    } else {
        if (t->history.spare.version != t->history.version)
            status = qn__team_fill_spare(t, err);
        if (status == QN_OK)
            copy_state(t, &t->history.spare.state, state);
    }
    if (status == QN_OK && kept) {
        t->history.host.version = t->history.version;
        t->history.host.account = t->history.account;
    }
    return status;
}

qn_status qn__team_save(qn__team *t, qn__state *state, qn_error *err) {
    const double begun = qn__now();
    qn_status status;
    do
        status = save_once(t, state, err);
    while (status == QN_DEVICE && qn__team_alive(t));
    t->history.kept_at = qn__now();
    t->history.save_seconds = t->history.kept_at - begun;
    return status;
}

/* The newest version that cannot be lost with a device. */
static uint64_t safe_version(const qn__team *t) {
    uint64_t safe = t->history.host.version;
    for (uint32_t i = 0; i < t->count; ++i) {
        const qn__team_member *m = &t->member[i];
        if (m->worker && !m->can_be_lost && m->version != QN__NO_VERSION &&
            (safe == QN__NO_VERSION || m->version > safe))
            safe = m->version;
    }
    return safe;
}

int qn__team_save_due(const qn__team *t) {
    const uint64_t safe = safe_version(t);
    if (t->following.on || !qn__team_may_save(t) || safe == t->history.top)
        return 0;
    if (t->history.top - safe + 1 >= t->history.log_space)
        return 1;
    const double every = SAVE_PART * t->history.save_seconds;
    return qn__now() - t->history.kept_at >= (every > SAVE_EVERY ? every : SAVE_EVERY);
}

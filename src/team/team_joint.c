#include "team/team_joint.h"

#include "base/system/clock.h"
#include "base/system/float_state.h"
#include <stdio.h>

/* Sets that are tried in a run: each costs a self-test and a measurement. */
enum { MOST_TRIES = 16 };

static void tell(const qn__team *t, const char *text) {
    if (t->reports.note)
        t->reports.note(t->reports.user, text);
    qn__float_state_set();
}

void qn__team_joint_close(qn__team *t) {
    if (t->joint.open)
        t->joint.device->joint_close(t->joint.open);
    t->joint.open = NULL;
    t->joint.set = 0;
}

void qn__team_joint_lose(qn__team *t, uint32_t member) {
    if (t->joint.set & QN__BIT(member))
        qn__team_joint_close(t);
}

int qn__team_joint_is_open(const qn__team *t, uint64_t set) {
    return t->joint.open && t->joint.set == set;
}

void qn__team_joint_refuse(qn__team *t) {
    char text[400];
    if (t->joint.why.status == QN_OK)
        return;
    t->joint.refused = 1;
    snprintf(text, sizeof text, "the host adds up the sums of the devices: %.300s",
             t->joint.why.what);
    tell(t, text);
}

/* The kind of all members of the set, if its devices can add up their sums; else NULL. */
static const qn__device_table *kind_of(const qn__team *t, uint64_t set) {
    const qn__device_table *kind = t->member[__builtin_ctzll(set)].device;
    for (uint32_t i = 0; i < t->count; ++i)
        if ((set & QN__BIT(i)) && (t->member[i].device != kind || !t->member[i].worker))
            return NULL;
    return kind->joint_open ? kind : NULL;
}

static void open_joint(qn__team *t, uint64_t set, const qn__device_table *kind) {
    qn__worker *worker[QN__MAX_WORKERS];
    char text[96];
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->count; ++i)
        if (set & QN__BIT(i))
            worker[count++] = t->member[i].worker;
    ++t->joint.tries;
    t->joint.set = set;
    t->joint.device = kind;
    const double begun = qn__now();
    const qn_status status = kind->joint_open(worker, count, &t->joint.open, &t->joint.why);
    qn__float_state_set(); /* a loaded library may have changed it */
    qn__trace_span(t->reports.trace, t->reports.track, "open joint sums", begun, qn__now(),
                   (qn__trace_value){"devices", count}, (qn__trace_value){0});
    if (status != QN_OK && status != QN_UNSUPPORTED)
        qn__team_joint_refuse(t);
    if (status != QN_OK || t->joint.told)
        return;
    t->joint.told = 1;
    snprintf(text, sizeof text, "%u devices add up their sums themselves", count);
    tell(t, text);
}

int qn__team_joint_is_new(const qn__team *t, uint64_t set) {
    return t->joint.set != set && !t->joint.refused && qn__many(set) &&
           t->joint.tries < MOST_TRIES && kind_of(t, set);
}

void qn__team_joint_choose(qn__team *t, uint64_t set) {
    qn__team_joint_close(t);
    open_joint(t, set, kind_of(t, set));
}

int qn__team_joint_add(qn__team *t, uint64_t set) {
    qn__tally tally[QN__MAX_WORKERS] = {{0}};
    uint32_t count = 0;
    t->joint.why.status = QN_OK;
    if (!qn__team_joint_is_open(t, set))
        return 0;
    const double begun = qn__now();
    if (t->joint.device->joint_add(t->joint.open, tally, &t->joint.why) != QN_OK) {
        qn__team_joint_close(t);
        return 0;
    }
    for (uint32_t i = 0; i < t->count; ++i)
        if (set & QN__BIT(i))
            t->member[i].part = tally[count++];
    qn__trace_span(t->reports.trace, t->reports.track, "add up", begun, qn__now(),
                   (qn__trace_value){"devices", count}, (qn__trace_value){0});
    return 1;
}

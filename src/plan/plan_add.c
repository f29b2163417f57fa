/* Places for the hosts, ranks and devices of a described team. */
#include "plan/plan_team.h"

qn_status qn__plan_too_many(qn_error *err, const char *what, unsigned most) {
    qn__fail(err, QN_USAGE, "the team has too many %s", what);
    return qn__remedy(err, QN_USAGE, "a plan takes at most %u", most);
}

qn__plan_device *qn__plan_add_device(qn__plan_team *t, qn_error *err) {
    if (t->devices < QN__PLAN_DEVICES)
        return &t->device[t->devices++];
    qn__plan_too_many(err, "devices", QN__PLAN_DEVICES);
    return NULL;
}

qn__plan_rank *qn__plan_add_rank(qn__plan_team *t, qn_error *err) {
    if (t->ranks == QN__PLAN_RANKS) {
        qn__plan_too_many(err, "ranks", QN__PLAN_RANKS);
        return NULL;
    }
    t->rank[t->ranks].first = t->devices;
    return &t->rank[t->ranks++];
}

qn__plan_host *qn__plan_add_host(qn__plan_team *t, qn_error *err) {
    if (t->hosts == QN__PLAN_RANKS) {
        qn__plan_too_many(err, "hosts", QN__PLAN_RANKS);
        return NULL;
    }
    t->host[t->hosts].first = t->ranks;
    t->host[t->hosts].price = -1;
    return &t->host[t->hosts++];
}

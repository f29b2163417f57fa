#include "plan/plan_scale.h"

#include "base/memory.h"
#include <math.h>

static const double HOUR = 3600;

/* ------------------------------------------------------------------------------ energy and price
 */

static int is_power_known(const qn__plan_team *t, const qn__plan_host *h) {
    int known = 1;
    for (uint32_t r = h->first; r < h->first + h->count; ++r)
        for (uint32_t d = t->rank[r].first; d < t->rank[r].first + t->rank[r].count; ++d)
            known &= t->device[d].power > 0;
    return known || h->power > 0;
}

/* Of the devices of a rank: they work while it computes, adds and updates. */
static double rank_joules(const qn__plan_team *t, const qn__plan_rank *rank,
                          const qn__virtual_spent *spent) {
    const double works = spent->computing + spent->exchanging + spent->updating;
    const double waits = spent->waiting + spent->recovering;
    double joules = 0;
    for (uint32_t d = rank->first; d < rank->first + rank->count; ++d)
        joules += works * t->device[d].power + waits * t->device[d].idle;
    return joules;
}

static double life_of(const qn__virtual_spent *s) {
    return s->computing + s->exchanging + s->updating + s->waiting + s->recovering;
}

double qn__plan_joules(const qn__plan_team *t, const qn__plan_run *run) {
    double joules = 0, life = 0;
    for (uint32_t h = 0; h < t->hosts; ++h)
        if (t->host[h].copies > 0 && !is_power_known(t, &t->host[h]))
            return (double)NAN;
    for (uint32_t r = 0; r < run->team->ranks; ++r) {
        const qn__virtual_spent *spent = &run->team->rank[r].spent;
        const qn__plan_host *h = run->kind[r];
        life = fmax(run->place[r] > 0 ? life : 0, life_of(spent));
        joules += rank_joules(t, &t->rank[h->first + run->place[r]], spent);
        if (run->place[r] + 1 == h->count)
            joules += life * h->power;
    }
    return joules;
}

double qn__plan_price(const qn__plan_team *t, double seconds) {
    double price = 0;
    for (uint32_t h = 0; h < t->hosts; ++h) {
        if (t->host[h].copies > 0 && t->host[h].price < 0)
            return (double)NAN;
        price += t->host[h].copies * t->host[h].price * seconds / HOUR;
    }
    return price;
}

/* ------------------------------------------------------------------------------- fewer and more */

/* Sets the copies of each kind for so many hosts in all; returns the number of ranks. */
static uint32_t share_hosts(const qn__plan_team *t, uint32_t hosts, qn__plan_host *host) {
    const uint64_t all = qn__plan_team_hosts(t);
    uint64_t before = 0, ranks = 0, given = 0;
    for (uint32_t h = 0; h < t->hosts; ++h) {
        before += t->host[h].copies;
        const uint64_t until = (hosts * before + all - 1) / all;
        host[h] = t->host[h];
        host[h].copies = (uint32_t)(until - given);
        ranks += host[h].copies * (uint64_t)host[h].count;
        given = until;
    }
    return ranks < UINT32_MAX ? (uint32_t)ranks : UINT32_MAX;
}

static qn_status scale_to(const qn__plan_team *t, const qn__plan_job *job, uint32_t hosts,
                          qn_plan_scale *out, qn_error *err) {
    qn__plan_run run;
    const qn_status status = qn__plan_run_make(t, job, UINT32_MAX, 0, &run, err);
    if (status != QN_OK)
        return status;
    *out = (qn_plan_scale){.size = sizeof *out,
                           .hosts = hosts,
                           .ranks = run.team->ranks,
                           .seconds = run.seconds,
                           .bound = qn__plan_bound(t, job),
                           .joules = qn__plan_joules(t, &run),
                           .price = qn__plan_price(t, run.seconds)};
    qn__plan_run_release(&run);
    return QN_OK;
}

qn_status qn__plan_scale(const qn__plan_team *t, const qn__plan_job *job, qn_plan_scale *out,
                         uint32_t *count, qn_error *err) {
    qn__plan_team scaled = *t;
    qn_status status = QN_OK;
    scaled.events = *count = 0;
    scaled.host = qn__alloc(t->hosts, sizeof *scaled.host, err);
    if (!scaled.host)
        return QN_MEMORY;
    for (uint32_t hosts = 1; *count < QN__PLAN_SCALES && status == QN_OK; hosts *= 2) {
        if (share_hosts(t, hosts, scaled.host) > QN__PLAN_RANKS)
            break;
        status = scale_to(&scaled, job, hosts, &out[*count], err);
        *count += status == QN_OK;
    }
    qn__free(scaled.host);
    return status;
}

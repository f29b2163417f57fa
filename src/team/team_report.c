/* The report of each worker. */
#include "base/memory.h"
#include "team/team_state.h"
#include <string.h>

enum { MAX_CORES = 4096 };

static void add_cores(qn__team_member *m, double seconds, qn_worker_report *r) {
    if (m->worker && m->device->busy) {
        if (!m->cores && !(m->cores = qn__alloc(MAX_CORES, sizeof *m->cores, NULL)))
            return;
        m->core_count = m->device->busy(m->worker, m->cores, MAX_CORES);
        m->core_count = m->core_count < MAX_CORES ? m->core_count : MAX_CORES;
        /* A run without steps, such as one of a finished checkpoint, takes almost no time; an
         * evaluation after it does not count. */
        for (int c = 0; c < m->core_count; ++c)
            m->cores[c] = seconds > m->cores[c] ? m->cores[c] / seconds : m->cores[c] > 0;
    }
    r->cores = m->core_count;
    r->core_busy = m->cores;
}

static void report_one(qn__team *t, uint32_t index, double seconds, qn_worker_report *r) {
    qn__team_member *m = &t->member[index];
    memset(r, 0, sizeof *r);
    memcpy(r->name, m->name, sizeof r->name);
    memcpy(r->device, m->title, sizeof r->device);
    r->grains = m->grains;
    r->items = m->items;
    r->steps = m->steps;
    r->items_per_second = m->training > 0 ? (double)m->items / m->training : 0;
    r->busy = seconds > m->busy ? m->busy / seconds : m->busy > 0;
    r->lost = m->lost;
    if (m->worker && m->device->traffic)
        m->device->traffic(m->worker, &m->traffic);
    r->bytes_up = m->traffic.bytes_up;
    r->bytes_down = m->traffic.bytes_down;
    r->seconds_up = m->traffic.seconds_up;
    r->seconds_down = m->traffic.seconds_down;
    r->joules = qn__meter_joules(&m->meter);
    add_cores(m, seconds, r);
    /* A device that works asynchronously reports its busy time itself. */
    if (m->device->flush && r->cores == 1)
        r->busy = r->core_busy[0] < 1 ? r->core_busy[0] : 1;
    memcpy(r->note, m->note, sizeof r->note);
    if (m->worker && !t->sharing.pick && !t->sharing.fixed)
        qn__chooser_reason(&t->sharing.chooser, index, r->note, sizeof r->note);
}

const qn_worker_report *qn__team_report(qn__team *t, double seconds, uint32_t *count,
                                        double *bound_rate) {
    uint64_t steps = 0;
    *bound_rate = 0;
    for (uint32_t i = 0; i < t->count; ++i) {
        report_one(t, i, seconds, &t->reports.report[i]);
        t->reports.report[i].size = sizeof t->reports.report[i];
        steps = steps > t->member[i].steps ? steps : t->member[i].steps;
    }
    steps = steps > t->history.top ? steps : t->history.top;
    for (uint32_t i = 0; i < t->count && steps > 0; ++i)
        *bound_rate += t->reports.report[i].items_per_second *
                       ((double)t->reports.report[i].steps / (double)steps);
    *count = t->count;
    return t->reports.report;
}

void qn__team_meter(qn__team *t, int begin) {
    for (uint32_t i = 0; i < t->count; ++i) {
        qn__team_member *m = &t->member[i];
        if (!m->worker)
            continue; /* its counter was read when it was lost */
        if (begin)
            qn__meter_begin(&m->meter, m->device, m->index);
        else
            qn__meter_read(&m->meter, m->device, m->index);
    }
}

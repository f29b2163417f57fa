#include "team/virtual_ranks.h"

#include "base/memory.h"
#include "cluster/reduction/layout.h"
#include <math.h>

/* Messages in sequence until the remaining ranks agree: request for reports, reports, proposal,
 * acceptance, decision. */
enum { AGREEING = 5 };
#define WORD sizeof(int64_t)

/* ------------------------------------------------------------------------------------- the team */

qn_status qn__virtual_team_create(uint32_t ranks, qn__virtual_team **out, qn_error *err) {
    qn__virtual_team *t = qn__alloc(1, sizeof *t, err);
    *out = NULL;
    if (!t)
        return QN_MEMORY;
    t->rank = qn__alloc(ranks, sizeof *t->rank, err);
    t->cost = qn__alloc(ranks, sizeof *t->cost, err);
    t->has = qn__alloc(ranks, sizeof *t->has, err);
    t->share = qn__alloc(ranks, sizeof *t->share, err);
    if (!t->rank || !t->cost || !t->has || !t->share) {
        qn__virtual_team_free(t);
        return QN_MEMORY;
    }
    t->ranks = ranks;
    *out = t;
    return QN_OK;
}

static uint64_t everybody(const qn__virtual_rank *r) {
    return r->workers < 64 ? (UINT64_C(1) << r->workers) - 1 : UINT64_MAX;
}

qn_status qn__virtual_team_ready(qn__virtual_team *t, uint32_t chunks, qn_error *err) {
    for (uint32_t i = 0; i < t->ranks; ++i) {
        qn__virtual_rank *r = &t->rank[i];
        if (qn__queue_begin(&r->queue, r->workers) != 0)
            return qn__fail_memory(err, 1, sizeof r->queue);
        r->alive = 1;
        for (uint32_t w = 0; w < r->workers; ++w)
            r->worker[w].number = 64 * i;
        qn__chooser_begin(&r->chooser, &r->queue, everybody(r), 0, chunks);
    }
    return QN_OK;
}

void qn__virtual_team_free(qn__virtual_team *t) {
    if (!t)
        return;
    for (uint32_t i = 0; t->rank && i < t->ranks; ++i)
        if (t->rank[i].queue.workers)
            qn__queue_end(&t->rank[i].queue);
    qn__free(t->rank);
    qn__free(t->cost);
    qn__free(t->has);
    qn__free(t->share);
    qn__free(t);
}

/* ----------------------------------------------------------------------------------------- sums */

/* The number of ranks on the machine that begins with rank `first`; *next is the first rank of the
 * next machine. */
static uint32_t ranks_of_machine(const qn__virtual_team *t, uint32_t first, uint32_t *next) {
    uint32_t count = 0, r = first;
    for (; r < t->ranks && t->rank[r].machine == t->rank[first].machine; ++r)
        count += (uint32_t)t->rank[r].alive;
    *next = r;
    return count;
}

/* The ranks that are alive, and the pieces in which the segment of each is sent. */
typedef struct group {
    uint32_t ranks, machines, pieces;
} group;

static group count_alive(const qn__virtual_team *t) {
    group g = {0};
    for (uint32_t first = 0, next; first < t->ranks; first = next) {
        const uint32_t here = ranks_of_machine(t, first, &next);
        g.ranks += here;
        g.machines += here > 0;
    }
    g.pieces = qn__layout_cuts(t->words, g.ranks);
    return g;
}

/* The steps of a sum on one machine, in seconds and bytes. */
typedef struct adding {
    double parts;  /* adding its ranks' parts */
    double send;   /* sending the sums to the owners of the segments */
    double totals; /* adding the received sums to totals */
    double tell;   /* receiving the totals, and copying them */
    double bytes;  /* sent by the machine */
} adding;

/* The slowest of a machine's ranks. */
typedef struct slowest {
    double memory, pack, unpack;
} slowest;

/* For a machine with `here` ranks. It owns one of as many segments as there are machines, and its
 * ranks divide its work. */
static adding add_up(const qn__virtual_team *t, uint32_t here, const group *g,
                     const slowest *rank) {
    const uint32_t machines = g->machines;
    const double bytes = (double)WORD * (double)t->words, segment = bytes / machines;
    const double there = (double)(machines - 1), each = rank->memory * here;
    const double others = there / machines / here; /* of all words, on each of its ranks */
    const qn__virtual_network *n = &t->network;
    adding a = {0};
    if (here > 1)
        a.parts = n->local + bytes * (here + 1) / each;
    if (machines > 1) {
        a.bytes = 2 * segment * there * (t->word > 0 ? t->word / WORD : 1);
        const double travel =
            n->latency + there * g->pieces * n->message + a.bytes / 2 / n->bandwidth;
        if (rank->pack > 0)
            a.parts += rank->pack * others;
        else if (here == 1)
            a.parts = 2 * bytes / each; /* copied to the messages */
        a.send = travel;
        a.totals = rank->unpack > 0 ? rank->unpack * others + rank->pack / machines / here
                                    : 3 * segment * there / each;
        a.tell = travel + (rank->unpack > 0 ? rank->unpack * others : 2 * segment * there / each);
    }
    if (here > 1)
        a.tell += n->local;
    return a;
}

static slowest slowest_of(const qn__virtual_team *t, uint32_t first, uint32_t next) {
    slowest s = {.memory = INFINITY};
    for (uint32_t r = first; r < next; ++r)
        if (t->rank[r].alive) {
            s.memory = fmin(s.memory, t->rank[r].memory);
            s.pack = fmax(s.pack, t->rank[r].pack);
            s.unpack = fmax(s.unpack, t->rank[r].unpack);
        }
    return s;
}

static int adds_up(const qn__virtual_team *t) { return t->ranks > 1 || !t->lone_steps; }

double qn__virtual_exchange(const qn__virtual_team *t) {
    const group g = count_alive(t);
    adding most = {0};
    if (!adds_up(t))
        return 0;
    for (uint32_t first = 0, next; first < t->ranks; first = next) {
        const uint32_t here = ranks_of_machine(t, first, &next);
        if (here == 0)
            continue;
        const slowest s = slowest_of(t, first, next);
        const adding a = add_up(t, here, &g, &s);
        most.parts = fmax(most.parts, a.parts);
        most.send = fmax(most.send, a.send);
        most.totals = fmax(most.totals, a.totals);
        most.tell = fmax(most.tell, a.tell);
    }
    return most.parts + most.send + most.totals + most.tell;
}

/* Bytes of items of other machines that a machine with so many chunks receives in a reduction. It
 * sends as many in the mean. */
static double items_bytes(const qn__virtual_team *t, double chunks, uint32_t machines) {
    return t->chunk * chunks * (machines - 1) / machines;
}

static void count_bytes(qn__virtual_team *t, uint32_t chunks) {
    static const slowest unused = {1, 0, 0};
    const group g = count_alive(t);
    for (uint32_t first = 0, next; first < t->ranks; first = next) {
        const uint32_t here = ranks_of_machine(t, first, &next);
        const double items = items_bytes(t, (double)chunks / g.machines, g.machines);
        for (uint32_t r = first; r < next; ++r)
            if (t->rank[r].alive)
                t->rank[r].spent.bytes_out += (add_up(t, here, &g, &unused).bytes + items) / here;
    }
}

/* Seconds that the network needs for the items of a reduction. A machine with more chunks than the
 * mean receives more, one with fewer sends more. */
static double items_travel(const qn__virtual_team *t, uint32_t chunks) {
    const uint32_t machines = count_alive(t).machines;
    double most = 0;
    if (machines < 2 || t->chunk <= 0)
        return 0;
    for (uint32_t first = 0, next; first < t->ranks; first = next) {
        double own = 0;
        if (ranks_of_machine(t, first, &next) == 0)
            continue;
        for (uint32_t r = first; r < next; ++r)
            own += t->rank[r].alive ? t->rank[r].share : 0;
        most = fmax(most, items_bytes(t, own, machines));
        most = fmax(most, t->chunk * (chunks - own) / machines);
    }
    return most / t->network.bandwidth;
}

/* --------------------------------------------------------------------------------------- shares */

static void share_out(qn__virtual_team *t, uint32_t chunks) {
    static const qn__cost alike = {0, 1};
    for (uint32_t r = 0; r < t->ranks; ++r) {
        t->has[r] = (unsigned char)t->rank[r].alive;
        t->cost[r] = t->equal ? alike : t->cost[r];
    }
    qn__shares(t->cost, t->has, t->ranks, chunks, t->share);
}

/* Seconds of `chunks` chunks on the rank, beginning at `moment`; -1 if out of memory. */
static double compute(qn__virtual_rank *r, uint64_t set, uint32_t chunks, double moment) {
    double clock = moment;
    if (chunks > 0 && qn__virtual_step(&r->queue, r->worker, r->workers, set, chunks, &clock) != 0)
        return -1;
    r->spent.computing += clock - moment;
    r->spent.chunks += chunks;
    return clock - moment;
}

/* The rank's own share. */
static int compute_share(qn__virtual_rank *r, qn__cost *cost, uint32_t chunks) {
    const uint64_t set = r->workers > 1 ? qn__chooser_set(&r->chooser) : 1;
    r->share = chunks;
    const double seconds = compute(r, set, chunks, r->at);
    if (seconds < 0)
        return -1;
    r->ready = r->at + seconds;
    qn__rank_cost_share(&r->cost, set, chunks, seconds, r->ready);
    *cost = qn__rank_cost_reported(&r->cost); /* sent with the total */
    if (r->workers > 1 && chunks > 0) {
        const double whole = seconds * r->chooser.grains / chunks + r->update;
        const qn__choosing before = r->chooser.stage;
        if (qn__chooser_step(&r->chooser, whole, 0, 1, r->ready) && before == QN__CHOOSE_STAY)
            r->chooser.grains = chunks;
    }
    return 0;
}

/* --------------------------------------------------------------------------------------- deaths */

static double last_ready(const qn__virtual_team *t) {
    double last = 0;
    for (uint32_t r = 0; r < t->ranks; ++r)
        if (t->rank[r].alive)
            last = fmax(last, t->rank[r].ready);
    return last;
}

/* The same, with all items there; 0: no rank is left. */
static double all_ready(const qn__virtual_team *t, uint32_t chunks) {
    const double last = last_ready(t);
    return last > 0 ? fmax(last, t->free + items_travel(t, chunks)) : 0;
}

/* The first death before `moment`; 0: none. */
static double next_death(const qn__virtual_team *t, double moment) {
    double first = moment;
    for (uint32_t r = 0; r < t->ranks; ++r)
        if (t->rank[r].alive && t->rank[r].dies_at > 0)
            first = fmin(first, t->rank[r].dies_at);
    return first < moment ? first : 0;
}

static double last_death(const qn__virtual_team *t) {
    double last = 0;
    for (uint32_t r = 0; r < t->ranks; ++r)
        last = fmax(last, t->rank[r].dies_at);
    return last;
}

/* Removes all ranks that die at that time; returns their chunks of the reduction. */
static uint32_t bury(qn__virtual_team *t, double moment) {
    uint32_t lost = 0;
    for (uint32_t i = 0; i < t->ranks; ++i) {
        qn__virtual_rank *r = &t->rank[i];
        if (!r->alive || !(r->dies_at > 0 && r->dies_at <= moment))
            continue;
        r->alive = 0;
        lost += r->share;
        ++t->deaths;
    }
    return lost;
}

/* The other ranks notice the death, agree on a view, and compute the lost chunks. */
static qn_status recover(qn__virtual_team *t, double death, qn_error *err) {
    const uint32_t lost = bury(t, death);
    const double message = count_alive(t).machines > 1 ? t->network.latency : t->network.local;
    const double agreed = death + (AGREEING + 1) * message;
    share_out(t, lost);
    t->chunks_again += lost;
    for (uint32_t i = 0; i < t->ranks; ++i) {
        qn__virtual_rank *r = &t->rank[i];
        if (!r->alive)
            continue;
        const double begin = fmax(r->ready, agreed);
        r->spent.recovering += begin - r->ready;
        r->share += t->share[i];
        const double seconds = compute(r, r->cost.set, t->share[i], begin);
        if (seconds < 0)
            return qn__fail_memory(err, 1, sizeof(qn__chunk));
        r->ready = begin + seconds;
    }
    return QN_OK;
}

/* -------------------------------------------------------------------------------- the reduction */

qn_status qn__virtual_reduction(qn__virtual_team *t, uint32_t chunks, qn_error *err) {
    bury(t, t->now); /* between two reductions, or in an update: no chunks are lost */
    share_out(t, chunks);
    for (uint32_t i = 0; i < t->ranks; ++i)
        if (t->rank[i].alive && compute_share(&t->rank[i], &t->cost[i], t->share[i]) != 0)
            return qn__fail_memory(err, 1, sizeof(qn__chunk));
    double exchange = qn__virtual_exchange(t), done = all_ready(t, chunks);
    for (double death; (death = next_death(t, done + exchange)) > 0;) {
        const qn_status status = recover(t, death, err);
        if (status != QN_OK)
            return status;
        exchange = qn__virtual_exchange(t);
        done = all_ready(t, chunks);
    }
    if (done <= 0) {
        qn__fail(err, QN_CLUSTER, "no rank is left after %.6g s", last_death(t));
        return qn__remedy(err, QN_CLUSTER, "the run would have to start again from a checkpoint");
    }
    if (adds_up(t))
        count_bytes(t, chunks);
    t->free = done + exchange;
    for (uint32_t i = 0; i < t->ranks; ++i) {
        qn__virtual_rank *r = &t->rank[i];
        if (!r->alive)
            continue;
        r->spent.waiting += done - r->ready;
        r->spent.exchanging += exchange;
        const double update = qn__virtual_wall(&r->worker[0], done + exchange, r->update);
        qn__rank_cost_update(&r->cost, update);
        r->spent.updating += update;
        r->at = done + exchange + update;
        t->now = fmax(t->now, r->at);
    }
    return QN_OK;
}

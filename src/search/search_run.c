/* The run of a search. In rounds the ranks tell each other which runs they have made; from that
 * each computes which runs it makes next, and the lowest rank writes the results. A rank that dies
 * in a round is absent from it on all others. A single process goes through the same rounds alone.
 */
#include "search/search_crew.h"
#include "search/search_parts.h"
#include "search/search_share.h"

#include "base/argument.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "cluster/cluster.h"
#include "team/together.h"
#include <stdio.h>

/* Runs that a rank tells in a round. */
enum { TOLD = 4 };
/* Seconds that a rank waits for its workers before the next round: a part of the time of a run,
 * between these. A single process looks whether it shall stop. */
static const double SHORTEST = 0.001, LONGEST = 0.1, PART = 0.02;

typedef struct told {
    uint64_t run;
    qn_search_result result;
} told;

/* What a rank tells in a round; zeros where it is dead. */
typedef struct record {
    uint64_t present, workers, kept;
    uint32_t stopping, failed, count;
    told told[TOLD];
} record;

typedef struct rounds {
    qn_search *search;
    qn__crew *crew;
    qn__share share;
    record own, *all; /* of each rank */
    uint32_t rank, ranks;
    uint32_t *left;  /* of each fold: runs that are not done */
    uint64_t others; /* runs of other parts, which are done for this process */
    uint64_t kept;   /* as the writer: results that are in the file; those of earlier too */
    told *fresh;     /* results of this round, and who made them */
    uint32_t *maker, freshes;
    qn_error failure; /* of this rank; status QN_OK: none */
    int hurries;      /* the next round follows at once */
    int over;
    qn_status status;
    qn_error *err;
} rounds;

static qn_status end(rounds *r, qn_status status) {
    r->over = 1;
    return r->status = status;
}

/* ---------------------------------------------------------------------------- what is told */

/* Other ranks can go on where this one has lost its devices. */
static int withdraws(rounds *r) {
    if (r->failure.status != QN_DEVICE || !qn__cluster_withdraw(r->search->cluster))
        return 0;
    *r->err = r->failure;
    qn__remedy(r->err, QN_DEVICE, "the other ranks continue without this one");
    end(r, QN_DEVICE);
    return 1;
}

static void collect(rounds *r) {
    qn__made made[TOLD];
    const uint32_t count = r->crew ? qn__crew_take(r->crew, made, TOLD) : 0;
    r->own = (record){.present = 1, .kept = r->kept};
    r->own.workers = r->crew ? qn__crew_workers(r->crew) : 0;
    r->own.stopping = (uint32_t)atomic_load(&r->search->stopping);
    for (uint32_t i = 0; i < count; ++i)
        if (made[i].status == QN_OK)
            r->own.told[r->own.count++] = (told){made[i].run, made[i].result};
        else if (r->failure.status == QN_OK && made[i].status != QN_INTERRUPTED)
            r->failure = made[i].err;
    r->own.failed = r->failure.status != QN_OK;
}

/* Seconds a run, as all ranks know it. */
static double time_of_run(const rounds *r) {
    double seconds = 0;
    uint64_t made = 0;
    for (uint32_t i = 0; i < r->ranks; ++i) {
        seconds += r->share.rank[i].seconds;
        made += r->share.rank[i].made;
    }
    return made > 0 ? seconds / (double)made : 0;
}

static void wait_for_runs(rounds *r) {
    const double time = PART * time_of_run(r);
    const double between = time < SHORTEST ? SHORTEST : time > LONGEST ? LONGEST : time;
    if (!r->hurries && r->crew && r->share.done < r->share.runs)
        qn__crew_wait(r->crew, r->search->cluster ? between : LONGEST);
    r->hurries = 0;
}

static int hear(rounds *r) {
    qn_status status = QN_OK;
    if (r->search->cluster)
        status = qn__cluster_gather(r->search->cluster, &r->own, sizeof r->own, r->all, r->err);
    else
        r->all[0] = r->own;
    if (status != QN_OK)
        end(r, status);
    return status == QN_OK;
}

/* ---------------------------------------------------------------------------- what follows */

static void take_result(rounds *r, uint32_t rank, const told *t) {
    const uint32_t fold = (uint32_t)(t->run / r->search->table.settings);
    qn_search_result *to = &r->search->table.result[qn__search_place(r->search, t->run)];
    if (to->done)
        return;
    *to = t->result;
    r->maker[r->freshes] = rank;
    r->fresh[r->freshes++] = *t;
    qn__share_done(&r->share, t->run, rank, t->result.seconds);
    if (--r->left[fold] == 0 && r->crew)
        qn__crew_drop_fold(r->crew, fold);
}

static void take_all(rounds *r) {
    r->freshes = 0;
    for (uint32_t i = 0; i < r->ranks; ++i) {
        const record *own = &r->all[i];
        qn__share_rank *rank = &r->share.rank[i];
        for (uint32_t k = 0; own->present && k < own->count; ++k)
            take_result(r, i, &own->told[k]);
        if (!own->present && rank->present)
            qn__share_lose(&r->share, i);
        rank->present = own->present != 0;
        rank->workers = (uint32_t)own->workers;
    }
}

static void give_all(rounds *r) {
    uint64_t run;
    uint32_t rank;
    while (qn__share_give(&r->share, &run, &rank))
        if (rank == r->rank)
            qn__crew_give(r->crew, run);
}

/* A rank that becomes the writer opens the file in its folder, which may be the same one. What it
 * says there of runs that no rank knows of is not needed. */
static qn_status take_over(rounds *r, qn_error *err) {
    qn_search *s = r->search;
    qn__search_table there = s->table;
    there.result = qn__alloc(r->share.runs, sizeof *there.result, err);
    if (!there.result)
        return QN_MEMORY;
    const qn__owner owner = qn__owner_of(s->cluster);
    qn__search_file_close(&s->file);
    const qn_status status =
        qn__search_file_open(&s->file, s->options.folder, &owner, s->key, &there, err);
    qn__free(there.result);
    if (status == QN_OK && s->options.on_note) {
        char text[512];
        snprintf(text, sizeof text, "this rank writes %.400s from here on", s->file.path);
        s->options.on_note(s->options.user, text);
        qn__float_state_set();
    }
    return status;
}

static void report(const rounds *r, uint32_t fresh) {
    const qn_search *s = r->search;
    const uint64_t run = r->fresh[fresh].run;
    const qn_search_event event = {.size = sizeof event,
                                   .setting = (uint32_t)(run % s->table.settings),
                                   .fold = (uint32_t)(run / s->table.settings),
                                   .done = r->share.done - r->others - r->freshes + fresh + 1,
                                   .runs = r->share.runs - r->others,
                                   .rank = r->maker[fresh],
                                   .result = &s->table.result[qn__search_place(s, run)]};
    if (s->options.on_run)
        s->options.on_run(s->options.user, &event);
    qn__float_state_set();
}

static qn_status add_to_file(rounds *r, uint64_t run, qn_error *err) {
    qn_search *s = r->search;
    const uint64_t place = qn__search_place(s, run);
    const char *const *name = s->options.name;
    if (!s->table.result[place].done || s->file.kept[place])
        return QN_OK;
    return qn__search_file_add(&s->file, &s->table, place,
                               name ? name[run % s->table.settings] : NULL, err);
}

/* The part of the lowest rank. A failure is told in the next round. */
static void keep_results(rounds *r) {
    qn_search *s = r->search;
    qn_status status = r->failure.status;
    const int takes_over = s->options.folder && s->file.file < 0;
    if (status == QN_OK && takes_over)
        status = take_over(r, &r->failure);
    for (uint64_t run = 0; takes_over && status == QN_OK && run < r->share.runs; ++run)
        status = add_to_file(r, run, &r->failure);
    for (uint32_t i = 0; i < r->freshes; ++i) {
        report(r, i);
        if (s->options.folder && status == QN_OK)
            status = add_to_file(r, r->fresh[i].run, &r->failure);
    }
    if (status == QN_OK)
        r->kept = r->share.done;
    else if (status == QN_BUSY && s->cluster && !qn_cluster_is_writer(s->cluster))
        r->failure = (qn_error){0}; /* another rank writes it: the next round says so */
    r->hurries |= status != QN_OK || r->freshes > 0;
}

/* ---------------------------------------------------------------------------------- the rounds */

/* Whether the search ends in this round: the same on all ranks. */
static int conclude(rounds *r, uint32_t lowest) {
    int failed = 0, stopping = 0;
    for (uint32_t i = 0; i < r->ranks; ++i) {
        failed |= r->all[i].failed != 0;
        stopping |= r->all[i].stopping != 0;
    }
    /* Where the rank that failed dies before it says why, another one makes its runs. */
    const qn_status status =
        failed ? qn_cluster_agree(r->search->cluster, &r->failure, NULL, 0, r->err) : QN_OK;
    if (status != QN_OK)
        end(r, status);
    else if (r->all[lowest].kept == r->share.runs)
        end(r, QN_OK);
    else if (stopping)
        end(r, qn__fail(r->err, QN_INTERRUPTED, "the search was stopped"));
    return r->over;
}

static void round_of(rounds *r) {
    wait_for_runs(r);
    collect(r);
    if (withdraws(r) || !hear(r))
        return;
    take_all(r);
    uint32_t lowest = 0;
    while (lowest + 1 < r->ranks && !r->all[lowest].present)
        ++lowest;
    if (lowest == r->rank)
        keep_results(r);
    if (!conclude(r, lowest))
        give_all(r);
}

static qn_status open_rounds(rounds *r, qn_error *err) {
    const qn_search *s = r->search;
    const uint64_t runs = qn__search_runs(s);
    const qn_status status = qn__share_open(&r->share, runs, r->ranks, err);
    const uint64_t freshes = (uint64_t)r->ranks * TOLD;
    r->all = qn__alloc(r->ranks, sizeof *r->all, err);
    r->left = qn__alloc(s->table.folds, sizeof *r->left, err);
    r->fresh = qn__alloc(freshes, sizeof *r->fresh, err);
    r->maker = qn__alloc(freshes, sizeof *r->maker, err);
    if (status != QN_OK || !r->all || !r->left || !r->fresh || !r->maker)
        return QN_MEMORY;
    for (uint64_t run = 0; run < runs; ++run) {
        const uint64_t place = qn__search_place(s, run);
        const int is_others = !s->table.result[place].done && !qn__search_has(s, place);
        r->others += (uint64_t)is_others;
        if (s->table.result[place].done || is_others)
            qn__share_done(&r->share, run, r->ranks, 0);
        else
            ++r->left[run / s->table.settings];
    }
    r->hurries = 1;
    return QN_OK;
}

static void close_rounds(rounds *r) {
    qn__crew_close(r->crew);
    qn__share_close(&r->share);
    qn__free(r->all);
    qn__free(r->left);
    qn__free(r->fresh);
    qn__free(r->maker);
}

/* A rank that cannot begin says so before the first round. */
static qn_status begin(rounds *r) {
    qn_search *s = r->search;
    const uint64_t ranks = qn_cluster_alive(s->cluster);
    qn_error why = {0};
    if (open_rounds(r, &why) == QN_OK)
        qn__crew_open(s, (r->share.runs - r->share.done + ranks - 1) / ranks, &r->crew, &why);
    return qn_cluster_agree(s->cluster, &why, NULL, 0, r->err);
}

qn_status qn_search_run(qn_search *search, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(search, err);
    qn_error unheard;
    rounds r = {.search = search,
                .rank = search->cluster ? qn_cluster_rank(search->cluster) : 0,
                .ranks = search->cluster ? qn_cluster_ranks(search->cluster) : 1,
                .err = err ? err : &unheard};
    r.status = begin(&r);
    while (r.status == QN_OK && !r.over)
        round_of(&r);
    close_rounds(&r);
    atomic_store(&search->stopping, 0);
    if (r.status == QN_CLUSTER || r.status == QN_DEVICE)
        qn__search_file_close(&search->file); /* for the rank that writes from here on */
    return r.status;
}

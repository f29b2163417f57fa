/* One job's grains: the members take pieces from a queue, by measured speed. */
#include "team/team_share.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include <string.h>

static const qn__trace_value none = {0};

qn__share qn__team_training(qn__team *t, const qn__batch *batch) {
    const uint32_t grain = t->program->grain, part = qn__program_part(t->program);
    const uint32_t grains = (uint32_t)(((uint64_t)batch->items + grain - 1) / grain);
    return (qn__share){.job = {.kind = QN__JOB_TRAIN, .batch = batch},
                       .reduction = QN__REDUCTION_STEP,
                       .queue = &t->sharing.queue,
                       .span = "grains",
                       .unit = "grains",
                       .grains = grains,
                       .pieces = grains,
                       .each = 1,
                       .most = part > grain ? part / grain : 1,
                       .words = qn__program_sums(t->program),
                       .items = batch->items};
}

static uint64_t items_in(const qn__shared *s, qn__chunk chunk) {
    const qn__job *job = &s->share.job;
    if (job->kind == QN__JOB_HOST)
        return chunk.count;
    const uint64_t grain = s->team->program->grain;
    const uint64_t end = (chunk.first + (uint64_t)chunk.count) * grain;
    return (end < job->batch->items ? end : job->batch->items) - chunk.first * grain;
}

/* ----------------------------------------------------------------------------------- own sums */

/* The member's own words, cleared when it first uses them. NULL: out of memory. */
static int64_t *words_of(qn__shared *s, qn__team_member *m) {
    const uint64_t n = s->share.words;
    if (m == s->direct) {
        qn__team_reduction_clear(s->team);
    } else if (!m->has_sums) {
        if (!qn__team_member_space(m, n, &m->error))
            return NULL;
        memset(m->sums, 0, n * sizeof *m->sums);
    }
    if (!m->has_sums)
        m->part = (qn__tally){0};
    m->has_sums = 1;
    return m == s->direct ? s->into : m->sums;
}

int qn__team_member_space(qn__team_member *m, uint64_t words, qn_error *err) {
    if (m->sums && m->capacity >= words)
        return 1;
    qn__free(m->sums);
    m->sums = qn__alloc(words, sizeof *m->sums, err);
    m->capacity = m->sums ? words : 0;
    return m->sums != NULL;
}

/* Fetches the sums that the worker has. Other members do so in parallel, and a member that fails
 * meanwhile leaves nothing in their sums. */
static void collect(qn__shared *s, qn__team_member *m) {
    const double begun = qn__now();
    int64_t *to = words_of(s, m);
    if (!to)
        return;
    m->device->collect(m->worker, to, &m->part, &m->error);
    const double seconds = qn__now() - begun;
    m->busy += seconds;
    m->training += seconds;
    qn__trace_span(s->team->reports.trace, m->track, "collect", begun, begun + seconds, none, none);
}

/* Sends words of the sums while the device continues. They hold the chunk being computed, the first
 * of the part. The rank may have further ranges; the reduction accepts the announcement only if
 * these are all of its chunks. */
static void ready(void *user, uint64_t first, uint64_t words) {
    const qn__shared *s = user;
    qn__team *t = s->team;
    const double begun = qn__now();
    qn__reduction_final(t->cluster, QN__TALLY_WORDS + first, words, s->range.count);
    t->reduction.sending += qn__now() - begun;
}

/* Whether the member writes the sums of this chunk of a training to their place at once. */
static int is_in_place(const qn__shared *s, const qn__team_member *m, qn__chunk chunk) {
    return m == s->direct && s->team->reduction.blank && chunk.count == s->range.count &&
           chunk.count <= s->share.most && m->device->in_place;
}

static void begin_in_place(qn__shared *s, qn__team_member *m, qn__outlet *to) {
    /* Only one thread may call the reduction, and it is this one only if no other member takes
     * part. The part of a worker that may be lost may be computed again, so nothing of it is sent
     * early. */
    const int announces = s->team->cluster && !qn__many(s->adding) && !m->can_be_lost;
    s->team->reduction.blank = 0;
    m->has_sums = 1;
    m->part = (qn__tally){0};
    *to = (qn__outlet){s->into, &m->part, announces ? ready : NULL, s};
}

/* Where the results of a chunk go; `tally` is the chunk's own. Returns 1 if a worker will be asked
 * for its sums. */
static int begin_chunk(qn__shared *s, qn__team_member *m, qn__chunk chunk, qn__tally *tally,
                       qn__outlet *to) {
    const qn__share *share = &s->share;
    *to = (qn__outlet){.tally = tally};
    switch (share->job.kind) {
    case QN__JOB_TRAIN:
        if (!is_in_place(s, m, chunk))
            return 1;
        begin_in_place(s, m, to);
        return 0;
    case QN__JOB_APPLY:
        to->tally = share->tallied ? tally : NULL;
        return 0;
    case QN__JOB_HOST:
        to->words = share->job.host->apart ? s->into : words_of(s, m);
        return 0;
    }
    return 0;
}

/* -------------------------------------------------------------------------------------- a chunk */

/* A piece failed: later pieces need not be computed. */
static void note_bad(qn__shared *s, qn__team_member *m, uint32_t piece) {
    unsigned before = atomic_load(&s->bad_piece);
    m->failed_at = piece;
    while (piece < before && !atomic_compare_exchange_weak(&s->bad_piece, &before, piece))
        ;
    qn__queue_stop(s->share.queue);
}

/* Computes a chunk, in as many calls as the device needs. Returns as begin_chunk does. */
static int compute(qn__shared *s, qn__team_member *m, qn__chunk chunk) {
    const qn__share *share = &s->share;
    const uint64_t last = (chunk.first + (uint64_t)chunk.count) * share->each;
    const uint64_t end = last < share->grains ? last : share->grains;
    qn__tally tally = {0};
    qn__outlet to;
    const int owed = begin_chunk(s, m, chunk, &tally, &to);
    for (uint64_t g = (uint64_t)chunk.first * share->each; g < end && m->error.status == QN_OK;) {
        const uint32_t piece = (uint32_t)(g / share->each);
        const uint32_t count = end - g < share->most ? (uint32_t)(end - g) : share->most;
        if (piece > atomic_load_explicit(&s->bad_piece, memory_order_relaxed))
            break;
        m->device->run(m->worker, &share->job, (uint32_t)g, count, &to, &m->error);
        if (m->error.status != QN_OK && m->error.status != QN_DEVICE)
            note_bad(s, m, piece);
        g += count;
    }
    if (m->error.status == QN_OK && qn__tally_add(&m->part, &tally) != 0) {
        qn__fail(&m->error, QN_NUMERIC, "the sum of the losses became too large");
        m->failed_at = UINT32_MAX;
    }
    return owed;
}

/* What a member did, for the report; forward passes and copies of what is there are not counted in
 * it. */
static void count_chunk(qn__shared *s, qn__team_member *m, qn__chunk chunk, double seconds) {
    const qn__job *job = &s->share.job;
    m->busy += seconds;
    if (job->kind == QN__JOB_APPLY)
        return;
    if (job->kind == QN__JOB_HOST && job->host->kernel && job->host->kernel->bring)
        return;
    m->training += seconds;
    if (m->error.status != QN_OK)
        return;
    m->grains += chunk.count;
    m->items += items_in(s, chunk);
}

/* One worker: takes chunks until there are none, then fetches its sums. */
static void share_body(void *context, int index) {
    qn__shared *s = context;
    const qn__team *t = s->team;
    qn__team_member *m = &t->member[index];
    const qn__share *share = &s->share;
    qn__chunk chunk;
    int some = 0, owed = 0;
    double waiting = qn__now();
    while (m->error.status == QN_OK && qn__queue_take(share->queue, (uint32_t)index, &chunk)) {
        const double begun = qn__now();
        if (some)
            qn__trace_span(t->reports.trace, m->track, "wait", waiting, begun, none, none);
        some = 1;
        owed |= compute(s, m, chunk);
        waiting = qn__now();
        qn__trace_span(t->reports.trace, m->track, share->span, begun, waiting,
                       (qn__trace_value){"first", chunk.first},
                       (qn__trace_value){share->unit, chunk.count});
        count_chunk(s, m, chunk, waiting - begun);
        if (m->error.status == QN_OK)
            qn__queue_done(share->queue, (uint32_t)index, chunk, waiting - begun);
    }
    if (owed && !share->joint && m->error.status == QN_OK)
        collect(s, m);
    if (m->error.status == QN_DEVICE)
        qn__queue_lose(share->queue, (uint32_t)index);
    else if (m->error.status != QN_OK)
        qn__queue_stop(share->queue); /* the job has failed: no worker need continue */
}

static void collect_body(void *context, int index) {
    qn__shared *s = context;
    collect(s, &s->team->member[index]);
}

qn_status qn__team_collect(qn__shared *s, uint64_t set, qn_error *err) {
    const qn_status status = qn__team_do(s->team, set, collect_body, s, err);
    return status == QN_OK && (set & ~qn__team_alive(s->team)) ? QN_DEVICE : status;
}

qn_status qn__team_share(qn__shared *s, uint64_t set, qn__chunk range, qn_error *err) {
    qn__team *t = s->team;
    qn__queue *queue = s->share.queue;
    for (uint32_t i = 0; i < t->count; ++i) {
        t->member[i].has_sums = 0;
        t->member[i].part = (qn__tally){0};
    }
    s->range = range;
    s->adding = set;
    atomic_store(&s->bad_piece, UINT32_MAX);
    if (qn__queue_fill_range(queue, range, set) != 0)
        return qn__fail_memory(err, 1, sizeof(qn__chunk));
    for (;;) {
        const uint64_t before = set & qn__team_alive(t);
        const qn_status status = qn__team_do(t, before, share_body, s, err);
        set &= qn__team_alive(t);
        /* The pieces of a lost worker may contain an earlier failure. */
        if (status != QN_OK)
            return set != before && qn__team_alive(t) ? QN_DEVICE : status;
        if (qn__queue_left(queue) == 0)
            return QN_OK;
        if (!set)
            return QN_DEVICE;
        if (set == before)
            return qn__fail(err, QN_MEMORY, "some grains could not be handed out");
        qn__queue_again(queue, set); /* with the pieces of lost members */
    }
}

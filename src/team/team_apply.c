/* Forward over many items: pieces of whole grains that the workers take from a queue. A piece has
 * its own place for results, and its tally is an integer sum, so nothing depends on who computes
 * it. Among ranks these places are words of a reduction, after the tally. */
#include "base/clock.h"
#include "team/team_reduction.h"
#include <string.h>

/* Among ranks: pieces per rank, so that shares can follow speeds, with at least so many items
 * each. */
enum { PIECES = 16, SMALL_PIECE = 128 };

static uint32_t pieces_of(const qn__team *t) {
    return (uint32_t)(((uint64_t)t->call.batch->items + t->call.piece - 1) / t->call.piece);
}

/* The batch of a piece, and the places of its results. */
static qn__batch piece_at(const qn__team *t, uint32_t piece, qn__applied *applied) {
    const uint32_t first = piece * t->call.piece, left = t->call.batch->items - first;
    const uint32_t outputs = t->program->layer[t->program->layers - 1].out;
    qn__batch batch = *t->call.batch;
    batch.first += first;
    batch.items = left < t->call.piece ? left : t->call.piece;
    *applied = (qn__applied){0};
    if (t->call.applied && t->call.applied->classes)
        applied->classes = t->call.applied->classes + first;
    if (t->call.applied && t->call.applied->scores)
        applied->scores = t->call.applied->scores + first;
    if (t->call.applied && t->call.applied->outputs)
        applied->outputs = t->call.applied->outputs + (size_t)first * outputs;
    return batch;
}

/* A piece failed: later pieces need not be computed. */
static void note_bad(qn__team *t, qn__team_member *m, uint32_t piece) {
    unsigned before = atomic_load(&t->call.bad_piece);
    m->failed_at = piece;
    while (piece < before && !atomic_compare_exchange_weak(&t->call.bad_piece, &before, piece))
        ;
    qn__queue_stop(&t->sharing.pieces);
}

static void apply_chunk(qn__team *t, qn__team_member *m, qn__chunk chunk) {
    qn__tally sum = {0};
    for (uint32_t p = chunk.first; p < chunk.first + chunk.count; ++p) {
        qn__applied applied;
        if (p > atomic_load_explicit(&t->call.bad_piece, memory_order_relaxed))
            break;
        const qn__batch batch = piece_at(t, p, &applied);
        m->device->apply(m->worker, &batch, &applied, t->call.tallied ? &sum : NULL, &m->error);
        if (m->error.status == QN_DEVICE)
            return;
        if (m->error.status != QN_OK) {
            note_bad(t, m, p);
            return;
        }
    }
    if (qn__tally_add(&m->part, &sum) != 0) {
        qn__fail(&m->error, QN_NUMERIC, "the sum of the losses became too large");
        m->failed_at = UINT32_MAX;
    }
}

static void apply_body(void *context, int index) {
    qn__team *t = context;
    qn__team_member *m = &t->member[index];
    qn__chunk chunk;
    while (m->error.status == QN_OK &&
           qn__queue_take(&t->sharing.pieces, (uint32_t)index, &chunk)) {
        const double begun = qn__now();
        apply_chunk(t, m, chunk);
        const double ended = qn__now();
        m->busy += ended - begun;
        qn__trace_span(t->reports.trace, m->track, "apply", begun, ended,
                       (qn__trace_value){"first", chunk.first},
                       (qn__trace_value){"pieces", chunk.count});
        if (m->error.status == QN_OK)
            qn__queue_done(&t->sharing.pieces, (uint32_t)index, chunk, ended - begun);
        else if (m->error.status == QN_DEVICE)
            qn__queue_lose(&t->sharing.pieces, (uint32_t)index);
    }
}

/* The workers that take part in steps; one of them if there is a single piece. */
static uint64_t who(const qn__team *t) {
    const uint64_t alive = qn__team_alive(t);
    uint64_t set = alive;
    if (t->sharing.pick)
        set = t->sharing.pick(t->sharing.pick_user, t->history.top);
    else if (!t->sharing.fixed && t->sharing.chooser.stage == QN__CHOOSE_STAY)
        set = qn__chooser_set(&t->sharing.chooser);
    set = set & alive ? set & alive : alive;
    if (pieces_of(t) > 1 || !qn__many(set))
        return set;
    uint32_t best = (uint32_t)__builtin_ctzll(set);
    for (uint32_t i = best; i < t->count; ++i) {
        const double each = t->sharing.pieces.turn[i].speed.each;
        if ((set & QN__BIT(i)) && each > 0 && !(t->sharing.pieces.turn[best].speed.each <= each))
            best = i;
    }
    return QN__BIT(best);
}

/* Computes the pieces of a range, each once. QN_DEVICE if a worker was lost and its results are
 * uncertain. */
static qn_status share_pieces(qn__team *t, uint64_t set, qn__chunk range, qn_error *err) {
    qn_status status;
    for (uint32_t i = 0; i < t->count; ++i)
        t->member[i].part = (qn__tally){0};
    atomic_store(&t->call.bad_piece, UINT32_MAX);
    if (qn__queue_fill_range(&t->sharing.pieces, range, set) != 0)
        return qn__fail_memory(err, 1, sizeof(qn__chunk));
    for (;;) {
        const uint64_t before = set & qn__team_alive(t);
        status = qn__team_do(t, before, apply_body, err);
        set &= qn__team_alive(t);
        /* A lost worker's pieces may contain an earlier failure. */
        if (status != QN_OK)
            return set != before && qn__team_alive(t) ? QN_DEVICE : status;
        if (qn__queue_left(&t->sharing.pieces) == 0)
            return QN_OK;
        if (!set)
            return QN_DEVICE;
        if (set == before)
            return qn__fail(err, QN_MEMORY, "some items could not be handed out");
        qn__queue_again(&t->sharing.pieces, set);
    }
}

static qn_status add_tallies(const qn__team *t, qn__tally *to, qn_error *err) {
    for (uint32_t i = 0; i < t->count; ++i)
        if (qn__tally_add(to, &t->member[i].part) != 0)
            return qn__fail(err, QN_NUMERIC, "the sum of the losses became too large");
    return QN_OK;
}

/* ---------------------------------------------------------------------------------- among ranks */

/* Words that so many bytes take. */
static uint64_t words_of(uint64_t bytes) { return (bytes + sizeof(int64_t) - 1) / sizeof(int64_t); }

/* Sets the places of the requested results in the words of the reduction; returns the number of
 * words. */
static uint64_t lay_out(const qn__team *t, const qn__batch *batch, const qn__applied *asked,
                        int64_t *words, qn__applied *places) {
    const uint64_t outputs = t->program->layer[t->program->layers - 1].out, n = batch->items;
    uint64_t used = QN__TALLY_WORDS;
    *places = (qn__applied){0};
    if (asked && asked->classes) {
        places->classes = words ? (int32_t *)(void *)(words + used) : NULL;
        used += words_of(n * sizeof *asked->classes);
    }
    if (asked && asked->scores) {
        places->scores = words ? (float *)(void *)(words + used) : NULL;
        used += words_of(n * sizeof *asked->scores);
    }
    if (asked && asked->outputs) {
        places->outputs = words ? (float *)(void *)(words + used) : NULL;
        used += words_of(n * outputs * sizeof *asked->outputs);
    }
    return used;
}

static void copy_results(const qn__team *t, const qn__batch *batch, qn__applied *to) {
    const uint64_t outputs = t->program->layer[t->program->layers - 1].out, n = batch->items;
    qn__applied from;
    /* Only read. */
    lay_out(t, batch, to, (int64_t *)(uintptr_t)t->reduction.total, &from);
    if (from.classes)
        memcpy(to->classes, from.classes, n * sizeof *to->classes);
    if (from.scores)
        memcpy(to->scores, from.scores, n * sizeof *to->scores);
    if (from.outputs)
        memcpy(to->outputs, from.outputs, n * outputs * sizeof *to->outputs);
}

static qn_status range_of_pieces(qn__team *t, uint64_t set, qn__chunk_range range, qn_error *err) {
    qn__applied *const asked = t->call.applied;
    qn__team_reduction_clear(t);
    lay_out(t, t->call.batch, asked, t->reduction.part, &t->call.places);
    t->call.applied = &t->call.places;
    qn_status status = share_pieces(t, set, (qn__chunk){range.first, range.count}, err);
    t->call.applied = asked;
    return status == QN_OK ? add_tallies(t, &t->reduction.tally, err) : status;
}

static qn_status apply_among_ranks(qn__team *t, uint64_t set, qn__tally *tally, qn_error *err) {
    qn__applied places;
    const qn__reduction reduction = {.kind = QN__REDUCTION_APPLY,
                                     .words =
                                         lay_out(t, t->call.batch, t->call.applied, NULL, &places),
                                     .chunks = pieces_of(t)};
    qn_status status = qn__team_reduction(t, &reduction, set, range_of_pieces, tally, err);
    if (status == QN_OK && t->call.applied)
        copy_results(t, t->call.batch, t->call.applied);
    if (status == QN_OK)
        qn__team_reduction_end(t);
    return status;
}

static uint32_t smaller_piece(const qn__team *t, uint32_t room, uint32_t items) {
    const uint32_t grain = t->program->grain;
    const uint32_t wanted = items / (PIECES * qn_cluster_ranks(t->cluster));
    uint32_t piece = wanted < SMALL_PIECE ? SMALL_PIECE : wanted;
    piece = (piece < room ? piece : room) / grain * grain;
    return piece > 0 ? piece : grain;
}

/* --------------------------------------------------------------------------------------- apply */

/* QN_DEVICE if the state was lost meanwhile. */
static qn_status attempt(qn__team *t, qn__tally *tally, qn_error *err) {
    const uint64_t set = who(t);
    qn_status status = qn__team_wait(t, 0, err);
    if (status == QN_OK)
        status = qn__team_update_members(t, set, err);
    if (status == QN_OK && t->cluster)
        return apply_among_ranks(t, set, tally, err);
    if (status == QN_OK)
        status = share_pieces(t, set, (qn__chunk){0, pieces_of(t)}, err);
    return status == QN_OK ? add_tallies(t, tally, err) : status;
}

qn_status qn__team_apply(qn__team *t, const qn__batch *batch, qn__applied *applied,
                         qn__tally *tally, qn_error *err) {
    const uint32_t room = qn__apply_room(t->program) / t->program->grain * t->program->grain;
    qn__tally sum;
    qn_status status;
    t->call.piece = t->cluster ? smaller_piece(t, room, batch->items) : room;
    t->call.applied = applied;
    t->call.tallied = tally != NULL;
    do {
        sum = (qn__tally){0};
        status = qn__team_reach(t, t->history.top, err);
        t->call.batch = batch; /* repeated steps had their own */
        if (status == QN_OK)
            status = attempt(t, &sum, err);
    } while (status == QN_DEVICE && qn__team_alive(t));
    if (status == QN_OK && tally && qn__tally_add(tally, &sum) != 0)
        status = qn__fail(err, QN_NUMERIC, "the sum of the losses became too large");
    return status;
}

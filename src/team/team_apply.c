/* Forward over many items: pieces of whole grains that the workers take from a queue. A piece has
 * its own place for results, and its tally is an integer sum, so nothing depends on who computes
 * it. Among ranks these places are words of a reduction, after the tally. */
#include "team/team_share.h"
#include <string.h>

/* Among ranks: pieces per rank, so that shares can follow speeds, with at least so many items
 * each. */
enum { PIECES = 16, SMALL_PIECE = 128 };

/* The workers that take part in steps; one of them if there is a single piece. */
static uint64_t who(const qn__team *t, const qn__share *share) {
    const uint64_t alive = qn__team_alive(t);
    uint64_t set = alive;
    if (t->sharing.pick)
        set = t->sharing.pick(t->sharing.pick_user, t->history.top);
    else if (!t->sharing.fixed && t->sharing.chooser.stage == QN__CHOOSE_STAY)
        set = qn__chooser_set(&t->sharing.chooser);
    set = set & alive ? set & alive : alive;
    if (share->pieces > 1 || !qn__many(set))
        return set;
    uint32_t best = (uint32_t)__builtin_ctzll(set);
    for (uint32_t i = best; i < t->count; ++i) {
        const double each = t->sharing.pieces.of[i].speed.each;
        if ((set & QN__BIT(i)) && each > 0 && !(t->sharing.pieces.of[best].speed.each <= each))
            best = i;
    }
    return QN__BIT(best);
}

/* ---------------------------------------------------------------------------------- among ranks */

/* Words that so many bytes take. */
static uint64_t words_of(uint64_t bytes) { return (bytes + sizeof(int64_t) - 1) / sizeof(int64_t); }

/* The place of `bytes` bytes of a result after the *used words, if it is asked for. */
static void *place(const void *asked, uint64_t bytes, int64_t *words, uint64_t *used) {
    int64_t *at = asked && words ? words + *used : NULL;
    *used += asked ? words_of(bytes) : 0;
    return at;
}

/* Bytes of each result of an item. */
typedef struct result_bytes {
    uint64_t number, outputs, inputs, positions;
} result_bytes;

static result_bytes bytes_of(const qn__team *t, uint64_t items) {
    const qn__layer *last = &t->program->layer[t->program->layers - 1];
    return (result_bytes){.number = items * sizeof(float),
                          .outputs = items * last->out * sizeof(float),
                          .inputs = items * last->in * sizeof(float),
                          .positions = items * t->program->answers * sizeof(float)};
}

/* Sets the places of the requested results in the words of the reduction; returns the number of
 * words. */
static uint64_t lay_out(const qn__team *t, const qn__batch *batch, const qn__applied *asked,
                        int64_t *words, qn__applied *places) {
    const result_bytes each = bytes_of(t, batch->items);
    uint64_t used = QN__TALLY_WORDS;
    *places = (qn__applied){0};
    if (!asked)
        return used;
    places->classes = place(asked->classes, each.number, words, &used);
    places->scores = place(asked->scores, each.number, words, &used);
    places->outputs = place(asked->outputs, each.outputs, words, &used);
    places->inputs = place(asked->inputs, each.inputs, words, &used);
    places->losses = place(asked->losses, each.positions, words, &used);
    places->tokens = place(asked->tokens, each.positions, words, &used);
    return used;
}

static void take(void *to, const void *from, uint64_t bytes) {
    if (from)
        memcpy(to, from, bytes);
}

static void copy_results(const qn__team *t, const qn__batch *batch, qn__applied *to) {
    const result_bytes each = bytes_of(t, batch->items);
    qn__applied from;
    /* Only read. */
    lay_out(t, batch, to, (int64_t *)(uintptr_t)t->reduction.total, &from);
    take(to->classes, from.classes, each.number);
    take(to->scores, from.scores, each.number);
    take(to->outputs, from.outputs, each.outputs);
    take(to->inputs, from.inputs, each.inputs);
    take(to->losses, from.losses, each.positions);
    take(to->tokens, from.tokens, each.positions);
}

static qn_status range_of_pieces(void *context, uint64_t set, qn__chunk_range range,
                                 qn_error *err) {
    qn__shared *s = context;
    qn__team *t = s->team;
    qn__job *job = &s->share.job;
    qn__applied *const asked = job->applied, places;
    qn__team_reduction_clear(t);
    lay_out(t, job->batch, asked, t->reduction.part, &places);
    job->applied = &places;
    qn_status status = qn__team_share(s, set, (qn__chunk){range.first, range.count}, err);
    job->applied = asked;
    return status == QN_OK ? qn__team_add_parts(t, &t->reduction.tally, err) : status;
}

static qn_status apply_among_ranks(qn__shared *s, uint64_t set, qn__tally *tally, qn_error *err) {
    qn__team *t = s->team;
    const qn__job *job = &s->share.job;
    qn__applied places;
    const qn__reduction reduction = {.kind = s->share.reduction,
                                     .words = lay_out(t, job->batch, job->applied, NULL, &places),
                                     .chunks = s->share.pieces};
    qn_status status = qn__team_reduction(t, &reduction, set, range_of_pieces, s, tally, err);
    if (status == QN_OK && job->applied)
        copy_results(t, job->batch, job->applied);
    if (status == QN_OK)
        qn__team_reduction_end(t);
    return status;
}

static uint32_t smaller_piece(const qn__team *t, uint32_t capacity, uint32_t items) {
    const uint32_t grain = t->program->grain;
    const uint32_t wanted = items / (PIECES * qn_cluster_ranks(t->cluster));
    uint32_t piece = wanted < SMALL_PIECE ? SMALL_PIECE : wanted;
    piece = (piece < capacity ? piece : capacity) / grain * grain;
    return piece > 0 ? piece : grain;
}

/* --------------------------------------------------------------------------------------- apply */

/* QN_DEVICE if the state was lost meanwhile. */
static qn_status attempt(qn__shared *s, qn__tally *tally, qn_error *err) {
    qn__team *t = s->team;
    const uint64_t set = who(t, &s->share);
    qn_status status = qn__team_wait(t, 0, err);
    if (status == QN_OK)
        status = qn__team_update_members(t, set, err);
    if (status == QN_OK && t->cluster)
        return apply_among_ranks(s, set, tally, err);
    if (status == QN_OK)
        status = qn__team_share(s, set, (qn__chunk){0, s->share.pieces}, err);
    return status == QN_OK ? qn__team_add_parts(t, tally, err) : status;
}

static qn__share share_applying(qn__team *t, const qn__batch *batch, qn__applied *applied,
                                int tallied) {
    const uint32_t grain = t->program->grain;
    const uint32_t capacity = qn__apply_space(t->program) / grain * grain;
    const uint32_t piece = t->cluster ? smaller_piece(t, capacity, batch->items) : capacity;
    return (qn__share){.job = {.kind = QN__JOB_APPLY, .batch = batch, .applied = applied},
                       .reduction = QN__REDUCTION_APPLY,
                       .queue = &t->sharing.pieces,
                       .span = "apply",
                       .unit = "pieces",
                       .grains = (uint32_t)(((uint64_t)batch->items + grain - 1) / grain),
                       .pieces = (uint32_t)(((uint64_t)batch->items + piece - 1) / piece),
                       .each = piece / grain,
                       .most = piece / grain,
                       .apart = 1,
                       .tallied = tallied};
}

qn_status qn__team_apply(qn__team *t, const qn__batch *batch, qn__applied *applied,
                         qn__tally *tally, qn_error *err) {
    qn__tally sum;
    qn_status status;
    do {
        sum = (qn__tally){0};
        qn__shared s = {.team = t, .share = share_applying(t, batch, applied, tally != NULL)};
        status = qn__team_reach(t, t->history.top, NULL, err);
        if (status == QN_OK)
            status = attempt(&s, &sum, err);
    } while (status == QN_DEVICE && qn__team_alive(t));
    if (status == QN_OK && tally && qn__tally_add(tally, &sum) != 0)
        status = qn__fail(err, QN_NUMERIC, "the sum of the losses became too large");
    return status;
}

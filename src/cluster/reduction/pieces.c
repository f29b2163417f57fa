/* The pieces of the words that pass through this rank, and what they weigh. */
#include "cluster/reduction/reduction_state.h"

void qn__rounds_ring_others(qn__rounds *r) {
    const uint32_t *local, n = qn__rounds_here(r, &local);
    for (uint32_t i = 0; i < n; ++i)
        if (local[i] != r->rank)
            qn__common_ring(r->common, r->local[local[i]]);
}

/* The layout for round `round` of so many words in this view. */
void qn__rounds_lay_out(qn__rounds *r, uint64_t round) {
    const uint64_t wanted = 2 * r->stamp + 2 + (round <= 1);
    if (r->laid_for != wanted)
        qn__layout_members(&r->layout, &r->members, qn__rounds_machines(r, round));
    if (r->layout.words != r->words)
        qn__layout_words(&r->layout, r->words);
    r->laid_for = wanted;
}

static void forget_pieces(qn__rounds *r) {
    for (uint32_t i = 0; i < r->pieces; ++i)
        r->slot[r->piece[i].number] = 0;
    r->pieces = 0;
}

int qn__rounds_prepare(qn__rounds *r) {
    const uint32_t *local;
    if (r->ready)
        return 1;
    forget_pieces(r);
    qn__rounds_lay_out(r, r->finished + 1);
    r->pieces = qn__layout_pieces(&r->layout, r->rank, r->piece);
    for (uint32_t i = 0; i < r->pieces; ++i)
        r->slot[r->piece[i].number] = i + 1;
    r->pieces_left = r->pieces;
    r->into =
        qn__common_total(r->common, r->generation, (r->finished + 1) & 1, r->words, &r->error);
    if (!r->into)
        return 0;
    const uint32_t n = qn__rounds_here(r, &local);
    for (uint32_t i = 0; i < n; ++i)
        if (!(r->source[i] = qn__common_part(r->common, r->local[local[i]], r->words, &r->error)))
            return 0;
    r->ready = 1;
    return 1;
}

void qn__rounds_count(qn__rounds *r, uint64_t words, uint64_t *out, uint64_t *in) {
    qn__layout *l = &r->layout;
    pthread_mutex_lock(&r->lock);
    if (!r->working && !r->begun &&
        (r->counted_stamp != r->stamp || r->counted_words != words || words == 0)) {
        r->counted_stamp = r->stamp;
        r->counted_words = words;
        r->counted_out = r->counted_in = 0;
        forget_pieces(r);
        qn__layout_members(l, &r->members, qn__rounds_machines(r, r->finished + 1));
        qn__layout_words(l, words + qn__rounds_trailer(r->ranks));
        r->laid_for = 0;
        const uint32_t pieces = qn__layout_pieces(l, r->rank, r->piece);
        for (uint32_t i = 0; i < pieces; ++i) {
            const uint64_t bytes = QN__FRAME_BYTES + r->piece[i].count * sizeof(int64_t);
            const uint64_t times = r->piece[i].owner == r->rank ? l->machines - 1 : 1;
            r->counted_out += times * bytes;
            r->counted_in += times * bytes;
        }
        r->ready = 0;
    }
    *out = r->counted_words == words ? r->counted_out : 0;
    *in = r->counted_words == words ? r->counted_in : 0;
    pthread_mutex_unlock(&r->lock);
}

/* The pieces that this rank handles, and their size on the network. */
#include "cluster/reduction/reduction_state.h"

void qn__reducer_wake_others(qn__reducer *r) {
    const uint32_t *local, n = qn__reducer_here(r, &local);
    for (uint32_t i = 0; i < n; ++i)
        if (local[i] != r->rank)
            qn__common_wake(r->common, r->place.local[local[i]]);
}

/* The layout for reduction `reduction` of so many words in this view. */
void qn__reducer_lay_out(qn__reducer *r, uint64_t reduction) {
    const uint64_t wanted = 2 * r->group.stamp + 2 + (reduction <= 1);
    if (r->adding.laid_for != wanted)
        qn__layout_members(&r->adding.layout, &r->group.members,
                           qn__reducer_machines(r, reduction));
    if (r->adding.layout.words != r->current.words)
        qn__layout_words(&r->adding.layout, r->current.words);
    r->adding.laid_for = wanted;
}

static void forget_pieces(qn__reducer *r) {
    for (uint32_t i = 0; i < r->adding.pieces; ++i)
        r->adding.slot[r->adding.piece[i].number] = 0;
    r->adding.pieces = 0;
}

int qn__reducer_prepare(qn__reducer *r) {
    const uint32_t *local;
    if (r->adding.ready)
        return 1;
    forget_pieces(r);
    qn__reducer_lay_out(r, r->current.finished + 1);
    r->adding.pieces = qn__layout_pieces(&r->adding.layout, r->rank, r->adding.piece);
    for (uint32_t i = 0; i < r->adding.pieces; ++i)
        r->adding.slot[r->adding.piece[i].number] = i + 1;
    r->adding.pieces_left = r->adding.pieces;
    r->adding.into = qn__common_total(r->common, r->totals.generation,
                                      (r->current.finished + 1) & 1, r->current.words, &r->error);
    if (!r->adding.into)
        return 0;
    const uint32_t n = qn__reducer_here(r, &local);
    for (uint32_t i = 0; i < n; ++i)
        if (!(r->adding.source[i] = qn__common_part(r->common, r->place.local[local[i]],
                                                    r->current.words, &r->error)))
            return 0;
    r->adding.ready = 1;
    return 1;
}

void qn__reducer_count(qn__reducer *r, uint64_t words, uint64_t *out, uint64_t *in) {
    qn__layout *l = &r->adding.layout;
    pthread_mutex_lock(&r->lock);
    if (!r->change.working && !r->current.begun &&
        (r->counted.stamp != r->group.stamp || r->counted.words != words || words == 0)) {
        r->counted.stamp = r->group.stamp;
        r->counted.words = words;
        r->counted.out = r->counted.in = 0;
        forget_pieces(r);
        qn__layout_members(l, &r->group.members, qn__reducer_machines(r, r->current.finished + 1));
        qn__layout_words(l, words + qn__reducer_trailer(r->ranks));
        r->adding.laid_for = 0;
        const uint32_t pieces = qn__layout_pieces(l, r->rank, r->adding.piece);
        for (uint32_t i = 0; i < pieces; ++i) {
            const uint64_t bytes = QN__FRAME_BYTES + r->adding.piece[i].count * sizeof(int64_t);
            const uint64_t times = r->adding.piece[i].owner == r->rank ? l->machines - 1 : 1;
            r->counted.out += times * bytes;
            r->counted.in += times * bytes;
        }
        r->adding.ready = 0;
    }
    *out = r->counted.words == words ? r->counted.out : 0;
    *in = r->counted.words == words ? r->counted.in : 0;
    pthread_mutex_unlock(&r->lock);
}

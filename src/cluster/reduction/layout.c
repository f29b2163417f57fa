#include "cluster/reduction/layout.h"

#include "base/memory.h"

enum {
    MOST_CUTS = 64,
    FEWEST_CUTS = 8,      /* for any number of ranks, if there are enough words */
    MOST_PIECES = 1024,   /* in all, unless that leaves fewer cuts */
    LINE = 8,             /* two owners do not share a cache line: words of a cache line */
    FEWEST_WORDS = 32768, /* of a piece: smaller messages cost as much */
};

qn_status qn__layout_open(qn__layout *l, uint32_t ranks, qn_error *err) {
    *l = (qn__layout){0};
    l->order = qn__alloc((uint64_t)ranks * 4 + 1, sizeof *l->order, err);
    if (!l->order)
        return QN_MEMORY;
    l->start = l->order + ranks;
    l->position = l->start + ranks + 1;
    l->home = l->position + ranks;
    return QN_OK;
}

void qn__layout_close(qn__layout *l) {
    qn__free(l->order);
    *l = (qn__layout){0};
}

void qn__layout_members(qn__layout *l, const qn__ranks *members, const uint32_t *machine) {
    qn__ranks left = *members;
    uint32_t rank, n = 0, machines = 0;
    while ((rank = qn__ranks_first(&left)) < QN__MAX_RANKS) {
        l->start[machines] = n;
        for (uint32_t r = rank; r < QN__MAX_RANKS; ++r)
            if (qn__ranks_has(&left, r) && machine[r] == machine[rank]) {
                qn__ranks_drop(&left, r);
                l->home[r] = machines;
                l->position[r] = n;
                l->order[n++] = r;
            }
        ++machines;
    }
    l->start[machines] = n;
    l->machines = machines;
    l->members = n;
    qn__layout_words(l, l->words);
}

/* Small pieces stay in a core's cache from packing to sending. */
static uint32_t most_cuts(uint32_t members) {
    const uint32_t cuts = MOST_PIECES / members;
    return cuts > MOST_CUTS ? MOST_CUTS : cuts < FEWEST_CUTS ? FEWEST_CUTS : cuts;
}

uint32_t qn__layout_cuts(uint64_t words, uint32_t members) {
    const uint32_t ranks = members ? members : 1, most = most_cuts(ranks);
    const uint64_t cuts = words / ranks / FEWEST_WORDS;
    return cuts > most ? most : cuts ? (uint32_t)cuts : 1;
}

void qn__layout_words(qn__layout *l, uint64_t words) {
    l->words = words;
    l->cuts = l->machines == 1 ? 1 : qn__layout_cuts(words, l->members);
}

/* The start of part k of n of the words first .. first+count-1, rounded down to a cache line except
 * at the end. */
static uint64_t cut(uint64_t first, uint64_t count, uint32_t k, uint32_t n) {
    if (k == n)
        return first + count;
    const uint64_t at = first + count / n * k + count % n * k / n;
    return at - at % LINE > first ? at - at % LINE : first;
}

int qn__layout_piece(const qn__layout *l, uint32_t number, qn__piece *piece) {
    const uint32_t position = number / l->cuts, k = number % l->cuts;
    if (position >= l->members)
        return 0;
    const uint32_t owner = l->order[position], home = l->home[owner];
    const uint32_t locals = l->start[home + 1] - l->start[home], local = position - l->start[home];
    const uint64_t a = cut(0, l->words, home, l->machines);
    const uint64_t b = cut(0, l->words, home + 1, l->machines);
    const uint64_t c = cut(a, b - a, local, locals), d = cut(a, b - a, local + 1, locals);
    const uint64_t first = cut(c, d - c, k, l->cuts);
    *piece = (qn__piece){.first = first,
                         .count = cut(c, d - c, k + 1, l->cuts) - first,
                         .number = number,
                         .owner = owner};
    return 1;
}

uint32_t qn__layout_delegate(const qn__layout *l, uint32_t home, uint32_t owner) {
    const uint32_t at = l->home[owner], local = l->position[owner] - l->start[at];
    const uint32_t locals = l->start[home + 1] - l->start[home];
    return home == at ? owner : l->order[l->start[home] + (local + at) % locals];
}

uint32_t qn__layout_most_pieces(uint32_t ranks) {
    const uint32_t pieces = FEWEST_CUTS * ranks;
    return pieces > MOST_PIECES ? pieces : MOST_PIECES;
}

uint32_t qn__layout_pieces(const qn__layout *l, uint32_t rank, qn__piece *piece) {
    uint32_t n = 0;
    /* Start after the own segment, so that not all ranks send to the same rank first. */
    for (uint32_t i = 1; i <= l->members; ++i) {
        const uint32_t owner = l->order[(l->position[rank] + i) % l->members];
        if (qn__layout_delegate(l, l->home[rank], owner) != rank)
            continue;
        for (uint32_t k = 0; k < l->cuts; ++k)
            n += (uint32_t)(qn__layout_piece(l, l->position[owner] * l->cuts + k, &piece[n]) &&
                            piece[n].count > 0);
    }
    return n;
}

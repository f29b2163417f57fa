#include "search/search_share.h"

#include "base/memory.h"

qn_status qn__share_open(qn__share *s, uint64_t runs, uint32_t ranks, qn_error *err) {
    *s = (qn__share){.runs = runs, .ranks = ranks};
    s->rank = qn__alloc(ranks, sizeof *s->rank, err);
    s->owner = qn__alloc(runs, sizeof *s->owner, err);
    if (!s->rank || !s->owner)
        return QN_MEMORY;
    for (uint64_t i = 0; i < runs; ++i)
        s->owner[i] = QN__SHARE_FREE;
    return QN_OK;
}

void qn__share_close(qn__share *s) {
    qn__free(s->rank);
    qn__free(s->owner);
    *s = (qn__share){0};
}

void qn__share_done(qn__share *s, uint64_t run, uint32_t rank, double seconds) {
    const uint32_t owner = s->owner[run];
    if (owner == QN__SHARE_DONE)
        return;
    if (owner < s->ranks)
        --s->rank[owner].busy;
    s->owner[run] = QN__SHARE_DONE;
    ++s->done;
    if (rank < s->ranks) {
        ++s->rank[rank].made;
        s->rank[rank].seconds += seconds;
    }
}

void qn__share_lose(qn__share *s, uint32_t rank) {
    s->rank[rank] = (qn__share_rank){0};
    for (uint64_t i = 0; i < s->runs; ++i)
        if (s->owner[i] == rank) {
            s->owner[i] = QN__SHARE_FREE;
            s->next = i < s->next ? i : s->next;
        }
}

/* Seconds a run; 0: not known. */
static double pace(const qn__share_rank *r) {
    return r->made > 0 ? r->seconds / (double)r->made : 0;
}

static uint64_t count_free(const qn__share *s) {
    uint64_t busy = 0;
    for (uint32_t r = 0; r < s->ranks; ++r)
        busy += s->rank[r].busy;
    return s->runs - s->done - busy;
}

/* Whether the others would make all free runs while this rank makes one. Each of their workers may
 * have just begun a run, which it makes first. */
static int is_too_slow(const qn__share *s, uint32_t rank) {
    const double own = pace(&s->rank[rank]);
    double others = 0;
    for (uint32_t r = 0; r < s->ranks && own > 0; ++r) {
        const double theirs = pace(&s->rank[r]);
        const double times = theirs > 0 ? own / theirs - 1 : 0;
        if (r != rank && s->rank[r].present && times >= 1)
            others += (double)s->rank[r].workers * (double)(uint64_t)(times < 1e9 ? times : 1e9);
    }
    return others >= (double)count_free(s);
}

/* Below 0: a gets a run before b. */
static int compare(const qn__share_rank *a, const qn__share_rank *b) {
    const double x = pace(a), y = pace(b);
    if (x != y)
        return x < y ? -1 : 1;
    return (a->busy > b->busy) - (a->busy < b->busy);
}

int qn__share_give(qn__share *s, uint64_t *run, uint32_t *rank) {
    while (s->next < s->runs && s->owner[s->next] != QN__SHARE_FREE)
        ++s->next;
    if (s->next == s->runs)
        return 0;
    *rank = s->ranks;
    for (uint32_t r = 0; r < s->ranks; ++r) {
        const qn__share_rank *own = &s->rank[r];
        if (own->present && own->busy < own->workers && !is_too_slow(s, r) &&
            (*rank == s->ranks || compare(own, &s->rank[*rank]) < 0))
            *rank = r;
    }
    if (*rank == s->ranks)
        return 0;
    *run = s->next;
    s->owner[*run] = *rank;
    ++s->rank[*rank].busy;
    return 1;
}

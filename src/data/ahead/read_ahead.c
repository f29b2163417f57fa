#include "data/ahead/read_ahead.h"
#include "base/memory.h"
#include "base/system/available.h"
#include "base/system/threads.h"
#include "data/ahead/file_walk.h"
#include "data/ahead/item_scan.h"
#include "data/ahead/page_ahead.h"
#include "data/ahead/remote_ahead.h"
#include "data/table/remote_rows.h"

/* What is left for other things, at least: a training makes its results and reports later, and the
 * pages of the program itself count as memory that would give way. */
#define LEAST_LEFT ((uint64_t)32 << 20)

/* Steps before it is asked how much memory there is: some arrays of the workers take memory when
 * they are first used. */
enum { FIRST_STEPS = 3 };

uint64_t qn__read_ahead_memory;

struct qn__read_ahead {
    const qn_data *data;
    uint64_t seed, places;
    uint32_t ranks;
    int steps;
    qn__item_scan *scan;      /* or NULL */
    qn__page_ahead *pages;    /* or NULL */
    int paged;                /* pages were asked for, or tried */
    int random;               /* as qn__page_order was told */
    qn__remote_ahead *remote; /* of items that lie on other ranks; or NULL */
};

static uint64_t difference(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

/* Three quarters of the available memory, when `later` bytes of it will have been taken; the
 * kernel's file cache gives way. */
static uint64_t memory_for(uint32_t ranks, uint64_t later) {
    if (qn__read_ahead_memory)
        return qn__read_ahead_memory;
    const uint64_t all = difference(qn__available_memory(), qn__item_scan_reserved());
    const uint64_t mine = difference(all / ranks, later);
    return difference(mine, mine / 4 > LEAST_LEFT ? mine / 4 : LEAST_LEFT);
}

/* Whether a scan that was made before the first step leaves at least half of what it should. Its
 * memory is in use by now. */
static int leaves_enough(const qn__read_ahead *a) {
    if (qn__read_ahead_memory)
        return 1;
    const uint64_t left = qn__available_memory() / a->ranks;
    return left >= LEAST_LEFT / 2 && left >= qn__item_scan_memory(a->scan) / 6;
}

/* When the workers have their memory. */
static void make_scan(qn__read_ahead *a) {
    if (a->scan && leaves_enough(a))
        return;
    qn__item_scan_destroy(a->scan);
    a->scan = qn__item_scan_create(a->data, a->seed, a->places, memory_for(a->ranks, 0));
}

static void set_order(qn__read_ahead *a, int random) {
    if (a->random != random)
        qn__page_order(a->data, random);
    a->random = random;
}

/* Pages are told to the system as long as no scan serves, nor soon will. */
static void choose(qn__read_ahead *a) {
    if (a->steps < FIRST_STEPS && ++a->steps == FIRST_STEPS)
        make_scan(a);
    const qn__item_scan_stage stage = a->scan ? qn__item_scan_at(a->scan) : QN__SCAN_FAILED;
    const int wanted = a->steps == FIRST_STEPS && stage < QN__SCAN_WAITS;
    if (wanted && !a->paged)
        a->pages = qn__page_ahead_create(a->data, a->seed);
    if (!wanted && a->paged) {
        qn__page_ahead_destroy(a->pages);
        a->pages = NULL;
    }
    a->paged = wanted;
    set_order(a, stage < QN__SCAN_SERVES);
}

qn__read_ahead *qn__read_ahead_create(const qn_data *data, uint64_t seed, uint64_t epochs,
                                      uint32_t ranks, uint64_t later) {
    const qn__remote_rows *remote = qn__data_remote(data);
    qn__read_ahead *a =
        data->in_file || (remote && remote->partial) ? qn__alloc(1, sizeof *a, NULL) : NULL;
    if (!a)
        return NULL;
    a->data = data;
    a->remote = remote ? qn__remote_ahead_create(data, seed, epochs) : NULL;
    a->seed = seed;
    a->places = epochs * data->items;
    a->ranks = ranks ? ranks : 1;
    /* What a limit of the process counts, such as stacks, is known only when it was taken. */
    if (data->in_file && later != UINT64_MAX && !qn__memory_is_limited())
        a->scan = qn__item_scan_create(data, seed, a->places, memory_for(a->ranks, later));
    return a;
}

void qn__read_ahead_destroy(qn__read_ahead *a) {
    if (!a)
        return;
    qn__page_ahead_destroy(a->pages);
    qn__item_scan_destroy(a->scan);
    qn__remote_ahead_destroy(a->remote);
    if (a->data->in_file)
        set_order(a, 0);
    qn__free(a);
}

void qn__read_ahead_take(qn__read_ahead *a, uint64_t first, uint64_t end) {
    if (a && a->scan)
        qn__item_scan_take(a->scan, first, end);
}

typedef struct filling {
    qn__read_ahead *ahead;
    qn__file_walk walk;
} filling;

static void fill_some(void *context, int thread) {
    filling *f = context;
    uint64_t from, end;
    (void)thread;
    while (qn__file_walk_next(&f->walk, &from, &end)) {
        qn__read_ahead_take(f->ahead, from, end);
        qn__file_walk_drop(&f->walk, from, end);
    }
}

void qn__read_ahead_fill(qn__read_ahead *a, int threads) {
    filling f = {.ahead = a};
    qn__pool *pool;
    if (!a || !a->scan)
        return;
    if (threads > 0 && qn__item_scan_at(a->scan) == QN__SCAN_WAITS &&
        qn__pool_create(threads, 0, &pool, NULL) == QN_OK) {
        qn__file_walk_begin(&f.walk, a->data);
        qn__pool_run(pool, fill_some, &f);
        qn__pool_destroy(pool);
    }
    if (qn__item_scan_at(a->scan) > QN__SCAN_WAITS)
        return;
    qn__item_scan_destroy(a->scan);
    a->scan = NULL;
}

const qn__item_buffer *qn__read_ahead_move(qn__read_ahead *a, uint32_t epoch, uint64_t position,
                                           uint64_t count) {
    if (!a)
        return NULL;
    const uint64_t place = epoch * a->data->items + position;
    if (a->remote)
        return qn__remote_ahead_move(a->remote, epoch, position, count / 2);
    if (!a->data->in_file)
        return NULL;
    choose(a);
    qn__page_ahead_move(a->pages, epoch, position);
    if (!a->scan)
        return NULL;
    qn__item_scan_move(a->scan, place, place + count);
    return qn__item_scan_buffer(a->scan);
}

qn_status qn__read_ahead_bring(qn__read_ahead *a, uint32_t epoch, uint64_t position, uint32_t count,
                               qn_error *err) {
    return a && a->remote ? qn__remote_ahead_bring(a->remote, epoch, position, count, err) : QN_OK;
}

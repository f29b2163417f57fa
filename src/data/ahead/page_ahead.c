#include "data/ahead/page_ahead.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include "num/permutation.h"
#include "num/philox.h"
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes that are fetched ahead: a disk of 500 MB/s needs some milliseconds for each request, and
 * has many of them at a time. Items whose order is found at a time. */
enum { WINDOW = 32 << 20, RUN = 64 };

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* since Linux 5.14; others refuse it */
#endif

struct qn__page_ahead {
    const qn_data *data;
    uint64_t seed;
    uintptr_t page;
    uint64_t window; /* items */
    pthread_t thread;
    pthread_mutex_t lock; /* for the two below */
    pthread_cond_t moved;
    uint64_t wanted; /* places of the run, epoch * items + position, before which all are fetched */
    int ended;
};

/* Where a walk through the items of the run has come to. */
typedef struct walk {
    qn__permutation order;
    uint64_t epoch, at; /* of `order`; the next place of the run */
    int advice;         /* for the pages of each item */
} walk;

static void advise_item(const qn__page_ahead *a, uint64_t item, int advice) {
    const uintptr_t begin = (uintptr_t)qn__data_item(a->data, item),
                    end = begin + qn__data_stride(a->data), first = begin / a->page * a->page;
    (void)madvise((void *)first, end - first, advice); /* only a hint */
}

void qn__page_order(const qn_data *data, int random) {
    const uint64_t rows = data->index ? data->index[data->items - 1] + 1 : data->items;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE),
                    begin = (uintptr_t)data->values / page * page,
                    end = (uintptr_t)data->values + qn__data_bytes_of(data, rows);
    (void)madvise((void *)begin, end - begin, random ? MADV_RANDOM : MADV_NORMAL); /* a hint */
}

/* Goes through some items of one epoch, up to a place of the run. */
static void walk_on(const qn__page_ahead *a, walk *w, uint64_t to) {
    const uint64_t items = a->data->items, position = w->at % items;
    uint64_t item[RUN], count = w->at < to ? to - w->at : 0;
    count = count < RUN ? count : RUN;
    count = count < items - position ? count : items - position;
    if (w->at / items != w->epoch) {
        w->epoch = w->at / items;
        qn__permutation_begin(&w->order, items, a->seed, QN__PURPOSE_ORDER, (uint32_t)w->epoch);
    }
    qn__permutation_run(&w->order, position, (uint32_t)count, item);
    for (uint64_t i = 0; i < count; i++)
        advise_item(a, item[i], w->advice);
    w->at += count;
}

/* Waits until a place is wanted; UINT64_MAX: the end. */
static uint64_t wait_for(qn__page_ahead *a, uint64_t at) {
    pthread_mutex_lock(&a->lock);
    while (!a->ended && a->wanted <= at)
        pthread_cond_wait(&a->moved, &a->lock);
    const uint64_t wanted = a->ended ? UINT64_MAX : a->wanted;
    pthread_mutex_unlock(&a->lock);
    return wanted;
}

/* Half a window after the requests, pages become part of the process. By then most of them are
 * there; those for which the system had no space are read now, and no step has to wait. */
static void *fetch_all(void *context) {
    qn__page_ahead *a = context;
    walk ask = {.epoch = UINT64_MAX, .advice = MADV_WILLNEED},
         take = {.epoch = UINT64_MAX, .advice = MADV_POPULATE_READ};
    uint64_t to;
    qn__float_state_set();
    while ((to = wait_for(a, ask.at)) != UINT64_MAX) {
        const uint64_t least = to > a->window ? to - a->window : 0;
        ask.at = ask.at > least ? ask.at : least; /* a training that goes on midway */
        take.at = take.at > least ? take.at : least;
        walk_on(a, &ask, to);
        walk_on(a, &take, ask.at > a->window / 2 ? ask.at - a->window / 2 : 0);
    }
    return NULL;
}

static int start(qn__page_ahead *a) {
    if (pthread_mutex_init(&a->lock, NULL) != 0)
        return 0;
    if (pthread_cond_init(&a->moved, NULL) == 0) {
        if (qn__thread_start(&a->thread, NULL, fetch_all, a) == 0)
            return 1;
        pthread_cond_destroy(&a->moved);
    }
    pthread_mutex_destroy(&a->lock);
    return 0;
}

qn__page_ahead *qn__page_ahead_create(const qn_data *data, uint64_t seed) {
    qn__page_ahead *a = data->in_file ? qn__alloc(1, sizeof *a, NULL) : NULL;
    if (!a)
        return NULL;
    a->data = data;
    a->seed = seed;
    a->page = (uintptr_t)sysconf(_SC_PAGESIZE);
    a->window = WINDOW / (qn__data_stride(data) + a->page) + 1;
    if (start(a))
        return a;
    qn__free(a);
    return NULL;
}

void qn__page_ahead_destroy(qn__page_ahead *a) {
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->ended = 1;
    pthread_cond_signal(&a->moved);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    pthread_cond_destroy(&a->moved);
    pthread_mutex_destroy(&a->lock);
    qn__free(a);
}

void qn__page_ahead_move(qn__page_ahead *a, uint32_t epoch, uint64_t position) {
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->wanted = epoch * a->data->items + position + a->window;
    pthread_cond_signal(&a->moved);
    pthread_mutex_unlock(&a->lock);
}

#include "team/drivers.h"

#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include <pthread.h>

typedef struct driver {
    struct qn__drivers *all;
    pthread_t handle;
    pthread_cond_t go;
    int started, wanted, number;
} driver;

struct qn__drivers {
    pthread_mutex_t lock;
    pthread_cond_t done;
    uint32_t count, own, running;
    int stop;
    void (*body)(void *context, int member);
    void *context;
    driver driver[];
};

void qn__drivers_destroy(qn__drivers *d) {
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    d->stop = 1;
    for (uint32_t i = 0; i < d->count; ++i)
        pthread_cond_signal(&d->driver[i].go);
    pthread_mutex_unlock(&d->lock);
    for (uint32_t i = 0; i < d->count; ++i) {
        if (d->driver[i].started)
            pthread_join(d->driver[i].handle, NULL);
        pthread_cond_destroy(&d->driver[i].go);
    }
    pthread_cond_destroy(&d->done);
    pthread_mutex_destroy(&d->lock);
    qn__free(d);
}

static void *drive(void *argument) {
    driver *self = argument;
    qn__drivers *d = self->all;
    pthread_mutex_lock(&d->lock);
    for (;;) {
        while (!self->wanted && !d->stop)
            pthread_cond_wait(&self->go, &d->lock);
        if (d->stop)
            break;
        self->wanted = 0;
        pthread_mutex_unlock(&d->lock);
        qn__float_state_set(); /* device drivers may change it */
        d->body(d->context, self->number);
        pthread_mutex_lock(&d->lock);
        if (--d->running == 0)
            pthread_cond_signal(&d->done);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static int start(driver *one) {
    one->started = qn__thread_start(&one->handle, NULL, drive, one) == 0;
    return one->started;
}

qn_status qn__drivers_create(uint32_t count, uint32_t own, qn__drivers **out, qn_error *err) {
    qn__drivers *d = qn__alloc(1, sizeof *d + count * sizeof d->driver[0], err);
    *out = d;
    if (!d)
        return QN_MEMORY;
    d->count = count;
    d->own = own;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->done, NULL);
    for (uint32_t i = 0; i < count; ++i) {
        d->driver[i].all = d;
        d->driver[i].number = (int)i;
        pthread_cond_init(&d->driver[i].go, NULL);
    }
    for (uint32_t i = 0; i < count; ++i) {
        if (i == own || start(&d->driver[i]))
            continue;
        qn__fail(err, QN_MEMORY, "cannot start a thread for each of %u devices", count);
        return qn__remedy(err, QN_MEMORY,
                          "use fewer devices, or raise the limit of processes "
                          "(ulimit -u) or of memory (ulimit -v)");
    }
    return QN_OK;
}

void qn__drivers_run(qn__drivers *d, uint64_t set, void (*body)(void *context, int member),
                     void *context) {
    if (!set)
        return;
    const int own = set >> d->own & 1 ? (int)d->own : __builtin_ctzll(set);
    if (set == UINT64_C(1) << own) {
        qn__float_state_set();
        body(context, own);
        qn__float_state_set();
        return;
    }
    pthread_mutex_lock(&d->lock);
    d->body = body;
    d->context = context;
    for (uint32_t i = 0; i < d->count; ++i) {
        if (!(set >> i & 1) || (int)i == own)
            continue;
        d->driver[i].wanted = 1;
        ++d->running;
        pthread_cond_signal(&d->driver[i].go);
    }
    pthread_mutex_unlock(&d->lock);
    qn__float_state_set();
    body(context, own);
    qn__float_state_set();
    pthread_mutex_lock(&d->lock);
    while (d->running > 0)
        pthread_cond_wait(&d->done, &d->lock);
    pthread_mutex_unlock(&d->lock);
}

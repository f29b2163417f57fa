#include "serve/watch/watch_readers.h"

#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include <string.h>

static void free_task(qn__watch_task *t) {
    qn__free(t->version);
    qn__free(t);
}

static qn__watch_task *next_task(qn__watch_readers *r) {
    pthread_mutex_lock(&r->lock);
    while (!r->first && !r->ending)
        pthread_cond_wait(&r->more, &r->lock);
    qn__watch_task *t = r->ending ? NULL : r->first;
    if (t && !(r->first = t->next))
        r->last = &r->first;
    r->reading += t != NULL;
    pthread_mutex_unlock(&r->lock);
    return t;
}

static void *read_tasks(void *context) {
    qn__watch_readers *r = context;
    qn__float_state_set();
    for (qn__watch_task *t; (t = next_task(r)); free_task(t)) {
        r->read(r->user, t);
        pthread_mutex_lock(&r->lock);
        --r->reading;
        pthread_mutex_unlock(&r->lock);
    }
    return NULL;
}

qn_status qn__watch_readers_start(qn__watch_readers *r, int most, qn__watch_read *read, void *user,
                                  qn_error *err) {
    int error = 0;
    *r = (qn__watch_readers){.read = read, .user = user};
    r->last = &r->first;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->more, NULL);
    most = most < QN__WATCH_READERS ? most : QN__WATCH_READERS;
    while (r->threads < most && error == 0) {
        error = qn__thread_start(&r->thread[r->threads], NULL, read_tasks, r);
        r->threads += error == 0;
    }
    return r->threads > 0 ? QN_OK
                          : qn__fail(err, QN_MEMORY, "cannot start a thread: %s", strerror(error));
}

qn_status qn__watch_readers_add(qn__watch_readers *r, const qn__watch_name *name, int64_t last,
                                int is_final, qn_error *err) {
    const size_t size = strlen(name->name) + 1;
    qn__watch_task *t = qn__alloc(1, sizeof *t + size, err);
    if (!t)
        return QN_MEMORY;
    if (name->version && !(t->version = qn__copy_text(name->version, err))) {
        free_task(t);
        return QN_MEMORY;
    }
    memcpy(t->name, name->name, size);
    t->last = last;
    t->is_final = is_final;
    pthread_mutex_lock(&r->lock);
    *r->last = t;
    r->last = &t->next;
    pthread_cond_signal(&r->more);
    pthread_mutex_unlock(&r->lock);
    return QN_OK;
}

int qn__watch_readers_are_busy(qn__watch_readers *r) {
    pthread_mutex_lock(&r->lock);
    const int are = r->reading > 0 || (r->first && !r->ending);
    pthread_mutex_unlock(&r->lock);
    return are;
}

void qn__watch_readers_end(qn__watch_readers *r) {
    pthread_mutex_lock(&r->lock);
    r->ending = 1;
    pthread_cond_broadcast(&r->more);
    pthread_mutex_unlock(&r->lock);
}

void qn__watch_readers_release(qn__watch_readers *r) {
    for (int k = 0; k < r->threads; ++k)
        pthread_join(r->thread[k], NULL);
    for (qn__watch_task *t = r->first, *next; t; t = next) {
        next = t->next;
        free_task(t);
    }
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->more);
}

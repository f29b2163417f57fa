#include "serve/batch/answer_writer.h"

#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include <string.h>

typedef struct kept_answer kept_answer;
struct kept_answer {
    kept_answer *next;
    qn__batch_answer answer;
    qn__batch_done *done;
    void *user;
};

struct qn__answer_writer {
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t more;
    pthread_t thread;
    int started, ending;
    kept_answer *first, **last;
};

qn_status qn__answer_writer_make(qn__answer_writer **out, qn_error *err) {
    qn__answer_writer *w = *out = qn__alloc(1, sizeof *w, err);
    if (!w)
        return QN_MEMORY;
    w->last = &w->first;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->more, NULL);
    return QN_OK;
}

/* The caller holds the lock. */
static kept_answer *take_first(qn__answer_writer *w) {
    kept_answer *k = w->first;
    w->first = k->next;
    if (!w->first)
        w->last = &w->first;
    return k;
}

static void *write_answers(void *user) {
    qn__answer_writer *w = user;
    qn__float_state_set();
    pthread_mutex_lock(&w->lock);
    while (!w->ending || w->first) {
        if (!w->first) {
            pthread_cond_wait(&w->more, &w->lock);
            continue;
        }
        kept_answer *k = take_first(w);
        pthread_mutex_unlock(&w->lock);
        k->done(k->user, &k->answer);
        qn__float_state_set();
        qn__batch_answer_release(&k->answer);
        qn__free(k);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static qn_status enqueue(qn__answer_writer *w, kept_answer *k, qn_error *err) {
    int error = 0;
    pthread_mutex_lock(&w->lock);
    if (!w->started)
        error = qn__thread_start(&w->thread, NULL, write_answers, w);
    w->started |= !error;
    if (!error) {
        *w->last = k;
        w->last = &k->next;
        pthread_cond_signal(&w->more);
    }
    pthread_mutex_unlock(&w->lock);
    return error ? qn__fail(err, QN_MEMORY, "cannot start a thread: %s", strerror(error)) : QN_OK;
}

qn_status qn__answer_writer_add(qn__answer_writer *w, const qn__batch_answer *answer,
                                qn__batch_done *done, void *user, qn_error *err) {
    kept_answer *k = qn__alloc(1, sizeof *k, err);
    if (!k)
        return QN_MEMORY;
    k->done = done;
    k->user = user;
    qn_status status = qn__batch_answer_copy(answer, &k->answer, err);
    if (status == QN_OK) {
        status = enqueue(w, k, err);
        if (status == QN_OK)
            return QN_OK;
        qn__batch_answer_release(&k->answer);
    }
    qn__free(k);
    return status;
}

void qn__answer_writer_free(qn__answer_writer *w) {
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->ending = 1;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
    if (w->started)
        pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->more);
    pthread_mutex_destroy(&w->lock);
    qn__free(w);
}

/* The thread that keeps models as their files are. */
#include "serve/models/models_state.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"

#include <string.h>

/* Why the files are looked at. */
enum { IN_TIME = 1, ASKED };

static void look_at_all(qn__models *models, int asked) {
    qn_error err;
    for (size_t i = 0; i < models->count; i++) {
        qn__model_origin *s = models->source[i];
        const qn__served *before = s->served;
        if (s->folder) /* below */
            continue;
        if (qn__origin_look(models, s, asked, &err) != QN_OK)
            qn__models_tell(models, s->path, &err);
        else if (s->served != before)
            qn__models_tell_served(models, s);
    }
    for (size_t i = 0; i < models->folders; i++)
        if (qn__models_walk(models, &models->folder[i], asked ? QN__WALK_ALL : QN__WALK_HERE,
                            &err) != QN_OK)
            qn__models_tell(models, models->folder[i].path, &err);
}

/* All versions of a name: read again, or taken away. */
static qn_status obey(qn__models *models, const qn__model_order *order, qn_error *err) {
    qn_status status = QN_OK;
    int known = 0;
    for (size_t i = 0; i < models->count; i++) {
        qn__model_origin *s = models->source[i];
        if (strcmp(s->name, order->name) != 0 || !*s->path)
            continue;
        known = 1;
        s->away = !order->load;
        memset(&s->stamp, 0, sizeof s->stamp);
        if (s->away)
            qn__origin_drop(models, s, "unloaded");
        else if (status == QN_OK)
            status = qn__origin_look(models, s, 1, err);
    }
    return known ? status
                 : qn__fail(err, QN_INPUT, "there is no file of a model \"%s\"", order->name);
}

static void execute(qn__models *models, qn__model_order *order) {
    qn_error err = {0};
    if (order->load) /* the folder may have new ones */
        for (size_t i = 0; i < models->folders; i++)
            if (qn__models_walk(models, &models->folder[i], QN__WALK_NEW, &err) != QN_OK)
                qn__models_tell(models, models->folder[i].path, &err);
    memset(&err, 0, sizeof err);
    err.status = obey(models, order, &err);
    order->done(order->user, &err);
    qn__free(order->name);
    qn__free(order);
}

/* Sleeps until there is something to do, or the files should be looked at. The caller holds the
 * lock. */
static void sleep_a_while(qn__models *models) {
    if (models->ends || models->look || models->orders || models->dead)
        return;
    if (!(models->options.seconds > 0)) {
        pthread_cond_wait(&models->wake, &models->lock);
        return;
    }
    const struct timespec until = qn__after(models->options.seconds);
    if (pthread_cond_timedwait(&models->wake, &models->lock, &until) != 0)
        models->look = IN_TIME;
}

static void *keep_models(void *user) {
    qn__models *models = user;
    qn__float_state_set();
    pthread_mutex_lock(&models->lock);
    while (!models->ends || models->orders) {
        sleep_a_while(models);
        const int look = models->look;
        qn__model_order *order = models->orders;
        models->look = 0;
        models->orders = order ? order->next : NULL;
        pthread_mutex_unlock(&models->lock);
        qn__models_bury(models);
        if (order)
            execute(models, order);
        if (look)
            look_at_all(models, look == ASKED);
        pthread_mutex_lock(&models->lock);
    }
    pthread_mutex_unlock(&models->lock);
    return NULL;
}

qn_status qn__models_keep(qn__models *models, const qn__keeper_options *options, qn_error *err) {
    models->options = *options;
    if (qn__thread_start(&models->keeper, NULL, keep_models, models) != 0)
        return qn__fail(err, QN_MEMORY, "a thread cannot be started");
    models->kept = 1;
    return QN_OK;
}

void qn__models_look(qn__models *models) {
    pthread_mutex_lock(&models->lock);
    models->look = ASKED;
    pthread_cond_broadcast(&models->wake);
    pthread_mutex_unlock(&models->lock);
}

qn_status qn__models_ask(qn__models *models, const char *name, int load,
                         void (*done)(void *user, const qn_error *err), void *user, qn_error *err) {
    qn__model_order *order = qn__alloc(1, sizeof *order, err), **last;
    char *own = qn__copy_text(name, err);
    if (!order || !own) {
        qn__free(order);
        qn__free(own);
        return QN_MEMORY;
    }
    *order = (qn__model_order){.name = own, .load = load, .done = done, .user = user};
    pthread_mutex_lock(&models->lock);
    const int kept = models->kept && !models->ends;
    for (last = &models->orders; *last; last = &(*last)->next)
        continue;
    if (kept)
        *last = order;
    pthread_cond_broadcast(&models->wake);
    pthread_mutex_unlock(&models->lock);
    if (kept)
        return QN_OK;
    qn__free(own);
    qn__free(order);
    return qn__fail(err, QN_INPUT, "the server ends");
}

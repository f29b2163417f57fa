/* Which rank reports an epoch: one rank does, and confirms it to all others before any continues. A
 * rank that takes over then knows which epochs were reported. */
#include "base/memory.h"
#include "base/system/float_state.h"
#include "train/trainer_state.h"
#include <string.h>

void qn_epoch_keep(void *user, const qn_epoch_event *event) {
    qn_epoch_list *list = user;
    if (!list || !event || list->size < sizeof *list || !list->event || list->count >= list->room ||
        list->event_size < sizeof event->size)
        return;
    const size_t size = list->event_size < event->size ? list->event_size : event->size;
    qn_epoch_event *to = (void *)((char *)list->event + list->count++ * list->event_size);
    memcpy(to, event, size); /* an older caller knows fewer members */
    to->size = size;
}

static void call(const qn_train *t, const qn_epoch_event *event, int reports) {
    qn_epoch_event own = *event;
    own.reports = reports;
    if (t->options.on_epoch)
        t->options.on_epoch(t->options.user, &own);
    qn__float_state_set();
}

/* Probes the others first, so that a rank that was suspended does not report what another one has
 * reported meanwhile. Nothing blocks between the callback and its confirmation. A rank that dies
 * there leaves an epoch that the next one reports again. */
static int report_if_writer(const qn_train *t, const qn_epoch_event *event) {
    if (!qn__cluster_may_write(t->cluster))
        return 0;
    call(t, event, 1);
    return 1;
}

qn_status qn__train_report_epoch(qn_train *t, const qn_epoch_event *event, qn_error *err) {
    const uint32_t ranks = qn_cluster_ranks(t->cluster);
    uint64_t own = 0, *told = NULL;
    qn_status status = QN_OK;
    if (!t->cluster) {
        call(t, event, 1);
        return QN_OK;
    }
    if (!(told = qn__alloc(ranks, sizeof *told, err)))
        return QN_MEMORY;
    for (int done = 0; !done && status == QN_OK;) {
        own |= (uint64_t)report_if_writer(t, event);
        status = qn__cluster_gather(t->cluster, &own, sizeof own, told, err);
        for (uint32_t r = 0; r < ranks && status == QN_OK; ++r)
            done |= told[r] != 0;
    }
    qn__free(told);
    if (status == QN_OK && !own)
        call(t, event, 0);
    return status;
}

#include "cluster/reduction/report.h"

#include "cluster/reduction/reduction_state.h"

void qn__reducer_report(qn__reducer *r) {
    const uint32_t ranges = r->current.begun ? r->current.own.count : 0;
    const uint64_t count = R_HEAD + 2 * (uint64_t)ranges;
    qn__message_buffer *buffer =
        r->transport->calls->buffer(r->transport, count * sizeof(uint64_t));
    r->change.owed = 0;
    if (!buffer) {
        qn__fail_memory(&r->error, count, sizeof(uint64_t));
        qn__reducer_wake(r);
        return;
    }
    uint64_t *w = (uint64_t *)(void *)buffer->data;
    w[R_FINISHED] = r->current.finished;
    w[R_BEGUN] = (uint64_t)r->current.begun;
    w[R_KIND] = (uint64_t)r->current.reduction.kind;
    w[R_WORDS] = r->current.reduction.words;
    w[R_CHUNKS] = r->current.reduction.chunks;
    w[R_GENERATION] = r->totals.generation;
    w[R_OVER] = (uint64_t)r->ending.over;
    w[R_CODE] = (uint64_t)(uint32_t)r->ending.code;
    w[R_RANGES] = ranges;
    for (uint32_t i = 0; i < ranges; ++i) {
        w[R_HEAD + 2 * i] = r->current.own.range[i].first;
        w[R_HEAD + 2 * i + 1] = r->current.own.range[i].count;
    }
    qn__view_reported(r->view, r->change.ballot, buffer);
}

void qn__reducer_stop(void *user, uint64_t ballot) {
    qn__reducer *r = user;
    r->change.ballot = ballot;
    r->change.frozen = 1;
    if (r->change.noticed <= 0)
        r->change.noticed = r->transport->calls->now(r->transport);
    if (r->change.working) {
        r->change.owed = 1;
        atomic_store(&r->change.alarm, 1);
    } else
        qn__reducer_report(r);
}

int qn__is_report(const qn__message_buffer *buffer) {
    if (!buffer || buffer->bytes < R_HEAD * sizeof(uint64_t))
        return 0;
    const uint64_t *w = qn__report_words(buffer);
    return w[R_KIND] < QN__REDUCTION_KINDS && w[R_CHUNKS] <= UINT32_MAX &&
           w[R_RANGES] <= (buffer->bytes / sizeof(uint64_t) - R_HEAD) / 2;
}

#include "cluster/reduction/report.h"

#include "cluster/reduction/reduction_state.h"

void qn__rounds_report(qn__rounds *r) {
    const uint32_t ranges = r->begun ? r->own.count : 0;
    const uint64_t count = R_HEAD + 2 * (uint64_t)ranges;
    qn__parcel *parcel = r->post->calls->parcel(r->post, count * sizeof(uint64_t));
    r->owed = 0;
    if (!parcel) {
        qn__fail_memory(&r->error, count, sizeof(uint64_t));
        qn__rounds_ring(r);
        return;
    }
    uint64_t *w = (uint64_t *)(void *)parcel->data;
    w[R_FINISHED] = r->finished;
    w[R_BEGUN] = (uint64_t)r->begun;
    w[R_KIND] = (uint64_t)r->round.kind;
    w[R_WORDS] = r->round.words;
    w[R_UNITS] = r->round.units;
    w[R_GENERATION] = r->generation;
    w[R_OVER] = (uint64_t)r->over;
    w[R_CODE] = (uint64_t)(uint32_t)r->code;
    w[R_RANGES] = ranges;
    for (uint32_t i = 0; i < ranges; ++i) {
        w[R_HEAD + 2 * i] = r->own.range[i].first;
        w[R_HEAD + 2 * i + 1] = r->own.range[i].count;
    }
    qn__view_reported(r->view, r->ballot, parcel);
}

void qn__rounds_stop(void *user, uint64_t ballot) {
    qn__rounds *r = user;
    r->ballot = ballot;
    r->frozen = 1;
    if (r->noticed <= 0)
        r->noticed = r->post->calls->now(r->post);
    if (r->working) {
        r->owed = 1;
        atomic_store(&r->alarm, 1);
    } else
        qn__rounds_report(r);
}

int qn__is_report(const qn__parcel *parcel) {
    if (!parcel || parcel->bytes < R_HEAD * sizeof(uint64_t))
        return 0;
    const uint64_t *w = qn__report_words(parcel);
    return w[R_KIND] < QN__ROUND_KINDS && w[R_UNITS] <= UINT32_MAX &&
           w[R_RANGES] <= (parcel->bytes / sizeof(uint64_t) - R_HEAD) / 2;
}

/* Further positions of sequences: a forward pass whose items are positions, which end as logits. */
#include "device/cpu/worker/cpu_table.h"
#include "device/cpu/worker/cpu_worker.h"

/* Finds the stretches: neighbouring rows with neighbouring positions of a sequence, as many as a
 * tile has rows at most. */
static void find_stretches(qn__worker *w, const qn__extension *e) {
    qn__cpu_stretch *own = w->stretches.at;
    w->stretches.count = 0;
    for (uint32_t i = 0; i < e->rows; ++i) {
        if (w->stretches.count > 0 && own->rows < w->kernels->rows &&
            own->sequence == e->sequence[i] && own->position + own->rows == e->position[i]) {
            ++own->rows;
            continue;
        }
        own = &w->stretches.at[w->stretches.count++];
        *own = (qn__cpu_stretch){i, 1, e->sequence[i], e->position[i]};
    }
}

qn_status qn__cpu_extend(qn__worker *w, const qn__extension *e, uint32_t *bad, qn_error *err) {
    const qn__feed feed = {
        .type = QN__ELEMENT_TOKEN32, .features = 1, .items = e->rows, .values = e->token};
    const qn__batch batch = {.feed = &feed, .items = e->rows};
    qn__cpu_pass pass = {.worker = w, .batch = &batch, .extension = e};
    uint64_t row = UINT64_MAX;
    find_stretches(w, e);
    const qn_status status = qn__cpu_run(&pass, NULL, err);
    for (int t = 0; t < w->threads; ++t)
        row = w->core[t].bad_position < row ? w->core[t].bad_position : row;
    if (status != QN_OK || row == UINT64_MAX)
        return status;
    *bad = (uint32_t)row;
    return qn__fail(err, QN_NUMERIC, "the network gives a logit that is not finite");
}

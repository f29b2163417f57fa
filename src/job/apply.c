#include "job/apply.h"

#include "base/memory.h"
#include <string.h>

enum { PIECES = 256, SHARED_BYTES = 1 << 24 };

/* A pass of a network with pixels takes items whose layers have so many bytes together, and so many
 * items at most: more make it no faster. */
enum { PASS_BYTES = 1 << 25, PASS_ITEMS = 128 };

uint32_t qn__apply_batch(const qn__program *p, uint64_t items) {
    uint64_t each = 1;
    if (!qn__program_window(p))
        return 1;
    for (uint32_t l = 0; l < p->layers; ++l)
        each += p->layer[l].out * sizeof(float);
    const uint64_t capacity = each < PASS_BYTES ? PASS_BYTES / each : 1;
    const uint64_t most = capacity < PASS_ITEMS ? capacity : PASS_ITEMS;
    return (uint32_t)(items < most ? items ? items : 1 : most);
}

qn__feed qn__feed_of(const qn_data *data) {
    return (qn__feed){.type = (qn__element_type)data->type,
                      .features = data->features,
                      .items = data->items,
                      .values = data->values,
                      .rows = data->index,
                      .labels = data->labels};
}

static void count_classes(const qn__program *p, const qn__feed *feed, const qn__batch *batch,
                          const int32_t *classes, uint64_t *confusion) {
    const uint32_t outputs = qn__program_classes(p);
    for (uint32_t i = 0; i < batch->items; ++i) {
        const uint32_t label = (uint32_t)feed->labels[batch->first + i];
        ++confusion[(size_t)label * outputs + (uint32_t)classes[i]];
    }
}

/* The number of items that the team receives in one call. Many pieces, so that workers rarely wait,
 * but few enough that their classes fit a small buffer; among ranks, limited by the bytes of their
 * results. */
static uint32_t window(const qn__team *team, const qn__program *program, uint64_t items,
                       const qn__apply_results *results) {
    const uint32_t piece = qn__apply_space(program) / program->grain * program->grain;
    const qn__layer *last = &program->layer[program->layers - 1];
    uint64_t pieces = piece < (1u << 16) ? PIECES : 1;
    const uint64_t words = (uint64_t)(results->classes || results->confusion) +
                           (results->scores != NULL) + (results->outputs ? last->out : 0) +
                           (results->inputs ? last->in : 0);
    const uint64_t bytes = words * sizeof(float) * piece;
    if (qn__team_ranks(team) > 1 && pieces * bytes > SHARED_BYTES)
        pieces = SHARED_BYTES / bytes > 0 ? SHARED_BYTES / bytes : 1;
    return (uint32_t)(items < pieces * piece ? (items > 0 ? items : 1) : pieces * piece);
}

qn_status qn__apply_all(qn__team *team, const qn__program *program, const qn_data *data,
                        const qn__apply_results *results, qn_error *err) {
    qn__feed feed = qn__feed_of(data);
    if (results->labels)
        feed.labels = results->labels;
    feed.weights = results->weights;
    const qn__layer *last = &program->layer[program->layers - 1];
    /* Whole grains, so that the losses of a grain are summed in one call (docs/exactness.md
     * 7.4). */
    const uint32_t block = window(team, program, feed.items, results);
    /* Labels may exceed the network's outputs if no losses are requested. */
    if (!results->tally && !results->confusion)
        feed.labels = NULL;
    int32_t *classes = qn__alloc(block, sizeof *classes, err);
    qn_status status = classes ? QN_OK : QN_MEMORY;
    for (uint64_t first = 0; status == QN_OK && first < feed.items; first += block) {
        const uint64_t left = feed.items - first;
        const qn__batch batch = {
            .feed = &feed, .first = first, .items = left < block ? (uint32_t)left : block};
        qn__applied applied = {
            .classes = results->classes || results->confusion ? classes : NULL,
            .scores = results->scores ? results->scores + first : NULL,
            .outputs = results->outputs ? results->outputs + first * last->out : NULL,
            .inputs = results->inputs ? results->inputs + first * last->in : NULL};
        status = qn__team_apply(team, &batch, &applied, results->tally, err);
        if (status == QN_OK && results->confusion && feed.labels)
            count_classes(program, &feed, &batch, classes, results->confusion);
        if (status == QN_OK && results->classes)
            memcpy(results->classes + first, classes, batch.items * sizeof *classes);
    }
    qn__free(classes);
    return status;
}

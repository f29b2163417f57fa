#include "job/apply.h"

#include "base/memory.h"
#include "data/table/remote_rows.h"
#include "job/by_length.h"
#include "job/weights.h"
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
                      .step = data->context,
                      .items = data->items,
                      .values = data->values,
                      .rows = data->index,
                      .labels = data->labels,
                      .answers = data->several ? data->several->target : NULL,
                      .answer_rows = data->index,
                      .remote = qn__data_remote(data) != NULL};
}

static void count_classes(const qn__program *p, const qn__feed *feed, const qn__batch *batch,
                          const int32_t *classes, uint64_t *confusion) {
    const uint32_t outputs = qn__program_classes(p);
    for (uint32_t i = 0; i < batch->items; ++i) {
        const uint32_t label = (uint32_t)feed->labels[batch->first + i];
        ++confusion[(size_t)label * outputs + (uint32_t)classes[i]];
    }
}

/* Whether answers are asked for: they are found from the outputs. */
static int needs_answers(const qn__apply_results *results) {
    return results->answers || results->counts;
}

/* The answers of a block from its outputs, and what is counted of them. */
static qn_status take_answers(const qn__program *p, const qn_data *data, const qn__batch *batch,
                              const float *outputs, const qn__apply_results *results,
                              qn_error *err) {
    const uint32_t out = p->layer[p->layers - 1].out;
    uint8_t *answers = qn__alloc(p->answers, 1, err);
    for (uint32_t i = 0; answers && i < batch->items; ++i) {
        const uint64_t item = batch->first + i;
        qn__answers_from(p, outputs + (size_t)i * out, answers);
        if (results->answers)
            memcpy(results->answers + (size_t)item * p->answers, answers, p->answers);
        if (results->counts)
            qn__answers_add(data, item, answers, results->counts);
    }
    qn__free(answers);
    return answers ? QN_OK : QN_MEMORY;
}

/* The number of items that the team receives in one call. Many pieces, so that workers rarely wait,
 * but few enough that their classes fit a small buffer; among ranks, limited by the bytes of their
 * results. */
static uint32_t window(const qn__team *team, const qn__program *program, uint64_t items,
                       const qn__apply_results *results) {
    const uint32_t piece = qn__apply_space(program) / program->grain * program->grain;
    const qn__layer *last = &program->layer[program->layers - 1];
    uint64_t pieces = piece < (1u << 16) ? PIECES : 1;
    const uint64_t words =
        (uint64_t)(results->classes || results->confusion) + (results->scores != NULL) +
        (results->outputs || needs_answers(results) ? last->out : 0) +
        (results->inputs ? last->in : 0) + (results->next ? 2 * (uint64_t)program->answers : 0);
    const uint64_t bytes = words * sizeof(float) * piece;
    const int limited = qn__team_ranks(team) > 1 || needs_answers(results) || results->next;
    if (limited && pieces * bytes > SHARED_BYTES)
        pieces = SHARED_BYTES / bytes > 0 ? SHARED_BYTES / bytes : 1;
    return (uint32_t)(items < pieces * piece ? (items > 0 ? items : 1) : pieces * piece);
}

/* The items with what a network of this kind learns, where losses are asked for. Labels may exceed
 * the network's outputs if they are not. */
static qn__feed feed_for(const qn__program *program, const qn_data *data,
                         const qn__apply_results *results) {
    const int learns = results->tally || results->confusion || results->next;
    qn__feed feed = qn__feed_of(data);
    if (results->labels)
        feed.labels = results->labels;
    feed.weights = results->weights;
    if (!learns || program->answers)
        feed.labels = NULL;
    if (!learns || !program->answers)
        feed.answers = NULL;
    feed.next = learns && program->next;
    return feed;
}

/* Buffers of a block. */
typedef struct block {
    int32_t *classes;
    float *outputs; /* NULL: the results have them, or nobody needs them */
    float *losses;  /* of positions, and their tokens; NULL: nobody needs them */
    int32_t *tokens;
} block;

/* Items of texts by their lengths. What fails is applied again in the order of the items, so that
 * a message names the first of them. */
static qn_status apply_texts(qn__team *team, const qn__program *program, const qn__batch *batch,
                             qn__applied *applied, qn__tally *tally, qn_error *err) {
    qn__by_length own;
    qn_status status = qn__by_length_begin(program, batch, &own, err);
    if (status == QN_OK)
        status = qn__team_apply(team, &own.batch, applied, tally, err);
    if (status == QN_OK)
        status = qn__by_length_back(program, &own, applied, err);
    qn__by_length_free(&own);
    return status == QN_NUMERIC ? qn__team_apply(team, batch, applied, tally, err) : status;
}

static qn_status apply_block(qn__team *team, const qn__program *program, const qn_data *data,
                             const qn__batch *batch, const block *own,
                             const qn__apply_results *results, qn_error *err) {
    const uint64_t first = batch->first;
    const qn__layer *last = &program->layer[program->layers - 1];
    qn__applied applied = {.classes = results->classes || results->confusion ? own->classes : NULL,
                           .scores = results->scores ? results->scores + first : NULL,
                           .outputs = results->outputs ? results->outputs + first * last->out
                                                       : own->outputs,
                           .inputs = results->inputs ? results->inputs + first * last->in : NULL,
                           .losses = own->losses,
                           .tokens = own->tokens};
    qn__tally unwanted = {0}; /* a device computes losses where there is one */
    qn__tally *const tally = results->next && !results->tally ? &unwanted : results->tally;
    /* Losses of a grain are added in the order of the items. */
    const int ordered = results->tally || !qn__by_length_gains(program, batch, &applied);
    qn_status status = ordered ? qn__team_apply(team, batch, &applied, tally, err)
                               : apply_texts(team, program, batch, &applied, tally, err);
    for (uint32_t i = 0; status == QN_OK && results->next && i < batch->items; ++i) {
        const size_t at = (size_t)i * program->answers;
        qn__next_add(program, data, first + i, own->losses + at, own->tokens + at, results->next);
    }
    if (status == QN_OK && results->confusion && batch->feed->labels)
        count_classes(program, batch->feed, batch, own->classes, results->confusion);
    if (status == QN_OK && results->classes)
        memcpy(results->classes + first, own->classes, batch->items * sizeof *own->classes);
    return status == QN_OK && needs_answers(results)
               ? take_answers(program, data, batch, applied.outputs, results, err)
               : status;
}

static qn_status apply_feed(qn__team *team, const qn__program *program, const qn_data *data,
                            qn__feed feed, const qn__apply_results *results, qn_error *err) {
    const uint32_t outputs = program->layer[program->layers - 1].out;
    /* Whole grains, so that the losses of a grain are summed in one call (docs/exactness.md
     * 7.4). */
    const uint32_t size = window(team, program, feed.items, results);
    const int keeps = needs_answers(results) && !results->outputs;
    const int next = results->next != NULL;
    block own = {.classes = qn__alloc(size, sizeof *own.classes, err)};
    if (own.classes && keeps)
        own.outputs = qn__alloc((size_t)size, outputs * sizeof *own.outputs, err);
    if (own.classes && next)
        own.losses = qn__alloc((size_t)size, program->answers * sizeof *own.losses, err);
    if (own.losses)
        own.tokens = qn__alloc((size_t)size, program->answers * sizeof *own.tokens, err);
    qn_status status =
        own.classes && (own.outputs || !keeps) && (own.tokens || !next) ? QN_OK : QN_MEMORY;
    for (uint64_t first = 0; status == QN_OK && first < feed.items; first += size) {
        const uint64_t left = feed.items - first;
        const qn__batch batch = {
            .feed = &feed, .first = first, .items = left < size ? (uint32_t)left : size};
        status = apply_block(team, program, data, &batch, &own, results, err);
    }
    qn__free(own.classes);
    qn__free(own.outputs);
    qn__free(own.losses);
    qn__free(own.tokens);
    return status;
}

qn_status qn__apply_all(qn__team *team, const qn__program *program, const qn_data *data,
                        const qn__apply_results *results, qn_error *err) {
    qn__feed feed = feed_for(program, data, results);
    float *shares = NULL;
    qn_status status = QN_OK;
    if ((feed.answers || feed.next) && !feed.weights)
        status = qn__weights_of_targets(data, program->next ? qn__program_classes(program) : 0,
                                        &shares, err);
    if (shares)
        feed.weights = shares;
    if (status == QN_OK)
        status = apply_feed(team, program, data, feed, results, err);
    qn__free(shares);
    return status;
}

qn_status qn__apply_by_pixel(qn__shape from, uint64_t items, float *values, qn_error *err) {
    const uint32_t pixels = from.height * from.width, size = qn__shape_volume(from);
    float *item = qn__alloc(size, sizeof *item, err);
    for (uint64_t i = 0; item && i < items; ++i, values += size) {
        memcpy(item, values, size * sizeof *item);
        for (uint32_t p = 0; p < pixels; ++p)
            for (uint32_t c = 0; c < from.channels; ++c)
                values[(size_t)p * from.channels + c] = item[(size_t)c * pixels + p];
    }
    qn__free(item);
    return item ? QN_OK : QN_MEMORY;
}

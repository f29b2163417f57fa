/* A model by sums applied to the items of a table, in blocks that are the grains of a team.
 *
 * A grain's words are, for each of its items: the class and the score, as two halves of a word; the
 * square of the distance from the nearest centre, as a double; and the outputs, two in a word,
 * where a caller asks for them. */
#include "statistics/fit/sum_model.h"

#include "base/memory.h"
#include "data/prepare/inputs.h"
#include "data/table/table_columns.h"
#include "statistics/host_team.h"
#include <math.h>
#include <string.h>

/* Words of a round: 64 MiB. */
enum { BLOCK = QN__SUM_BLOCK, HEAD = 2, ROUND = 1 << 23 };

typedef struct pass {
    const qn__sum_model *m;
    const qn_data *data;
    uint64_t from; /* the block of grain 0 */
    uint32_t each; /* words of an item */
} pass;

static uint32_t items_of(const pass *p, uint64_t block) {
    const uint64_t left = p->data->items - block * BLOCK;
    return left < BLOCK ? (uint32_t)left : BLOCK;
}

static void *open_scratch(void *context, qn_error *err) {
    const pass *p = context;
    const uint64_t values = (uint64_t)p->data->features * BLOCK;
    return qn__alloc((uint64_t)p->m->open.outputs * BLOCK * sizeof(double) + values * sizeof(float),
                     1, err);
}

/* The first of the least outputs. */
static uint32_t nearest(const double *out, uint32_t outputs, uint32_t item) {
    uint32_t best = 0;
    for (uint32_t o = 1; o < outputs; ++o)
        best = out[(size_t)o * BLOCK + item] < out[(size_t)best * BLOCK + item] ? o : best;
    return best;
}

/* The words of an item. 0: an output is not finite. */
static int give_item(const pass *p, const double *out, uint32_t i, int64_t *words) {
    const int clusters = p->m->open.kind->predicted == QN_PREDICTS_CLUSTERS;
    const uint32_t outputs = p->m->open.outputs;
    const uint32_t class = clusters ? nearest(out, outputs, i) : 0;
    const double first = out[(size_t) class * BLOCK + i];
    const float score = (float)(clusters ? sqrt(first) : first);
    int finite = isfinite(score);
    memcpy(words, &class, sizeof class);
    memcpy((char *)words + sizeof class, &score, sizeof score);
    memcpy(words + 1, &first, sizeof first);
    for (uint32_t o = 0; p->each > HEAD && o < outputs; ++o) {
        const double y = out[(size_t)o * BLOCK + i];
        const float output = (float)(clusters ? sqrt(y) : y);
        finite = finite && isfinite(output);
        memcpy((char *)(words + HEAD) + o * sizeof output, &output, sizeof output);
    }
    return finite;
}

/* qn__host_job */
static qn_status run_blocks(void *context, void *scratch, uint32_t first, uint32_t count,
                            int64_t *words, qn_error *err) {
    const pass *p = context;
    double *out = scratch;
    float *values = (float *)(void *)(out + (size_t)p->m->open.outputs * BLOCK);
    for (uint32_t g = first; g < first + count; ++g) {
        const uint64_t from = (p->from + g) * BLOCK;
        const uint32_t items = items_of(p, p->from + g);
        qn__columns_gather(p->data, NULL, from, from + items, 0, p->data->features, values, BLOCK);
        qn__sum_kind_of(p->m)->block(p->m, values, out);
        for (uint32_t i = 0; i < items; ++i) {
            if (give_item(p, out, i, words + ((uint64_t)g * BLOCK + i) * p->each))
                continue;
            qn__fail(err, QN_NUMERIC, "an output is not a finite number");
            qn__at(err, "item %llu (from 0)", (unsigned long long)(from + i));
            return qn__remedy(err, QN_NUMERIC, "look for values that are too large");
        }
    }
    return QN_OK;
}

static void take_item(const pass *p, uint64_t item, const int64_t *words,
                      const qn__model_results *to) {
    const uint32_t outputs = p->m->open.outputs;
    double square;
    if (to->classes)
        memcpy(&to->classes[item], words, sizeof *to->classes);
    if (to->scores)
        memcpy(&to->scores[item], (const char *)words + sizeof(uint32_t), sizeof *to->scores);
    if (to->outputs)
        memcpy(to->outputs + item * outputs, words + HEAD, outputs * sizeof *to->outputs);
    memcpy(&square, words + 1, sizeof square);
    if (to->squares)
        to->squares[item] = square;
    if (to->inertia)
        *to->inertia = *to->inertia + square; /* 20.6: in the order of the items */
}

static qn_status run_all(pass *p, qn__team *team, const qn__model_results *results, qn_error *err) {
    const uint64_t all = (p->data->items + BLOCK - 1) / BLOCK, words = (uint64_t)BLOCK * p->each;
    const uint64_t round = words < ROUND ? ROUND / words : 1;
    qn_status status = QN_OK;
    for (; p->from < all && status == QN_OK; p->from += round) {
        const uint32_t count = (uint32_t)(all - p->from < round ? all - p->from : round);
        const qn__host_job job = {.context = p,
                                  .open = open_scratch,
                                  .close = qn__free,
                                  .grains = run_blocks,
                                  .words = count * words,
                                  .apart = 1};
        const int64_t *found;
        status = qn__team_run(team, &job, count, &found, err);
        for (uint32_t g = 0; g < count && status == QN_OK; ++g)
            for (uint32_t i = 0; i < items_of(p, p->from + g); ++i)
                take_item(p, (p->from + g) * BLOCK + i, found + ((uint64_t)g * BLOCK + i) * p->each,
                          results);
    }
    return status;
}

qn_status qn__sum_check(const qn_model *model, const qn_data *data, qn_error *err) {
    char name[160];
    qn_status status = qn__model_check_features(model, data, err);
    for (uint32_t k = 0; k < data->features && status == QN_OK; ++k) {
        const qn__feature *f = data->schema ? &data->schema->feature[k] : NULL;
        if (!f || (!f->categories && !f->dates))
            continue;
        qn__fail(err, QN_MISMATCH, "%s has %s, where the model has numbers",
                 qn__column_name(data->schema, k, name, sizeof name),
                 f->dates ? "dates" : "categories");
        status = qn__remedy(err, QN_MISMATCH, "give numbers, as the data of the fit has them");
    }
    if (status == QN_OK && data->items == 0)
        status = qn__fail(err, QN_INPUT, "the data has no items");
    return status == QN_OK
               ? qn__refuse_missing(data, "the data", "fill them in, or leave these items out", err)
               : status;
}

qn_status qn__sum_run(const qn_model *model, void *team, const qn_data *data,
                      const qn__model_results *results, qn_error *err) {
    pass p = {.m = qn__sum_model_of(model),
              .data = data,
              .each = HEAD + (results->outputs ? (model->outputs + 1) / 2 : 0)};
    if (results->inertia)
        *results->inertia = 0;
    return run_all(&p, team, results, err);
}

qn_status qn__sum_open(const qn_model *model, const qn_compute *compute, uint64_t most, void **team,
                       qn_error *err) {
    qn_compute host;
    qn__team *made = NULL;
    int kernels;
    (void)model;
    (void)most;
    qn_status status = qn__host_team_split(compute, 0, &host, &kernels, err);
    if (status == QN_OK)
        status = qn__host_team_open(&host, NULL, NULL, "", status, &made, err);
    *team = made;
    return status;
}

void qn__sum_close(void *team) { qn__team_destroy(team); }

qn_status qn__sum_apply(const qn_model *model, const qn_data *data, const qn_compute *compute,
                        const qn__model_results *results, qn_status status, qn_error *err) {
    qn__team *team;
    qn_compute host = *compute;
    int kernels;
    if (status == QN_OK)
        status = qn__sum_check(model, data, err);
    if (status == QN_OK)
        status = qn__host_team_split(compute, 0, &host, &kernels, err);
    status = qn__host_team_open(&host, NULL, data, qn_model_digest(model), status, &team, err);
    if (status != QN_OK)
        return status;
    status = qn__sum_run(model, team, data, results, err);
    return qn__host_team_close(team, &host, status, err);
}

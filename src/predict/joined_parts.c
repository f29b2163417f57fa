#include "predict/joined_parts.h"

#include "base/argument.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "data/parts/parts.h"
#include "job/targets.h"
#include "predict/evaluate.h"
#include "predict/score.h"

void qn__joined_free(qn__joined_items *joined) {
    if (!joined)
        return;
    qn__free(joined->labels);
    qn__free(joined->output);
    qn__free(joined->targets);
    qn__free(joined->predictions);
    qn__free(joined);
}

static int finds_clusters(const qn_predictions *p) {
    return p->kind->predicted == QN_PREDICTS_CLUSTERS;
}

/* ------------------------------------------------------------------ arrays of all items */

/* `own` is not NULL where this rank has items. Fails alike on all ranks. */
static qn_status gather(const qn_parts *parts, const void *own, uint64_t each, void *all,
                        qn_error *err) {
    void **to = all;
    *to = qn__alloc(qn__parts_items(parts), each, err);
    const qn_status status = qn__parts_agree(parts, *to ? QN_OK : QN_MEMORY, err);
    return status == QN_OK ? qn__parts_gather_items(parts, own, each, *to, err) : status;
}

/* 20.6: in the order of the items. */
static qn_status add_squares(qn_predictions *p, const qn_parts *parts, qn_error *err) {
    double *squares = NULL;
    const qn_status status = gather(parts, p->squares, sizeof *squares, &squares, err);
    p->inertia = 0;
    for (uint64_t i = 0; status == QN_OK && i < qn__parts_items(parts); i++)
        p->inertia = p->inertia + squares[i];
    qn__free(squares);
    return status;
}

static qn_status join_real(qn_predictions *p, const qn_parts *parts, const qn_data *data,
                           qn_error *err) {
    qn__joined_items *j = p->joined;
    qn_status status = gather(parts, data->targets, sizeof(float), &j->targets, err);
    if (status == QN_OK)
        status = gather(parts, p->scores, sizeof(float), &j->predictions, err);
    if (status == QN_OK) {
        const qn__target_errors errors =
            qn__targets_compare(j->targets, j->predictions, NULL, j->items);
        qn__score_errors(&p->score, &errors);
    }
    return status;
}

static qn_status join_classes(qn_predictions *p, const qn_parts *parts, const qn_data *data,
                              qn_error *err) {
    qn__joined_items *j = p->joined;
    const int kept = p->shown || qn__evaluation_fits(j->items, p->outputs);
    if (!kept)
        return QN_OK;
    const qn_status status = gather(parts, data->labels, sizeof(int32_t), &j->labels, err);
    return status == QN_OK ? gather(parts, p->output, p->outputs * sizeof(float), &j->output, err)
                           : status;
}

/* ------------------------------------------------------------------ sums */

/* Between the counts of several answers to an item and words that ranks add. */
static void move_answers(qn__answer_counts *c, uint32_t classes, int64_t *word, int back) {
    uint64_t *const head[] = {&c->items, &c->exact, &c->targets, &c->right};
    for (uint32_t k = 0; k < 4 + 3 * classes; k++) {
        qn__answer_class *of = k < 4 ? NULL : &c->of[(k - 4) / 3];
        uint64_t *count = k < 4              ? head[k]
                          : (k - 4) % 3 == 0 ? &of->labelled
                          : (k - 4) % 3 == 1 ? &of->answered
                                             : &of->right;
        if (back)
            *count = (uint64_t)word[k];
        else
            word[k] = (int64_t)*count;
    }
}

static qn_status add_answers(qn_predictions *p, const qn_parts *parts, qn_error *err) {
    const uint32_t classes = qn__predicts_mask(p) ? p->several->classes : p->several->outputs;
    int64_t *word = qn__alloc(4 + 3 * (uint64_t)classes, sizeof *word, err);
    qn_status status = qn__parts_agree(parts, word ? QN_OK : QN_MEMORY, err);
    if (!word)
        return QN_MEMORY;
    move_answers(&p->counts, classes, word, 0);
    if (status == QN_OK)
        status = qn__parts_add(parts, word, 4 + 3 * (uint64_t)classes, err);
    if (status == QN_OK)
        move_answers(&p->counts, classes, word, 1);
    qn__free(word);
    return status;
}

/* Items that have a prediction, and those whose class is their label. */
static qn_status add_counts(qn_predictions *p, const qn_parts *parts, qn_error *err) {
    int64_t sum[] = {(int64_t)p->predicted, (int64_t)p->score.items, (int64_t)p->score.correct};
    const qn_status status = qn__parts_add(parts, sum, 3, err);
    p->predicted = (uint64_t)sum[0];
    p->score.items = (uint64_t)sum[1];
    p->score.correct = (uint64_t)sum[2];
    return status;
}

/* ------------------------------------------------------------------ the whole */

static qn_status check(const qn_predictions *p, const qn_parts *parts, qn_error *err) {
    if (p->data != parts->own || p->cluster)
        return qn__fail(err, QN_USAGE,
                        "qn_predictions_join: the predictions are not those of this part");
    return QN_OK;
}

/* 25.65 and 25.66: exact sums. */
static qn_status join_next(qn_predictions *p, const qn_parts *parts, int evaluated, qn_error *err) {
    qn__next_counts *c = &p->tokens;
    uint64_t bytes = 0;
    int known = 1;
    qn_status status = QN_OK;
    if (evaluated && p->data->items > 0)
        status = qn__next_bytes(p->made ? p->made : p->data, p->next, &bytes, &known, err);
    status = qn__parts_agree(parts, status, err);
    int64_t sum[] = {(int64_t)c->items, (int64_t)c->targets, (int64_t)c->right, (int64_t)bytes,
                     !known};
    if (status == QN_OK)
        status = qn__parts_add(parts, sum, 5, err);
    if (status == QN_OK)
        status = qn__parts_add_sums(parts, (qn__exact_sum *[]){&c->loss}, 1, err);
    c->items = (uint64_t)sum[0];
    c->targets = (uint64_t)sum[1];
    c->right = (uint64_t)sum[2];
    p->joined->bytes = sum[4] == 0 ? (uint64_t)sum[3] : 0;
    return status;
}

static qn_status join(qn_predictions *p, const qn_parts *parts, int evaluated, qn_error *err) {
    const qn_data *data = p->made ? p->made : p->data;
    const int labelled = qn__predicts_labelled(p);
    p->first = parts->text[parts->rank];
    p->joined->items = qn__parts_items(parts);
    qn_status status = add_counts(p, parts, err);
    if (status == QN_OK && p->next)
        status = join_next(p, parts, evaluated, err);
    if (status == QN_OK && labelled && p->real)
        status = join_real(p, parts, data, err);
    if (status == QN_OK && labelled && !p->real && evaluated)
        status = join_classes(p, parts, data, err);
    if (status == QN_OK && p->counts.of)
        status = add_answers(p, parts, err);
    if (status == QN_OK && finds_clusters(p) && evaluated)
        status = add_squares(p, parts, err);
    return status;
}

qn_status qn_predictions_join(qn_predictions *p, const qn_parts *parts, int evaluated,
                              qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(p, "predictions", err);
    QN__NEED(parts, err);
    qn_error unheard;
    err = err ? err : &unheard;
    if (p->joined)
        return qn__fail(err, QN_USAGE, "qn_predictions_join: they are joined already");
    qn_status status = check(p, parts, err);
    if (status == QN_OK && !(p->joined = qn__alloc(1, sizeof *p->joined, err)))
        status = QN_MEMORY;
    status = qn__parts_agree(parts, status, err);
    if (status != QN_OK || !p->joined)
        return status;
    return join(p, parts, evaluated, err);
}

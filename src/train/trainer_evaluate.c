/* The evaluation of the sets of a training at its end. */
#include "base/memory.h"
#include "job/apply.h"
#include "train/trainer_state.h"

/* The memory is taken when the run is opened, so that a long run cannot fail for it at its end. */
qn_status qn__train_judged_open(qn_train *t, qn_error *err) {
    const qn_data *const set[2] = {t->sets.valid, t->sets.test};
    const uint32_t outputs = t->job.program.layer[t->job.program.layers - 1].out;
    for (int i = 0; i < 2; ++i) {
        t->sets.judged[i].step = NO_STEP;
        if (!set[i] || t->job.recipe.task != QN__TASK_CLASSIFY ||
            qn__program_classes(&t->job.program) < 2 ||
            !qn__evaluation_fits(set[i]->items, outputs))
            continue;
        t->sets.judged[i].output = qn__alloc(set[i]->items * outputs, sizeof(float), err);
        if (!t->sets.judged[i].output)
            return QN_MEMORY;
    }
    return QN_OK;
}

void qn__train_judged_close(qn_train *t) {
    for (int i = 0; i < 2; ++i) {
        qn__free(t->sets.judged[i].output);
        qn_evaluation_free(t->sets.judged[i].evaluation);
    }
}

/* The last evaluation of a run keeps its outputs; after an early end they are computed once more.
 */
static qn_status take_outputs(qn_train *t, int which, const qn_data *set, qn_error *err) {
    if (t->sets.judged[which].step == t->job.step)
        return QN_OK;
    const qn_status status = qn__train_job_outputs(&t->job, set, t->sets.judged[which].output, err);
    if (status == QN_OK)
        t->sets.judged[which].step = t->job.step;
    return status;
}

/* Several answers to an item: what is counted of them needs no memory for all outputs. */
static qn_status judge_several(qn_train *t, int which, const qn_data *set, qn_error *err) {
    const qn__recipe *recipe = &t->job.recipe;
    const qn__answer_naming names = qn__names_of(recipe->table);
    qn__answer_counts counts = {.items = 0};
    const qn__apply_results results = {.counts = &counts};
    counts.of = qn__alloc(qn__answer_classes(set, &t->job.program), sizeof *counts.of, err);
    qn_status status = counts.of ? QN_OK : QN_MEMORY;
    if (status == QN_OK)
        status = qn__apply_all(t->job.team, &t->job.program, set, &results, err);
    if (status == QN_OK)
        status = qn__evaluation_of_answers(&counts, set, &t->job.program, &names,
                                           &t->sets.judged[which].evaluation, err);
    qn__free(counts.of);
    return status;
}

static qn_status judge(qn_train *t, int which, const qn_data *set, qn_error *err) {
    const qn__recipe *recipe = &t->job.recipe;
    const int real = recipe->task == QN__TASK_REGRESS;
    const int split = set == t->job.items.valid;
    const qn__answer_naming names = qn__names_of(recipe->table);
    qn_evaluation_input in = {.size = sizeof in,
                              .items = set->items,
                              .classes = real ? 0 : qn__program_classes(&t->job.program),
                              .outputs = t->job.program.layer[t->job.program.layers - 1].out,
                              .probabilities = qn__recipe_gives_probabilities(recipe),
                              .labels = set->labels,
                              .output = t->sets.judged[which].output,
                              .targets = set->targets,
                              .predictions = t->sets.real[which].predictions,
                              .weights = split ? t->job.items.valid_shares : NULL,
                              .names = names.name,
                              .named = names.named};
    if (t->job.program.next) /* loss and accuracy of the set say all */
        return QN_OK;
    if (t->job.program.answers)
        return judge_several(t, which, set, err);
    if (set->items == 0 || (real ? !in.predictions : !in.output))
        return QN_OK;
    const qn_status status = real ? QN_OK : take_outputs(t, which, set, err);
    return status == QN_OK ? qn_evaluation_make(&in, &t->sets.judged[which].evaluation, err)
                           : status;
}

qn_status qn__train_evaluate(qn_train *t, qn_error *err) {
    const qn_data *const set[2] = {t->sets.valid, t->sets.test};
    qn_status status = QN_OK;
    for (int i = 0; i < 2 && status == QN_OK; ++i) {
        qn_evaluation_free(t->sets.judged[i].evaluation);
        t->sets.judged[i].evaluation = NULL;
        if (set[i])
            status = judge(t, i, set[i], err);
    }
    return status;
}

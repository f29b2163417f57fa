/* The public prediction, and its results as CSV. */
#include <quern/predict.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "device/notes.h"
#include "job/apply.h"
#include "model/model.h"
#include <stdio.h>
#include <string.h>

/* Items whose lines are made before they are written. */
enum { LINES = 1024 };

static qn_status check_fit(const qn_model *model, const qn_data *data, qn_error *err) {
    const qn__recipe *recipe = qn__model_recipe_of(model);
    if (data->features != recipe->features) {
        qn__fail(err, QN_MISMATCH, "the data has %u features, the model takes %u", data->features,
                 recipe->features);
        return qn__remedy(err, QN_MISMATCH,
                          "give data with the columns of the training; --label or --unlabelled say "
                          "whether one of them is a label");
    }
    if (data->type != QN_U8 && recipe->scale == QN__SCALE_UNIT) {
        qn__fail(err, QN_MISMATCH, "the model was trained on bytes, the data holds other numbers");
        return qn__remedy(err, QN_MISMATCH, "give whole numbers from 0 to 255");
    }
    return QN_OK;
}

/* Of a device that was left out or lost: there is no callback to tell of it. */
static void tell(void *user, const char *text) {
    (void)user;
    qn__device_tell(text);
}

/* Forward over the set; counts right answers where there are labels. */
static qn_status apply(const qn_model *model, const qn_data *data, const qn_compute *compute,
                       const qn__apply_results *results, qn_error *err) {
    qn__program program;
    qn__team *team = NULL;
    const qn_compute all = {0};
    qn_status status = check_fit(model, data, err);
    if (status == QN_OK)
        status = qn_compute_check(compute ? compute : &all, err);
    if (status != QN_OK)
        return status;
    qn__model_program(model, &program);
    /* Prediction keeps no optimiser state, and without losses it has no grains. */
    program.optimizer = QN__OPT_SGD;
    program.batch = program.grain = 1;
    status = qn__team_create(&program, compute ? compute : &all, NULL, 0, &team, err);
    if (status == QN_OK) {
        qn__team_notes(team, tell, NULL);
        /* load reads the arrays only. */
        const qn__state state = {.parameters = (float *)(uintptr_t)qn__model_parameters(model)};
        status = qn__team_load(team, &state, err);
    }
    if (status == QN_OK)
        status = qn__apply_all(team, &program, data, results, err);
    qn__team_destroy(team);
    return status;
}

qn_status qn_predict(const qn_model *model, const qn_data *data, const qn_compute *compute,
                     int32_t *classes, float *scores, float *outputs, qn_error *err) {
    const qn__apply_results results = {.classes = classes, .scores = scores, .outputs = outputs};
    return apply(model, data, compute, &results, err);
}

typedef struct table {
    const qn_data *data;
    uint32_t outputs;
    int all;
    int32_t *classes;
    float *scores;
    float *output;
} table;

static void add_header(qn__text *text, const table *t) {
    qn__text_add(text, "item,%sprediction,score", t->data->labels ? "label," : "");
    for (uint32_t o = 0; t->all && o < t->outputs; ++o)
        qn__text_add(text, ",p%u", o);
    qn__text_add(text, "\n");
}

static void add_line(qn__text *text, const table *t, uint64_t item) {
    char number[32];
    qn__float_text(t->scores[item], number);
    if (t->data->labels)
        qn__text_add(text, "%llu,%d,%d,%s", (unsigned long long)item, t->data->labels[item],
                     t->classes[item], number);
    else
        qn__text_add(text, "%llu,%d,%s", (unsigned long long)item, t->classes[item], number);
    for (uint32_t o = 0; t->all && o < t->outputs; ++o) {
        qn__float_text(t->output[item * t->outputs + o], number);
        qn__text_add(text, ",%s", number);
    }
    qn__text_add(text, "\n");
}

static qn_status write_table(const table *t, const char *path, qn_error *err) {
    qn__writer *writer = NULL;
    qn__text text = {0};
    qn_status status = qn__writer_create(path, &writer, err);
    if (status != QN_OK)
        return status;
    add_header(&text, t);
    for (uint64_t item = 0; status == QN_OK && item < t->data->items; ++item) {
        add_line(&text, t, item);
        if ((item + 1) % LINES && item + 1 < t->data->items)
            continue;
        status = text.failed ? qn__fail_memory(err, text.size, 1)
                             : qn__writer_add(writer, text.data, text.size, err);
        text.size = 0;
    }
    qn__text_release(&text);
    if (status == QN_OK)
        return qn__writer_commit(writer, err);
    qn__writer_drop(writer);
    return status;
}

qn_status qn_predict_csv(const qn_model *model, const qn_data *data, const qn_compute *compute,
                         const char *path, int all_outputs, uint64_t *correct, qn_error *err) {
    table t = {.data = data, .outputs = qn_model_outputs(model), .all = all_outputs};
    qn_status status = QN_MEMORY;
    if (correct)
        *correct = 0;
    t.classes = qn__alloc(data->items, sizeof *t.classes, err);
    t.scores = qn__alloc(data->items, sizeof *t.scores, err);
    size_t outputs = 0;
    if (all_outputs && __builtin_mul_overflow((size_t)data->items, (size_t)t.outputs, &outputs))
        outputs = SIZE_MAX;
    t.output = all_outputs ? qn__alloc(outputs, sizeof *t.output, err) : NULL;
    if (t.classes && t.scores && (t.output || !all_outputs)) {
        const qn__apply_results results = {
            .classes = t.classes, .scores = t.scores, .outputs = t.output};
        status = apply(model, data, compute, &results, err);
    }
    for (uint64_t i = 0; status == QN_OK && correct && data->labels && i < data->items; ++i)
        *correct += t.classes[i] == data->labels[i];
    if (status == QN_OK)
        status = write_table(&t, path, err);
    qn__free(t.classes);
    qn__free(t.scores);
    qn__free(t.output);
    return status;
}

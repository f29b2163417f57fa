#include "serve/batch/answer_json.h"

#include "base/memory.h"
#include "model/formats/model.h"
#include "predict/tag_lines.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static void add_number(qn__text *text, float value) {
    char number[40];
    if (!isfinite(value)) {
        qn__text_add(text, "null");
        return;
    }
    qn__float_plain(value + 0.0f, number); /* no "-0" */
    qn__text_add_bytes(text, number, strlen(number));
}

static void add_outputs(qn__text *text, uint32_t outputs, const float *output) {
    qn__text_add(text, "[");
    for (uint32_t o = 0; output && o < outputs; ++o) {
        if (o)
            qn__text_add(text, ",");
        add_number(text, output[o]);
    }
    qn__text_add(text, "]");
}

static void add_class(qn__text *text, const qn_model *model, int32_t class) {
    const char *name = class < 0 ? NULL : qn_model_class_name(model, (uint32_t) class);
    if (name || class < 0)
        qn__text_add_json(text, name);
    else
        qn__text_add(text, "%d", class);
}

static void add_labels(qn__text *text, const qn_model *model, const float *output) {
    qn__text_add(text, "{");
    for (uint32_t o = 0; output && o < model->outputs; ++o) {
        const char *name = qn_model_class_name(model, o);
        char number[16];
        snprintf(number, sizeof number, "%u", o);
        if (o)
            qn__text_add(text, ",");
        qn__text_add_json(text, name ? name : number);
        qn__text_add(text, ":");
        add_number(text, output[o]);
    }
    qn__text_add(text, "}");
}

static void add_mask(qn__text *text, const qn_model *model, const uint8_t *answer) {
    const uint32_t rows = model->mask.height, columns = model->mask.width;
    for (uint32_t r = 0; r < rows; ++r)
        for (uint32_t c = 0; c < columns; ++c)
            qn__text_add(text, "%s%u", c ? "," : r ? "],[" : "[[", answer[r * columns + c]);
    qn__text_add(text, "]]");
}

/* One text with spaces between. */
static void add_tags(qn__text *text, const qn_model *model, const qn_data *data, uint64_t item,
                     const uint8_t *answers) {
    const qn__tag_lines lines = {.data = data,
                                 .answers = answers,
                                 .positions = model->answers,
                                 .rows = qn__recipe_vocabulary(qn__model_recipe_of(model)),
                                 .table = model->table};
    char *tags = qn__tag_line(&lines, item, NULL);
    qn__text_add(text, "{\"tags\":");
    qn__text_add_json(text, tags);
    qn__text_add(text, "}");
    text->failed |= !tags;
    qn__free(tags);
}

static void add_several(qn__text *text, const qn_model *model, const uint8_t *answer,
                        const float *output) {
    const int pixels = model->mask.height > 0;
    qn__text_add(text, pixels ? "{\"mask\":" : "{\"labels\":");
    if (pixels)
        add_mask(text, model, answer);
    else
        add_labels(text, model, output);
    qn__text_add(text, "}");
}

void qn__answer_add_json(qn__text *text, const qn_model *model, const qn_data *data,
                         const qn__batch_answer *a, uint64_t item, int all_outputs) {
    const float *output = a->outputs ? a->outputs + item * model->outputs : NULL;
    if (model->tokens && model->mask.height > 0) {
        add_tags(text, model, data, item, a->answers);
        return;
    }
    if (model->answers) {
        add_several(text, model, a->answers + item * model->answers, output);
        return;
    }
    if (model->kind->predicted == QN_PREDICTS_COMPONENTS) {
        qn__text_add(text, "{\"outputs\":");
        add_outputs(text, model->outputs, output);
        qn__text_add(text, "}");
        return;
    }
    qn__text_add(text, "{\"prediction\":");
    if (model->classes == 0) {
        add_number(text, a->scores[item]);
        qn__text_add(text, "}");
        return;
    }
    add_class(text, model, a->classes[item]);
    qn__text_add(text, ",\"score\":");
    add_number(text, a->scores[item]);
    if (all_outputs && output) {
        qn__text_add(text, ",\"outputs\":");
        add_outputs(text, model->outputs, output);
    }
    qn__text_add(text, "}");
}

void qn__answer_add_outputs(qn__text *text, const qn__batch_answer *answer, uint64_t item) {
    add_outputs(text, answer->each_outputs, answer->outputs + item * answer->each_outputs);
}

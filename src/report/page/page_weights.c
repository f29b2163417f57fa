/* What a model looks at: the weights of one without hidden layers, and the columns whose values
 * matter. */
#include "base/markup.h"
#include "base/memory.h"
#include "data/table/date_parts.h"
#include "image/png_write.h"
#include "model/formats/model.h"
#include "report/page/page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Outputs and pixels of images of weights; outputs and inputs of a table; bars of columns. */
enum { IMAGES = 32, PIXELS = 1 << 14, OUTPUTS = 12, INPUTS = 20, BARS = 20 };

void qn__page_input_name(const qn__schema *schema, uint32_t features, uint32_t k, char text[160]) {
    uint32_t column = schema ? 0 : k, category = 0;
    for (uint32_t left = k; schema && column < features; ++column) {
        const uint32_t wide = qn__feature_inputs(&schema->feature[column]);
        category = left;
        if (left < wide)
            break;
        left -= wide;
    }
    const qn__feature *f = schema && column < features ? &schema->feature[column] : NULL;
    if (f && f->name)
        snprintf(text, 160, "%.100s", f->name);
    else
        snprintf(text, 160, "column %" PRIu32, column + 1);
    if (f && f->categories > 0) {
        char name[128];
        snprintf(name, sizeof name, "%.100s", text);
        snprintf(text, 160, "%.90s = %.60s", name, f->category[category]);
    } else if (f && f->dates) {
        char name[128], part[32];
        qn__date_input_name(f->dates, category, part);
        snprintf(name, sizeof name, "%.100s", text);
        snprintf(text, 160, "%.90s, %s", name, part);
    }
}

typedef struct weights {
    const float *value; /* outputs x inputs */
    uint32_t outputs, inputs;
    float largest;
} weights;

/* 1 when the model is one dense layer. */
static int weights_of(const qn_model *model, weights *w) {
    uint64_t outputs, inputs;
    if (!model || qn_model_layers(model) != 1 ||
        qn__model_recipe_of(model)->network.layer[0].kind != QN__LAYER_DENSE)
        return 0;
    w->value = qn_model_tensor(model, "layer0.weight", &outputs, &inputs);
    if (!w->value)
        return 0;
    w->outputs = (uint32_t)outputs;
    w->inputs = (uint32_t)inputs;
    w->largest = 0;
    for (uint64_t i = 0; i < outputs * inputs; ++i)
        w->largest = fabsf(w->value[i]) > w->largest ? fabsf(w->value[i]) : w->largest;
    return 1;
}

/* What output `o` stands for. */
static void add_output(qn__page *page, const char *before, const weights *w, uint32_t o,
                       const char *after) {
    char buffer[16];
    const char *name = qn_model_label_name(page->model);
    if (qn_model_classes(page->model) > 0)
        name = qn__judged_class(page->model, (int32_t)(w->outputs == 1 ? 1 : o), buffer);
    qn__markup_put(&page->html, before, name ? name : "prediction", 40, after);
}

/* White is 0, red raises the output, blue lowers it: of images with several channels their mean. */
static void paint(const weights *w, uint32_t o, const qn_data *data, uint8_t *pixels) {
    const size_t plane = (size_t)data->rows * data->columns;
    for (size_t i = 0; i < plane; ++i) {
        double sum = 0;
        for (uint32_t c = 0; c < data->channels; ++c)
            sum += (double)w->value[(size_t)o * w->inputs + c * plane + i];
        const double part = w->largest > 0 ? sum / data->channels / (double)w->largest : 0;
        const uint8_t rest = (uint8_t)(255 - 220 * fabs(part));
        pixels[3 * i] = part >= 0 ? 255 : rest;
        pixels[3 * i + 1] = rest;
        pixels[3 * i + 2] = part >= 0 ? rest : 255;
    }
}

static void add_images(qn__page *page, const weights *w) {
    const qn_data *data = page->judged->data;
    uint8_t *pixels = qn__alloc((uint64_t)data->rows * data->columns, 3, page->err), *file;
    size_t size;
    if (!pixels)
        page->status = QN_MEMORY;
    qn__text_add(&page->html, "<p>Red pixels raise the output of a class, blue ones lower it.</p>\n"
                              "<div class=\"cards\">\n");
    for (uint32_t o = 0; o < w->outputs && pixels && o < IMAGES && page->status == QN_OK; ++o) {
        paint(w, o, data, pixels);
        page->status =
            qn__png_encode(pixels, data->rows, data->columns, 3, &file, &size, page->err);
        if (page->status != QN_OK)
            break;
        qn__text_add(&page->html, "<figure>\n<img src=\"data:image/png;base64,");
        qn__markup_add_base64(&page->html, file, size);
        add_output(page, "\" alt=\"Weights of ", w, o, "\"/>\n<figcaption>");
        add_output(page, "", w, o, "</figcaption>\n</figure>\n");
        qn__free(file);
    }
    qn__text_add(&page->html, "</div>\n");
    qn__free(pixels);
}

typedef struct input {
    uint32_t k;
    float size; /* the largest weight's */
} input;

static int by_size(const void *one, const void *other) {
    const input *a = one, *b = other;
    if (a->size < b->size || a->size > b->size)
        return a->size < b->size ? 1 : -1;
    return a->k < b->k ? -1 : 1;
}

static void add_row(qn__page *page, const weights *w, uint32_t k) {
    char name[160];
    qn__page_input_name(page->model->table, page->model->features, k, name);
    qn__markup_put(&page->html, "<tr><th scope=\"row\">", name, 0, "</th>");
    for (uint32_t o = 0; o < w->outputs && o < OUTPUTS; ++o)
        qn__text_add(&page->html, "<td class=\"n\">%.4g</td>",
                     (double)w->value[(size_t)o * w->inputs + k]);
    qn__text_add(&page->html, "</tr>\n");
}

static void add_inputs(qn__page *page, const weights *w) {
    input *list = qn__alloc(w->inputs, sizeof *list, page->err);
    if (!list) {
        page->status = QN_MEMORY;
        return;
    }
    for (uint32_t k = 0; k < w->inputs; ++k) {
        list[k] = (input){k, 0};
        for (uint32_t o = 0; o < w->outputs; ++o) {
            const float size = fabsf(w->value[(size_t)o * w->inputs + k]);
            list[k].size = size > list[k].size ? size : list[k].size;
        }
    }
    qsort(list, w->inputs, sizeof *list, by_size);
    qn__text_add(&page->html,
                 "<p>The %" PRIu32 " inputs with the largest weights, of %" PRIu32
                 ". They multiply inputs as the scaling of the recipe makes them.</p>\n",
                 w->inputs < INPUTS ? w->inputs : INPUTS, w->inputs);
    qn__page_table(&page->html, "Weights", NULL, "input");
    for (uint32_t o = 0; o < w->outputs && o < OUTPUTS; ++o)
        add_output(page, "<th scope=\"col\" class=\"n\">", w, o, "</th>");
    qn__page_rows(&page->html);
    for (uint32_t i = 0; i < w->inputs && i < INPUTS; ++i)
        add_row(page, w, list[i].k);
    qn__page_end_table(&page->html);
    if (w->outputs > OUTPUTS)
        qn__text_add(&page->html, "<p class=\"dim\">The first %d of %" PRIu32 " outputs.</p>\n",
                     OUTPUTS, w->outputs);
    qn__free(list);
}

void qn__page_weights(qn__page *page) {
    weights w;
    if (!weights_of(page->model, &w))
        return;
    const qn_data *data = page->judged ? page->judged->data : NULL;
    const uint64_t pixels = data ? (uint64_t)data->rows * data->columns : 0;
    qn__page_section(page, "weights", "Weights");
    if (pixels > 0 && pixels <= PIXELS && pixels * data->channels == w.inputs)
        add_images(page, &w);
    else
        add_inputs(page, &w);
    qn__page_end_section(page);
}

void qn__page_columns(qn__page *page) {
    qn__chart_bar bar[BARS];
    char name[BARS][160];
    uint32_t bars = 0;
    if (!page->columns)
        return;
    const qn_data *data = page->judged->data;
    const int real = page->judged->real;
    const double most = page->columns[0].loss;
    for (; bars < data->features && bars < BARS; ++bars) {
        const qn__importance *c = &page->columns[bars];
        const char *own = data->schema ? data->schema->feature[c->column].name : NULL;
        if (own)
            snprintf(name[bars], sizeof name[bars], "%.150s", own);
        else
            snprintf(name[bars], sizeof name[bars], "column %" PRIu32, c->column + 1);
        bar[bars] = (qn__chart_bar){.name = name[bars], .part = most > 0 ? c->loss / most : 0};
        if (real)
            snprintf(bar[bars].value, sizeof bar[bars].value, "%.4g", c->loss);
        else
            snprintf(bar[bars].value, sizeof bar[bars].value, "%.2f %%", 100 * c->loss);
    }
    qn__page_section(page, "columns", "Columns that matter");
    qn__text_add(&page->html,
                 "<p>What the predictions of %" PRIu64 " items lose when the values of a column "
                 "are exchanged between items: %s, the mean of %" PRIu32 " shuffles.</p>\n"
                 "<div class=\"charts\">\n",
                 page->column_items, real ? "the rise of the RMSE" : "accuracy",
                 page->column_repeats);
    qn__page_bars(page, "columns", "Permutation importance", bar, bars);
    qn__text_add(&page->html, "</div>\n");
    if (data->features > BARS)
        qn__text_add(&page->html, "<p class=\"dim\">The first %d of %" PRIu32 " columns.</p>\n",
                     BARS, data->features);
    qn__page_end_section(page);
}

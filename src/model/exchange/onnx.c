/* A model as an ONNX file: the graph of its network, with what comes before (missing values,
 * categories, scaling) and after it (classes, units of real labels). docs/formats.md describes the
 * file. */
#include "model/formats/model.h"

#include "base/argument.h"
#include "base/files/file.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/text/text.h"
#include "model/exchange/onnx_layers.h"
#include "model/recipe/tables.h"
#include <math.h>
#include <quern/version.h>
#include <stdio.h>
#include <string.h>

/* Fields of a ModelProto and a GraphProto. */
enum {
    MODEL_IR = 1,
    MODEL_PRODUCER = 2,
    MODEL_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPERATORS = 8,
    MODEL_NOTE = 14,
    GRAPH_NAME = 2,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12
};

/* A protobuf message is shorter than 2^31 bytes; some space is for all but the parameters. */
#define LARGEST ((uint64_t)1 << 31)

/* What an item is in the graph: the dimensions after the number of items, with a 0 after them. */
static void item_shape(const qn__recipe *r, uint64_t shape[4]) {
    const uint64_t pixels[4] = {r->shape.channels, r->shape.height, r->shape.width, 0};
    /* The last token of an item is a target alone (25.14). */
    const uint64_t features[4] = {r->features - (r->task == QN__TASK_NEXT), 0, 0, 0};
    memcpy(shape, r->shape.channels ? pixels : features, sizeof pixels);
}

/* --------------------------------------------------------------------------------------- inputs */

/* "input.incomplete", items x 1: whether a value is missing, which is a NaN. */
static void find_incomplete(qn__onnx_graph *g) {
    const qn__onnx_value input = g->at;
    const qn__onnx_attribute number[] = {{.name = "to", .value = {QN__ONNX_FLOAT}}, {.name = NULL}};
    const qn__onnx_attribute yes[] = {{.name = "to", .value = {QN__ONNX_BOOL}}, {.name = NULL}};
    const qn__onnx_attribute columns[] = {
        {.name = "axes", .form = QN__ONNX_INTS, .value = {1}, .count = 1},
        {.name = "keepdims", .value = {1}},
        {.name = NULL}};
    qn__onnx_step(g, "IsNaN", "", "missing", QN__ONNX_NONE);
    qn__onnx_step(g, "Cast", "", "gaps", number);
    qn__onnx_flatten(g);
    qn__onnx_step(g, "ReduceMax", "", "most", columns);
    qn__onnx_step(g, "Cast", "", "incomplete", yes);
    g->incomplete = 1;
    g->at = input;
}

/* A number for each column that stands for a missing one; a missing category stays missing. */
static qn_status fill_missing(qn__onnx_graph *g, const qn__recipe *r, qn_error *err) {
    const qn__onnx_value input = g->at;
    char others[3 * QN__ONNX_NAME];
    uint64_t shape[4];
    qn__fitted fitted;
    float *fill = qn__alloc(r->features, sizeof *fill, err);
    if (!fill)
        return QN_MEMORY;
    qn__model_fitted(g->model, &fitted);
    for (uint32_t k = 0; k < r->features; ++k)
        fill[k] = qn_model_categories(g->model, k) ? NAN : fitted.fill ? fitted.fill[k] : 0.0f;
    item_shape(r, shape);
    qn__onnx_floats(g, "table.fill", shape, fill);
    qn__free(fill);
    qn__onnx_step(g, "IsNaN", "", "missing", QN__ONNX_NONE);
    snprintf(others, sizeof others, "%s table.fill %s", g->at.name, input.name);
    qn__onnx_node(g, "Where", others, "input.complete", QN__ONNX_NONE);
    snprintf(g->at.name, sizeof g->at.name, "input.complete");
    return QN_OK;
}

/* Columns `first` to `end` - 1 of the input as a value; its name is written to `name`. */
static void slice(qn__onnx_graph *g, uint32_t first, uint32_t end, char name[QN__ONNX_NAME]) {
    const qn__onnx_value input = g->at;
    char from[QN__ONNX_NAME], to[QN__ONNX_NAME], others[3 * QN__ONNX_NAME];
    snprintf(from, sizeof from, "%s.first", g->part);
    snprintf(to, sizeof to, "%s.end", g->part);
    qn__onnx_integers(g, from, (const int64_t[]){first}, 1);
    qn__onnx_integers(g, to, (const int64_t[]){end}, 1);
    snprintf(others, sizeof others, "%s %s input.axis", from, to);
    qn__onnx_step(g, "Slice", others, "values", QN__ONNX_NONE);
    snprintf(name, QN__ONNX_NAME, "%s", g->at.name);
    g->at = input;
}

/* A column of numbers of categories: an input for each category, 1 or 0. */
static qn_status spread(qn__onnx_graph *g, uint32_t column, uint32_t categories,
                        char name[QN__ONNX_NAME], qn_error *err) {
    const qn__onnx_value input = g->at;
    const qn__onnx_attribute number[] = {{.name = "to", .value = {QN__ONNX_FLOAT}}, {.name = NULL}};
    const uint64_t shape[] = {1, categories, 0};
    char list[QN__ONNX_NAME];
    float *each = qn__alloc(categories, sizeof *each, err);
    if (!each)
        return QN_MEMORY;
    for (uint32_t c = 0; c < categories; ++c)
        each[c] = (float)c;
    snprintf(list, sizeof list, "%s.categories", g->part);
    qn__onnx_floats(g, list, shape, each);
    qn__free(each);
    slice(g, column, column + 1, name);
    snprintf(g->at.name, sizeof g->at.name, "%s", name);
    qn__onnx_step(g, "Equal", list, "equal", QN__ONNX_NONE);
    qn__onnx_step(g, "Cast", "", "inputs", number);
    snprintf(name, QN__ONNX_NAME, "%s", g->at.name);
    g->at = input;
    return QN_OK;
}

/* Inputs of columns (docs/exactness.md 2.7), in their order. */
static qn_status encode(qn__onnx_graph *g, const qn__recipe *r, qn_error *err) {
    const qn__onnx_attribute columns[] = {{.name = "axis", .value = {1}}, {.name = NULL}};
    qn__text parts = {0};
    char name[QN__ONNX_NAME];
    qn_status status = QN_OK;
    qn__onnx_integers(g, "input.axis", (const int64_t[]){1}, 1);
    for (uint32_t k = 0, end; k < r->features && status == QN_OK; k = end) {
        const uint32_t categories = qn_model_categories(g->model, k);
        snprintf(g->part, sizeof g->part, "column%u", k);
        for (end = k + 1; !categories && end < r->features && !qn_model_categories(g->model, end);)
            end++;
        if (categories)
            status = spread(g, k, categories, name, err);
        else
            slice(g, k, end, name);
        qn__text_add(&parts, "%s ", name);
    }
    if (status == QN_OK && !parts.failed)
        qn__onnx_node(g, "Concat", parts.data, "input.encoded", columns);
    g->body.failed |= parts.failed;
    qn__text_release(&parts);
    snprintf(g->at.name, sizeof g->at.name, "input.encoded");
    snprintf(g->part, sizeof g->part, "input");
    return status;
}

/* One number for each input, or for each channel. */
static void add_scale(qn__onnx_graph *g, const qn__recipe *r, const char *name,
                      const float *values) {
    uint64_t shape[4];
    const int channels = r->scale == QN__SCALE_CHANNEL;
    item_shape(r, shape);
    if (!r->shape.channels)
        shape[0] = qn__recipe_inputs(r);
    if (channels)
        shape[1] = shape[2] = 1;
    qn__onnx_floats(g, name, shape, values);
}

static qn_status scale_by_statistics(qn__onnx_graph *g, const qn__recipe *r, qn_error *err) {
    const uint32_t count = qn__scale_count(r);
    qn__fitted fitted;
    float *inverse = qn__alloc(count, sizeof *inverse, err);
    if (!inverse)
        return QN_MEMORY;
    qn__model_fitted(g->model, &fitted);
    for (uint32_t k = 0; k < count; ++k)
        inverse[k] = qn__scale_inverse(fitted.deviation[k]);
    add_scale(g, r, "scale.mean", fitted.mean);
    add_scale(g, r, "scale.inverse", inverse);
    qn__free(inverse);
    qn__onnx_step(g, "Sub", "scale.mean", "centred", QN__ONNX_NONE);
    qn__onnx_step(g, "Mul", "scale.inverse", "scaled", QN__ONNX_NONE);
    return QN_OK;
}

static qn_status add_scaling(qn__onnx_graph *g, const qn__recipe *r, qn_error *err) {
    if (qn__scale_count(r))
        return scale_by_statistics(g, r, err);
    if (r->scale == QN__SCALE_NONE)
        return QN_OK;
    qn__onnx_scalar(g, "scale.divisor", r->scale == QN__SCALE_FRACTION ? 256.0f : 255.0f);
    qn__onnx_step(g, "Div", "scale.divisor", "scaled", QN__ONNX_NONE);
    return QN_OK;
}

/* From the values of items as a data set has them to the inputs of the network. */
static qn_status add_inputs(qn__onnx_graph *g, const qn__recipe *r, qn_error *err) {
    uint64_t shape[4];
    qn_status status = QN_OK;
    item_shape(r, shape);
    qn__onnx_declare(g, GRAPH_INPUT, "input", QN__ONNX_FLOAT, shape);
    g->at = (qn__onnx_value){.name = "input", .flat = !r->shape.channels};
    snprintf(g->part, sizeof g->part, "input");
    if (r->missing == QN__MISSING_DROP)
        find_incomplete(g);
    else if (r->missing != QN__MISSING_ERROR)
        status = fill_missing(g, r, err);
    if (status == QN_OK && qn__recipe_inputs(r) != r->features)
        status = encode(g, r, err);
    if (status == QN_OK)
        status = add_scaling(g, r, err);
    if (qn__network_reads_features(&r->network))
        qn__onnx_flatten(g);
    return status;
}

/* -------------------------------------------------------------------------------------- outputs */

/* The class of 6.6, and -1 for an item without a prediction. */
static void add_classes(qn__onnx_graph *g, const qn__recipe *r) {
    const qn__onnx_attribute greatest[] = {
        {.name = "axis", .value = {1}}, {.name = "keepdims", .value = {1}}, {.name = NULL}};
    const qn__onnx_attribute whole[] = {{.name = "to", .value = {QN__ONNX_INT64}}, {.name = NULL}};
    const int64_t line[1] = {-1};
    if (r->loss == QN__LOSS_BINARY) {
        qn__onnx_scalar(g, "class.limit", 0.5f);
        qn__onnx_step(g, "Greater", "class.limit", "above", QN__ONNX_NONE);
        qn__onnx_step(g, "Cast", "", "column", whole);
    } else {
        qn__onnx_step(g, "ArgMax", "", "column", greatest);
    }
    if (g->incomplete) {
        char inputs[3 * QN__ONNX_NAME];
        snprintf(inputs, sizeof inputs, "input.incomplete class.none %s", g->at.name);
        qn__onnx_integers(g, "class.none", line, 1);
        qn__onnx_node(g, "Where", inputs, "class.known", QN__ONNX_NONE);
        snprintf(g->at.name, sizeof g->at.name, "class.known");
    }
    qn__onnx_integers(g, "class.line", line, 1);
    char inputs[2 * QN__ONNX_NAME];
    snprintf(inputs, sizeof inputs, "%s class.line", g->at.name);
    qn__onnx_node(g, "Reshape", inputs, "class", QN__ONNX_NONE);
    qn__onnx_declare(g, GRAPH_OUTPUT, "class", QN__ONNX_INT64, (const uint64_t[]){0});
}

/* What the loss does with the last layer's sums where there are several answers (24.70). */
static void add_several(qn__onnx_graph *g, const qn__recipe *r) {
    const qn__onnx_attribute channels[] = {{.name = "axis", .value = {1}}, {.name = NULL}};
    const int binary = r->loss == QN__LOSS_BINARY;
    qn__onnx_step(g, binary ? "Sigmoid" : "Softmax", "", "probability",
                  binary ? QN__ONNX_NONE : channels);
}

/* The answers of 24.74: those of pixels without the axis of channels; -1 for an item without a
 * prediction. */
static void add_answers(qn__onnx_graph *g, const qn__recipe *r) {
    const qn__onnx_attribute greatest[] = {
        {.name = "axis", .value = {1}}, {.name = "keepdims", .value = {0}}, {.name = NULL}};
    const qn__onnx_attribute whole[] = {{.name = "to", .value = {QN__ONNX_INT64}}, {.name = NULL}};
    const qn__shape mask = g->model->mask;
    const int64_t pixels[3] = {-1, mask.height, mask.width}, none[1] = {-1};
    const uint64_t shape[] = {mask.height, mask.width, 0}, labels[] = {g->model->outputs, 0};
    if (r->loss == QN__LOSS_BINARY) {
        qn__onnx_scalar(g, "class.limit", 0.5f);
        qn__onnx_step(g, "Greater", "class.limit", "above", QN__ONNX_NONE);
        qn__onnx_step(g, "Cast", "", "answers", whole);
    } else {
        qn__onnx_step(g, "ArgMax", "", "answers", greatest);
    }
    if (mask.height && r->loss == QN__LOSS_BINARY) {
        qn__onnx_integers(g, "class.shape", pixels, 3);
        qn__onnx_step(g, "Reshape", "class.shape", "pixels", QN__ONNX_NONE);
    }
    char inputs[3 * QN__ONNX_NAME];
    snprintf(inputs, sizeof inputs, "%s%s", g->incomplete ? "input.incomplete class.none " : "",
             g->at.name);
    if (g->incomplete)
        qn__onnx_integers(g, "class.none", none, 1);
    qn__onnx_node(g, g->incomplete ? "Where" : "Identity", inputs, "class", QN__ONNX_NONE);
    qn__onnx_declare(g, GRAPH_OUTPUT, "class", QN__ONNX_INT64, mask.height ? shape : labels);
}

/* Of each position the probabilities of the next token, and the most probable one: [items][T][V]
 * and [items][T], as language models have them. */
static void add_next(qn__onnx_graph *g, const qn__recipe *r) {
    const uint32_t positions = r->features - 1, tokens = g->model->outputs / positions;
    const qn__onnx_attribute order[] = {
        {.name = "perm", .form = QN__ONNX_INTS, .value = {0, 2, 1}, .count = 3}, {.name = NULL}};
    const qn__onnx_attribute last[] = {{.name = "axis", .value = {-1}}, {.name = NULL}};
    const qn__onnx_attribute greatest[] = {
        {.name = "axis", .value = {-1}}, {.name = "keepdims", .value = {0}}, {.name = NULL}};
    const int64_t sides[3] = {0, tokens, positions};
    snprintf(g->part, sizeof g->part, "result");
    qn__onnx_integers(g, "result.shape", sides, 3);
    qn__onnx_step(g, "Reshape", "result.shape", "line", QN__ONNX_NONE);
    qn__onnx_step(g, "Transpose", "", "positions", order);
    qn__onnx_step(g, "Softmax", "", "probability", last);
    qn__onnx_node(g, "Identity", g->at.name, "output", QN__ONNX_NONE);
    qn__onnx_declare(g, GRAPH_OUTPUT, "output", QN__ONNX_FLOAT,
                     (const uint64_t[]){positions, tokens, 0});
    qn__onnx_node(g, "ArgMax", g->at.name, "class", greatest);
    qn__onnx_declare(g, GRAPH_OUTPUT, "class", QN__ONNX_INT64, (const uint64_t[]){positions, 0});
}

static void add_outputs(qn__onnx_graph *g, const qn__recipe *r) {
    const qn__shape mask = g->model->mask;
    const uint64_t flat[] = {qn_model_outputs(g->model), 0},
                   pixels[] = {mask.channels, mask.height, mask.width, 0};
    const uint64_t *shape = mask.height ? pixels : flat;
    snprintf(g->part, sizeof g->part, "result");
    if (r->task == QN__TASK_REGRESS) {
        float mean, deviation;
        qn__model_target_scale(g->model, &mean, &deviation);
        qn__onnx_scalar(g, "target.deviation", deviation);
        qn__onnx_scalar(g, "target.mean", mean);
        qn__onnx_step(g, "Mul", "target.deviation", "scaled", QN__ONNX_NONE);
        qn__onnx_step(g, "Add", "target.mean", "number", QN__ONNX_NONE);
    }
    if (g->model->answers)
        add_several(g, r);
    const qn__onnx_value result = g->at;
    if (g->incomplete) {
        char inputs[3 * QN__ONNX_NAME];
        snprintf(inputs, sizeof inputs, "input.incomplete output.none %s", result.name);
        qn__onnx_scalar(g, "output.none", NAN);
        qn__onnx_node(g, "Where", inputs, "output", QN__ONNX_NONE);
    } else {
        qn__onnx_node(g, "Identity", result.name, "output", QN__ONNX_NONE);
    }
    qn__onnx_declare(g, GRAPH_OUTPUT, "output", QN__ONNX_FLOAT, shape);
    if (g->model->answers)
        add_answers(g, r);
    else if (r->task == QN__TASK_CLASSIFY)
        add_classes(g, r);
}

/* ---------------------------------------------------------------------------------------- notes */

static void add_note(qn__protobuf *model, const char *key, const char *value) {
    qn__protobuf entry = {0};
    qn__protobuf_text(&entry, 1, key);
    qn__protobuf_text(&entry, 2, value);
    qn__protobuf_message(model, MODEL_NOTE, &entry);
}

/* A list as JSON, which is released; nothing where no entry says anything. */
static void add_list(qn__protobuf *model, const char *key, qn__text *list, int any) {
    if (any && !list->failed)
        add_note(model, key, list->data);
    model->failed |= list->failed;
    qn__text_release(list);
}

static void add_names(qn__protobuf *model, const qn_model *from, const qn__recipe *r) {
    const qn__schema *table = r->table;
    qn__text columns = {0}, categories = {0}, classes = {0};
    int named = 0, any = 0;
    for (uint32_t k = 0; table && k < table->features; ++k) {
        const qn__feature *f = &table->feature[k];
        qn__text_add(&columns, k ? "," : "[");
        qn__text_add_json(&columns, f->name);
        named |= f->name != NULL;
        qn__text_add(&categories, "%s%s", k ? "," : "[", f->categories ? "" : "null");
        for (uint32_t c = 0; c < f->categories; ++c) {
            qn__text_add(&categories, c ? "," : "[");
            qn__text_add_json(&categories, f->category[c]);
        }
        qn__text_add(&categories, f->categories ? "]" : "");
        any |= f->categories > 0;
    }
    qn__text_add(&columns, "]");
    qn__text_add(&categories, "]");
    const int labels = r->task == QN__TASK_MULTILABEL;
    for (uint32_t c = 0; c < (labels ? from->outputs : qn_model_classes(from)); ++c) {
        qn__text_add(&classes, c ? "," : "[");
        qn__text_add_json(&classes, qn_model_class_name(from, c));
    }
    qn__text_add(&classes, "]");
    add_list(model, "columns", &columns, named);
    add_list(model, "categories", &categories, any);
    add_list(model, labels ? "label_names" : "class_names", &classes,
             qn_model_class_name(from, 0) != NULL);
}

static void add_notes(qn__protobuf *model, const qn_model *from, const qn__recipe *r) {
    add_note(model, "quern_digest", qn_model_digest(from));
    add_note(model, "quern_recipe", qn_model_recipe(from));
    add_note(model, "arithmetic", qn__table_name(&qn__arithmetics, (int)r->arith));
    add_names(model, from, r);
    if (r->table && r->table->label)
        add_note(model, "label", r->table->label);
    if (r->resize)
        add_note(model, "resize", r->resize);
}

/* ---------------------------------------------------------------------------------------- files */

static qn_status refuse_size(qn_error *err) {
    qn__fail(err, QN_UNSUPPORTED,
             "the model is too large for ONNX: a file of it has less than 2 GiB");
    return qn__remedy(err, QN_UNSUPPORTED,
                      "use the model file itself, which is in safetensors format");
}

/* The input of a graph is float32, which has lost what is to be subtracted from, or the time of a
 * date. */
static qn_status check_columns(const qn__recipe *r, qn_error *err) {
    const int offsets = qn__recipe_offsets(r) != 0;
    char name[160];
    uint32_t k = 0;
    while (r->table && k < r->table->features && r->table->feature[k].dates == 0 &&
           r->table->feature[k].text == 0 &&
           !(offsets && r->table->feature[k].exact != QN__EXACT_NONE))
        ++k;
    if (!r->table || k == r->table->features)
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED, "%s holds %s, and the input of an ONNX graph is float32",
             qn__column_name(r->table, k, name, sizeof name),
             r->table->feature[k].text    ? "texts"
             : r->table->feature[k].dates ? "dates"
                                          : "numbers that float32 cannot");
    return qn__remedy(err, QN_UNSUPPORTED,
                      "use the model file itself, or train without the column (`data.drop`)");
}

static qn_status make_file(const qn_model *from, qn__onnx_graph *g, qn__protobuf *model,
                           qn_error *err) {
    const qn__recipe *r = qn__model_recipe_of(from);
    qn__program program;
    qn__protobuf operators = {0};
    qn__model_program(from, &program);
    g->model = from;
    qn__protobuf_text(&g->body, GRAPH_NAME, "quern");
    const qn_status status = add_inputs(g, r, err);
    if (status != QN_OK)
        return status;
    qn__onnx_layers(g, &program);
    if (r->task == QN__TASK_NEXT)
        add_next(g, r);
    else
        add_outputs(g, r);
    qn__protobuf_number(model, MODEL_IR, QN__ONNX_IR);
    qn__protobuf_text(model, MODEL_PRODUCER, "quern");
    qn__protobuf_text(model, MODEL_VERSION, qn_version());
    qn__protobuf_text(&operators, 1, ""); /* the default domain */
    qn__protobuf_number(&operators, 2, QN__ONNX_OPSET);
    qn__protobuf_message(model, MODEL_OPERATORS, &operators);
    add_notes(model, from, r);
    qn__protobuf_message(model, MODEL_GRAPH, &g->body);
    return model->failed ? qn__fail_memory(err, program.parameters, 2 * sizeof(float)) : QN_OK;
}

static qn_status write_bytes(const qn__protobuf *model, const char *path, qn_error *err) {
    qn__writer *writer;
    const qn_status status = qn__writer_create(path, &writer, err);
    if (status != QN_OK)
        return status;
    (void)qn__writer_add(writer, model->data, model->size, err);
    return qn__writer_commit(writer, err);
}

qn_status qn_model_write_onnx(const qn_model *model, const char *path, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(model, err);
    QN__NEED(path, err);
    qn__protobuf file = {0};
    if (qn__model_need_network(model, "an ONNX file", err) != QN_OK)
        return QN_UNSUPPORTED;
    if (model->mask.height && model->drops) {
        qn__fail(err, QN_UNSUPPORTED, "an ONNX file of masks has no items without a prediction");
        return qn__remedy(err, QN_UNSUPPORTED, "train it with `train.missing` mean");
    }
    if (qn_model_parameters(model) >= LARGEST / sizeof(float))
        return refuse_size(err);
    if (check_columns(qn__model_recipe_of(model), err) != QN_OK)
        return QN_UNSUPPORTED;
    qn__onnx_graph *g = qn__alloc(1, sizeof *g, err);
    if (!g)
        return QN_MEMORY;
    qn_status status = make_file(model, g, &file, err);
    if (status == QN_OK && file.size >= LARGEST)
        status = refuse_size(err);
    if (status == QN_OK)
        status = write_bytes(&file, path, err);
    qn__protobuf_release(&g->body);
    qn__protobuf_release(&file);
    qn__free(g);
    return status;
}

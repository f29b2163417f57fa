/* Answers of version 2: which tensors a model gives, and their values as JSON or as bytes. */
#include "serve/inference/v2_message.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char WHOLE[] = "INT64", REAL[] = "FP32", TEXT[] = "BYTES", SMALL[] = "UINT8";

static int has_names(const qn_model *model) { return qn_model_class_name(model, 0) != NULL; }

static qn__v2_output tensor(const char *name, const char *type, uint32_t first, uint32_t second) {
    return (qn__v2_output){.name = name,
                           .type = type,
                           .each = {first, second},
                           .lengths = (first > 0) + (uint32_t)(second > 0)};
}

uint32_t qn__v2_outputs_of(const qn_model *model, qn__v2_output o[QN__V2_OUTPUTS]) {
    uint32_t count = 0, rows = 0, columns = 0;
    if (qn_model_predicts(model) == QN_PREDICTS_NEXT) /* layers alone */
        return 0;
    const uint32_t answers = qn_model_answers(model, &rows, &columns);
    const uint32_t outputs = qn_model_outputs(model);
    if (rows > 0) {
        o[count++] = tensor("mask", SMALL, rows, columns);
        return count;
    }
    if (answers > 0)
        o[count++] = tensor("labels", SMALL, answers, 0);
    else if (qn_model_predicts(model) == QN_PREDICTS_COMPONENTS)
        count = 0;
    else if (qn_model_classes(model) == 0) {
        o[count++] = tensor("prediction", REAL, 0, 0);
        return count;
    } else {
        o[count++] = tensor("prediction", has_names(model) ? TEXT : WHOLE, 0, 0);
        o[count++] = tensor("score", REAL, 0, 0);
    }
    o[count++] = tensor("outputs", REAL, outputs, 0);
    return count;
}

static const qn__v2_output *find(const qn__v2_output *o, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(o[i].name, name) == 0)
            return &o[i];
    return NULL;
}

int qn__v2_predicts(const qn_model *model, const char *name) {
    qn__v2_output o[QN__V2_OUTPUTS];
    return find(o, qn__v2_outputs_of(model, o), name) != NULL;
}

qn_status qn__v2_read_layer(const char *output, qn__layer_name *out, qn_error *err) {
    const int numbered = strncmp(output, "layer", 5) == 0;
    if ((numbered || strncmp(output, "body", 4) == 0) &&
        qn__layer_name_read(output + (numbered ? 5 : 0), out, NULL) == QN_OK)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the model has no output \"%.100s\"", output);
    return qn__remedy(err, QN_INPUT,
                      "GET the model's metadata, which lists its outputs; those of layers are "
                      "layer0 and so on, and layer0:mean");
}

static qn__v2_output output_of_layer(const char *name, const qn__layer_use *use) {
    qn__v2_output o = {.name = name, .type = REAL, .lengths = use->lengths};
    memcpy(o.each, use->shape, sizeof o.each);
    return o;
}

/* ----------------------------------------------------------------------------------------- values
 */

/* The values of an output: where they are, and how many. */
typedef struct values {
    const qn__v2_output *output;
    const qn_model *model;
    const float *real;
    const uint8_t *small;
    const int32_t *class;
    uint64_t count;
} values;

static values values_of(const qn__v2_output *o, const qn_model *model, const qn__batch_answer *a) {
    values v = {.output = o, .model = model, .count = a->items};
    for (uint32_t i = 0; i < o->lengths; i++)
        v.count *= o->each[i];
    /* An answer without classes is that of a layer, or components. */
    if (strcmp(o->name, "outputs") == 0 || (!a->classes && !a->answers))
        v.real = a->outputs;
    else if (o->type == SMALL)
        v.small = a->answers;
    else if (o->type == REAL)
        v.real = a->scores;
    else
        v.class = a->classes;
    return v;
}

/* The name of a class; "" without a prediction. */
static const char *class_name(const values *v, uint64_t k) {
    const char *name =
        v->class[k] < 0 ? NULL : qn_model_class_name(v->model, (uint32_t)v->class[k]);
    return name ? name : "";
}

static void add_json_value(qn__text *text, const values *v, uint64_t k) {
    char number[32];
    if (v->real && !isfinite(v->real[k]))
        qn__text_add(text, "null");
    else if (v->real) {
        qn__float_text(v->real[k], number);
        qn__text_add_bytes(text, number, strlen(number));
    } else if (v->small)
        qn__text_add(text, "%u", v->small[k]);
    else if (v->output->type == TEXT)
        qn__text_add_json(text, class_name(v, k));
    else if (v->class)
        qn__text_add(text, "%d", v->class[k]);
}

static void add_little_endian(qn__text *bytes, uint64_t value) {
    uint8_t own[8];
    for (size_t i = 0; i < sizeof own; i++)
        own[i] = (uint8_t)(value >> 8 * i);
    qn__text_add_bytes(bytes, own, sizeof own);
}

static void add_binary_value(qn__text *bytes, const values *v, uint64_t k) {
    if (v->output->type == TEXT)
        qn__v2_add_text(bytes, class_name(v, k), 1);
    else
        add_little_endian(bytes, (uint64_t)(int64_t)v->class[k]);
}

static void add_binary(qn__text *bytes, const values *v) {
    if (v->real)
        qn__text_add_bytes(bytes, v->real, v->count * sizeof *v->real);
    else if (v->small)
        qn__text_add_bytes(bytes, v->small, v->count);
    for (uint64_t k = 0; v->class && k < v->count; k++)
        add_binary_value(bytes, v, k);
}

/* ------------------------------------------------------------------------------------- the answer
 */

static void add_shape(qn__text *text, const qn__v2_output *o, const char *items) {
    qn__text_add(text, "\"shape\": [%s", items);
    for (uint32_t i = 0; i < o->lengths; i++)
        qn__text_add(text, ", %u", o->each[i]);
    qn__text_add(text, "]");
}

/* An output: its values, or texts of its `classes` largest. */
typedef struct wanted_output {
    const qn__v2_output *output;
    const qn__batch_answer *answer;
    const qn_model *model;
    uint32_t classes;
    int binary;
} wanted_output;

static void add_values(qn__text *text, const wanted_output *w) {
    const values v = values_of(w->output, w->model, w->answer);
    if (w->classes)
        qn__v2_add_classes(text, w->model, w->answer, w->output->each[0], w->classes, w->binary);
    else if (w->binary)
        add_binary(text, &v);
    for (uint64_t k = 0; !w->classes && !w->binary && k < v.count; k++) {
        qn__text_add_bytes(text, ", ", k ? 2 : 0);
        add_json_value(text, &v, k);
    }
}

static void add_output(qn__text *text, qn__text *bytes, const wanted_output *w) {
    qn__v2_output shown = *w->output;
    char count[24];
    snprintf(count, sizeof count, "%llu", (unsigned long long)w->answer->items);
    if (w->classes) {
        shown.type = TEXT;
        shown.each[0] = w->classes;
    }
    qn__text_add(text, "{\"name\": ");
    qn__text_add_json(text, shown.name);
    qn__text_add(text, ", \"datatype\": \"%s\", ", shown.type);
    add_shape(text, &shown, count);
    if (w->binary) {
        const size_t before = bytes->size;
        add_values(bytes, w);
        qn__text_add(text, ", \"parameters\": {\"binary_data_size\": %zu}}", bytes->size - before);
        return;
    }
    qn__text_add(text, ", \"data\": [");
    add_values(text, w);
    qn__text_add(text, "]}");
}

/* `own` is a place for the description of a layer. */
static wanted_output output_of(const qn__v2_ask *ask, const qn__v2_output *o, uint32_t has,
                               uint32_t i, qn__v2_output *own) {
    wanted_output w = {.output = &o[i], .binary = ask->binary};
    if (ask->outputs == 0)
        return w;
    const uint64_t classes = ask->wanted[i].classes;
    w.binary = ask->wanted[i].binary;
    w.output = own;
    if (ask->wanted[i].layer)
        *own = output_of_layer(ask->wanted[i].name, ask->wanted[i].layer);
    else
        w.output = find(o, has, ask->wanted[i].name);
    w.classes = classes < w.output->each[0] ? (uint32_t)classes : w.output->each[0];
    return w;
}

void qn__v2_write(const qn__v2_ask *ask, const char *name, const char *version,
                  const qn_model *model, const qn__batch_answer *a, qn__text *text,
                  size_t *header) {
    qn__v2_output o[QN__V2_OUTPUTS];
    const uint32_t has = qn__v2_outputs_of(model, o), count = ask->outputs ? ask->outputs : has;
    qn__text bytes = {0};
    int any = 0;
    qn__text_add(text, "{\"model_name\": \"%s\", \"model_version\": \"%s\"", name, version);
    if (ask->id) {
        qn__text_add(text, ", \"id\": ");
        qn__text_add_json(text, ask->id);
    }
    qn__text_add(text, ", \"outputs\": [");
    for (uint32_t i = 0; i < count; i++) {
        qn__v2_output own;
        wanted_output w = output_of(ask, o, has, i, &own);
        w.answer = &a[ask->outputs ? ask->wanted[i].answer : 0];
        w.model = model;
        qn__text_add(text, "%s", i ? ", " : "");
        add_output(text, &bytes, &w);
        any |= w.binary;
    }
    qn__text_add(text, "]}");
    *header = any ? text->size : 0;
    qn__text_add_bytes(text, bytes.data, bytes.size);
    text->failed |= bytes.failed;
    qn__text_release(&bytes);
}

/* -------------------------------------------------------------------------------- the description
 */

static void add_row(qn__text *text, const char *name, const char *type) {
    qn__text_add(text, "{\"name\": ");
    qn__text_add_json(text, name);
    qn__text_add(text, ", \"datatype\": \"%s\", \"shape\": [-1", type);
}

static int has_columns(const qn_model *model) {
    return qn_model_feature_name(model, 0) != NULL && !qn_model_tokens(model);
}

/* A tensor of all values, or one for each column with a name. */
static void add_inputs(qn__text *text, const qn_model *model) {
    const uint32_t features = qn_model_inputs(model);
    if (!has_columns(model)) {
        add_row(text, "input", qn_model_tokens(model) ? TEXT : REAL);
        if (!qn_model_tokens(model))
            qn__text_add(text, ", %u", features);
        qn__text_add(text, "]}");
        return;
    }
    for (uint32_t k = 0; k < features; k++) {
        const char *name = qn_model_feature_name(model, k);
        const int texts = qn_model_categories(model, k) > 0 || qn_model_text_inputs(model, k) > 0;
        char own[16];
        snprintf(own, sizeof own, "f%u", k);
        qn__text_add(text, "%s", k ? ", " : "");
        add_row(text, name ? name : own, texts ? TEXT : REAL);
        qn__text_add(text, ", 1]}");
    }
}

void qn__v2_describe(const qn_model *model, const char *name, const char *const *version,
                     size_t versions, qn__text *text) {
    qn__v2_output o[QN__V2_OUTPUTS];
    const uint32_t count = qn__v2_outputs_of(model, o);
    qn__text_add(text, "{\"name\": \"%s\", \"versions\": [", name);
    for (size_t i = 0; i < versions; i++)
        qn__text_add(text, "%s\"%s\"", i ? ", " : "", version[i]);
    qn__text_add(text, "], \"platform\": \"quern_%s\", \"inputs\": [", qn_model_kind(model));
    add_inputs(text, model);
    qn__text_add(text, "], \"outputs\": [");
    for (uint32_t i = 0; i < count; i++) {
        qn__text_add(text, "%s{\"name\": \"%s\", \"datatype\": \"%s\", ", i ? ", " : "", o[i].name,
                     o[i].type);
        add_shape(text, &o[i], "-1");
        qn__text_add(text, "}");
    }
    qn__text_add(text, "]}\n");
}

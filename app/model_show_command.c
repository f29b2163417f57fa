/* quern model show: the layers of a network, without data and without training. */

#include "command.h"
#include "format.h"
#include "jsonline.h"
#include "message.h"
#include "model_about.h"
#include "model_text.h"
#include "paths.h"
#include "shared_rows.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct model_flags {
    const char *input, *svg;
    uint64_t classes;
    int json;
} model_flags;

#define AT(member) .place = offsetof(model_flags, member)

static const option show_options[] = {
    {.heading = "Options",
     ROW_TEXT(
         "input", input, "SHAPE",
         "what an item is: 3x32x32 (channels x height x width), 28x28, or a number of features"),
     .fallback = "of a ready model: what it was designed for"},
    {ROW_CLASSES(classes, "classes of the data, which the last layer of a ready model follows")},
    {ROW_TEXT("svg", svg, "FILE", "draw the network to this file")},
    {ROW_JSON(json, "one JSON object a line: layer, network")},
    {.name = NULL}};

static char *shape_text(const uint32_t shape[3], char text[40]) {
    if (shape[1] == 1 && shape[2] == 1)
        snprintf(text, 40, "%" PRIu32, shape[0]);
    else
        snprintf(text, 40, "%" PRIu32 "x%" PRIu32 "x%" PRIu32, shape[0], shape[1], shape[2]);
    return text;
}

static void shape_field(const char *key, const uint32_t shape[3]) {
    json_open(key, '[');
    for (int i = 0; i < 3; i++)
        json_count(NULL, shape[i]);
    json_close(']');
}

static void layer_event(uint32_t index, const qn_layer_info *l) {
    json_begin("layer");
    json_count("layer", index);
    json_text("text", l->text);
    json_number("source", l->source);
    if (l->second >= -1)
        json_number("second", l->second);
    shape_field("input", l->input);
    shape_field("output", l->output);
    json_count("parameters", l->parameters);
    json_count("flops", l->flops);
    json_count("training_flops", l->training);
    json_count("activation_bytes", l->activation);
    json_end();
}

static void network_event(const qn_network *network, const model_totals *sum) {
    json_begin("network");
    json_text("text", qn_network_text(network));
    json_count("parameters", qn_network_parameters(network));
    json_count("flops", sum->flops);
    json_count("training_flops", sum->training);
    json_count("activation_bytes", sum->activation);
    json_end();
}

static const char *source_text(int32_t source, char text[16]) {
    if (source < 0)
        return "input";
    snprintf(text, 16, "%" PRId32, source);
    return text;
}

/* The layer's text, and what it reads where that is not the layer before it alone. */
static const char *text_of(uint32_t index, const qn_layer_info *l, char text[200]) {
    char one[16], two[16];
    const char *source = source_text(l->source, one);
    if (l->second > -2)
        snprintf(text, 200, "%s, %s + %s", l->text, source, source_text(l->second, two));
    else if (l->source != (int32_t)index - 1)
        snprintf(text, 200, "%s, of %s", l->text, source);
    else
        snprintf(text, 200, "%s", l->text);
    return text;
}

static void print_layer(uint32_t index, const qn_layer_info *l, int width) {
    char text[200], shape[40], parameters[32], bytes[24];
    printf("%4" PRIu32 "  %-*s  %-11s %11s  %9.3f  %9.3f  %10s\n", index, width,
           text_of(index, l, text), shape_text(l->output, shape),
           format_count(l->parameters, parameters), 1e-6 * (double)l->flops,
           1e-6 * (double)l->training, format_bytes(l->activation, bytes));
}

/* The width of the column of texts. */
static int widest(const qn_network *network) {
    int width = 5;
    for (uint32_t l = 0; l < qn_network_layers(network); l++) {
        qn_layer_info info = {.size = sizeof info};
        char text[200];
        if (qn_network_layer(network, l, &info, NULL) == QN_OK &&
            (int)strlen(text_of(l, &info, text)) > width)
            width = (int)strlen(text);
    }
    return width;
}

static int print_network(const qn_network *network, int json) {
    const model_totals sum = model_sum(network);
    const int width = json ? 0 : widest(network);
    char number[32], bytes[24];
    qn_error err;
    if (!json)
        printf("%4s  %-*s  %-11s %11s  %9s  %9s  %10s\n", "", width, "layer", "output",
               "parameters", "MFLOP", "training", "activation");
    for (uint32_t l = 0; l < qn_network_layers(network); l++) {
        qn_layer_info info = {.size = sizeof info};
        if (qn_network_layer(network, l, &info, &err) != QN_OK)
            return message_error(&err);
        if (json)
            layer_event(l, &info);
        else
            print_layer(l, &info, width);
    }
    if (json)
        network_event(network, &sum);
    else
        printf("%4s  %-*s  %-11s %11s  %9.3f  %9.3f  %10s\n", "", width, "all", "",
               format_count(qn_network_parameters(network), number), 1e-6 * (double)sum.flops,
               1e-6 * (double)sum.training, format_bytes(sum.activation, bytes));
    return EXIT_DONE;
}

/* The shape that a ready model was designed for; "" for other texts. */
static void usual_input(const char *model, char shape[32]) {
    qn_network *network = NULL;
    qn_train_options job;
    qn_train_options_init(&job);
    job.model = model;
    *shape = '\0';
    const char *name =
        qn_network_open(&job, 0, 1, &network, NULL) == QN_OK ? qn_network_ready(network) : NULL;
    for (uint32_t i = 0; name && i < qn_ready_count(); i++) {
        qn_ready_model m = {.size = sizeof m};
        if (qn_ready_get(i, &m, NULL) == QN_OK && strcmp(m.name, name) == 0)
            snprintf(shape, 32, "%s", m.shape);
    }
    qn_network_free(network);
}

/* The library's name for the option, which has another one here. */
static void spell_input(char *text) {
    static const char field[] = "`train.shape`", ours[] = "--input";
    char *at = strstr(text, field), *after = at ? at + sizeof field - 1 : NULL;
    if (!at)
        return;
    memcpy(at, ours, sizeof ours - 1);
    memmove(at + sizeof ours - 1, after, strlen(after) + 1);
}

/* Opens the network of the text for items of --input. Returns -1 or an exit code. */
static int open_network(const model_flags *f, const char *model, qn_network **out) {
    char usual[32];
    uint64_t features = 0;
    qn_train_options job;
    qn_error err;
    usual_input(model, usual);
    qn_train_options_init(&job);
    job.model = model;
    job.shape = f->input ? f->input : *usual ? usual : NULL;
    if (f->input && read_count(f->input, &features)) {
        if (features < 1 || features > 1 << 24)
            return message_usage("it is a number from 1 to 16777216, or a shape such as 3x32x32",
                                 "--input cannot be %s", f->input);
        job.shape = NULL;
    }
    if (qn_network_open(&job, (uint32_t)features, (uint32_t)f->classes, out, &err) != QN_OK) {
        spell_input(err.where);
        spell_input(err.remedy);
        return message_error(&err);
    }
    if (job.shape || features)
        return -1;
    qn_network_free(*out);
    return message_usage("add --input 3x32x32, or the number of features: --input 784",
                         "the shapes of layers follow from what an item is");
}

/* A model that was trained or fitted: the name of a file. */
static int is_file(const char *operand) {
    struct stat about;
    return strstr(operand, "://") || (stat(operand, &about) == 0 && S_ISREG(about.st_mode));
}

static int run(const command *self, int argc, char **argv) {
    model_flags f = {.classes = MODEL_USUAL_CLASSES};
    arguments given;
    qn_network *network = NULL;
    paths files = {.count = 0};
    qn_error err;
    int code = options_read(self, argc - 3, argv + 3, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, 0, f.json);
    if (is_file(given.operand[0]) && !f.input && !f.svg)
        return model_about(given.operand[0], f.json);
    paths_add(&files, QN_FILE_READ, "MODEL", model_file(given.operand[0]));
    paths_add(&files, QN_FILE_WRITE, "--svg", f.svg);
    code = paths_check(&files, 1);
    if (code < 0)
        code = open_network(&f, given.operand[0], &network);
    if (code >= 0)
        return code;
    code = print_network(network, f.json);
    if (f.svg && qn_network_write_svg(network, f.svg, &err) != QN_OK)
        code = message_error(&err);
    qn_network_free(network);
    return code;
}

const command model_show_command = {
    .name = "model show",
    .summary = "show the layers of a network: shapes, parameters, cost",
    .usage = "quern model show TEXT|NAME|@PATH|FILE [options]",
    .about = "Needs no data and trains nothing. MFLOP are millions of floating-point operations of "
             "one item: forward, and in a training step. They count products, and what pools and "
             "normalisations read, not activation functions and updates. The activation is the "
             "memory of a layer's outputs of one item, in float32.\n"
             "Of a model file of any kind it prints what it is: kind, layers, columns, recipe.",
    .operand = "MODEL",
    .options = show_options,
    .examples = "quern model show lenet\n"
                "quern model show \"conv 16 3x3 relu; dense 10 softmax\" --input 3x32x32\n"
                "quern model show @net.txt --input 28x28 --json\n"
                "quern model show kmeans.safetensors",
    .run = run};

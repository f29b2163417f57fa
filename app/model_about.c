#include "model_about.h"
#include "command.h"
#include "format.h"
#include "jsonline.h"
#include "message.h"
#include "plain.h"
#include <inttypes.h>
#include <quern/model.h>
#include <stdint.h>
#include <stdio.h>

enum { COLUMNS = 40, WIDEST = 60 };

static void print_layers(const qn_model *model) {
    char text[256];
    for (uint32_t l = 0; l < qn_model_layers(model); l++) {
        qn_model_layer_text(model, l, text, sizeof text);
        printf("  %-10s %s\n", l == 0 ? "layers" : "", text);
    }
}

static void print_columns(const qn_model *model) {
    const uint32_t count = qn_model_inputs(model);
    for (uint32_t k = 0; k < count && k < COLUMNS; k++) {
        const char *name = qn_model_feature_name(model, k);
        if (!name)
            continue;
        printf("  %-10s ", k == 0 ? "columns" : "");
        plain_print(stdout, name, SIZE_MAX, WIDEST);
        fputc('\n', stdout);
    }
    if (count > COLUMNS && qn_model_feature_name(model, 0))
        printf("  %-10s and %" PRIu32 " more\n", "", count - COLUMNS);
}

static void print_model(const qn_model *model) {
    char number[32];
    printf("%s\n", qn_model_title(model));
    printf("  %-10s %" PRIu32 "\n", "features", qn_model_inputs(model));
    printf("  %-10s %" PRIu32 "\n", "outputs", qn_model_outputs(model));
    printf("  %-10s %s\n", "parameters", format_count(qn_model_parameters(model), number));
    print_layers(model);
    if (qn_model_label_name(model)) {
        printf("  %-10s ", "label");
        plain_print(stdout, qn_model_label_name(model), SIZE_MAX, WIDEST);
        fputc('\n', stdout);
    }
    print_columns(model);
    printf("  %-10s %s\n", "digest", qn_model_digest(model));
    printf("  %-10s ", "recipe");
    plain_print(stdout, qn_model_recipe(model), SIZE_MAX, INT32_MAX);
    fputc('\n', stdout);
}

static void model_event(const qn_model *model, const char *path) {
    json_begin("model");
    json_text("file", path);
    json_text("kind", qn_model_kind(model));
    json_text("digest", qn_model_digest(model));
    json_count("features", qn_model_inputs(model));
    json_count("outputs", qn_model_outputs(model));
    json_count("classes", qn_model_classes(model));
    json_count("parameters", qn_model_parameters(model));
    json_text("label", qn_model_label_name(model));
    json_text("recipe", qn_model_recipe(model));
    json_end();
}

int model_about(const char *path, int json) {
    qn_model *model = NULL;
    qn_error err;
    if (qn_model_load(path, &model, &err) != QN_OK)
        return message_error(&err);
    if (json)
        model_event(model, path);
    else
        print_model(model);
    qn_model_free(model);
    return EXIT_DONE;
}

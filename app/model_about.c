#include "model_about.h"
#include "command.h"
#include "format.h"
#include "jsonline.h"
#include "message.h"
#include "plain.h"
#include <inttypes.h>
#include <quern/model.h>
#include <quern/tokenizer.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Columns and elements of a list that are shown, and of a list that is not shortened. */
enum { COLUMNS = 40, SHORT = 4, WIDEST = 60 };

/* With the numbers that `quern predict --layer` takes. */
static void print_layers(const qn_model *model) {
    char text[256], last[16];
    const uint32_t layers = qn_model_layers(model);
    const int width = snprintf(last, sizeof last, "%" PRIu32, layers > 0 ? layers - 1 : 0);
    for (uint32_t l = 0; l < layers; l++) {
        qn_model_layer_text(model, l, text, sizeof text);
        printf("  %-10s %*" PRIu32 "  %s\n", l == 0 ? "layers" : "", width, l, text);
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

/* Where the string that begins at `at` ends. */
static const char *string_end(const char *at) {
    for (++at; *at && *at != '"'; ++at)
        at += *at == '\\' && at[1];
    return *at ? at + 1 : at;
}

/* Where the element of a list that begins at `at` ends: at the comma or bracket after it. */
static const char *element_end(const char *at) {
    int depth = 0;
    while (*at && (depth > 0 || (*at != ',' && *at != ']'))) {
        depth += (*at == '[' || *at == '{') - (*at == ']' || *at == '}');
        at = *at == '"' ? string_end(at) : at + 1;
    }
    return at;
}

/* Prints the list at `at`, a long one in short, and returns its end. */
static const char *print_list(const char *at) {
    const char *end = at + 1, *shown = end;
    uint32_t count = 0, nulls = 0;
    while (*end && *end != ']') {
        nulls += strncmp(end, "null", 4) == 0;
        end = element_end(end);
        shown = count < COLUMNS ? end : shown;
        count++;
        end += *end == ',';
    }
    end += *end == ']';
    if (count > SHORT && nulls == count)
        printf("[%" PRIu32 " x null]", count);
    else
        plain_print(stdout, at, (size_t)((count > COLUMNS ? shown : end) - at), INT32_MAX);
    if (count > COLUMNS && nulls < count)
        printf(", and %" PRIu32 " more]", count - COLUMNS);
    return end;
}

/* Images have as many columns without a name as pixels: nobody reads them. --json has all. */
static void print_recipe(const char *recipe) {
    const char *from = recipe, *at = from;
    while (*at) {
        if (*at == '[') {
            plain_print(stdout, from, (size_t)(at - from), INT32_MAX);
            from = at = print_list(at);
        } else {
            at = *at == '"' ? string_end(at) : at + 1;
        }
    }
    plain_print(stdout, from, SIZE_MAX, INT32_MAX);
}

/* How the items of a model of tokens were made. */
static void print_tokens(const qn_model *model) {
    const char *tokens = qn_model_tokens(model), *json = qn_model_tokenizer(model);
    qn_tokenizer *tokenizer = NULL;
    if (!tokens)
        return;
    if (json && qn_tokenizer_from_json(json, strlen(json), &tokenizer, NULL) == QN_OK)
        printf("  %-10s %s, %" PRIu32 " of them\n", "tokens", qn_tokenizer_kind(tokenizer),
               qn_tokenizer_size(tokenizer));
    else
        printf("  %-10s %s\n", "tokens", tokens);
    qn_tokenizer_free(tokenizer);
    if (qn_model_context(model))
        printf("  %-10s %" PRIu32 "\n", "context", qn_model_context(model));
}

static void print_model(const qn_model *model) {
    char number[32];
    printf("%s\n", qn_model_title(model));
    printf("  %-10s %" PRIu32 "\n", "features", qn_model_inputs(model));
    printf("  %-10s %" PRIu32 "\n", "outputs", qn_model_outputs(model));
    printf("  %-10s %s\n", "parameters", format_count(qn_model_parameters(model), number));
    print_tokens(model);
    print_layers(model);
    if (qn_model_label_name(model)) {
        printf("  %-10s ", "label");
        plain_print(stdout, qn_model_label_name(model), SIZE_MAX, WIDEST);
        fputc('\n', stdout);
    }
    print_columns(model);
    printf("  %-10s %s\n", "digest", qn_model_digest(model));
    printf("  %-10s ", "recipe");
    print_recipe(qn_model_recipe(model));
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
    if (qn_model_tokens(model)) {
        json_text("tokens", qn_model_tokens(model));
        json_count("context", qn_model_context(model));
    }
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

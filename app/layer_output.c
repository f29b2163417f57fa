#include "layer_output.h"

#include "format.h"
#include "jsonline.h"
#include "message.h"
#include "program.h"
#include <inttypes.h>
#include <quern/convert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const summaries[] = {[QN_SUMMARY_NONE] = "none",
                                        [QN_SUMMARY_MEAN] = "mean",
                                        [QN_SUMMARY_MAX] = "max",
                                        [QN_SUMMARY_FIRST] = "first",
                                        [QN_SUMMARY_LAST] = "last"};
enum { SUMMARIES = sizeof summaries / sizeof *summaries };

static int summary_of(const char *word, qn_summary *out) {
    for (int k = 0; k < SUMMARIES; k++)
        if (strcmp(word, summaries[k]) == 0) {
            *out = (qn_summary)k;
            return 1;
        }
    return 0;
}

/* Whether the text is "body" or a number of a layer. */
static int is_layer(const char *text) {
    return strcmp(text, "body") == 0 || (*text && strspn(text, "0123456789") == strlen(text));
}

int layer_output_check(const predict_flags *f) {
    qn_summary unused;
    if (!f->layer)
        return f->pool ? message_usage("add --layer body, or leave it out",
                                       "--pool says what is made of the outputs of --layer")
                       : -1;
    if (!is_layer(f->layer))
        return message_usage("give the number of a layer, as \"quern model show\" lists them, or "
                             "body: the last one before the head",
                             "--layer cannot be \"%.60s\"", f->layer);
    if (f->pool && !summary_of(f->pool, &unused))
        return message_usage("give mean, max, first, last or none", "--pool cannot be \"%.60s\"",
                             f->pool);
    if (f->outputs || f->top > 1 || f->logprobs || f->flips || f->network_size)
        return message_usage("leave them out",
                             "--layer writes the outputs of that layer alone, without "
                             "--outputs, --top, --logprobs, --flips and --network-size");
    if (!qn_data_write_format(f->out))
        return message_usage("add -o FILE.npy, or a file of another format that \"quern data "
                             "convert\" writes",
                             "--layer needs a file for its values");
    return -1;
}

/* What is made, for its release. */
typedef struct layer_values {
    const predict_flags *f;
    const qn_data *data;
    uint32_t layer, shape[3], lengths;
    float *value;
    qn_data *table;
    double start;
} layer_values;

static void add_shape(const layer_values *v, char text[64]) {
    int used = snprintf(text, 64, "%" PRIu32, v->shape[0]);
    for (uint32_t k = 1; k < v->lengths; k++)
        used += snprintf(text + used, 64 - (size_t)used, " x %" PRIu32, v->shape[k]);
}

static void tell(const layer_values *v, uint64_t items) {
    char shape[64], number[32];
    add_shape(v, shape);
    if (v->f->json) {
        json_begin("layer");
        json_text("file", v->f->out);
        json_count("layer", v->layer);
        json_count("items", items);
        json_open("shape", '[');
        for (uint32_t k = 0; k < v->lengths; k++)
            json_count(NULL, v->shape[k]);
        json_close(']');
        json_number("seconds", program_now() - v->start);
        json_end();
    } else if (!v->f->quiet) {
        printf("outputs of layer %" PRIu32 " for %s items in %s, %s each, %.3f s\n", v->layer,
               format_count(items, number), v->f->out, shape, program_now() - v->start);
    }
}

static int write_values(void *user) {
    const layer_values *v = user;
    qn_error err;
    if (qn_data_write(v->table, qn_data_write_format(v->f->out), v->f->out, NULL, &err) != QN_OK)
        return ranks_unwritten(&err);
    tell(v, qn_data_items(v->table));
    return EXIT_DONE;
}

/* The values as a table: a row for each item. */
static qn_status make_table(layer_values *v, uint64_t items, uint32_t features, qn_error *err) {
    qn_data_arrays arrays;
    qn_data_arrays_init(&arrays);
    arrays.items = items;
    arrays.features = features;
    arrays.values = v->value;
    arrays.missing = 1;
    return qn_data_lend(&arrays, &v->table, err);
}

static qn_status make_values(layer_values *v, const qn_model *model, qn_summary summary,
                             qn_error *err) {
    qn_compute compute = compute_of(&v->f->compute);
    compute.cluster = ranks_cluster();
    compute_note(&compute);
    qn_status status = qn_model_layer_shape(model, v->layer, summary, v->shape, &v->lengths, err);
    if (status != QN_OK)
        return status;
    const uint64_t items = qn_data_items(v->data);
    const uint32_t features = v->shape[0] * v->shape[1] * v->shape[2];
    v->value = calloc(items, features * sizeof *v->value);
    if (!v->value) {
        *err = (qn_error){.what = "out of memory"};
        return QN_MEMORY;
    }
    status = qn_predict_layer(model, v->data, &compute, v->layer, summary, v->value, err);
    return status == QN_OK ? make_table(v, items, features, err) : status;
}

int layer_output(const predict_flags *f, const qn_model *model, const qn_data *data) {
    layer_values v = {.f = f, .data = data, .start = program_now()};
    qn_summary summary = QN_SUMMARY_NONE;
    qn_error err = {0};
    const int is_body = strcmp(f->layer, "body") == 0;
    const unsigned long number = is_body ? qn_model_body(model) : strtoul(f->layer, NULL, 10);
    v.layer = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
    if (f->pool)
        summary_of(f->pool, &summary);
    const qn_status status = make_values(&v, model, summary, &err);
    ranks_notes();
    const int code = status == QN_OK ? ranks_conclude(&err, write_values, &v) : ranks_failed(&err);
    qn_data_close(v.table);
    free(v.value);
    return code;
}

#include "layer_output.h"

#include "format.h"
#include "jsonline.h"
#include "message.h"
#include "predict_parts.h"
#include "program.h"
#include <inttypes.h>
#include <quern/convert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Formats that hold numbers of each item. */
static int holds_numbers(const char *format) {
    return format && strcmp(format, "idx") != 0 && strcmp(format, "tar") != 0;
}

static int is_npy(const char *path) {
    const char *format = qn_data_write_format(path);
    return format && strcmp(format, "npy") == 0;
}

int layer_output_check(const predict_flags *f) {
    qn_summary unused;
    if (!f->layer && f->pool)
        return message_usage("add --layer body, or leave it out",
                             "--pool says what is made of the outputs of --layer");
    if (!f->layer && f->output_labels)
        return message_usage("leave it out", "--output-labels is for the outputs of --layer");
    if (!f->layer)
        return -1;
    if (f->pool && !qn_summary_find(f->pool, &unused))
        return message_usage("give mean, max, first, last or none", "--pool cannot be \"%.60s\"",
                             f->pool);
    if (f->outputs || f->top > 1 || f->logprobs || f->flips || f->network_size)
        return message_usage("leave them out",
                             "--layer writes the outputs of that layer alone, without "
                             "--outputs, --top, --logprobs, --flips and --network-size");
    const int database = qn_writes_to_database(f->out);
    if (!database && !holds_numbers(qn_data_write_format(f->out)))
        return message_usage("add -o FILE.npy, or a file that ends in .csv, .parquet, .arrow, "
                             ".jsonl, .npz or .libsvm, or the address of a database",
                             "--layer needs a file for its values");
    if (f->output_labels && (database || !is_npy(f->out)))
        return message_usage(database ? "leave it out: the table has the labels"
                                      : "leave it out: the file has the labels",
                             "--output-labels is for NPY");
    return -1;
}

int layer_output_find(const predict_flags *f, const qn_model *model, uint32_t *layer) {
    qn_error err;
    uint32_t shape[3], lengths;
    qn_summary summary = QN_SUMMARY_NONE;
    *layer = 0;
    if (!f->layer)
        return -1;
    if (f->pool)
        qn_summary_find(f->pool, &summary);
    qn_status status = qn_model_find_layer(model, f->layer, layer, &err);
    if (status == QN_OK)
        status = qn_model_layer_shape(model, *layer, summary, shape, &lengths, &err);
    return status == QN_OK ? -1 : message_error(&err);
}

/* What is made, for its release. */
typedef struct layer_values {
    const predict_flags *f;
    const qn_model *model;
    const qn_data *data; /* in parts: the rows of this rank */
    qn_parts *parts;     /* NULL: all rows are here */
    uint32_t layer, shape[3], lengths;
    qn_summary summary;
    float *value;
    qn_layer_run run; /* in a database */
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
        json_text("file", v->f->named ? v->f->named : v->f->out);
        if (*v->run.name) {
            json_text("run", v->run.name);
            json_flag("added", !v->run.there);
        }
        json_count("layer", v->layer);
        json_count("items", items);
        json_open("shape", '[');
        for (uint32_t k = 0; k < v->lengths; k++)
            json_count(NULL, v->shape[k]);
        json_close(']');
        json_number("seconds", program_now() - v->start);
        json_end();
    } else if (!v->f->quiet) {
        printf("outputs of layer %" PRIu32 " for %s items in %s%s%s%s, %s each, %.3f s\n", v->layer,
               format_count(items, number), v->f->named ? v->f->named : v->f->out,
               *v->run.name ? ", run " : "", v->run.name,
               v->run.there ? " (there already, not added again)" : "", shape,
               program_now() - v->start);
    }
}

/* Into a database; with `values` NULL it is only asked whether they can be. */
static qn_status write_rows(layer_values *v, const float *values, qn_error *err) {
    const qn_layer_order order = {.size = sizeof order,
                                  .layer = v->layer,
                                  .summary = v->summary,
                                  .values = values,
                                  .to = v->f->out,
                                  .cluster = ranks_cluster()};
    return qn_layer_write(v->model, v->data, &order, &v->run, err);
}

/* The labels of the items from `first` on, where an item has one. */
static void add_labels(const qn_data *data, uint64_t first, qn_data_arrays *arrays,
                       const char **names) {
    const int32_t *labels = qn_data_labels(data);
    const float *targets = qn_data_targets(data);
    arrays->labels = labels ? labels + first : NULL;
    arrays->targets = targets ? targets + first : NULL;
    arrays->label_name = qn_data_label_name(data);
    if (!arrays->labels || !qn_data_class_name(data, 0))
        return;
    arrays->classes = qn_data_classes(data);
    for (uint32_t c = 0; c < arrays->classes; c++)
        names[c] = qn_data_class_name(data, c);
    arrays->class_name = names;
}

/* The values as a table: a row for each item, with its label. */
static qn_status make_table(const layer_values *v, uint64_t first, uint64_t count, qn_data **table,
                            qn_error *err) {
    qn_data_arrays arrays;
    qn_data_arrays_init(&arrays);
    arrays.items = count;
    arrays.features = v->shape[0] * v->shape[1] * v->shape[2];
    arrays.values = v->value + (size_t)first * arrays.features;
    arrays.missing = 1;
    const uint32_t classes = qn_data_classes(v->data);
    const char **names = calloc(classes + 1, sizeof *names);
    if (!names) {
        *err = (qn_error){.what = "out of memory"};
        return QN_MEMORY;
    }
    add_labels(v->data, first, &arrays, names);
    const qn_status status = qn_data_lend(&arrays, table, err);
    free(names);
    return status;
}

static qn_status write_table(const layer_values *v, uint64_t first, uint64_t count, const char *out,
                             const char *labels, qn_error *err) {
    qn_data *table = NULL;
    qn_status status = make_table(v, first, count, &table, err);
    if (status == QN_OK)
        status = qn_data_write(table, qn_data_write_format(out), out,
                               qn_data_target(table) != QN_TARGET_NONE ? labels : NULL, err);
    qn_data_close(table);
    return status;
}

/* A rank without rows has no file. */
static qn_status write_part(void *user, uint32_t rank, const char *out, const char *labels,
                            qn_error *err) {
    const layer_values *v = user;
    uint64_t first, count;
    qn_parts_range(v->parts, rank, &first, &count);
    return count > 0 ? write_table(v, first, count, out, labels, err) : QN_OK;
}

static int write_values(void *user) {
    layer_values *v = user;
    const uint64_t items = qn_data_items(v->data);
    qn_error err;
    const qn_status status = qn_writes_to_database(v->f->out)
                                 ? write_rows(v, v->value, &err)
                                 : write_table(v, 0, items, v->f->out, v->f->output_labels, &err);
    if (status != QN_OK)
        return ranks_unwritten(&err);
    tell(v, items);
    return EXIT_DONE;
}

static int tell_parts(void *user) {
    const layer_values *v = user;
    tell(v, qn_parts_items(v->parts));
    return EXIT_DONE;
}

/* Each rank has the outputs of its rows, and writes them. *again: as of predict_parts_write. */
static int finish_parts(layer_values *v, qn_status status, qn_error *err, int *again) {
    ranks_hold();
    int code = ranks_agree(status == QN_OK ? -1 : message_error(err), NULL, 0, 0);
    if (code < 0)
        code = predict_parts_write(v->f, v->parts, write_part, v, again);
    return code < 0 && !*again ? ranks_conclude(err, tell_parts, v) : code;
}

static qn_status make_values(layer_values *v, qn_error *err) {
    qn_compute compute = compute_of(&v->f->compute);
    compute.cluster = v->parts ? NULL : ranks_cluster();
    compute_note(&compute);
    qn_status status =
        qn_model_layer_shape(v->model, v->layer, v->summary, v->shape, &v->lengths, err);
    if (status != QN_OK)
        return status;
    const uint64_t items = qn_data_items(v->data);
    if (items == 0) /* a rank may have no rows */
        return QN_OK;
    const uint32_t features = v->shape[0] * v->shape[1] * v->shape[2];
    v->value = calloc(items, features * sizeof *v->value);
    if (!v->value) {
        *err = (qn_error){.what = "out of memory"};
        return QN_MEMORY;
    }
    return qn_predict_layer(v->model, v->data, &compute, v->layer, v->summary, v->value, err);
}

/* What would be found after the computation otherwise. */
static int check_database(layer_values *v) {
    qn_error err;
    if (!qn_writes_to_database(v->f->out))
        return -1;
    const qn_status status = ranks_is_writer() ? write_rows(v, NULL, &err) : QN_OK;
    return ranks_agree(status == QN_OK ? -1 : message_error(&err), NULL, 0, 0);
}

static int output_once(layer_values *v, int *again) {
    qn_error err = {0};
    int code;
    const qn_status status = make_values(v, &err);
    ranks_notes();
    if (v->parts)
        code = finish_parts(v, status, &err, again);
    else
        code = status == QN_OK ? ranks_conclude(&err, write_values, v) : ranks_failed(&err);
    free(v->value);
    v->value = NULL;
    return code;
}

int layer_output(const predict_flags *f, uint32_t layer, const qn_model *model, qn_parts *parts,
                 const qn_data *data) {
    layer_values v = {.f = f,
                      .model = model,
                      .data = data,
                      .parts = parts,
                      .layer = layer,
                      .run = {.size = sizeof v.run},
                      .start = program_now()};
    if (f->pool)
        qn_summary_find(f->pool, &v.summary);
    int code = check_database(&v), again = 1;
    while (code < 0 && again) {
        again = 0;
        code = output_once(&v, &again);
    }
    return code;
}

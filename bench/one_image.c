/*
 * one_image: how long the prediction of one image takes in a program that keeps running.
 *
 *     one_image MODEL IMAGES LABELS [COUNT] [THREADS] [TOGETHER]
 *
 * Reads the model and an IDX file of bytes. Then qn_predict gets COUNT (200) of the images, one at
 * a time or TOGETHER, with THREADS (1). Prints one JSON object: milliseconds of one prediction
 * (median and least) and the classes, which bench/predict_cnn.py compares with those of its peers.
 */
#include "base/system/clock.h"

#include <inttypes.h>
#include <quern/quern.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 10000 };

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static int fail(const qn_error *err) {
    fprintf(stderr, "one_image: %s: %s\n  %s\n", err->where, err->what, err->remedy);
    return 1;
}

/* Seconds and classes of `items` images of `data`; copies of them are the items of a prediction. */
static qn_status predict_some(const qn_model *model, const qn_data *data, uint64_t item,
                              uint64_t items, int threads, double *seconds, int32_t *class,
                              qn_error *err) {
    const uint32_t features = qn_data_features(data);
    const uint8_t *values = (const uint8_t *)qn_data_values(data) + item * features;
    const qn_compute compute = {.size = sizeof compute, .threads = threads, .devices = "cpu"};
    qn_data *one = NULL;
    const double start = qn__now();
    qn_status status = qn_data_from_arrays(QN_U8, items, features, values, NULL, &one, err);
    if (status == QN_OK)
        status = qn_predict(model, one, &compute, class, NULL, NULL, err);
    *seconds = qn__now() - start;
    qn_data_close(one);
    return status;
}

static int measure(const qn_model *model, const qn_data *data, uint64_t count, int threads,
                   uint64_t together) {
    static double second[MOST];
    static int32_t class[MOST];
    qn_error err;
    uint64_t calls = 0;
    for (uint64_t i = 0; i + together <= count; i += together)
        if (predict_some(model, data, i, together, threads, &second[calls++], &class[i], &err) !=
            QN_OK)
            return fail(&err);
    count = calls * together;
    qsort(second, calls, sizeof *second, by_size);
    printf("{\"median_ms\": %.4f, \"least_ms\": %.4f, \"classes\": [", 1e3 * second[calls / 2],
           1e3 * second[0]);
    for (uint64_t i = 0; i < count; i++)
        printf("%s%" PRId32, i ? ", " : "", class[i]);
    puts("]}");
    return 0;
}

int main(int argc, char **argv) {
    qn_data_options options;
    qn_model *model = NULL;
    qn_data *data = NULL;
    qn_error err;
    if (argc < 4) {
        fputs("usage: one_image MODEL IMAGES LABELS [COUNT] [THREADS] [TOGETHER]\n", stderr);
        return 2;
    }
    uint64_t count = argc > 4 ? strtoull(argv[4], NULL, 10) : 200;
    qn_data_options_init(&options);
    options.labels_path = argv[3];
    if (qn_model_load(argv[1], &model, &err) != QN_OK ||
        qn_data_open(argv[2], &options, &data, &err) != QN_OK)
        return fail(&err);
    if (count > qn_data_items(data))
        count = qn_data_items(data);
    const uint64_t together = argc > 6 ? strtoull(argv[6], NULL, 10) : 1;
    const int code = measure(model, data, count < MOST ? count : MOST, argc > 5 ? atoi(argv[5]) : 1,
                             together < 1       ? 1
                             : together < count ? together
                                                : count);
    qn_data_close(data);
    qn_model_free(model);
    return code;
}

/* CSV, IDX and either gzipped, as data and as labels: qn_data_open. */
#include "fuzz/fuzz.h"

#include <quern/data.h>

static const uint8_t two_images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4};

/* A data set has items, features, a digest, finite values and labels below its classes. */
static void check_whole(const qn_data *data) {
    const uint64_t items = qn_data_items(data);
    const size_t count = (size_t)items * qn_data_features(data);
    const int32_t *labels = qn_data_labels(data);
    FUZZ_MUST(items > 0 && qn_data_features(data) > 0);
    FUZZ_MUST(strlen(qn_data_digest(data)) == 64 && qn_data_format(data));
    for (uint64_t i = 0; labels && i < items; i++)
        FUZZ_MUST(labels[i] >= 0 && (uint32_t)labels[i] < qn_data_classes(data));
    const float *floats = qn_data_values(data);
    const uint8_t *bytes = qn_data_values(data);
    unsigned sum = 0;
    for (size_t i = 0; i < count; i++)
        if (qn_data_type_of(data) == QN_F32)
            FUZZ_MUST(floats[i] - floats[i] == 0 || memcmp(&floats[i], "\0\0\xC0\x7F", 4) == 0);
        else
            sum += bytes[i]; /* a sanitizer sees that it is there */
    FUZZ_MUST(sum <= 255 * count);
    for (uint32_t k = 0; k < qn_data_features(data); k++)
        FUZZ_MUST(!qn_data_feature_name(data, k) ||
                  strlen(qn_data_feature_name(data, k)) < 1u << 30);
}

/* Names and categories are there, ascend, and have space for the values. */
static void check_columns(const qn_data *data) {
    const float *floats = qn_data_values(data);
    const uint32_t features = qn_data_features(data);
    for (uint32_t k = 0; k < features; k++) {
        const uint32_t count = qn_data_categories(data, k);
        for (uint32_t i = 1; i < count; i++)
            FUZZ_MUST(strcmp(qn_data_category(data, k, i - 1), qn_data_category(data, k, i)) < 0);
        for (uint64_t i = 0; count && i < qn_data_items(data); i++) {
            const float value = floats[i * features + k];
            FUZZ_MUST(value != value || (value >= 0 && value < (float)count));
        }
    }
    const int named = qn_data_target(data) == QN_TARGET_CLASS;
    for (uint32_t k = 0; named && k < qn_data_classes(data); k++)
        FUZZ_MUST(qn_data_class_name(data, k) != NULL);
    const float *targets = qn_data_targets(data);
    for (uint64_t i = 0; targets && i < qn_data_items(data); i++)
        FUZZ_MUST(targets[i] - targets[i] == 0);
    const float *weights = qn_data_weights(data);
    for (uint64_t i = 0; weights && i < qn_data_items(data); i++)
        FUZZ_MUST(weights[i] >= 0 && weights[i] - weights[i] == 0);
    FUZZ_MUST(!qn_data_note(data) || *qn_data_note(data));
}

/* The file alone, or as two files of one table. */
static void open_files(const char *path, size_t count, const qn_data_options *options) {
    const char *const paths[] = {path, path};
    qn_data *data = NULL;
    qn_error err = {0};
    const qn_status status = qn_data_open_files(paths, count, options, &data, &err);
    if (status == QN_OK) {
        check_whole(data);
        check_columns(data);
        qn_data_close(data);
        return;
    }
    fuzz_check_refusal(status, data, &err);
    FUZZ_MUST(status == QN_INPUT || status == QN_UNSUPPORTED || status == QN_MEMORY);
    FUZZ_MUST(status == QN_MEMORY || (err.where[0] && err.remedy[0]));
}

static void open_one(const char *path, const qn_data_options *options) {
    open_files(path, 1, options);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    const char *path = fuzz_file(0, bytes, size);
    qn_data_options options;
    qn_data_options_init(&options);
    options.threads = 1;
    open_one(path, &options);
    options.label_column = "last";
    open_one(path, &options);
    options.label_column = NULL;
    options.unlabelled = 1;
    open_one(path, &options);
    options.unlabelled = 0;
    options.task = "regress";
    options.header = "no";
    options.drop = "2-3";
    open_one(path, &options);
    options.task = "classify";
    options.header = "yes";
    options.drop = NULL;
    options.features = "a,2";
    open_one(path, &options);
    options.weight = "last";
    open_one(path, &options);
    options.weight = NULL;
    options.expected_weight = "b";
    options.features = NULL;
    open_one(path, &options);
    options.expected_weight = NULL;
    options.category = "1,last";
    options.label_column = "2";
    open_one(path, &options);
    options.category = NULL;
    options.header = NULL;
    options.label_column = "last,1-2";
    open_one(path, &options);
    options.expected_label = options.label_column = "b,a";
    open_one(path, &options);
    options.expected_label = options.label_column = NULL;
    options.expected_categories = "\"a\",2,\"\"";
    open_one(path, &options);
    options.expected_categories = NULL;
    options.task = options.header = NULL;
    options.labels_path = path;
    open_one(fuzz_file(1, two_images, sizeof two_images), &options);
    options.labels_more = &options.labels_path;
    options.labels_more_count = 1;
    open_files(fuzz_file(1, two_images, sizeof two_images), 2, &options);
    qn_data_options_init(&options);
    options.threads = 1;
    open_files(path, 2, &options);
    return 0;
}

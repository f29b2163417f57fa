/* NPY and NPZ, plain or gzipped, as data and as labels: qn_data_open. */
#include "fuzz/fuzz.h"

#include <quern/data.h>

/* Two items of one feature, 5 and 6. */
static const uint8_t two_items[] =
    "\x93NUMPY\1\0\x36\0{'descr':'|u1','fortran_order':False,'shape':(2,1)}   \5\6";

static void check_labels(const qn_data *data) {
    const int32_t *labels = qn_data_labels(data);
    const float *targets = qn_data_targets(data);
    FUZZ_MUST(!labels || !targets);
    for (uint64_t i = 0; labels && i < qn_data_items(data); i++) {
        FUZZ_MUST(labels[i] >= 0 && (uint32_t)labels[i] < qn_data_classes(data));
        FUZZ_MUST(qn_data_target(data) != QN_TARGET_CLASS ||
                  qn_data_class_name(data, (uint32_t)labels[i]));
    }
    for (uint64_t i = 0; targets && i < qn_data_items(data); i++)
        FUZZ_MUST(targets[i] - targets[i] == 0);
    const float *weights = qn_data_weights(data);
    for (uint64_t i = 0; weights && i < qn_data_items(data); i++)
        FUZZ_MUST(weights[i] >= 0 && weights[i] - weights[i] == 0);
}

static void check_values(const qn_data *data) {
    const size_t count = (size_t)qn_data_items(data) * qn_data_features(data);
    const uint8_t *bytes = qn_data_values(data);
    unsigned sum = 0;
    FUZZ_MUST(count > 0);
    for (size_t i = 0; i < count; i++)
        if (qn_data_type_of(data) == QN_F32) {
            float value;
            memcpy(&value, bytes + 4 * i, sizeof value);
            FUZZ_MUST(value - value == 0 || memcmp(&value, "\0\0\xC0\x7F", 4) == 0);
        } else {
            sum += bytes[i]; /* a sanitizer sees that it is there */
        }
    FUZZ_MUST(sum <= 255 * count);
}

/* The file alone, or as two files of one table. */
static void open_files(const char *path, size_t count, const qn_data_options *options) {
    const char *const paths[] = {path, path};
    qn_data *data = NULL;
    qn_error err = {0};
    const qn_status status = qn_data_open_files(paths, count, options, &data, &err);
    if (status == QN_OK) {
        FUZZ_MUST(strlen(qn_data_digest(data)) == 64);
        check_values(data);
        check_labels(data);
        qn_data_close(data);
        return;
    }
    fuzz_check_refusal(status, data, &err);
    FUZZ_MUST(status == QN_INPUT || status == QN_UNSUPPORTED || status == QN_MEMORY);
    FUZZ_MUST(status == QN_MEMORY || (err.where[0] && err.remedy[0]));
}

static void open_one(const char *path, const qn_data_options *options) {
    qn_data_options two = *options;
    open_files(path, 1, options);
    two.labels_more = &options->labels_path;
    two.labels_more_count = options->labels_path != NULL;
    open_files(path, 2, &two);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    const char *path = fuzz_file(0, bytes, size);
    const char *items = fuzz_file(1, two_items, sizeof two_items - 1);
    static const char *const tasks[] = {NULL, "classify", "regress"};
    qn_data_options options;
    qn_data_options_init(&options);
    options.threads = 1;
    open_one(path, &options);
    options.weight = "y";
    open_one(path, &options);
    options.weight = NULL;
    options.labels_path = path;
    for (int i = 0; i < 3; i++) {
        options.task = tasks[i];
        open_one(items, &options);
    }
    return 0;
}

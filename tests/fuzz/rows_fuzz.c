/* Formats of rows that are not CSV, LIBSVM, JSON and SQLite: qn_data_open. */
#include "fuzz/fuzz.h"

#include <quern/data.h>

static void check_labels(const qn_data *data) {
    const int32_t *labels = qn_data_labels(data);
    const float *targets = qn_data_targets(data);
    FUZZ_MUST(!labels || !targets);
    for (uint64_t i = 0; labels && i < qn_data_items(data); i++)
        FUZZ_MUST(labels[i] >= 0 && (uint32_t)labels[i] < qn_data_classes(data));
    for (uint64_t i = 0; targets && i < qn_data_items(data); i++)
        FUZZ_MUST(targets[i] - targets[i] == 0);
}

/* Values are finite, missing, or indices of categories. */
static void check_values(const qn_data *data) {
    const uint32_t features = qn_data_features(data);
    const float *floats = qn_data_values(data);
    FUZZ_MUST(qn_data_items(data) > 0 && features > 0 && strlen(qn_data_digest(data)) == 64);
    /* A line can name a feature millions of places away. */
    const uint64_t items =
        (uint64_t)features * qn_data_items(data) < 1 << 20 ? qn_data_items(data) : 0;
    for (uint64_t i = 0; i < items && qn_data_type_of(data) == QN_F32; i++)
        for (uint32_t k = 0; k < features; k++) {
            const float value = floats[i * features + k];
            const uint32_t count = qn_data_categories(data, k);
            if (value != value)
                FUZZ_MUST(memcmp(&floats[i * features + k], "\0\0\xC0\x7F", 4) == 0);
            else
                FUZZ_MUST(value - value == 0 &&
                          (count == 0 || (value >= 0 && value < (float)count)));
        }
}

static void open_one(const char *path, const qn_data_options *options) {
    qn_data *data = NULL;
    qn_error err = {0};
    const qn_status status = qn_data_open(path, options, &data, &err);
    if (status == QN_OK) {
        check_values(data);
        check_labels(data);
        qn_data_close(data);
        return;
    }
    fuzz_check_refusal(status, data, &err);
    FUZZ_MUST(status == QN_INPUT || status == QN_UNSUPPORTED || status == QN_MEMORY);
    FUZZ_MUST(status == QN_MEMORY || (err.where[0] && err.remedy[0]));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    const char *path = fuzz_file(0, bytes, size);
    qn_data_options options;
    qn_data_options_init(&options);
    options.threads = 1;
    open_one(path, &options);
    options.task = "classify";
    options.expected_features = 3;
    open_one(path, &options);
    return 0;
}

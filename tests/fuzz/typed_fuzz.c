/* Files of tables with types, such as Arrow IPC: qn_data_open. */
#include "fuzz/fuzz.h"

#include <quern/data.h>

/* Values are finite or missing, categories have texts, labels are below the classes. */
static void check_whole(const qn_data *data) {
    const uint32_t features = qn_data_features(data);
    const float *floats = qn_data_values(data);
    const uint8_t *bytes = qn_data_values(data);
    unsigned sum = 0;
    for (uint64_t i = 0; i < qn_data_items(data) * features; i++) {
        const uint32_t categories = qn_data_categories(data, (uint32_t)(i % features));
        if (qn_data_type_of(data) == QN_F32)
            FUZZ_MUST(floats[i] - floats[i] == 0 || memcmp(&floats[i], "\0\0\xC0\x7F", 4) == 0);
        else
            sum += bytes[i]; /* a sanitizer sees that it is there */
        FUZZ_MUST(categories == 0 || floats[i] != floats[i] || floats[i] < (float)categories);
    }
    for (uint32_t k = 0; k < features; k++)
        for (uint32_t i = 0; i < qn_data_categories(data, k); i++)
            sum += (unsigned)strlen(qn_data_category(data, k, i)) & 1;
    const int32_t *labels = qn_data_labels(data);
    for (uint64_t i = 0; labels && i < qn_data_items(data); i++)
        FUZZ_MUST(labels[i] >= 0 && (uint32_t)labels[i] < qn_data_classes(data));
    FUZZ_MUST(sum != 1u << 31 && strlen(qn_data_digest(data)) == 64);
}

static void open_one(const char *path, const qn_data_options *options) {
    qn_data *data = NULL;
    qn_error err = {0};
    const qn_status status = qn_data_open(path, options, &data, &err);
    if (status == QN_OK) {
        check_whole(data);
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
    options.unlabelled = 1;
    options.drop = "1,4-5";
    open_one(path, &options);
    options.unlabelled = 0;
    options.drop = NULL;
    options.label_column = "last";
    options.features = "2-4,last";
    options.category = "2";
    options.threads = 2;
    open_one(path, &options);
    return 0;
}

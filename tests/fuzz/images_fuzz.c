/* Archives of images, plain or gzipped, with and without their broken files: qn_data_open. */
#include "fuzz/fuzz.h"

#include <quern/data.h>

static void open_one(const char *path, const qn_data_options *options) {
    qn_data *data = NULL;
    qn_error err = {0};
    const qn_status status = qn_data_open(path, options, &data, &err);
    if (status != QN_OK) {
        fuzz_check_refusal(status, data, &err);
        FUZZ_MUST(status == QN_INPUT || status == QN_UNSUPPORTED || status == QN_MEMORY);
        FUZZ_MUST(status == QN_MEMORY || err.remedy[0]);
        return;
    }
    const size_t count = (size_t)qn_data_items(data) * qn_data_features(data);
    const uint8_t *bytes = qn_data_values(data);
    const int32_t *labels = qn_data_labels(data);
    unsigned sum = 0;
    FUZZ_MUST(count > 0 && strlen(qn_data_digest(data)) == 64);
    for (size_t i = 0; qn_data_type_of(data) == QN_U8 && i < count; i++)
        sum += bytes[i]; /* a sanitizer sees that it is there */
    FUZZ_MUST(sum <= 255 * count);
    for (uint64_t i = 0; labels && i < qn_data_items(data); i++)
        FUZZ_MUST(labels[i] >= 0 && (uint32_t)labels[i] < qn_data_classes(data));
    qn_data_close(data);
}

/* Makes the check sums of all headers right, which hardly any change of the bytes would leave so.
 */
static void repair(uint8_t *bytes, size_t size) {
    for (size_t at = 0; at + 512 <= size; at += 512) {
        unsigned sum = 0;
        if (memcmp(bytes + at + 257, "ustar", 5) != 0)
            continue;
        memset(bytes + at + 148, ' ', 8);
        for (size_t i = 0; i < 512; i++)
            sum += bytes[at + i];
        char text[8];
        snprintf(text, sizeof text, "%06o", sum);
        memcpy(bytes + at + 148, text, 7);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    uint8_t *repaired = malloc(size + 1);
    FUZZ_MUST(repaired != NULL);
    memcpy(repaired, bytes, size);
    repair(repaired, size);
    const char *path = fuzz_file(0, repaired, size);
    free(repaired);
    qn_data_options options;
    qn_data_options_init(&options);
    options.threads = 1;
    open_one(path, &options);
    options.skip_broken = 1;
    open_one(path, &options);
    options.unlabelled = 1;
    options.resize = "3x5";
    open_one(path, &options);
    options.resize = "short 9 crop 4";
    open_one(path, &options);
    options.resize = "short 9 crop 4x5 bicubic";
    open_one(path, &options);
    return 0;
}

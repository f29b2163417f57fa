/* What files say about the networks of others: a config.json, and names of classes. */
#include "fuzz/fuzz.h"

#include "base/memory.h"
#include "model/exchange/import_config.h"

/* Names that were read differ, and none is empty. */
static void check_labels(const qn__class_labels *labels) {
    FUZZ_MUST(labels->count <= QN__LABELS_MOST);
    for (uint32_t i = 0; i < labels->count; i++) {
        FUZZ_MUST(labels->name[i][0]);
        for (uint32_t k = 0; labels->count < 100 && k < i; k++)
            FUZZ_MUST(strcmp(labels->name[i], labels->name[k]) != 0);
    }
}

static void refused(qn_status status, const qn_error *err) {
    FUZZ_MUST(status == QN_INPUT || status == QN_FORMAT || status == QN_MEMORY);
    FUZZ_MUST(status == QN_MEMORY || err->what[0]);
    FUZZ_MUST(status != QN_INPUT || err->remedy[0]);
}

static void read_config(const char *text, size_t size, const char *shape) {
    qn_import_config *config = qn__alloc(1, sizeof *config, NULL);
    qn_error err = {0};
    qn__resize resize;
    FUZZ_MUST(config != NULL);
    const qn_status status = qn__import_config_parse(text, size, shape, config, &err);
    if (status != QN_OK)
        refused(status, &err);
    else
        FUZZ_MUST(config->shape[0] && qn__resize_parse(config->resize, &resize, NULL) == QN_OK);
    check_labels(&config->labels);
    qn_import_config_free(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    const char *text = (const char *)bytes;
    qn__class_labels labels = {.count = 0};
    qn__json *json = NULL;
    qn_error err = {0};
    read_config(text, size, NULL);
    read_config(text, size, "3x10x10");
    qn_status status = qn__class_labels_of_lines(text, size, &labels, &err);
    if (status != QN_OK)
        refused(status, &err);
    check_labels(&labels);
    qn__class_labels_release(&labels);
    if (qn__json_parse(text, size, &json, NULL) == QN_OK) {
        const qn__json_node *root = qn__json_root(json);
        status = qn__class_labels_of_json(root, qn__json_at(root, 0), &labels, &err);
        if (status != QN_OK)
            refused(status, &err);
        check_labels(&labels);
        qn__class_labels_release(&labels);
    }
    qn__json_free(json);
    return 0;
}

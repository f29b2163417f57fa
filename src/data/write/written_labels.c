/* Labels as columns, and labels that a format does not hold. */
#include "data/write/formats.h"
#include <stdio.h>

qn_status qn__written_labels_check(const qn__format *f, const qn_data *data, qn_error *err) {
    const int masks = data->several && data->several->height > 0;
    if (!data->several || (masks ? f->masks : f->several))
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED, "%s cannot hold %s", f->shown,
             masks ? "masks of pixels" : "several labels of an item");
    return qn__remedy(err, QN_UNSUPPORTED,
                      masks ? "write it as NPY or NPZ, or open the data without masks"
                            : "write it as CSV, Parquet or NPZ, or open the data without labels");
}

uint32_t qn__written_labels(const qn_data *data) {
    if (data->several)
        return data->several->height ? 0 : data->several->each;
    return data->labels || data->targets;
}

const char *qn__written_label_name(const qn_data *data, uint32_t k, char made[QN__LABEL_NAME]) {
    const char *name = data->several ? qn_data_class_name(data, k) : qn_data_label_name(data);
    if (name)
        return name;
    snprintf(made, QN__LABEL_NAME, data->several ? "label%u" : "label", (unsigned)k);
    return made;
}

uint32_t qn__written_label_texts(const qn_data *data, uint32_t k) {
    char *const *value = data->schema ? data->schema->label_value : NULL;
    return !value || !value[2 * (size_t)k] ? 0 : value[2 * (size_t)k + 1] ? 2 : 1;
}

const char *qn__written_label_text(const qn_data *data, uint32_t k, uint32_t value) {
    return data->schema->label_value[2 * (size_t)k + value];
}

qn_status qn__written_tokens_check(const qn__format *f, const qn_data *data, qn_error *err) {
    if (f->tokens || !qn__element_is_token(data->type))
        return QN_OK;
    qn__fail(err, QN_INPUT, "%s holds values, and these are numbers of tokens", f->shown);
    return qn__remedy(err, QN_INPUT, "write them as NPY or NPZ");
}

#include "data/images/drawn.h"

qn_status qn__drawn_check(const qn_data *data, qn_error *err) {
    if (data->type == QN_U8 && (data->channels == 1 || data->channels == 3))
        return QN_OK;
    if (data->channels && data->type != QN_U8) {
        qn__fail(err, QN_INPUT, "only images of bytes are drawn, and these have other numbers");
        return qn__remedy(err, QN_INPUT, "give pixels as whole numbers from 0 to 255");
    }
    if (data->channels) {
        qn__fail(err, QN_INPUT, "only images with 1 or 3 channels are drawn, and these have %u",
                 (unsigned)data->channels);
        return qn__remedy(err, QN_INPUT,
                          "channels come first: an item is channels x rows x columns");
    }
    qn__fail(err, QN_INPUT, "the items are not known to be images");
    return qn__remedy(err, QN_INPUT,
                      "give images, or say with `data.shape` what image an item is, as 28x28");
}

void qn__drawn_pixels(const qn_data *data, const uint8_t *value, uint8_t *out) {
    const size_t area = (size_t)data->rows * data->columns;
    for (size_t i = 0; i < area; i++)
        for (uint32_t c = 0; c < data->channels; c++)
            out[i * data->channels + c] = value[c * area + i];
}

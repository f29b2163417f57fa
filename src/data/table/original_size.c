/* Images before they were resized. */
#include "base/argument.h"
#include "base/system/float_state.h"
#include "data/table/data.h"
#include "image/mask.h"

void qn_data_original_size(const qn_data *data, uint64_t item, uint32_t *rows, uint32_t *columns) {
    qn__item_size size = {0, 0};
    QN__OWN_FLOATS;
    if (data && item < data->items) {
        const uint64_t row = data->index ? data->index[item] : item;
        size = data->names && data->names->seen ? data->names->seen[row]
                                                : (qn__item_size){data->rows, data->columns};
    }
    if (rows)
        *rows = size.height;
    if (columns)
        *columns = size.width;
}

qn_status qn_data_original_mask(const qn_data *data, uint64_t item, const uint8_t *mask,
                                uint32_t rows, uint32_t columns, uint8_t *to, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(data, err);
    QN__NEED(mask, err);
    QN__NEED(to, err);
    uint32_t height, width;
    qn_data_original_size(data, item, &height, &width);
    if (rows == 0 || columns == 0 || height == 0)
        return qn__fail(err, QN_USAGE, "qn_data_original_mask: %s",
                        height ? "the mask has no pixels" : "the data has no image of this number");
    const qn__resize none = {0};
    const int resized = data->names && data->names->seen;
    return qn__resize_undo(resized ? &data->resize : &none, mask, rows, columns, height, width, to,
                           err);
}

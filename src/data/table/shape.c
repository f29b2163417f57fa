#include "data/table/shape.h"
#include "base/text/text.h"
#include <string.h>

/* Two or three numbers from 1 between crosses; 0 when there are others. */
static int read_shape(const char *text, uint32_t shape[3]) {
    uint32_t side[4] = {0};
    size_t count = 0;
    for (const char *at = text; count < 4;) {
        const size_t size = strcspn(at, "xX");
        uint64_t value = 0;
        if (!qn__parse_u64(at, size, &value) || value < 1 || value > UINT32_MAX)
            return 0;
        side[count++] = (uint32_t)value;
        if (!at[size])
            break;
        at += size + 1;
    }
    if (count != 2 && count != 3)
        return 0;
    shape[0] = count == 3 ? side[0] : 1;
    shape[1] = side[count - 2];
    shape[2] = side[count - 1];
    return 1;
}

static int has_categories(const qn_data *data) {
    for (uint32_t k = 0; data->schema && k < data->features; k++)
        if (data->schema->feature[k].categories)
            return 1;
    return 0;
}

qn_status qn__shape_read(const char *text, const char *field, uint32_t shape[3], qn_error *err) {
    if (read_shape(text, shape))
        return QN_OK;
    qn__fail(err, QN_USAGE, "\"%s\" is not the shape of an image", text);
    qn__at(err, "%s", field);
    return qn__remedy(err, QN_USAGE,
                      "%s is HEIGHTxWIDTH, as 28x28, or CHANNELSxHEIGHTxWIDTH, as 3x32x32", field);
}

qn_status qn__shape_set(qn_data *data, const char *text, const char *path, qn_error *err) {
    uint32_t shape[3] = {0};
    uint64_t area = 0, product = 0;
    const qn_status status = qn__shape_read(text, "`data.shape`", shape, err);
    if (status != QN_OK)
        return status;
    area = (uint64_t)shape[1] * shape[2];
    const int fits = !__builtin_mul_overflow(area, (uint64_t)shape[0], &product) &&
                     product == data->features && !has_categories(data);
    if (!fits) {
        qn__fail(err, QN_INPUT, "an item has %u features, which are not an image of the shape %s",
                 (unsigned)data->features, text);
        qn__at(err, "%s", path);
        return qn__remedy(
            err, QN_INPUT,
            "in `data.shape`, channels x height x width must be the number of features, "
            "and all features numbers");
    }
    data->channels = shape[0];
    data->rows = shape[1];
    data->columns = shape[2];
    return QN_OK;
}

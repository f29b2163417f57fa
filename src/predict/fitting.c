#include "predict/fitting.h"

#include "data/table/picture.h"
#include "layer/axes.h"

qn__fitting qn__fitting_of(const qn__recipe *recipe, const char *what) {
    return (qn__fitting){.schema = recipe->table,
                         .features = recipe->features,
                         .outputs = recipe->network.layer[recipe->network.layers - 1].out,
                         .weight = recipe->weight,
                         .what = what};
}

qn_status qn__shape_check(const qn__recipe *recipe, const qn_data *data, const char *what,
                          qn_error *err) {
    const qn__shape *s = &recipe->shape;
    char shape[QN__SHAPE_TEXT];
    const int files = qn__of_image_files(data);
    if (data->channels == 0 ||
        (s->channels == 0 && (!files || data->features == recipe->features)) ||
        (data->channels == s->channels && data->rows == s->height && data->columns == s->width))
        return QN_OK;
    if (s->channels == 0)
        qn__fail(err, QN_MISMATCH,
                 "%s has images of %ux%ux%u, which is %u values, and the model takes %u", what,
                 data->channels, data->rows, data->columns, data->features, recipe->features);
    else
        qn__fail(err, QN_MISMATCH, "%s has items of %ux%ux%u, the model takes %s (%s)", what,
                 data->channels, data->rows, data->columns, qn__shape_text(*s, shape),
                 qn__axes_of(*s)->lengths);
    if (files && data->channels == 3 &&
        (s->channels == 1 || 3 * (uint64_t)recipe->features == data->features))
        return qn__remedy(err, QN_MISMATCH,
                          "the model was trained on grey images, and these have colours: make grey "
                          "images of them, or train on images with colours");
    if (files && s->channels)
        return qn__remedy(err, QN_MISMATCH, "bring the images to that size: `data.resize` %ux%u",
                          s->height, s->width);
    return qn__remedy(err, QN_MISMATCH, "%s",
                      files ? "bring the images to the size of those in training: `data.resize`"
                            : "`data.shape` says the shape of an item");
}

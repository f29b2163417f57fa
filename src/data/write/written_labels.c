/* Labels that no format holds. */
#include "data/write/formats.h"

qn_status qn__written_labels_check(const qn_data *data, qn_error *err) {
    if (!data->several)
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED, "%s cannot be written",
             data->several->height ? "masks" : "several labels of an item");
    return qn__remedy(
        err, QN_UNSUPPORTED,
        data->schema && data->schema->classes > 0
            ? "leave `data.label_column` out: the columns are then written as they are"
            : "write the values alone: open the data without labels");
}

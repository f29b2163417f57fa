#include "adapter.h"

#include "message.h"
#include "ranks.h"
#include <quern/files.h>

static qn_status open_both(const char *adapter, const qn_model *base, qn_model **out,
                           qn_error *err) {
    const qn_status status =
        qn_model_adapt(ranks_cluster(), ranks_data_from_first(), adapter, base, out, err);
    if (status != QN_OK || qn_model_adapts(*out))
        return status;
    qn_model_free(*out);
    *out = NULL;
    return message_fill(err, QN_MISMATCH, adapter, "leave --adapter out, and name it as the model",
                        "the file is a model with all its parameters, and has no adapters alone");
}

qn_status adapter_open(const char *path, const char *adapter, qn_model **out, qn_error *err) {
    qn_model *base = NULL;
    if (!adapter)
        return qn_model_share(ranks_cluster(), ranks_data_from_first(), path, out, err);
    *out = NULL;
    qn_status status = qn_model_share(ranks_cluster(), ranks_data_from_first(), path, &base, err);
    if (status == QN_OK)
        status = qn_path_is_folder(adapter) ? qn_model_import_peft(base, adapter, out, err)
                                            : open_both(adapter, base, out, err);
    qn_model_free(base);
    return status;
}

/* The model of a training. */
#include "base/argument.h"
#include "base/system/float_state.h"
#include "train/trainer_state.h"
#include <stdint.h>

qn_status qn_train_model(const qn_train *t, qn_model **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED_AS(t, "train", err);
    /* Fetching the parameters has no visible effect for the caller. */
    qn_train *mutable = (qn_train *)(uintptr_t)t;
    qn_status status = qn__train_check_process(t, __func__, err);
    if (status == QN_OK)
        status = qn__train_failed(t, err);
    if (status != QN_OK)
        return status;
    status = qn__train_job_model(&mutable->job, out, err);
    if (status == QN_DEVICE && t->cluster)
        qn__cluster_withdraw(t->cluster); /* the next rank has the state */
    return status;
}

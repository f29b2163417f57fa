/* Whether this rank writes the files of a training, and failures that end it for all ranks. */
#include "train/trainer_state.h"
#include "base/error.h"

int qn__train_is_writer(const qn_train *t) {
    return !t->cluster || qn_cluster_is_writer(t->cluster);
}

qn_status qn__train_fail_all(qn_train *t, qn_status status, qn_error *err) {
    /* the other ranks know of errors that the cluster returned */
    if (t->cluster && status == QN_DEVICE)
        qn__cluster_withdraw(t->cluster);
    else if (t->cluster && status != QN_OK && status != QN_CLUSTER)
        qn__cluster_fail(t->cluster, err);
    return status;
}

qn_status qn__train_failed(const qn_train *t, qn_error *err) {
    if (t->failed == QN_OK)
        return QN_OK;
    qn__fail(err, t->failed, "the training failed in step %llu: there is no state to continue from",
             (unsigned long long)(t->job.step + 1));
    return qn__remedy(err, t->failed, "start again, with resume if there is a checkpoint");
}

/* Who may call a training now: the process that opened it, and no callback of a call under way. */
#include "train/trainer_state.h"
#include <unistd.h>

int qn__train_is_ours(const qn_train *t) { return t->process == getpid(); }

qn_status qn__train_check_process(const qn_train *t, const char *function, qn_error *err) {
    if (qn__train_is_ours(t))
        return QN_OK;
    qn__fail(err, QN_USAGE,
             "%s: process %ld opened this training, and process %ld is a child of it", function,
             (long)t->process, (long)getpid());
    return qn__remedy(err, QN_USAGE,
                      "open it in the process that uses it: threads do not survive fork()");
}

qn_status qn__train_enter(qn_train *t, const char *function, qn_error *err) {
    const qn_status status = qn__train_check_process(t, function, err);
    if (status != QN_OK)
        return status;
    if (!atomic_exchange(&t->in_use, 1))
        return QN_OK;
    qn__fail(err, QN_USAGE, "%s: another call with this training has not returned", function);
    return qn__remedy(err, QN_USAGE,
                      "call it when that one has returned; a callback may call qn_train_stop and "
                      "qn_train_model");
}

qn_status qn__train_leave(qn_train *t, qn_status status) {
    atomic_store(&t->in_use, 0);
    return status;
}

#include "cluster/transport/transport.h"

#include "base/memory.h"

qn__parcel *qn__parcel_create(qn__post *post, uint64_t bytes) {
    if (bytes > QN__BODY_MOST)
        return NULL;
    /* Memory is taken only as it is touched: a length alone costs nobody anything. */
    qn__parcel *parcel = qn__alloc(1, sizeof *parcel + bytes, NULL);
    if (!parcel)
        return NULL;
    atomic_init(&parcel->holders, 1);
    parcel->bytes = bytes;
    parcel->room = bytes;
    parcel->post = post;
    return parcel;
}

qn__parcel *qn__parcel_hold(qn__parcel *parcel) {
    atomic_fetch_add_explicit(&parcel->holders, 1, memory_order_relaxed);
    return parcel;
}

void qn__parcel_drop(qn__parcel *parcel) {
    if (!parcel || atomic_fetch_sub_explicit(&parcel->holders, 1, memory_order_acq_rel) > 1)
        return;
    qn__post *post = parcel->post;
    if (post && post->calls->recycle)
        post->calls->recycle(post, parcel);
    else
        qn__free(parcel);
}

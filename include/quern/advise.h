/* Which devices a run would use, found out by trying. */
#ifndef QUERN_ADVISE_H
#define QUERN_ADVISE_H

#include <quern/device.h>
#include <quern/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What became of one device in a trial. */
typedef struct qn_advice {
    size_t size;             /* sizeof(qn_advice), in each element */
    char id[32];             /* as in qn_device_info */
    int used;                /* 1: it takes part in the steps of a long run */
    double share;            /* of the items at the end of the trial, 0..1 */
    double items_per_second; /* while it computed; 0: it did not compute */
    char why[256];           /* why it takes no part; empty when it does */
} qn_advice;

/* Trains the network of `options` for about `seconds` (two are usually enough) on random items of
 * `features` bytes each, by all devices that options->compute lets take part, and tells which of
 * them stayed: a run decides in the same way, in its first steps. Of `options` the network, the
 * loss, the optimiser, batch and grain count, and `compute`; nothing is written anywhere.
 *
 * Fills advice[i] for device i of qn_device_get, at most `room` of them, their number in *count,
 * and in *items_per_second the items a second of all together; `items_per_second` may be NULL.
 * Opening a device for the first time may take longer than the trial. Fails as qn_train_open and
 * qn_train_run do. */
QN_API qn_status qn_advise(const qn_train_options *options, uint32_t features, double seconds,
                           qn_advice *advice, uint32_t room, uint32_t *count,
                           double *items_per_second, qn_error *err);

#ifdef __cplusplus
}
#endif
#endif

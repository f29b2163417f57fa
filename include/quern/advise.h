/* Which devices a run would use: measured by a short training. */
#ifndef QUERN_ADVISE_H
#define QUERN_ADVISE_H

#include <quern/device.h>
#include <quern/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a trial found about one device. */
typedef struct qn_advice {
    size_t size;             /* sizeof(qn_advice), in each element */
    char id[32];             /* as in qn_device_info */
    int used;                /* 1: it takes part in the steps of a long run */
    double share;            /* of the items in the second half of the trial, 0..1 */
    double items_per_second; /* while it computed; 0: it did not compute */
    char why[256];           /* why it takes no part; empty when it does */
} qn_advice;

/* Finds out which devices a run would use. Trains the network of `options` for `seconds` (above 0,
 * at most 3600; 2 are usually enough) on random items of `features` bytes (with 784 features on
 * synthetic digits), with all devices that options->compute allows. A run chooses in the same way,
 * in its first steps. Opening a device for the first time may take longer than the trial.
 *
 * Of `options` it reads `model` (required), `arith`, `loss`, `optimizer`, `momentum`, `batch`,
 * `grain` and `compute`. It writes no file.
 *
 * Fills advice[i] for device i of qn_device_get, at most `capacity` elements, and sets *count to
 * their number. `advice` may be NULL when `capacity` is 0. *items_per_second is the speed of all
 * devices together; it may be NULL. Fails as qn_train_open and qn_train_run do. After a failure
 * *count is 0 and the contents of `advice` are undefined. */
QN_API qn_status qn_advise(const qn_train_options *options, uint32_t features, double seconds,
                           qn_advice *advice, uint32_t capacity, uint32_t *count,
                           double *items_per_second, qn_error *err);

#ifdef __cplusplus
}
#endif
#endif

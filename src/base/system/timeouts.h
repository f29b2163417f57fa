/* Default timeouts. The other defaults are in model/recipe/defaults.c. */
#ifndef QN_BASE_SYSTEM_TIMEOUTS_H
#define QN_BASE_SYSTEM_TIMEOUTS_H

/* Seconds; stated in <quern/device.h> and <quern/cluster.h> as well. */
#define QN__DEVICE_TIMEOUT 60.0
#define QN__RENDEZVOUS_TIMEOUT 60.0
#define QN__RANK_TIMEOUT 20.0

#endif

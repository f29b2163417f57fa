/* The rendezvous address of the ranks that torchrun started, by what it tells each of them. */
#ifndef QN_CLUSTER_RENDEZVOUS_TORCHRUN_H
#define QN_CLUSTER_RENDEZVOUS_TORCHRUN_H

#include "base/error.h"
#include <stdint.h>

/* The host of rank 0 (256 bytes; 127.0.0.1 where all `ranks` are on one machine) and the port
 * behind MASTER_PORT, at which torchrun's own store may listen. */
qn_status qn__torchrun_place(uint32_t ranks, char *host, uint16_t *port, qn_error *err);

#endif

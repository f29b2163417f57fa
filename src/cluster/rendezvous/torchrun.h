/* The rendezvous address of the ranks that torchrun started, from the environment variables that it
 * sets. */
#ifndef QN_CLUSTER_RENDEZVOUS_TORCHRUN_H
#define QN_CLUSTER_RENDEZVOUS_TORCHRUN_H

#include "base/error.h"
#include <stdint.h>

/* Where the ranks of one torchrun meet. */
typedef struct qn__torchrun_meeting {
    char host[256]; /* of rank 0; 127.0.0.1 where all ranks are on one machine */
    uint16_t port;  /* the one after MASTER_PORT, at which torchrun's own store may listen */
    uint16_t more;  /* ports after it that may be taken instead */
    char run[64];   /* distinguishes this run from others that meet at the same ports */
} qn__torchrun_meeting;

/* Fills *meeting for so many ranks. QN_USAGE: torchrun's variables are not set as it sets them. */
qn_status qn__torchrun_place(uint32_t ranks, qn__torchrun_meeting *meeting, qn_error *err);

#endif

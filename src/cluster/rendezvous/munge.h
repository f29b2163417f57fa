/* MUNGE, which authenticates users between the machines of a Slurm cluster. Rank 0 uses it to send
 * a key to ranks of the same user only. Opened at run time. */
#ifndef QN_CLUSTER_RENDEZVOUS_MUNGE_H
#define QN_CLUSTER_RENDEZVOUS_MUNGE_H

#include "base/error.h"
#include "cluster/transport/handshake.h"
#include <stddef.h>

/* Writes a credential that contains 32 secret bytes. Only processes of this user, on machines with
 * the same MUNGE key, can decode it, and only for some minutes. QN_UNSUPPORTED without MUNGE. */
qn_status qn__munge_seal(const unsigned char secret[32], char credential[QN__CREDENTIAL_BYTES],
                         qn_error *err);

/* Decodes a credential of a process of the same user; QN_CLUSTER for any other. */
qn_status qn__munge_open(const char credential[QN__CREDENTIAL_BYTES], unsigned char secret[32],
                         qn_error *err);

#endif

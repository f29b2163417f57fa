/* MUNGE, with which the machines of a Slurm cluster already tell their users apart: how rank 0
 * hands a key to the ranks of the same user and to nobody else. Opened at run time. */
#ifndef QN_CLUSTER_RENDEZVOUS_MUNGE_H
#define QN_CLUSTER_RENDEZVOUS_MUNGE_H

#include "base/error.h"
#include "cluster/transport/handshake.h"
#include <stddef.h>

/* Writes a credential that holds 32 secret bytes and that only processes of this user can open, on
 * machines with the same MUNGE key, for some minutes. QN_UNSUPPORTED when there is no MUNGE. */
qn_status qn__munge_seal(const unsigned char secret[32], char credential[QN__CREDENTIAL_BYTES],
                         qn_error *err);

/* Opens what a process of the same user has sealed; QN_CLUSTER for anything else. */
qn_status qn__munge_open(const char credential[QN__CREDENTIAL_BYTES], unsigned char secret[32],
                         qn_error *err);

#endif

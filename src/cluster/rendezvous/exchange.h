/* A rendezvous at an address that all ranks know. Rank 0 listens there; the others send their
 * endpoints and receive the table of all endpoints. */
#ifndef QN_CLUSTER_RENDEZVOUS_EXCHANGE_H
#define QN_CLUSTER_RENDEZVOUS_EXCHANGE_H

#include "cluster/rendezvous/endpoint.h"
#include <quern/status.h>

/* What a rank gets that comes to a run which has begun. */
typedef struct qn__begun {
    int has;         /* 1: it has begun; the caller releases `described` */
    char *described; /* what the run is, as its ranks have compared it */
    uint64_t bytes;
} qn__begun;

/* Bytes of a description. */
enum { QN__DESCRIBED_BYTES = 1 << 16 };

typedef struct qn__exchange {
    const char *host;
    uint16_t port;
    uint16_t more; /* ports after `port` that rank 0 takes where others are taken; only with `run`,
                      which tells the ranks of another run there */
    uint32_t ranks, rank;
    uint32_t least;     /* rank 0: so many ranks begin, the others may join later; 0: all */
    const char *secret; /* NULL: none, and then the host must be this machine */
    int munge;          /* without a secret: rank 0 makes one and sends it in a MUNGE credential */
    const char *run; /* distinguishes this run from others of the same user; NULL: nothing does */
    int everywhere;  /* rank 0 listens at all its addresses */
    double timeout;
    qn_note_fn note; /* reports, on the calling thread, what the rank waits for: after some seconds,
                        then now and again; may be NULL */
    void *user;      /* passed to `note` */
    qn__begun *begun; /* filled on a rank other than 0 */
    int again; /* 1: a repeated attempt, because a rank ended before all ranks were connected */
} qn__exchange;

/* Whether the host name means this machine only; 0 if it cannot be resolved. A machine's own name
 * may resolve to a loopback address on that machine and to another one elsewhere. */
int qn__exchange_is_loopback(const char *host);

/* endpoint[rank] is this rank's own. Fills the others, those of ranks that are missing with zeros,
 * and `key` with 32 bytes that only the ranks of this run know. `until`: the deadline.
 *
 * `held` has one entry for each rank, all -1 before the call. It receives the connections of the
 * rendezvous: on rank 0 those to all others, on other ranks held[0], to rank 0. The caller closes
 * those that are not -1, also after a failure. It keeps them open until all ranks have all
 * connections, because their end tells the others that rank 0 has ended.
 *
 * QN_BUSY, with a message: rank 0 ended before all ranks were connected. It may be restarted, so
 * the caller may try again with `again` set. */
qn_status qn__exchange_run(const qn__exchange *place, qn__endpoint *endpoint, unsigned char key[32],
                           double until, int *held, qn_error *err);

/* The key with which a rank proves that it belongs to this job, and the key of connections between
 * ranks, of a random session. */
enum { QN__SESSION_BYTES = 32 };
void qn__exchange_secret(const char *secret, const char *run, unsigned char key[32]);
void qn__exchange_key(const unsigned char secret[32],
                      const unsigned char session[QN__SESSION_BYTES], unsigned char key[32]);
/* The listener of rank 0, at the first of the place's ports that is free, which becomes the place's
 * port. */
qn_status qn__exchange_listen(qn__exchange *place, int *file, qn_error *err);
/* The answer to a rank that comes when the run has begun. 0: the rank has ended. */
int qn__exchange_tell_begun(int file, uint32_t ranks, const qn__endpoint *endpoint,
                            const char *described, uint64_t bytes, double until);

#endif

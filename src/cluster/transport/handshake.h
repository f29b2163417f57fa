/* How two ranks that have a connection make sure of each other, before anything is believed.
 *
 * Who dialled says hello; the other answers with its own hello; who dialled proves that it holds
 * the job's key: HMAC-SHA256 (RFC 2104) over both hellos, which hold a random number each; the
 * other checks it, decides, and answers with its verdict, which holds its own proof. So a stranger
 * who dials gets to see nothing that was made with the key. All of it has fixed sizes, nothing
 * blocks and nothing allocates. */
#ifndef QN_CLUSTER_TRANSPORT_HANDSHAKE_H
#define QN_CLUSTER_TRANSPORT_HANDSHAKE_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

enum { QN__CREDENTIAL_BYTES = 1024 /* a text, filled with NULs */ };

enum { QN__HELLO_BYTES = 176, QN__VERDICT_BYTES = 256, QN__VERDICT_TEXT = 220 };

/* What a connection is for. */
typedef enum qn__purpose {
    QN__FOR_RENDEZVOUS = 1,
    QN__FOR_TRANSPORT,
    QN__FOR_RESUME /* in place of one that was lost or is silent */
} qn__purpose;

typedef struct qn__hello {
    uint32_t wire, contract;
    char version[16], host[64];
    uint32_t purpose, from, to, ranks;
    uint32_t process;
} qn__hello;

/* This rank's own: versions, host and process are filled in. */
void qn__hello_fill(qn__hello *hello, qn__purpose purpose, uint32_t from, uint32_t to,
                    uint32_t ranks);

typedef enum qn__handshake_state {
    QN__HANDSHAKE_READ,  /* continues when there is something to read */
    QN__HANDSHAKE_WRITE, /* when there is room to write */
    QN__HANDSHAKE_ASK,   /* who dialled has proved itself: decide, call qn__handshake_decide */
    QN__HANDSHAKE_DONE,
    QN__HANDSHAKE_REFUSED, /* the other side said why: `why` */
    QN__HANDSHAKE_WRONG_KEY,
    QN__HANDSHAKE_FAILED /* the connection ended, or this is no rank of Quern's */
} qn__handshake_state;

typedef struct qn__handshake {
    int file;
    int dialled;
    int stage;
    size_t have; /* bytes of this stage that have been sent or received */
    qn__handshake_state state;
    const unsigned char *key; /* 32 bytes; belongs to the caller */
    const char *greeting;     /* NULL, or a credential that who was dialled sends first */
    qn__hello other;
    unsigned char own_hello[QN__HELLO_BYTES], other_hello[QN__HELLO_BYTES];
    unsigned char proof[32], verdict[QN__VERDICT_BYTES];
    int refuses; /* the verdict on its way is a refusal */
    char why[QN__VERDICT_TEXT];
} qn__handshake;

void qn__handshake_begin(qn__handshake *shake, int file, int dialled, const qn__hello *own,
                         const unsigned char key[32]);
/* With s->greeting set in between. As far as it goes without waiting. */
qn__handshake_state qn__handshake_go(qn__handshake *shake);
/* The answer to QN__HANDSHAKE_ASK: `refusal` NULL to accept. */
qn__handshake_state qn__handshake_decide(qn__handshake *shake, const char *refusal);

/* HMAC-SHA256 over two texts, the second after the first. */
void qn__hmac(const void *key, size_t key_size, const void *first, size_t first_size,
              const void *second, size_t second_size, unsigned char mac[32]);
/* In a time that does not depend on where they differ. */
int qn__same_secret(const unsigned char a[32], const unsigned char b[32]);

#endif

/* The handshake by which two connected ranks authenticate each other.
 *
 * The dialling side sends a hello; the other answers with its own. The dialling side then proves
 * that it holds the job's key: an HMAC-SHA256 (RFC 2104) over both hellos, which contain random
 * numbers. The other side checks the proof, decides, and answers with a verdict that contains its
 * own proof. So a foreign peer that dials receives nothing derived from the key. All messages have
 * fixed sizes; nothing blocks or allocates. */
#ifndef QN_CLUSTER_TRANSPORT_HANDSHAKE_H
#define QN_CLUSTER_TRANSPORT_HANDSHAKE_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

enum { QN__CREDENTIAL_BYTES = 1024 /* a text, padded with NULs */ };

enum { QN__HELLO_BYTES = 176, QN__VERDICT_BYTES = 256, QN__VERDICT_TEXT = 220 };

/* The purpose of a connection. */
typedef enum qn__purpose {
    QN__FOR_RENDEZVOUS = 1,
    QN__FOR_TRANSPORT,
    QN__FOR_RESUME /* replaces a lost or silent connection */
} qn__purpose;

typedef struct qn__hello {
    uint32_t wire, contract;
    char version[16], host[64];
    uint32_t purpose, from, to, ranks;
    uint32_t process;
} qn__hello;

/* Fills this rank's hello, including versions, host and process. */
void qn__hello_fill(qn__hello *hello, qn__purpose purpose, uint32_t from, uint32_t to,
                    uint32_t ranks);

typedef enum qn__handshake_state {
    QN__HANDSHAKE_READ,  /* waits for data to read */
    QN__HANDSHAKE_WRITE, /* waits for space to write */
    QN__HANDSHAKE_ASK, /* the dialling side has proved itself: decide, call qn__handshake_decide */
    QN__HANDSHAKE_DONE,
    QN__HANDSHAKE_REFUSED, /* the other side refused: `why` */
    QN__HANDSHAKE_WRONG_KEY,
    QN__HANDSHAKE_FAILED /* the connection ended, or the peer is not a rank */
} qn__handshake_state;

typedef struct qn__handshake {
    int file;
    int dialled;
    int stage;
    size_t have; /* bytes of this stage that have been sent or received */
    qn__handshake_state state;
    const unsigned char *key; /* 32 bytes; belongs to the caller */
    const char *greeting;     /* NULL, or a credential that the dialled side sends first */
    qn__hello other;
    unsigned char own_hello[QN__HELLO_BYTES], other_hello[QN__HELLO_BYTES];
    unsigned char proof[32], verdict[QN__VERDICT_BYTES];
    int refuses; /* the verdict being sent is a refusal */
    char why[QN__VERDICT_TEXT];
} qn__handshake;

void qn__handshake_begin(qn__handshake *shake, int file, int dialled, const qn__hello *own,
                         const unsigned char key[32]);
/* Advances without blocking. The caller sets s->greeting before the first call, if any. */
qn__handshake_state qn__handshake_go(qn__handshake *shake);
/* The answer to QN__HANDSHAKE_ASK: `refusal` NULL to accept. */
qn__handshake_state qn__handshake_decide(qn__handshake *shake, const char *refusal);

/* HMAC-SHA256 over the concatenation of two texts. */
void qn__hmac(const void *key, size_t key_size, const void *first, size_t first_size,
              const void *second, size_t second_size, unsigned char mac[32]);
/* Compares in constant time. */
int qn__same_secret(const unsigned char a[32], const unsigned char b[32]);

#endif

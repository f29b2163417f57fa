/* The socket on which a server listens. */
#ifndef QN_SERVE_LISTEN_H
#define QN_SERVE_LISTEN_H

#include "base/error.h"

enum { QN__ADDRESS_CAPACITY = 300 };

/* Listens on "HOST:PORT". `address` gets the address with the port that was taken, *loopback
 * whether only this machine reaches it. Fails with QN_USAGE or QN_IO. */
qn_status qn__listen(const char *where, int *listener, char address[QN__ADDRESS_CAPACITY],
                     int *loopback, qn_error *err);

/* The address of a socket that another program made and that listens. Fails with QN_USAGE. */
qn_status qn__listen_given(int listener, char address[QN__ADDRESS_CAPACITY], int *loopback,
                           qn_error *err);

#endif

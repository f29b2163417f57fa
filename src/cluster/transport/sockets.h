/* Addresses and sockets. */
#ifndef QN_CLUSTER_TRANSPORT_SOCKETS_H
#define QN_CLUSTER_TRANSPORT_SOCKETS_H

#include "base/error.h"
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

/* An IPv4 or IPv6 address in wire format; kind 0: none. */
typedef struct qn__address {
    uint32_t kind; /* 4 or 6 */
    unsigned char bytes[16];
} qn__address;

enum { QN__ADDRESSES_MOST = 8, QN__ADDRESS_TEXT = 64 };

/* Splits "HOST:PORT" or "[ADDRESS]:PORT"; `host` has space for 256 bytes. */
qn_status qn__address_parse(const char *text, char *host, uint16_t *port, qn_error *err);

/* Resolves a host name. Returns how many addresses were stored in list (at most `most`), 0 if the
 * name cannot be resolved at present. */
int qn__address_resolve(const char *host, qn__address *list, int most);

/* Whether the text is an address, not a name. */
int qn__address_is_literal(const char *text);
int qn__address_is_loopback(const qn__address *address);
void qn__address_text(const qn__address *address, uint16_t port, char text[QN__ADDRESS_TEXT]);
socklen_t qn__address_to_socket(const qn__address *address, uint16_t port,
                                struct sockaddr_storage *to);
/* 0 for other families. */
int qn__address_of_socket(const struct sockaddr_storage *from, qn__address *address);
/* The address of the peer; kind 0 if it has none. */
void qn__address_of_peer(int file, qn__address *address);

/* This machine's addresses: of all interfaces that are up, of the one with that name, or that
 * address itself. Loopback addresses only if requested, or if there are no others. Returns how
 * many; 0, with a message, if the interface does not exist. */
int qn__socket_own_addresses(const char *interface, qn__address *list, int most, qn_error *err);

/* A nonblocking listener, on all addresses if `address` is NULL. *port 0: any; it is set to the
 * actual one. */
qn_status qn__socket_listen(const qn__address *address, uint16_t *port, int *file, qn_error *err);
/* A Unix socket in the abstract namespace with that name. */
int qn__socket_listen_unix(const char *name);
/* Begins to connect without blocking; -1 with errno. */
int qn__socket_dial(const qn__address *address, uint16_t port);
int qn__socket_dial_address(const struct sockaddr_storage *to, socklen_t size);
int qn__socket_dial_unix(const char *name);
/* The next connection; -1 if none is waiting. */
int qn__socket_accept(int file);

/* The listeners of a rank; -1: none. */
typedef struct qn__listeners {
    int tcp, local;
} qn__listeners;

void qn__listeners_close(qn__listeners *listeners);

#endif

/* Addresses and sockets of the rendezvous. */
#ifndef QN_CLUSTER_TRANSPORT_SOCKETS_H
#define QN_CLUSTER_TRANSPORT_SOCKETS_H

#include "base/error.h"
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

/* An address of IPv4 or IPv6 as it travels; kind 0: none. */
typedef struct qn__address {
    uint32_t kind; /* 4 or 6 */
    unsigned char bytes[16];
} qn__address;

enum { QN__ADDRESSES_MOST = 8, QN__ADDRESS_TEXT = 64 };

/* "HOST:PORT" or "[ADDRESS]:PORT" to its parts; `host` has room for 256 bytes. */
qn_status qn__address_parse(const char *text, char *host, uint16_t *port, qn_error *err);

/* The addresses of a host's name; returns how many were put into list (at most `most`), 0 where
 * the name is not known (at this moment). */
int qn__address_resolve(const char *host, qn__address *list, int most);

/* Whether the text is an address itself, not a name. */
int qn__address_is_literal(const char *text);
int qn__address_is_loopback(const qn__address *address);
void qn__address_text(const qn__address *address, uint16_t port, char text[QN__ADDRESS_TEXT]);
socklen_t qn__address_to_socket(const qn__address *address, uint16_t port,
                                struct sockaddr_storage *to);
/* 0 where it is of neither kind. */
int qn__address_of_socket(const struct sockaddr_storage *from, qn__address *address);
/* The address of the other end; kind 0 where it has none. */
void qn__address_of_peer(int file, qn__address *address);

/* This machine's addresses: of all interfaces that are up, or of the one with that name, or that
 * address itself. The loopback ones only where asked for or nothing else is there.
 * Returns how many; 0 with a message when there is no such interface. */
int qn__socket_own_addresses(const char *interface, qn__address *list, int most, qn_error *err);

/* A socket that listens (nonblocking), on all addresses where address is NULL. *port 0: any; is set
 * to what it became. */
qn_status qn__socket_listen(const qn__address *address, uint16_t *port, int *file, qn_error *err);
/* A Unix socket in the abstract namespace with that name. */
int qn__socket_listen_unix(const char *name);
/* Begins to connect, without waiting; -1 with errno. */
int qn__socket_dial(const qn__address *address, uint16_t port);
int qn__socket_dial_address(const struct sockaddr_storage *to, socklen_t size);
int qn__socket_dial_unix(const char *name);
/* The next who came; -1 when nobody did. */
int qn__socket_accept(int file);

/* The sockets that a rank listens on until all ranks are connected; -1 where there is none. */
typedef struct qn__listeners {
    int tcp, local;
} qn__listeners;

void qn__listeners_close(qn__listeners *listeners);

#endif

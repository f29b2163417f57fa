#include "cluster/transport/sockets.h"

#include "base/text/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

qn_status qn__address_parse(const char *text, char *host, uint16_t *port, qn_error *err) {
    const char *colon = strrchr(text, ':');
    const int brackets = text[0] == '[' && colon && colon > text && colon[-1] == ']';
    const char *begin = text + brackets;
    const size_t size = colon ? (size_t)(colon - brackets - begin) : 0;
    uint64_t number = 0;
    if (!colon || size == 0 || size > 255 ||
        !qn__parse_u64(colon + 1, strlen(colon + 1), &number) || number == 0 || number > 65535 ||
        (!brackets && memchr(begin, ':', size))) {
        qn__fail(err, QN_USAGE, "invalid rendezvous address \"%s\"", text);
        return qn__remedy(err, QN_USAGE, "write HOST:PORT, such as node1:5600 or [fd00::1]:5600");
    }
    memcpy(host, begin, size);
    host[size] = 0;
    *port = (uint16_t)number;
    return QN_OK;
}

/* 0 for other families, and for link-local IPv6 addresses, which are valid on one interface
 * only. */
static int from_socket(const struct sockaddr *from, qn__address *address) {
    memset(address, 0, sizeof *address);
    if (from->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)from;
        address->kind = 4;
        memcpy(address->bytes, &in->sin_addr, 4);
    } else if (from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const void *)from;
        if (IN6_IS_ADDR_LINKLOCAL(&in->sin6_addr))
            return 0;
        const int mapped = IN6_IS_ADDR_V4MAPPED(&in->sin6_addr);
        address->kind = mapped ? 4 : 6;
        if (mapped)
            memcpy(address->bytes, in->sin6_addr.s6_addr + 12, 4);
        else
            memcpy(address->bytes, &in->sin6_addr, 16);
    }
    return address->kind != 0;
}

int qn__address_resolve(const char *host, qn__address *list, int most) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int count = 0;
    if (getaddrinfo(host, NULL, &hints, &found) != 0)
        return 0;
    for (const struct addrinfo *a = found; a && count < most; a = a->ai_next)
        count += from_socket(a->ai_addr, &list[count]);
    freeaddrinfo(found);
    return count;
}

int qn__address_is_loopback(const qn__address *address) {
    static const unsigned char one[16] = {[15] = 1};
    return (address->kind == 4 && address->bytes[0] == 127) ||
           (address->kind == 6 && memcmp(address->bytes, one, 16) == 0);
}

void qn__address_text(const qn__address *address, uint16_t port, char text[QN__ADDRESS_TEXT]) {
    char name[INET6_ADDRSTRLEN] = "an unknown address";
    if (address->kind == 4)
        inet_ntop(AF_INET, address->bytes, name, sizeof name);
    else if (address->kind == 6)
        inet_ntop(AF_INET6, address->bytes, name, sizeof name);
    if (port == 0)
        snprintf(text, QN__ADDRESS_TEXT, "%s", name);
    else
        snprintf(text, QN__ADDRESS_TEXT, address->kind == 6 ? "[%s]:%u" : "%s:%u", name, port);
}

socklen_t qn__address_to_socket(const qn__address *address, uint16_t port,
                                struct sockaddr_storage *to) {
    memset(to, 0, sizeof *to);
    if (address->kind == 4) {
        struct sockaddr_in *in = (void *)to;
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        memcpy(&in->sin_addr, address->bytes, 4);
        return sizeof *in;
    }
    struct sockaddr_in6 *in = (void *)to;
    in->sin6_family = AF_INET6;
    in->sin6_port = htons(port);
    memcpy(&in->sin6_addr, address->bytes, 16);
    return sizeof *in;
}

int qn__address_of_socket(const struct sockaddr_storage *from, qn__address *address) {
    return from_socket((const struct sockaddr *)from, address);
}

void qn__address_of_peer(int file, qn__address *address) {
    struct sockaddr_storage from;
    socklen_t size = sizeof from;
    memset(address, 0, sizeof *address);
    if (getpeername(file, (struct sockaddr *)&from, &size) == 0)
        from_socket((const struct sockaddr *)&from, address);
}

static int parse_address(const char *text, qn__address *address) {
    memset(address, 0, sizeof *address);
    if (inet_pton(AF_INET, text, address->bytes) == 1)
        address->kind = 4;
    else if (inet_pton(AF_INET6, text, address->bytes) == 1)
        address->kind = 6;
    return address->kind != 0;
}

/* Two passes: IPv4 first, which more networks route between hosts. */
static int walk_interfaces(const struct ifaddrs *all, const char *name, int loopback,
                           qn__address *list, int most) {
    int count = 0;
    for (uint32_t kind = 4; kind <= 6; kind += 2)
        for (const struct ifaddrs *i = all; i && count < most; i = i->ifa_next) {
            qn__address address;
            if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) ||
                (name && strcmp(name, i->ifa_name) != 0))
                continue;
            if (!from_socket(i->ifa_addr, &address) || address.kind != kind)
                continue;
            if (qn__address_is_loopback(&address) == loopback)
                list[count++] = address;
        }
    return count;
}

int qn__address_is_literal(const char *text) {
    qn__address address;
    return parse_address(text, &address);
}

int qn__socket_own_addresses(const char *interface, qn__address *list, int most, qn_error *err) {
    struct ifaddrs *all = NULL;
    if (interface && parse_address(interface, list))
        return 1;
    if (getifaddrs(&all) != 0) {
        qn__fail_errno(err, "list", "the network interfaces");
        return 0;
    }
    int count = walk_interfaces(all, interface, 0, list, most);
    if (count == 0)
        count = walk_interfaces(all, interface, 1, list, most);
    freeifaddrs(all);
    if (count == 0 && interface) {
        qn__fail(err, QN_USAGE, "there is no network interface \"%s\" with an address here",
                 interface);
        qn__remedy(err, QN_USAGE, "`ip address` lists them; an address does as well as a name");
    } else if (count == 0) {
        qn__fail(err, QN_CLUSTER, "no network interface of this machine has an address");
    }
    return count;
}

static int bind_and_listen(const struct sockaddr_storage *at, socklen_t size) {
    const int one = 1, zero = 0;
    const int file = socket(at->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (file < 0)
        return -1;
    setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (at->ss_family == AF_INET6)
        setsockopt(file, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    if (bind(file, (const struct sockaddr *)at, size) == 0 && listen(file, BACKLOG) == 0)
        return file;
    const int error = errno;
    close(file);
    errno = error;
    return -1;
}

qn_status qn__socket_listen(const qn__address *address, uint16_t *port, int *file, qn_error *err) {
    static const qn__address all[2] = {{.kind = 6}, {.kind = 4}};
    struct sockaddr_storage at;
    *file = -1;
    for (int i = 0; i < (address ? 1 : 2) && *file < 0; ++i) {
        const socklen_t size = qn__address_to_socket(address ? address : &all[i], *port, &at);
        *file = bind_and_listen(&at, size);
    }
    socklen_t size = sizeof at;
    if (*file >= 0 && getsockname(*file, (struct sockaddr *)&at, &size) == 0) {
        *port = ntohs(at.ss_family == AF_INET ? ((struct sockaddr_in *)&at)->sin_port
                                              : ((struct sockaddr_in6 *)&at)->sin6_port);
        return QN_OK;
    }
    char text[QN__ADDRESS_TEXT] = "any address";
    if (address)
        qn__address_text(address, *port, text);
    const int busy = errno == EADDRINUSE, foreign = errno == EADDRNOTAVAIL;
    qn__fail_errno(err, "listen at", text);
    if (err)
        err->status = QN_CLUSTER;
    if (busy)
        qn__remedy(err, QN_CLUSTER,
                   "another program holds this port, or another rank 0 runs: end it, or choose "
                   "another port");
    if (foreign)
        qn__remedy(
            err, QN_CLUSTER,
            "this machine does not have that address; rank 0 must run on the machine that has it");
    return QN_CLUSTER;
}

/* Abstract names begin with a NUL: they leave no file behind and need no directory. */
static socklen_t unix_name(const char *name, struct sockaddr_un *to) {
    memset(to, 0, sizeof *to);
    to->sun_family = AF_UNIX;
    const size_t size = strnlen(name, sizeof to->sun_path - 1);
    memcpy(to->sun_path + 1, name, size);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + size);
}

int qn__socket_listen_unix(const char *name) {
    struct sockaddr_un at;
    const socklen_t size = unix_name(name, &at);
    const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (file >= 0 && bind(file, (struct sockaddr *)&at, size) == 0 && listen(file, BACKLOG) == 0)
        return file;
    if (file >= 0)
        close(file);
    return -1;
}

static int dial(const struct sockaddr *to, socklen_t size) {
    const int file = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (file < 0 || connect(file, to, size) == 0 || errno == EINPROGRESS)
        return file;
    const int error = errno;
    close(file);
    errno = error;
    return -1;
}

int qn__socket_dial(const qn__address *address, uint16_t port) {
    struct sockaddr_storage to;
    const socklen_t size = qn__address_to_socket(address, port, &to);
    return dial((struct sockaddr *)&to, size);
}

int qn__socket_dial_address(const struct sockaddr_storage *to, socklen_t size) {
    return dial((const struct sockaddr *)to, size);
}

int qn__socket_dial_unix(const char *name) {
    struct sockaddr_un to;
    const socklen_t size = unix_name(name, &to);
    return dial((struct sockaddr *)&to, size);
}

int qn__socket_accept(int file) { return accept4(file, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC); }

void qn__listeners_close(qn__listeners *listeners) {
    if (listeners->tcp >= 0)
        close(listeners->tcp);
    if (listeners->local >= 0)
        close(listeners->local);
    *listeners = (qn__listeners){-1, -1};
}

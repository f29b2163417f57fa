#include "serve/listen.h"

#include "base/text/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WAITING = 4096, HOST_CAPACITY = 256, PORT_CAPACITY = 8 };

static qn_status refuse(const char *where, qn_error *err) {
    qn__fail(err, QN_USAGE, "`server.listen` is \"%s\", which is not an address", where);
    return qn__remedy(err, QN_USAGE,
                      "write HOST:PORT, such as 127.0.0.1:8080, [::1]:8080, or :8080 for all "
                      "addresses of this machine");
}

/* "HOST:PORT" with an IPv6 address in brackets. */
static qn_status split(const char *where, char host[HOST_CAPACITY], char port[PORT_CAPACITY],
                       qn_error *err) {
    const char *colon = strrchr(where, ':');
    uint64_t number = 0;
    if (!colon || strlen(colon + 1) > 5 || !qn__parse_u64(colon + 1, strlen(colon + 1), &number) ||
        number > UINT16_MAX)
        return refuse(where, err);
    size_t size = (size_t)(colon - where);
    if (size >= 2 && where[0] == '[' && where[size - 1] == ']') {
        where++;
        size -= 2;
    } else if (memchr(where, ':', size))
        return refuse(where, err);
    if (size >= HOST_CAPACITY)
        return refuse(where, err);
    memcpy(host, where, size);
    host[size] = '\0';
    snprintf(port, PORT_CAPACITY, "%s", colon + 1);
    return QN_OK;
}

/* Hosts of clients that die or lose their network say nothing. The system asks them, and ends a
 * connection that has not answered for two minutes. Connections have these options of the socket on
 * which they came. */
static void notice_dead_hosts(int listener) {
    enum { SECONDS = 120, FIRST = 60, EACH = 15, TIMES = 4 };
    static const struct {
        int level, name, value;
    } option[] = {{SOL_SOCKET, SO_KEEPALIVE, 1},
                  {IPPROTO_TCP, TCP_KEEPIDLE, FIRST},
                  {IPPROTO_TCP, TCP_KEEPINTVL, EACH},
                  {IPPROTO_TCP, TCP_KEEPCNT, TIMES},
                  {IPPROTO_TCP, TCP_USER_TIMEOUT, SECONDS * 1000}};
    for (size_t k = 0; k < sizeof option / sizeof *option; k++)
        setsockopt(listener, option[k].level, option[k].name, &option[k].value, sizeof(int));
}

/* Without a host IPv6 sockets take IPv4 as well. Returns the socket, or -1 with errno. */
static int open_socket(const struct addrinfo *a, int all) {
    const int on = 1, off = 0;
    const int s = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s < 0)
        return -1;
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->ai_family == AF_INET6)
        setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, all ? &off : &on, sizeof on);
    if (bind(s, a->ai_addr, a->ai_addrlen) == 0 && listen(s, WAITING) == 0)
        return s;
    const int why = errno;
    close(s);
    errno = why;
    return -1;
}

static int is_loopback(const struct sockaddr *a) {
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

/* The address as a client writes it. */
static void tell(int listener, const char *host, char address[QN__ADDRESS_CAPACITY],
                 int *loopback) {
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } own = {.six = {0}};
    socklen_t size = sizeof own;
    getsockname(listener, &own.any, &size);
    const unsigned port =
        ntohs(own.any.sa_family == AF_INET6 ? own.six.sin6_port : own.four.sin_port);
    const int brackets = strchr(host, ':') != NULL;
    snprintf(address, QN__ADDRESS_CAPACITY, "%s%s%s:%u", brackets ? "[" : "",
             *host ? host : "0.0.0.0", brackets ? "]" : "", port);
    *loopback = is_loopback(&own.any);
}

qn_status qn__listen(const char *where, int *listener, char address[QN__ADDRESS_CAPACITY],
                     int *loopback, qn_error *err) {
    char host[HOST_CAPACITY] = "", port[PORT_CAPACITY] = "";
    struct addrinfo *found = NULL;
    const struct addrinfo wanted = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                                    .ai_socktype = SOCK_STREAM};
    qn_status status = split(where, host, port, err);
    if (status != QN_OK)
        return status;
    const int unknown = getaddrinfo(*host ? host : NULL, port, &wanted, &found);
    if (unknown != 0) {
        qn__fail(err, QN_USAGE, "`server.listen`: the address \"%s\" is not known: %s", host,
                 gai_strerror(unknown));
        return qn__remedy(err, QN_USAGE, "name an address of this machine, such as 127.0.0.1:8080");
    }
    *listener = -1;
    for (const struct addrinfo *a = found; a && *listener < 0; a = a->ai_next)
        *listener = open_socket(a, !*host);
    const int why = errno;
    freeaddrinfo(found);
    if (*listener >= 0) {
        notice_dead_hosts(*listener);
        tell(*listener, host, address, loopback);
        return QN_OK;
    }
    qn__fail(err, QN_IO, "cannot listen on %s: %s", where, strerror(why));
    return qn__remedy(err, QN_IO,
                      why == EADDRINUSE ? "choose another port, or 0 for any; another program uses "
                                          "this one"
                      : why == EACCES   ? "choose a port of 1024 or more"
                                        : "name an address of this machine");
}

qn_status qn__listen_given(int listener, char address[QN__ADDRESS_CAPACITY], int *loopback,
                           qn_error *err) {
    struct sockaddr_storage own = {0};
    socklen_t size = sizeof own;
    int listens = 0;
    socklen_t length = sizeof listens;
    char host[HOST_CAPACITY] = "unix";
    if (getsockopt(listener, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || !listens ||
        getsockname(listener, (struct sockaddr *)&own, &size) != 0)
        return qn__fail(err, QN_USAGE, "the socket that was handed over does not listen");
    if (own.ss_family == AF_UNIX) { /* the permissions of its path protect it */
        snprintf(address, QN__ADDRESS_CAPACITY, "unix");
        *loopback = 1;
        return QN_OK;
    }
    notice_dead_hosts(listener);
    getnameinfo((struct sockaddr *)&own, size, host, sizeof host, NULL, 0, NI_NUMERICHOST);
    tell(listener, host, address, loopback);
    return QN_OK;
}

/* A port of the loopback interface that is free at present. */
#ifndef QN_CLUSTER_FREE_PORT_TEST_H
#define QN_CLUSTER_FREE_PORT_TEST_H

#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Below 32768: from there on the system assigns ports to outgoing connections, possibly one that
 * was free a moment ago. */
enum { FIRST_FREE_PORT = 10000, FREE_PORTS = 20000 };

static inline uint16_t free_port(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint32_t drawn = (uint32_t)now.tv_nsec / 64 + (uint32_t)getpid() * 7919;
    for (int tries = 0; tries < 1000; ++tries, drawn += 4099) {
        const uint16_t port = (uint16_t)(FIRST_FREE_PORT + drawn % FREE_PORTS);
        const struct sockaddr_in at = {.sin_family = AF_INET,
                                       .sin_port = htons(port),
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const int is_free = file >= 0 && bind(file, (const struct sockaddr *)&at, sizeof at) == 0;
        close(file);
        if (is_free)
            return port;
    }
    abort();
}

#endif

#include "cluster/rendezvous/endpoint.h"

#include "base/digest/sha256.h"
#include "cluster/rendezvous/rendezvous.h"
#include "cluster/transport/wire.h"
#include <quern/version.h>

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static _Thread_local const char *simulated_machine;

void qn__rendezvous_simulate(const char *machine) { simulated_machine = machine; }

/* -------------------------------------------------------------------------------------- machine */

static void add_file(qn__sha256 *hash, const char *path) {
    char text[64] = "";
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        const ssize_t got = read(file, text, sizeof text);
        qn__sha256_add(hash, text, got > 0 ? (size_t)got : 0);
        close(file);
    }
}

static void add_namespace(qn__sha256 *hash, const char *path) {
    struct stat s;
    uint64_t number = 0;
    if (stat(path, &s) == 0)
        number = (uint64_t)s.st_ino;
    qn__sha256_add(hash, &number, sizeof number);
}

/* Whether this process can connect to its own Unix socket: some sandboxes forbid it. */
static int reaches_itself(const char *name) {
    const int file = qn__socket_dial_unix(name);
    if (file >= 0)
        close(file);
    return file >= 0;
}

/* Hashes what makes two ranks able to share memory and Unix sockets: abstract Unix sockets belong
 * to a network namespace, and memory is not shared with another user. */
static void identify(unsigned char machine[32], int reachable) {
    const uint32_t user = (uint32_t)getuid();
    unsigned char random[32];
    qn__sha256 hash;
    qn__sha256_begin(&hash);
    qn__sha256_add(&hash, &user, sizeof user);
    add_file(&hash, "/proc/sys/kernel/random/boot_id");
    add_namespace(&hash, "/proc/self/ns/net");
    add_namespace(&hash, "/proc/self/ns/user");
    if (simulated_machine)
        qn__sha256_add(&hash, simulated_machine, strlen(simulated_machine));
    if (!reachable) {
        qn__random_bytes(random, sizeof random);
        qn__sha256_add(&hash, random, sizeof random);
    }
    qn__sha256_end(&hash, machine);
}

static int open_local(qn__endpoint *endpoint) {
    unsigned char random[16];
    qn__random_bytes(random, sizeof random);
    char *at =
        endpoint->unix_name + snprintf(endpoint->unix_name, sizeof endpoint->unix_name, "quern-");
    for (size_t i = 0; i < sizeof random; ++i)
        at += snprintf(at, 3, "%02x", random[i]);
    const int file = qn__socket_listen_unix(endpoint->unix_name);
    if (file < 0 || reaches_itself(endpoint->unix_name))
        return file;
    close(file);
    return -1;
}

qn_status qn__endpoint_own(const char *interface, int loopback, qn__endpoint *endpoint,
                           qn__listeners *listeners, qn_error *err) {
    static const qn__address local = {.kind = 4, .bytes = {127, 0, 0, 1}};
    char host[64] = "";
    uint16_t port = 0;
    memset(endpoint, 0, sizeof *endpoint);
    *listeners = (qn__listeners){-1, -1};
    gethostname(host, sizeof host - 1);
    qn__wire_text(endpoint->host, sizeof endpoint->host, host[0] ? host : "?", sizeof host);
    snprintf(endpoint->version, sizeof endpoint->version, "%s", qn_version());
    endpoint->wire = QN__WIRE_VERSION;
    endpoint->contract = QN_CONTRACT;
    endpoint->process = (uint32_t)getpid();
    endpoint->address[0] = local;
    endpoint->count =
        loopback && !interface ? 1
                               : (uint32_t)qn__socket_own_addresses(interface, endpoint->address,
                                                                    QN__ADDRESSES_MOST, err);
    if (endpoint->count == 0)
        return err ? err->status : QN_CLUSTER;
    const int one = endpoint->count == 1;
    const qn_status status =
        qn__socket_listen(one ? endpoint->address : NULL, &port, &listeners->tcp, err);
    if (status != QN_OK)
        return status;
    endpoint->port = port;
    listeners->local = open_local(endpoint);
    identify(endpoint->machine, listeners->local >= 0);
    return QN_OK;
}

/* -------------------------------------------------------------------------------- serialization */

static unsigned char *write_address(unsigned char *at, const qn__address *address) {
    qn__put_u32(at, address->kind);
    memcpy(at + 4, address->bytes, 16);
    return at + 20;
}

static const unsigned char *read_address(const unsigned char *at, qn__address *address) {
    address->kind = qn__get_u32(at);
    memcpy(address->bytes, at + 4, 16);
    return at + 20;
}

static int good_address(const qn__address *address) {
    return address->kind == 4 || address->kind == 6;
}

void qn__endpoint_write(const qn__endpoint *endpoint, unsigned char to[QN__ENDPOINT_BYTES]) {
    memset(to, 0, QN__ENDPOINT_BYTES);
    memcpy(to, endpoint->host, 64);
    memcpy(to + 64, endpoint->version, 16);
    qn__put_u32(to + 80, endpoint->wire);
    qn__put_u32(to + 84, endpoint->contract);
    qn__put_u32(to + 88, endpoint->process);
    memcpy(to + 92, endpoint->machine, 32);
    memcpy(to + 124, endpoint->unix_name, 40);
    qn__put_u32(to + 164, endpoint->port);
    qn__put_u32(to + 168, endpoint->count);
    unsigned char *at = to + 172;
    for (size_t i = 0; i < QN__ADDRESSES_MOST; ++i)
        at = write_address(at, &endpoint->address[i]);
    write_address(at, &endpoint->seen);
}

int qn__endpoint_is_empty(const qn__endpoint *endpoint) { return endpoint->port == 0; }

int qn__endpoint_read(const unsigned char from[QN__ENDPOINT_BYTES], qn__endpoint *endpoint) {
    memset(endpoint, 0, sizeof *endpoint);
    qn__wire_text(endpoint->host, sizeof endpoint->host, (const char *)from, 64);
    qn__wire_text(endpoint->version, sizeof endpoint->version, (const char *)from + 64, 16);
    endpoint->wire = qn__get_u32(from + 80);
    endpoint->contract = qn__get_u32(from + 84);
    endpoint->process = qn__get_u32(from + 88);
    memcpy(endpoint->machine, from + 92, 32);
    qn__wire_text(endpoint->unix_name, sizeof endpoint->unix_name, (const char *)from + 124, 40);
    endpoint->port = qn__get_u32(from + 164);
    endpoint->count = qn__get_u32(from + 168);
    const unsigned char *at = from + 172;
    int good = endpoint->count >= 1 && endpoint->count <= QN__ADDRESSES_MOST &&
               endpoint->port >= 1 && endpoint->port <= 65535 && endpoint->host[0];
    for (uint32_t i = 0; i < QN__ADDRESSES_MOST; ++i) {
        at = read_address(at, &endpoint->address[i]);
        good &= i >= endpoint->count || good_address(&endpoint->address[i]);
    }
    read_address(at, &endpoint->seen);
    return good && (endpoint->seen.kind == 0 || good_address(&endpoint->seen));
}

#include "cluster/rendezvous/card.h"

#include "base/sha256.h"
#include "cluster/rendezvous/rendezvous.h"
#include "cluster/transport/wire.h"
#include <quern/version.h>

#include <errno.h>
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

static int open_local(qn__card *card) {
    unsigned char random[16];
    qn__random_bytes(random, sizeof random);
    char *at = card->unix_name + snprintf(card->unix_name, sizeof card->unix_name, "quern-");
    for (size_t i = 0; i < sizeof random; ++i)
        at += snprintf(at, 3, "%02x", random[i]);
    const int file = qn__socket_listen_unix(card->unix_name);
    if (file < 0 || reaches_itself(card->unix_name))
        return file;
    close(file);
    return -1;
}

qn_status qn__card_own(const char *interface, int loopback, qn__card *card,
                       qn__listeners *listeners, qn_error *err) {
    static const qn__address local = {.kind = 4, .bytes = {127, 0, 0, 1}};
    char host[64] = "";
    uint16_t port = 0;
    memset(card, 0, sizeof *card);
    *listeners = (qn__listeners){-1, -1};
    gethostname(host, sizeof host - 1);
    qn__card_text(card->host, sizeof card->host, host[0] ? host : "?", sizeof host);
    snprintf(card->version, sizeof card->version, "%s", qn_version());
    card->wire = QN__WIRE_VERSION;
    card->contract = QN_CONTRACT;
    card->process = (uint32_t)getpid();
    card->address[0] = local;
    card->count = loopback && !interface ? 1
                                         : (uint32_t)qn__socket_own_addresses(
                                               interface, card->address, QN__ADDRESSES_MOST, err);
    if (card->count == 0)
        return err ? err->status : QN_CLUSTER;
    const int one = card->count == 1;
    const qn_status status =
        qn__socket_listen(one ? card->address : NULL, &port, &listeners->tcp, err);
    if (status != QN_OK)
        return status;
    card->port = port;
    listeners->local = open_local(card);
    identify(card->machine, listeners->local >= 0);
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

void qn__card_write(const qn__card *card, unsigned char to[QN__CARD_BYTES]) {
    memset(to, 0, QN__CARD_BYTES);
    memcpy(to, card->host, 64);
    memcpy(to + 64, card->version, 16);
    qn__put_u32(to + 80, card->wire);
    qn__put_u32(to + 84, card->contract);
    qn__put_u32(to + 88, card->process);
    memcpy(to + 92, card->machine, 32);
    memcpy(to + 124, card->unix_name, 40);
    qn__put_u32(to + 164, card->port);
    qn__put_u32(to + 168, card->count);
    unsigned char *at = to + 172;
    for (size_t i = 0; i < QN__ADDRESSES_MOST; ++i)
        at = write_address(at, &card->address[i]);
    write_address(at, &card->seen);
}

int qn__card_read(const unsigned char from[QN__CARD_BYTES], qn__card *card) {
    memset(card, 0, sizeof *card);
    qn__card_text(card->host, sizeof card->host, (const char *)from, 64);
    qn__card_text(card->version, sizeof card->version, (const char *)from + 64, 16);
    card->wire = qn__get_u32(from + 80);
    card->contract = qn__get_u32(from + 84);
    card->process = qn__get_u32(from + 88);
    memcpy(card->machine, from + 92, 32);
    qn__card_text(card->unix_name, sizeof card->unix_name, (const char *)from + 124, 40);
    card->port = qn__get_u32(from + 164);
    card->count = qn__get_u32(from + 168);
    const unsigned char *at = from + 172;
    int good = card->count >= 1 && card->count <= QN__ADDRESSES_MOST && card->port >= 1 &&
               card->port <= 65535 && card->host[0];
    for (uint32_t i = 0; i < QN__ADDRESSES_MOST; ++i) {
        at = read_address(at, &card->address[i]);
        good &= i >= card->count || good_address(&card->address[i]);
    }
    read_address(at, &card->seen);
    return good && (card->seen.kind == 0 || good_address(&card->seen));
}

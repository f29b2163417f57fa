#include "cluster/rendezvous/rendezvous.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "base/system/timeouts.h"
#include "cluster/rendezvous/door.h"
#include "cluster/rendezvous/exchange.h"
#include "cluster/rendezvous/launcher.h"
#include "cluster/rendezvous/mesh.h"
#include "cluster/rendezvous/mpi_exchange.h"
#include "cluster/rendezvous/slurm.h"
#include "cluster/rendezvous/torchrun.h"
#include "cluster/transport/acceptor.h"
#include "cluster/transport/wire.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Seconds before another attempt. */
static const double PAUSE = 0.1;

/* State between the options and the transport. */
typedef struct gathering {
    uint32_t ranks, rank;
    uint32_t started; /* number of ranks that the launcher gave */
    qn__endpoint *endpoint;
    qn__listeners listeners;
    unsigned char key[32];
    double until, rank_timeout;
    /* The exchange at an address; place.ranks 0: not used. */
    qn__exchange place;
    char host[256], run[64];
    int *held; /* connections of the rendezvous, one for each rank; NULL: none */
    const char *interface;
    int loopback;
    qn__begun begun;
    qn__carriage wish;
    qn__kept_mpi *mpi;
} gathering;

/* -------------------------------------------------------------------------------------- options */

static qn_status check_times(const qn_cluster_options *o, qn_error *err) {
    const double rendezvous = o->rendezvous_timeout, rank = o->rank_timeout;
    if (!(rendezvous >= 0 && rendezvous <= 1e6) || !(rank >= 0 && rank <= 1e6) ||
        (rank > 0 && rank < 0.1)) {
        qn__fail(err, QN_USAGE,
                 "invalid timeouts: %g seconds for the rendezvous, %g seconds of silence",
                 rendezvous, rank);
        return qn__remedy(
            err, QN_USAGE,
            "both are from 0, which stands for %g and %g, to 1000000; silence of less "
            "than 0.1 seconds is nothing unusual",
            QN__RENDEZVOUS_TIMEOUT, QN__RANK_TIMEOUT);
    }
    return QN_OK;
}

static qn_status check_place(const qn_cluster_options *o, qn__exchange *place, qn_error *err) {
    if (o->ranks < 1 || o->ranks > QN__MAX_RANKS || o->rank >= o->ranks) {
        qn__fail(err, QN_USAGE, "there is no rank %u of %u", o->rank, o->ranks);
        return qn__remedy(err, QN_USAGE,
                          "say how many ranks join at %s (1 to %d) and which of them this is, from "
                          "0",
                          o->rendezvous, QN__MAX_RANKS);
    }
    if (o->min_ranks > o->ranks) {
        qn__fail(err, QN_USAGE, "a run of %u ranks cannot begin with %u", o->ranks, o->min_ranks);
        return qn__remedy(err, QN_USAGE, "say at most %u", o->ranks);
    }
    if (!o->key && o->ranks > 1 && !qn__exchange_is_loopback(place->host)) {
        qn__fail(err, QN_USAGE,
                 "without a key, the rendezvous address must be one of this machine");
        return qn__remedy(err, QN_USAGE, "give all ranks the same secret key, or use 127.0.0.1:%u",
                          place->port);
    }
    *place = (qn__exchange){.host = place->host,
                            .port = place->port,
                            .ranks = o->ranks,
                            .rank = o->rank,
                            .least = o->min_ranks,
                            .secret = o->key,
                            .timeout = o->rendezvous_timeout > 0 ? o->rendezvous_timeout
                                                                 : QN__RENDEZVOUS_TIMEOUT};
    return QN_OK;
}

static qn_status read_wish(const qn_cluster_options *o, qn__carriage *wish, qn_error *err) {
    static const char *const words[] = {"sockets", "auto", "mpi"};
    const char *text = o->transport ? o->transport : "auto";
    for (int i = 0; i < 3; ++i)
        if (strcmp(text, words[i]) == 0) {
            *wish = (qn__carriage)i;
            return QN_OK;
        }
    qn__fail(err, QN_USAGE, "unknown transport %.40s", text);
    return qn__remedy(err, QN_USAGE, "the transports are auto, sockets and mpi");
}

/* The ranks were not started by MPI. */
static qn_status refuse_mpi(qn_error *err) {
    qn__fail(err, QN_USAGE, "the transport mpi needs ranks that mpirun or srun started");
    return qn__remedy(err, QN_USAGE, "use sockets, or start the ranks with mpirun");
}

/* ------------------------------------------------------------------------------------ discovery */

static qn_status open_endpoints(gathering *g, const char *interface, int loopback, qn_error *err) {
    g->endpoint = qn__alloc(g->ranks, sizeof *g->endpoint, err);
    if (!g->endpoint)
        return QN_MEMORY;
    return qn__endpoint_own(interface, loopback, &g->endpoint[g->rank], &g->listeners, err);
}

static qn_status gather_at(const qn_cluster_options *o, gathering *g, qn_error *err) {
    qn__exchange place = {.host = g->host};
    qn_status status = qn__address_parse(o->rendezvous, g->host, &place.port, err);
    if (status == QN_OK)
        status = check_place(o, &place, err);
    if (status != QN_OK || o->ranks == 1)
        return status;
    g->started = g->ranks = o->ranks;
    g->rank = o->rank;
    const int loopback = qn__exchange_is_loopback(g->host);
    const int named = !qn__address_is_literal(g->host) && strcmp(g->host, "localhost") != 0;
    place.everywhere = loopback && named && o->key;
    g->place = place;
    g->loopback = loopback && !place.everywhere;
    return open_endpoints(g, o->interface, loopback && !place.everywhere, err);
}

/* The launcher's MPI library exchanges the endpoints. */
static qn_status gather_by_mpi(const qn_cluster_options *o, const qn__launcher *launcher,
                               gathering *g, qn_error *err) {
    qn__introduction in = {.wish = g->wish};
    qn_status status = qn__endpoint_own(o->interface, 0, &in.own, &g->listeners, err);
    if (status == QN_OK)
        status = qn__mpi_introduce(launcher, &in, g->until - qn__now(), err);
    if (status != QN_OK)
        return status;
    g->ranks = in.ranks;
    g->rank = in.rank;
    g->endpoint = in.endpoint;
    g->mpi = in.kept;
    memcpy(g->key, in.key, sizeof g->key);
    if (g->wish == QN__CARRIAGE_MPI && in.wish == QN__CARRIAGE_SOCKETS) {
        qn__fail(err, QN_UNSUPPORTED, "a rank cannot use the transport mpi");
        return qn__remedy(
            err, QN_UNSUPPORTED,
            "give all ranks the same transport; a program that has started MPI itself "
            "uses sockets");
    }
    g->wish = in.wish;
    return QN_OK;
}

/* srun gives each rank the host of rank 0. */
static qn_status gather_by_slurm(const qn_cluster_options *o, const qn__launcher *launcher,
                                 gathering *g, qn_error *err) {
    qn__exchange place = {.host = g->host,
                          .run = g->run,
                          .ranks = launcher->ranks,
                          .rank = launcher->rank,
                          .secret = o->key,
                          .munge = o->key == NULL,
                          .timeout = o->rendezvous_timeout > 0 ? o->rendezvous_timeout
                                                               : QN__RENDEZVOUS_TIMEOUT};
    const qn_status status = qn__slurm_place(g->host, &place.port, err);
    qn__slurm_run(g->run);
    const int one_node = strcmp(g->host, "127.0.0.1") == 0;
    place.everywhere = !one_node; /* a host's own name often resolves to a loopback address */
    g->ranks = place.ranks;
    g->rank = place.rank;
    g->place = place;
    return status == QN_OK ? open_endpoints(g, o->interface, one_node, err) : status;
}

/* torchrun tells each rank where the first is, and has no secret for them. */
static qn_status gather_by_torchrun(const qn_cluster_options *o, const qn__launcher *launcher,
                                    gathering *g, qn_error *err) {
    qn_cluster_options place = *o;
    char address[300];
    qn__torchrun_meeting at;
    qn_status status = qn__torchrun_place(launcher->ranks, &at, err);
    if (status != QN_OK)
        return status;
    const int v6 = strchr(at.host, ':') != NULL;
    snprintf(address, sizeof address, "%s%s%s:%u", v6 ? "[" : "", at.host, v6 ? "]" : "", at.port);
    place.rendezvous = address;
    place.ranks = launcher->ranks;
    place.rank = launcher->rank;
    status = gather_at(&place, g, err);
    memcpy(g->run, at.run, sizeof g->run);
    g->place.run = g->run;
    g->place.more = at.more;
    return status;
}

static qn_status gather_by_launcher(const qn_cluster_options *o, gathering *g,
                                    qn__rendezvous *rendezvous, qn_error *err) {
    qn__launcher launcher;
    const qn_status status = qn__launcher_find(&launcher, err);
    g->rank = launcher.rank;
    g->started = launcher.ranks;
    if (status != QN_OK || launcher.kind == QN__LAUNCHED_ALONE)
        return status;
    snprintf(rendezvous->launcher, sizeof rendezvous->launcher, "%s", launcher.name);
    const int by_mpi = g->wish == QN__CARRIAGE_MPI; /* srun starts MPI too, if it is told to */
    if (by_mpi && launcher.kind == QN__LAUNCHED_TORCHRUN)
        return refuse_mpi(err);
    return launcher.kind == QN__LAUNCHED_SLURM && !by_mpi ? gather_by_slurm(o, &launcher, g, err)
           : launcher.kind == QN__LAUNCHED_TORCHRUN       ? gather_by_torchrun(o, &launcher, g, err)
                                                          : gather_by_mpi(o, &launcher, g, err);
}

/* --------------------------------------------------------------------------------------- result */

/* Machines are numbered by their first rank, so all ranks compute the same numbers. */
void qn__rendezvous_number(const qn__endpoint *endpoint, uint32_t ranks, qn__peer_info *info) {
    uint32_t machines = 0;
    for (uint32_t r = 0; r < ranks; ++r) {
        uint32_t first = 0, before = 0;
        while (memcmp(endpoint[first].machine, endpoint[r].machine, 32) != 0)
            ++first;
        for (uint32_t other = first; other < r; ++other)
            before += info[other].machine == info[first].machine;
        info[r].machine = first == r ? machines++ : info[first].machine;
        info[r].local = before;
        memcpy(info[r].host, endpoint[r].host, sizeof info[r].host);
    }
}

/* Takes over the endpoints. Runs of other launchers have no address where a rank could come. */
static void keep_meeting(gathering *g, const char *interface, qn__rendezvous *rendezvous) {
    qn__meeting *m = &rendezvous->meeting;
    m->door = -1;
    m->listeners = (qn__listeners){-1, -1};
    if (!g->held || g->place.munge || g->place.run)
        return;
    m->interface = interface ? qn__copy_text(interface, NULL) : NULL;
    if (interface && !m->interface)
        return;
    m->possible = 1;
    memcpy(m->host, g->host, sizeof m->host);
    m->port = g->place.port;
    m->everywhere = g->place.everywhere;
    m->loopback = g->loopback;
    m->rank_timeout = g->rank_timeout;
    qn__exchange_secret(g->place.secret, NULL, m->secret);
    m->endpoint = g->endpoint;
    g->endpoint = NULL;
}

static void set_ranks(const gathering *g, qn__peer_info *info, qn__rendezvous *rendezvous) {
    qn__rendezvous_number(g->endpoint, g->ranks, info);
    rendezvous->ranks = g->ranks;
    rendezvous->rank = g->rank;
    rendezvous->info = info;
}

/* The run has begun. Until it lets this rank in, this rank is alone. */
static qn_status open_alone(gathering *g, qn__rendezvous *rendezvous, qn_error *err) {
    qn__link *link = qn__alloc(g->ranks, sizeof *link, err);
    qn__peer_info *info = link ? qn__alloc(g->ranks, sizeof *info, err) : NULL;
    qn_status status = QN_MEMORY;
    unsigned char key[32];
    for (uint32_t r = 0; r < g->ranks && link; ++r)
        link[r] = (qn__link){.file = -1};
    qn__random_bytes(key, sizeof key);
    const qn__transport_setup setup = {.ranks = g->ranks,
                                       .rank = g->rank,
                                       .link = link,
                                       .rank_timeout = g->rank_timeout,
                                       .key = key,
                                       .listener = -1};
    if (info)
        status = qn__transport_open(&setup, &rendezvous->transport, err);
    qn__free(link);
    if (status != QN_OK) {
        qn__free(info);
        return status;
    }
    set_ranks(g, info, rendezvous);
    qn__ranks_add(&rendezvous->present, g->rank);
    keep_meeting(g, g->interface, rendezvous);
    qn__meeting *m = &rendezvous->meeting;
    qn__door_watch(g->held[0], g->rank_timeout);
    m->door = g->held[0];
    m->listeners = g->listeners;
    m->described = g->begun.described;
    m->described_bytes = g->begun.bytes;
    g->held[0] = -1;
    g->listeners = (qn__listeners){-1, -1};
    g->begun.described = NULL;
    return QN_OK;
}

static _Thread_local const qn__carrier *simulated_carrier;

void qn__rendezvous_carry(const qn__carrier *carrier) { simulated_carrier = carrier; }

/* A library that carries large messages, beside the sockets. */
static qn_status open_fabric(gathering *g, qn__rendezvous *rendezvous, qn_error *err) {
    unsigned char *far = qn__alloc(g->ranks, 1, err);
    if (!far)
        return QN_MEMORY;
    for (uint32_t r = 0; r < g->ranks; ++r)
        far[r] = rendezvous->info[r].machine != rendezvous->info[g->rank].machine &&
                 qn__ranks_has(&rendezvous->present, r);
    const qn__fabric_setup setup = {.base = rendezvous->transport,
                                    .ranks = g->ranks,
                                    .rank = g->rank,
                                    .far = far,
                                    .key = g->key,
                                    .patience = g->rank_timeout / 2};
    const qn_status status = qn__fabric_open(&setup, &rendezvous->fabric, err);
    qn__free(far);
    if (status != QN_OK)
        return status;
    rendezvous->rank_timeout = g->rank_timeout;
    rendezvous->tries = g->wish == QN__CARRIAGE_AUTO && !simulated_carrier;
    rendezvous->mpi = g->mpi;
    g->mpi = NULL;
    if (rendezvous->mpi)
        qn__kept_mpi_serve(rendezvous->mpi, qn__fabric_serve, rendezvous->fabric);
    else
        rendezvous->simulated = simulated_carrier;
    return QN_OK;
}

/* The transport keeps the listener, to accept connections that are made again. */
static qn_status open_transport(gathering *g, qn__rendezvous *rendezvous, qn_error *err) {
    qn__link *link = qn__alloc(g->ranks, sizeof *link, err);
    qn__peer_info *info = link ? qn__alloc(g->ranks, sizeof *info, err) : NULL;
    qn_status status = QN_MEMORY;
    qn__ranks present = {{0}};
    for (uint32_t r = 0; r < g->ranks; ++r)
        if (!qn__endpoint_is_empty(&g->endpoint[r]))
            qn__ranks_add(&present, r);
    const qn__mesh mesh = {.ranks = g->ranks,
                           .rank = g->rank,
                           .present = &present,
                           .endpoint = g->endpoint,
                           .listeners = &g->listeners,
                           .key = g->key,
                           .until = g->until,
                           .rank0 = g->held && g->rank > 0 ? g->held[0] : -1,
                           .held = g->rank == 0 ? g->held : NULL};
    if (info)
        status = qn__mesh_versions(g->endpoint, g->ranks, err);
    if (status == QN_OK)
        status = qn__mesh_connect(&mesh, link, err);
    const qn__transport_setup setup = {.ranks = g->ranks,
                                       .rank = g->rank,
                                       .link = link,
                                       .rank_timeout = g->rank_timeout,
                                       .key = g->key,
                                       .listener = g->listeners.tcp};
    if (status == QN_OK) {
        g->listeners.tcp = -1;
        status = qn__transport_open(&setup, &rendezvous->transport, err);
    }
    if (status == QN_OK) {
        set_ranks(g, info, rendezvous);
        rendezvous->present = present;
        keep_meeting(g, g->interface, rendezvous);
        if (g->mpi || simulated_carrier)
            status = open_fabric(g, rendezvous, err);
        if (status != QN_OK)
            qn__rendezvous_end(rendezvous);
    } else {
        qn__free(info);
    }
    qn__free(link);
    return status;
}

static void let_go(gathering *g) {
    for (uint32_t r = 0; r < g->ranks && g->held; ++r) {
        if (g->held[r] >= 0)
            close(g->held[r]);
        g->held[r] = -1;
    }
}

/* Repeats while ranks end before all ranks are connected: they may be started again. */
static qn_status join_at_address(gathering *g, qn__rendezvous *rendezvous, qn_error *err) {
    qn_status status;
    g->held = qn__alloc(g->ranks, sizeof *g->held, err);
    if (!g->held)
        return QN_MEMORY;
    for (uint32_t r = 0; r < g->ranks; ++r)
        g->held[r] = -1;
    for (;;) {
        const qn__endpoint own = g->endpoint[g->rank];
        g->place.begun = &g->begun;
        status = qn__exchange_run(&g->place, g->endpoint, g->key, g->until, g->held, err);
        g->endpoint[g->rank] = own;
        if (status == QN_OK)
            status =
                g->begun.has ? open_alone(g, rendezvous, err) : open_transport(g, rendezvous, err);
        qn__free(g->begun.described);
        g->begun = (qn__begun){.has = 0};
        let_go(g);
        if (status != QN_BUSY)
            break;
        g->place.again = 1;
        qn__socket_wait(NULL, 0, PAUSE);
    }
    qn__free(g->held);
    g->held = NULL;
    return status;
}

/* All ranks may fail, each with its own message: the writer rank prefixes its name. */
static void name_writer(const gathering *g, qn_error *err) {
    char host[64] = "", shown[64], what[sizeof err->what], own[128];
    gethostname(host, sizeof host - 1);
    qn__wire_text(shown, sizeof shown, host[0] ? host : "?", sizeof host);
    snprintf(own, sizeof own, "rank %u on %.63s", g->rank, shown);
    if (err->status == QN_USAGE || strncmp(err->what, own, strlen(own)) == 0)
        return;
    snprintf(what, sizeof what, "%.380s", err->what);
    snprintf(err->what, sizeof err->what, "%s: %.380s", own, what);
}

qn_status qn__rendezvous_begin(const qn_cluster_options *options, qn__rendezvous *rendezvous,
                               qn_error *err) {
    const double timeout =
        options->rendezvous_timeout > 0 ? options->rendezvous_timeout : QN__RENDEZVOUS_TIMEOUT;
    gathering g = {.listeners = {-1, -1},
                   .interface = options->interface,
                   .until = qn__now() + timeout,
                   .rank_timeout =
                       options->rank_timeout > 0 ? options->rank_timeout : QN__RANK_TIMEOUT};
    memset(rendezvous, 0, sizeof *rendezvous);
    qn_status status = check_times(options, err);
    if (status == QN_OK)
        status = read_wish(options, &g.wish, err);
    if (status != QN_OK)
        return status;
    const char *const place = options->rendezvous ? options->rendezvous : "auto";
    if (strcmp(place, "auto") == 0)
        status = gather_by_launcher(options, &g, rendezvous, err);
    else if (strcmp(place, "none") != 0)
        status = g.wish == QN__CARRIAGE_MPI ? refuse_mpi(err) : gather_at(options, &g, err);
    g.place.note = options->on_note;
    g.place.user = options->user;
    if (status == QN_OK && g.place.ranks > 1)
        status = join_at_address(&g, rendezvous, err);
    else if (status == QN_OK && g.ranks > 1)
        status = open_transport(&g, rendezvous, err);
    if (status == QN_BUSY) { /* a rank ended, and only its launcher could start it again */
        status = QN_CLUSTER;
        if (err)
            err->status = status;
    }
    qn__listeners_close(&g.listeners);
    qn__free(g.endpoint);
    if (g.mpi)
        (void)qn__kept_mpi_end(g.mpi, 0, g.rank_timeout);
    if (status != QN_OK && err && g.started > 1)
        name_writer(&g, err);
    if (status != QN_OK)
        memset(rendezvous, 0, sizeof *rendezvous);
    return status;
}

/* ------------------------------------------------------------------------- the transport in use */

static void *simulated_main(void *argument) {
    const qn__rendezvous *rendezvous = argument;
    qn__float_state_set();
    qn__fabric_serve(rendezvous->fabric, rendezvous->simulated);
    return NULL;
}

qn_status qn__rendezvous_listen(qn__rendezvous *rendezvous, const qn__transport_events *events,
                                qn_error *err) {
    if (!rendezvous->fabric)
        return qn__transport_listen(rendezvous->transport, events, err);
    const qn__transport_events own = qn__fabric_events(rendezvous->fabric, events);
    const qn_status status = qn__transport_listen(rendezvous->transport, &own, err);
    if (status == QN_OK && rendezvous->simulated)
        rendezvous->serves =
            pthread_create(&rendezvous->thread, NULL, simulated_main, rendezvous) == 0;
    if (status == QN_OK && !rendezvous->tries)
        qn__fabric_use(rendezvous->fabric);
    return status;
}

qn__transport *qn__rendezvous_transport(const qn__rendezvous *rendezvous) {
    return rendezvous->fabric ? qn__fabric_transport(rendezvous->fabric) : rendezvous->transport;
}

const char *qn__rendezvous_carrier(const qn__rendezvous *rendezvous) {
    return rendezvous->mpi         ? qn__kept_mpi_name(rendezvous->mpi)
           : rendezvous->simulated ? rendezvous->simulated->name
                                   : "";
}

void qn__rendezvous_try(qn__rendezvous *rendezvous, double *sockets, double *carrier) {
    const qn__peer_info *info = rendezvous->info;
    uint32_t other = rendezvous->rank;
    do
        other = (other + 1) % rendezvous->ranks;
    while (other != rendezvous->rank && info[other].machine == info[rendezvous->rank].machine);
    *sockets = *carrier = 0;
    if (other == rendezvous->rank)
        return;
    *sockets = qn__fabric_try(rendezvous->fabric, other, 0);
    *carrier = qn__fabric_try(rendezvous->fabric, other, 1);
}

void qn__rendezvous_end_carrier(qn__rendezvous *rendezvous) {
    if (rendezvous->fabric && rendezvous->mpi)
        qn__kept_mpi_ends(rendezvous->mpi,
                          qn__fabric_stop(rendezvous->fabric, rendezvous->rank_timeout));
}

/* Ends the thread of the carrier. 0: it is stuck in the library. */
static int end_carrier(qn__rendezvous *rendezvous) {
    if (!rendezvous->fabric)
        return 1;
    const int in_order = qn__fabric_stop(rendezvous->fabric, rendezvous->rank_timeout / 2);
    if (rendezvous->mpi)
        return qn__kept_mpi_end(rendezvous->mpi, in_order, rendezvous->rank_timeout);
    if (rendezvous->serves)
        pthread_join(rendezvous->thread, NULL);
    return 1;
}

void qn__rendezvous_end(qn__rendezvous *rendezvous) {
    qn__meeting *m = &rendezvous->meeting;
    const int served = end_carrier(rendezvous);
    qn__transport_close(rendezvous->transport);
    qn__fabric_close(rendezvous->fabric, served);
    qn__free(rendezvous->info);
    if (rendezvous->ranks > 0 && m->door >= 0)
        close(m->door);
    if (rendezvous->ranks > 0)
        qn__listeners_close(&m->listeners);
    qn__free(m->endpoint);
    qn__free(m->interface);
    qn__free(m->described);
    memset(rendezvous, 0, sizeof *rendezvous);
}

/* ------------------------------------------------------------------------------------ accessors */

qn_status qn__rendezvous_send_file(qn__rendezvous *rendezvous, uint32_t to, int file,
                                   qn_error *err) {
    return qn__transport_send_file(rendezvous->transport, to, file, err);
}

int qn__rendezvous_receive_file(qn__rendezvous *rendezvous, uint32_t from, double seconds) {
    return qn__transport_receive_file(rendezvous->transport, from, seconds);
}

void qn__rendezvous_bytes(const qn__rendezvous *rendezvous, uint64_t *out, uint64_t *in) {
    qn__transport_bytes(rendezvous->transport, out, in);
}

double qn__rendezvous_clock(const qn__rendezvous *rendezvous, uint32_t rank) {
    return qn__transport_clock(rendezvous->transport, rank);
}

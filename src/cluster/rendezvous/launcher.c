#include "cluster/rendezvous/launcher.h"

#include "base/text/text.h"
#include "cluster/transport/acceptor.h"
#include "cluster/transport/ranks.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Parses an environment variable. 1: *out is set; 0: the variable is not set, or *status is an
 * error. */
static int number_of(const char *variable, uint64_t *out, qn_status *status, qn_error *err) {
    const char *text = getenv(variable);
    if (!text || !*text)
        return 0;
    if (qn__parse_u64(text, strlen(text), out))
        return 1;
    *status =
        qn__fail(err, QN_USAGE, "the environment variable %s is \"%s\", which is not a number",
                 variable, text);
    qn__remedy(err, QN_USAGE, "unset it: a launcher would have set it to a number");
    return 0;
}

static qn_status stale(const qn__launcher *l, const char *why, qn_error *err) {
    qn__fail(err, QN_CLUSTER,
             "the environment says that %s started this process as one of %u ranks (%s), but %s",
             l->name, l->ranks, l->evidence, why);
    return qn__remedy(err, QN_CLUSTER,
                      "start it with the launcher; to run alone, use `cluster.rendezvous none` "
                      "or unset its variables");
}

/* Reads the number of ranks and this rank from two variables. */
static qn_status read_ranks(qn__launcher *l, const char *ranks, const char *rank, qn_error *err) {
    uint64_t n = 0, r = 0;
    qn_status status = QN_OK;
    const int both = number_of(ranks, &n, &status, err) & number_of(rank, &r, &status, err);
    if (status != QN_OK)
        return status;
    l->evidence = ranks;
    if (!both || n < 1 || n > QN__MAX_RANKS || r >= n) {
        qn__fail(err, QN_USAGE, "%s and %s do not say which of how many ranks this is", ranks,
                 rank);
        return qn__remedy(err, QN_USAGE, "start at most %d ranks, with a launcher that sets both",
                          QN__MAX_RANKS);
    }
    l->ranks = (uint32_t)n;
    l->rank = (uint32_t)r;
    return QN_OK;
}

/* ------------------------------------------------------------------------------------- Open MPI */

/* Whether a server listens at the IPv4 address that a launcher set, such as "127.0.0.1:33831". A
 * launcher that has ended may leave the address in the environment, and the MPI library would then
 * end this process. 1 also if the text cannot be parsed. */
static int server_listens(const char *at) {
    char host[64];
    qn__address address = {.kind = 4};
    uint64_t port = 0;
    const char *colon = strrchr(at, ':');
    if (!colon || (size_t)(colon - at) >= sizeof host)
        return 1;
    memcpy(host, at, (size_t)(colon - at));
    host[colon - at] = 0;
    if (inet_pton(AF_INET, host, address.bytes) != 1 ||
        !qn__parse_u64(colon + 1, strlen(colon + 1), &port) || port == 0 || port > 65535)
        return 1;
    const int file = qn__socket_dial(&address, (uint16_t)port);
    if (file < 0)
        return 0;
    int error = 0;
    socklen_t size = sizeof error;
    struct pollfd wait = {.fd = file, .events = POLLOUT};
    (void)poll(&wait, 1, 2000);
    const int known = getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &size) == 0;
    close(file);
    return known && error == 0 && (wait.revents & POLLOUT);
}

/* The same for the address of a PMIx server: "...;tcp4://127.0.0.1:33831". */
static int pmix_listens(const char *uri) {
    const char *const at = strstr(uri, "tcp4://");
    return !at || server_listens(at + 7);
}

static qn_status find_open_mpi(qn__launcher *l, qn_error *err) {
    static const char *const servers[] = {"PMIX_SERVER_URI41", "PMIX_SERVER_URI4",
                                          "PMIX_SERVER_URI3", "PMIX_SERVER_URI21",
                                          "PMIX_SERVER_URI2"};
    const char *version = getenv("OMPI_VERSION"), *uri = NULL;
    l->kind = QN__LAUNCHED_OPEN_MPI;
    if (version)
        l->major = version[0] >= '1' && version[0] <= '9' ? version[0] - '0' : 0;
    else if (getenv("PRTE_LAUNCHED"))
        l->major = 5;
    else if (getenv("OMPI_MCA_orte_ess_num_procs") || getenv("OMPI_MCA_orte_hnp_uri"))
        l->major = 4;
    if (version)
        snprintf(l->name, sizeof l->name, "mpirun (Open MPI %.20s)", version);
    else
        snprintf(l->name, sizeof l->name, "mpirun (Open MPI)");
    const qn_status status = read_ranks(l, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", err);
    if (status != QN_OK || l->ranks == 1)
        return status;
    for (size_t i = 0; i < sizeof servers / sizeof *servers && !uri; ++i)
        uri = getenv(servers[i]);
    if (!uri || !getenv("PMIX_RANK"))
        return stale(l, "what such a launcher also sets is not there (PMIX_SERVER_URI)", err);
    if (!pmix_listens(uri))
        return stale(l, "no process listens at the launcher's address (PMIX_SERVER_URI)", err);
    return QN_OK;
}

/* ---------------------------------------------------------------------------------------- MPICH */

static qn_status find_mpich(qn__launcher *l, qn_error *err) {
    uint64_t file = 0;
    qn_status status = QN_OK;
    l->kind = QN__LAUNCHED_MPICH;
    snprintf(l->name, sizeof l->name, "mpiexec (MPICH)");
    status = read_ranks(l, "PMI_SIZE", "PMI_RANK", err);
    if (status != QN_OK || l->ranks == 1)
        return status;
    if (getenv("PMI_PORT"))
        return server_listens(getenv("PMI_PORT"))
                   ? QN_OK
                   : stale(l, "no process listens at the launcher's address (PMI_PORT)", err);
    const int is_set = number_of("PMI_FD", &file, &status, err);
    if (status != QN_OK)
        return status;
    if (!is_set)
        return stale(l, "what such a launcher also sets is not there (PMI_FD)", err);
    struct stat s;
    if (file > 1 << 20 || fstat((int)file, &s) != 0 || !S_ISSOCK(s.st_mode))
        return stale(l, "the launcher's connection is not open (PMI_FD)", err);
    return QN_OK;
}

/* ---------------------------------------------------------------------------------------- Slurm */

/* Only processes that srun started: in a batch script the variables of a step are not set. */
static qn_status find_slurm(qn__launcher *l, qn_error *err) {
    l->kind = QN__LAUNCHED_SLURM;
    snprintf(l->name, sizeof l->name, "srun");
    return read_ranks(l, "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", err);
}

/* ---------------------------------------------------------------------------------- torchrun */

/* RANK and WORLD_SIZE alone may be anybody's. */
static qn_status find_torchrun(qn__launcher *l, qn_error *err) {
    l->kind = QN__LAUNCHED_TORCHRUN;
    snprintf(l->name, sizeof l->name, "torchrun");
    return read_ranks(l, "WORLD_SIZE", "RANK", err);
}

qn_status qn__launcher_find(qn__launcher *l, qn_error *err) {
    qn_status status = QN_OK;
    memset(l, 0, sizeof *l);
    if (getenv("TORCHELASTIC_RUN_ID")) /* srun or mpirun may have started torchrun itself */
        status = find_torchrun(l, err);
    else if (getenv("OMPI_COMM_WORLD_SIZE"))
        status = find_open_mpi(l, err);
    else if (getenv("PMI_SIZE") && getenv("PMI_RANK") && !getenv("SLURM_STEP_NUM_TASKS"))
        status = find_mpich(l, err);
    else if (getenv("SLURM_STEP_ID") && getenv("SLURM_STEP_NUM_TASKS") && getenv("SLURM_PROCID"))
        status = find_slurm(l, err);
    if (status == QN_OK && l->ranks == 1)
        l->kind = QN__LAUNCHED_ALONE;
    return status;
}

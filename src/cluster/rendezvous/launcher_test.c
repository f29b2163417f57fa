/* Detection of launchers from true and false environments; Slurm's node lists; and a key sent by
 * MUNGE, with a munged started by the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/rendezvous/endpoint.h"
#include "cluster/rendezvous/launcher.h"
#include "cluster/rendezvous/rendezvous_case_test.h"
#include "cluster/rendezvous/munge.h"
#include "cluster/rendezvous/slurm.h"
#include "cluster/rendezvous/torchrun.h"
#include "cluster/transport/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char *const VARIABLES[] = {"OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_VERSION",
                                        "PMIX_RANK",
                                        "PMIX_SERVER_URI2",
                                        "PMIX_SERVER_URI21",
                                        "PMIX_SERVER_URI3",
                                        "PMIX_SERVER_URI4",
                                        "PMIX_SERVER_URI41",
                                        "PMI_SIZE",
                                        "PMI_RANK",
                                        "PMI_FD",
                                        "PMI_PORT",
                                        "SLURM_STEP_ID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_PROCID",
                                        "SLURM_STEP_NODELIST",
                                        "SLURM_STEP_NUM_NODES",
                                        "SLURM_JOB_ID",
                                        "PRTE_LAUNCHED",
                                        "QUERN_MUNGE_SOCKET",
                                        "OMPI_MCA_orte_hnp_uri",
                                        "TORCHELASTIC_RUN_ID",
                                        "WORLD_SIZE",
                                        "LOCAL_WORLD_SIZE",
                                        "RANK",
                                        "MASTER_ADDR",
                                        "MASTER_PORT"};

static int clean(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof VARIABLES / sizeof *VARIABLES; ++i)
        unsetenv(VARIABLES[i]);
    return 0;
}

static qn__launcher found(qn_status expected, const char *says) {
    qn__launcher l;
    qn_error err = {.what = ""};
    assert_int_equal(qn__launcher_find(&l, &err), expected);
    if (expected != QN_OK && !strstr(err.what, says))
        fail_msg("\"%s\" does not say \"%s\"", err.what, says);
    return l;
}

static void test_no_launcher(void **state) {
    (void)state;
    assert_int_equal(found(QN_OK, "").kind, QN__LAUNCHED_ALONE);
    setenv("SLURM_JOB_ID", "7", 1); /* a batch script: only the job's variables */
    setenv("SLURM_PROCID", "0", 1);
    assert_int_equal(found(QN_OK, "").kind, QN__LAUNCHED_ALONE);
    setenv("PMI_RANK", "0", 1); /* which is not sufficient */
    assert_int_equal(found(QN_OK, "").kind, QN__LAUNCHED_ALONE);
}

static void test_open_mpi(void **state) {
    (void)state;
    uint16_t port = 0;
    int listener = -1;
    char uri[100];
    const qn__address loopback = {.kind = 4, .bytes = {127, 0, 0, 1}};
    assert_int_equal(qn__socket_listen(&loopback, &port, &listener, NULL), QN_OK);
    snprintf(uri, sizeof uri, "prterun-host-1@0.0;tcp4://127.0.0.1:%u", port);
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    found(QN_USAGE, "OMPI_COMM_WORLD_RANK");
    setenv("OMPI_COMM_WORLD_RANK", "3", 1);
    found(QN_CLUSTER, "PMIX_SERVER_URI");
    setenv("PMIX_RANK", "3", 1);
    setenv("PMIX_SERVER_URI21", uri, 1);
    qn__launcher l = found(QN_OK, "");
    assert_int_equal(l.kind, QN__LAUNCHED_OPEN_MPI);
    assert_int_equal(l.ranks, 4);
    assert_int_equal(l.rank, 3);
    assert_int_equal(l.major, 0);
    setenv("OMPI_MCA_orte_hnp_uri", "x", 1);
    assert_int_equal(found(QN_OK, "").major, 4);
    setenv("OMPI_VERSION", "5.0.11", 1);
    l = found(QN_OK, "");
    assert_int_equal(l.major, 5);
    assert_string_equal(l.name, "mpirun (Open MPI 5.0.11)");
    close(listener);
    found(QN_CLUSTER, "no process listens");
    setenv("PMIX_SERVER_URI21", "something else", 1); /* unknown format: left to MPI itself */
    found(QN_OK, "");
    setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    assert_int_equal(found(QN_OK, "").kind, QN__LAUNCHED_ALONE);
    static const char *const wrong[][2] = {
        {"four", "0"}, {"4", "4"}, {"0", "0"}, {"4", "-1"}, {"5000", "0"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
        setenv("OMPI_COMM_WORLD_SIZE", wrong[i][0], 1);
        setenv("OMPI_COMM_WORLD_RANK", wrong[i][1], 1);
        found(QN_USAGE, "OMPI_COMM_WORLD_");
    }
}

static void test_mpich(void **state) {
    (void)state;
    int file[2];
    char text[16];
    setenv("PMI_SIZE", "2", 1);
    setenv("PMI_RANK", "1", 1);
    found(QN_CLUSTER, "PMI_FD");
    setenv("PMI_FD", "999", 1);
    found(QN_CLUSTER, "not open");
    assert_int_equal(pipe(file), 0);
    snprintf(text, sizeof text, "%d", file[0]);
    setenv("PMI_FD", text, 1); /* another descriptor with the same number */
    found(QN_CLUSTER, "not open");
    close(file[0]);
    close(file[1]);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, file), 0);
    snprintf(text, sizeof text, "%d", file[0]);
    setenv("PMI_FD", text, 1);
    const qn__launcher l = found(QN_OK, "");
    assert_int_equal(l.kind, QN__LAUNCHED_MPICH);
    assert_int_equal(l.ranks, 2);
    assert_int_equal(l.rank, 1);
    close(file[0]);
    close(file[1]);
    setenv("PMI_FD", "three", 1);
    found(QN_USAGE, "PMI_FD");
    setenv("PMI_PORT", "127.0.0.1:1", 1); /* of a launcher that has ended */
    found(QN_CLUSTER, "PMI_PORT");
    unsetenv("PMI_PORT");
}

static void first(const char *list, const char *expected) {
    char name[16] = "";
    assert_int_equal(qn__slurm_first_node(list, name, sizeof name), expected != NULL);
    if (expected)
        assert_string_equal(name, expected);
}

static void test_lists_of_nodes(void **state) {
    (void)state;
    first("n1", "n1");
    first("n1,n2", "n1");
    first("n[1-3,5],b", "n1");
    first("n[003-005],b", "n003");
    first("n[7]", "n7");
    first("r[2-3]n[04,06]-x", "r2n04-x");
    first("exactly-15-long", "exactly-15-long");
    first("exactly-16--long", NULL);
    first("n[0000000000000001-2]", NULL);
    first("", NULL);
    first("[", NULL);
    first("n[", NULL);
    first("n[]", NULL);
    first("n[1", NULL);
    first("n]1", NULL);
    first("n[x]", NULL);
    first("n[1:3]", NULL);
    first(",", NULL);
}

static void test_slurm(void **state) {
    (void)state;
    char host[256], run[64];
    uint16_t port, other;
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_STEP_NUM_TASKS", "3", 1);
    setenv("SLURM_PROCID", "2", 1);
    setenv("SLURM_JOB_ID", "4711", 1);
    qn__launcher l = found(QN_OK, "");
    assert_int_equal(l.kind, QN__LAUNCHED_SLURM);
    assert_int_equal(l.ranks, 3);
    assert_int_equal(l.rank, 2);
    qn_error err;
    assert_int_equal(qn__slurm_place(host, &port, &err), QN_CLUSTER);
    setenv("SLURM_STEP_NODELIST", "node[07-08]", 1);
    assert_int_equal(qn__slurm_place(host, &port, &err), QN_OK);
    assert_string_equal(host, "node07");
    assert_true(port >= 15000 && port < 30000);
    setenv("SLURM_STEP_ID", "1", 1);
    assert_int_equal(qn__slurm_place(host, &other, &err), QN_OK);
    assert_int_not_equal(port, other);
    setenv("SLURM_STEP_NUM_NODES", "1", 1);
    assert_int_equal(qn__slurm_place(host, &port, &err), QN_OK);
    assert_string_equal(host, "127.0.0.1");
    qn__slurm_run(run);
    assert_string_equal(run, "4711.1");
    setenv("OMPI_COMM_WORLD_SIZE", "1", 1); /* mpirun inside a step */
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    assert_int_equal(found(QN_OK, "").kind, QN__LAUNCHED_ALONE);
}

static void place_of_torchrun(const char *says) {
    qn__torchrun_meeting at;
    qn_error err;
    assert_int_equal(qn__torchrun_place(4, &at, &err), QN_USAGE);
    assert_non_null(strstr(err.what, says));
}

static void test_torchrun(void **state) {
    (void)state;
    qn__torchrun_meeting at;
    setenv("WORLD_SIZE", "4", 1); /* anybody's */
    setenv("RANK", "3", 1);
    assert_int_equal(found(QN_OK, "").kind, QN__LAUNCHED_ALONE);
    setenv("TORCHELASTIC_RUN_ID", "none", 1);
    setenv("SLURM_STEP_ID", "0", 1); /* srun started torchrun on each of two nodes */
    setenv("SLURM_STEP_NUM_TASKS", "2", 1);
    setenv("SLURM_PROCID", "1", 1);
    const qn__launcher l = found(QN_OK, "");
    assert_int_equal(l.kind, QN__LAUNCHED_TORCHRUN);
    assert_string_equal(l.name, "torchrun");
    assert_int_equal(l.ranks, 4);
    assert_int_equal(l.rank, 3);
    place_of_torchrun("MASTER_ADDR is \"\" and MASTER_PORT \"\"");
    setenv("MASTER_PORT", "29500", 1);
    place_of_torchrun("MASTER_ADDR is \"\"");
    setenv("MASTER_ADDR", "node-a", 1);
    setenv("LOCAL_WORLD_SIZE", "2", 1);
    assert_int_equal(qn__torchrun_place(4, &at, NULL), QN_OK);
    assert_string_equal(at.host, "node-a");
    assert_int_equal(at.port, 29501);
    assert_int_equal(at.more, 7);
    assert_string_equal(at.run, "torchrun 29500 none");
    setenv("LOCAL_WORLD_SIZE", "4", 1);
    assert_int_equal(qn__torchrun_place(4, &at, NULL), QN_OK);
    assert_string_equal(at.host, "127.0.0.1");
    setenv("MASTER_PORT", "65532", 1);
    assert_int_equal(qn__torchrun_place(4, &at, NULL), QN_OK);
    assert_int_equal(at.port + at.more, 65535);
    setenv("MASTER_PORT", "65535", 1);
    place_of_torchrun("\"65535\"");
    setenv("RANK", "4", 1);
    found(QN_USAGE, "do not say which");
    setenv("WORLD_SIZE", "1", 1);
    setenv("RANK", "0", 1);
    assert_int_equal(found(QN_OK, "").kind, QN__LAUNCHED_ALONE);
}

/* ---------------------------------------------------------------------------------------- MUNGE */

typedef struct daemon_of_test {
    pid_t pid;
    char folder[64], socket[96];
} daemon_of_test;

static int munged_begin(daemon_of_test *d) {
    char key[96], seed[96], log[96], file[96];
    unsigned char bytes[128];
    snprintf(d->folder, sizeof d->folder, "/tmp/quern-munge-XXXXXX");
    if (!mkdtemp(d->folder))
        return 0;
    chmod(d->folder, 0755);
    snprintf(d->socket, sizeof d->socket, "%s/socket", d->folder);
    snprintf(key, sizeof key, "--key-file=%s/key", d->folder);
    snprintf(seed, sizeof seed, "--seed-file=%s/seed", d->folder);
    snprintf(log, sizeof log, "--log-file=%s/log", d->folder);
    snprintf(file, sizeof file, "%s/key", d->folder);
    qn__random_bytes(bytes, sizeof bytes);
    const int k = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(k, bytes, sizeof bytes), sizeof bytes);
    close(k);
    d->pid = fork();
    if (d->pid == 0) {
        char socket[110], pid[96];
        snprintf(socket, sizeof socket, "--socket=%s", d->socket);
        snprintf(pid, sizeof pid, "--pid-file=%s/pid", d->folder);
        const int null = open("/dev/null", O_RDWR);
        dup2(null, 1);
        dup2(null, 2);
        execlp("munged", "munged", "--foreground", "--force", "--num-threads=1", key, seed, log,
               pid, socket, (char *)NULL);
        execl("/usr/sbin/munged", "munged", "--foreground", "--force", "--num-threads=1", key, seed,
              log, pid, socket, (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 6000; ++i) {
        usleep(10000);
        if (access(d->socket, F_OK) == 0)
            return 1;
        if (waitpid(d->pid, NULL, WNOHANG) == d->pid) {
            d->pid = 0;
            return 0;
        }
    }
    return 0;
}

static void munged_end(daemon_of_test *d) {
    static const char *const names[] = {"key", "seed", "log", "pid", "socket", "socket.lock"};
    char file[96];
    if (d->pid > 0) {
        kill(d->pid, SIGTERM);
        waitpid(d->pid, NULL, 0);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        snprintf(file, sizeof file, "%s/%s", d->folder, names[i]);
        unlink(file);
    }
    rmdir(d->folder);
}

static void seals(const daemon_of_test *d) {
    char credential[QN__CREDENTIAL_BYTES], changed[QN__CREDENTIAL_BYTES];
    unsigned char secret[32], got[32] = {0};
    qn_error err;
    setenv("QUERN_MUNGE_SOCKET", d->socket, 1);
    qn__random_bytes(secret, sizeof secret);
    assert_int_equal(qn__munge_seal(secret, credential, &err), QN_OK);
    for (int i = 0; i < 3; ++i) { /* as several ranks of one machine do */
        assert_int_equal(qn__munge_open(credential, got, &err), QN_OK);
        assert_memory_equal(secret, got, 32);
    }
    for (size_t i = 10; credential[i + 2]; i += 5) {
        memcpy(changed, credential, sizeof changed);
        changed[i] = changed[i] == 'A' ? 'B' : 'A';
        if (qn__munge_open(changed, got, &err) == QN_OK) /* a bit that base64 does not use */
            assert_memory_equal(secret, got, 32);
    }
    memset(changed, 'x', sizeof changed);
    assert_int_equal(qn__munge_open(changed, got, &err), QN_CLUSTER);
}

/* The ranks of an srun step, as processes: they differ in SLURM_PROCID. */
static void meets(const daemon_of_test *d) {
    pid_t pid[3];
    setenv("QUERN_MUNGE_SOCKET", d->socket, 1);
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_STEP_NUM_TASKS", "3", 1);
    setenv("SLURM_STEP_NUM_NODES", "2", 1);
    setenv("SLURM_STEP_NODELIST", "localhost,b[1-2]", 1);
    char job[16];
    snprintf(job, sizeof job, "%u", (unsigned)getpid());
    setenv("SLURM_JOB_ID", job, 1);
    for (int r = 0; r < 3; ++r) {
        pid[r] = fork();
        if (pid[r] == 0) {
            qn__rendezvous m;
            qn_error err;
            const char number[2] = {(char)('0' + r), 0};
            const qn_cluster_options o = {.size = sizeof o, .rendezvous_timeout = 15};
            setenv("SLURM_PROCID", number, 1);
            if (qn__rendezvous_begin(&o, &m, &err) != QN_OK)
                _exit(2);
            const int good = m.ranks == 3 && m.rank == (uint32_t)r && m.info[2].local == 2 &&
                             strcmp(m.launcher, "srun") == 0;
            qn__rendezvous_end(&m);
            _exit(good ? 0 : 3);
        }
    }
    for (int r = 0; r < 3; ++r) {
        int status = -1;
        assert_int_equal(waitpid(pid[r], &status, 0), pid[r]);
        assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : 99, 0);
    }
}

static void test_munge(void **state) {
    (void)state;
    daemon_of_test d;
    qn_error err;
    char credential[QN__CREDENTIAL_BYTES];
    const unsigned char secret[32] = {1};
    setenv("QUERN_MUNGE_SOCKET", "/nowhere/socket", 1);
    assert_int_equal(qn__munge_seal(secret, credential, &err), QN_UNSUPPORTED);
    assert_non_null(strstr(err.what, "MUNGE"));
    if (!munged_begin(&d)) {
        munged_end(&d);
        skip(); /* munged cannot be started here */
    }
    seals(&d);
    meets(&d);
    munged_end(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_no_launcher, clean),
        cmocka_unit_test_setup(test_open_mpi, clean),
        cmocka_unit_test_setup(test_mpich, clean),
        cmocka_unit_test_setup(test_lists_of_nodes, clean),
        cmocka_unit_test_setup(test_slurm, clean),
        cmocka_unit_test_setup(test_torchrun, clean),
        cmocka_unit_test_setup(test_munge, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "cluster/rendezvous/mpi_exchange.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "cluster/rendezvous/mpi_library.h"
#include "cluster/transport/ranks.h"
#include "cluster/transport/wire.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

/* Shared by the thread that calls MPI and the thread that waits for it. The last of them frees
 * it. */
struct qn__kept_mpi {
    qn__mpi mpi;
    pthread_t thread;
    uint32_t expected; /* ranks, by the launcher; 0: unknown */
    qn__introduction result;
    unsigned char own[QN__ENDPOINT_BYTES], *all;
    qn_status status;
    qn_error err;
    int wrong_size; /* the number of ranks that MPI returned instead */

    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t changed;
    int done, left;
    int keeps, ends, finalize, ended;
    void (*serve)(void *user, const qn__carrier *carrier);
    void *user;
    qn__carrier carrier;
};
typedef qn__kept_mpi mpi_call;

/* In the last byte of an endpoint, which has space: 1 + qn__carriage; 0 is an older Quern. */
enum { WISH_AT = QN__ENDPOINT_BYTES - 1 };

static qn_status mpi_failed(mpi_call *t, const char *function, int code) {
    qn__fail(&t->err, QN_CLUSTER, "%s of %s (%s) failed with code %d", function, t->mpi.name,
             t->mpi.path, code);
    return qn__remedy(
        &t->err, QN_CLUSTER,
        "see what the launcher says; ranks can start without MPI: `cluster.rendezvous` HOST:PORT");
}

/* Gets size and rank, and allocates t->all. */
static qn_status find_ranks(mpi_call *t) {
    const qn__mpi *mpi = &t->mpi;
    int ranks = 0, rank = -1, code = mpi->abi->return_errors(mpi);
    if (code == 0)
        code = mpi->abi->size(mpi, &ranks);
    if (code == 0)
        code = mpi->abi->rank(mpi, &rank);
    if (code != 0)
        return mpi_failed(t, "MPI_Comm_size", code);
    if (t->expected > 0 && (uint32_t)ranks != t->expected) {
        t->wrong_size = ranks;
        return QN_CLUSTER;
    }
    if (ranks < 1 || ranks > QN__MAX_RANKS || rank < 0 || rank >= ranks) {
        qn__fail(&t->err, QN_CLUSTER, "rank %d of %d: a run cannot have so many ranks", rank,
                 ranks);
        return qn__remedy(&t->err, QN_CLUSTER, "start at most %d ranks", QN__MAX_RANKS);
    }
    t->result.ranks = (uint32_t)ranks;
    t->result.rank = (uint32_t)rank;
    t->result.endpoint = qn__alloc((size_t)ranks, sizeof *t->result.endpoint, &t->err);
    t->all = t->result.endpoint ? qn__alloc((size_t)ranks, QN__ENDPOINT_BYTES, &t->err) : NULL;
    return t->all ? QN_OK : QN_MEMORY;
}

static qn_status not_quern(mpi_call *t, uint32_t rank) {
    qn__fail(&t->err, QN_CLUSTER, "rank %u is another program, or another Quern", rank);
    return qn__remedy(&t->err, QN_CLUSTER, "start one version of Quern on all hosts");
}

static qn_status exchange(mpi_call *t) {
    const qn__mpi *mpi = &t->mpi;
    qn__random_bytes(t->result.key, sizeof t->result.key);
    int code = mpi->abi->broadcast(mpi, t->result.key, sizeof t->result.key);
    if (code != 0)
        return mpi_failed(t, "MPI_Bcast", code);
    code = mpi->abi->allgather(mpi, t->own, QN__ENDPOINT_BYTES, t->all);
    if (code != 0)
        return mpi_failed(t, "MPI_Allgather", code);
    for (uint32_t r = 0; r < t->result.ranks; ++r)
        if (!qn__endpoint_read(t->all + (size_t)r * QN__ENDPOINT_BYTES, &t->result.endpoint[r]))
            return not_quern(t, r);
    return QN_OK;
}

/* Whether MPI stays: the same answer on all ranks. */
static int is_kept(mpi_call *t) {
    const qn__endpoint *all = t->result.endpoint;
    int machines = 1, least = QN__CARRIAGE_MPI, most = QN__CARRIAGE_SOCKETS;
    for (uint32_t r = 0; r < t->result.ranks; ++r) {
        const int wish = t->all[(size_t)r * QN__ENDPOINT_BYTES + WISH_AT] - 1;
        least = wish < least ? wish : least;
        most = wish > most ? wish : most;
        machines += memcmp(all[r].machine, all[0].machine, sizeof all[r].machine) != 0;
    }
    t->result.wish = least > QN__CARRIAGE_SOCKETS ? (qn__carriage)most : QN__CARRIAGE_SOCKETS;
    return machines > 1 && least > QN__CARRIAGE_SOCKETS;
}

static qn_status run_calls(mpi_call *t) {
    int before = 0, after = 0, provided = 0, code = 0;
    qn__mpi *mpi = &t->mpi;
    mpi->initialized(&before);
    mpi->finalized(&after);
    if (after)
        return qn__fail(&t->err, QN_CLUSTER, "this program has ended %s already (MPI_Finalize)",
                        mpi->name);
    if (!before)
        code = mpi->init(NULL, NULL, QN__MPI_FUNNELED, &provided);
    if (code != 0)
        return mpi_failed(t, "MPI_Init_thread", code);
    if (before || !qn__mpi_can_carry(mpi))
        t->own[WISH_AT] = 1 + QN__CARRIAGE_SOCKETS;
    qn_status status = find_ranks(t);
    if (status == QN_OK)
        status = exchange(t);
    t->keeps = status == QN_OK && is_kept(t);
    if (!before && !t->keeps)
        mpi->finalize();
    return status;
}

static void drop(mpi_call *t) {
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->changed);
    qn__free(t->result.endpoint);
    qn__free(t->all);
    qn__free(t);
}

/* Serves while MPI is kept. Under the lock. */
static void serve_kept(mpi_call *t) {
    while (!t->serve && !t->ends)
        pthread_cond_wait(&t->changed, &t->lock);
    if (t->serve) {
        pthread_mutex_unlock(&t->lock);
        t->serve(t->user, &t->carrier);
        pthread_mutex_lock(&t->lock);
    }
    while (!t->ends)
        pthread_cond_wait(&t->changed, &t->lock);
    if (t->finalize) {
        pthread_mutex_unlock(&t->lock);
        t->mpi.finalize();
        pthread_mutex_lock(&t->lock);
    }
}

static void *talk_main(void *argument) {
    mpi_call *t = argument;
    qn__float_state_set();
    t->status = run_calls(t);
    pthread_mutex_lock(&t->lock);
    t->done = 1;
    pthread_cond_broadcast(&t->changed);
    if (t->keeps && !t->left)
        serve_kept(t);
    t->ended = 1;
    const int alone = t->left;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    if (alone)
        drop(t);
    return NULL;
}

/* Waits until *flag, under the lock. */
static void wait_until(mpi_call *t, const int *flag, double seconds) {
    const struct timespec until = qn__after(seconds);
    int late = 0;
    while (!*flag && late != ETIMEDOUT)
        late = pthread_cond_timedwait(&t->changed, &t->lock, &until);
}

static qn_status wrong_size(const mpi_call *t, const qn__launcher *launcher, qn_error *err) {
    qn__fail(err, QN_UNSUPPORTED,
             "%s (%s) does not match %s: the library reports %d rank%s, the launcher started %u",
             t->mpi.name, t->mpi.path, launcher->name, t->wrong_size, t->wrong_size == 1 ? "" : "s",
             launcher->ranks);
    return qn__remedy(err, QN_UNSUPPORTED,
                      "let the environment variable QUERN_MPI name the libmpi.so that belongs to "
                      "this launcher, or start with the launcher that belongs to the library");
}

static mpi_call *begin(const qn__launcher *launcher, const qn__introduction *in, qn_error *err) {
    pthread_condattr_t monotonic;
    mpi_call *t = qn__alloc(1, sizeof *t, err);
    if (!t)
        return NULL;
    pthread_mutex_init(&t->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&t->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    t->expected = launcher->ranks;
    qn__endpoint_write(&in->own, t->own);
    t->own[WISH_AT] = (unsigned char)(1 + in->wish);
    return t;
}

/* --------------------------------------------------------------------------------- MPI that stays
 */

static int carry_out(void *user, const void *from, uint64_t bytes, uint32_t to, uint32_t tag,
                     qn__carried *transfer) {
    const qn__mpi *mpi = user;
    return mpi->abi->send(mpi, from, (int)bytes, (int)to, (int)tag, transfer);
}

static int carry_in(void *user, void *into, uint64_t bytes, uint32_t from, uint32_t tag,
                    qn__carried *transfer) {
    const qn__mpi *mpi = user;
    return mpi->abi->receive(mpi, into, (int)bytes, (int)from, (int)tag, transfer);
}

static int carry_test(void *user, qn__carried *transfer, int *done) {
    const qn__mpi *mpi = user;
    return mpi->abi->test(mpi, transfer, done);
}

void qn__kept_mpi_serve(qn__kept_mpi *t, void (*serve)(void *user, const qn__carrier *carrier),
                        void *user) {
    pthread_mutex_lock(&t->lock);
    t->carrier = (qn__carrier){.name = t->mpi.name,
                               .user = &t->mpi,
                               .survives = t->mpi.survives,
                               .send = carry_out,
                               .receive = carry_in,
                               .test = carry_test};
    t->serve = serve;
    t->user = user;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

const char *qn__kept_mpi_name(const qn__kept_mpi *t) { return t->mpi.name; }

/* The first call counts. Under the lock. */
static void order_end(qn__kept_mpi *t, int finalize) {
    if (!t->ends)
        t->finalize = finalize;
    t->ends = 1;
    pthread_cond_broadcast(&t->changed);
}

void qn__kept_mpi_ends(qn__kept_mpi *t, int finalize) {
    pthread_mutex_lock(&t->lock);
    order_end(t, finalize);
    pthread_mutex_unlock(&t->lock);
}

int qn__kept_mpi_end(qn__kept_mpi *t, int finalize, double seconds) {
    pthread_mutex_lock(&t->lock);
    const pthread_t thread = t->thread;
    order_end(t, finalize);
    wait_until(t, &t->ended, seconds);
    const int ended = t->ended;
    t->left = 1;
    pthread_mutex_unlock(&t->lock);
    if (ended) {
        pthread_join(thread, NULL);
        drop(t);
    } else {
        pthread_detach(thread);
    }
    return ended;
}

/* ------------------------------------------------------------------------------------- the
 * exchange */

/* The result, under the lock. */
static qn_status conclude(mpi_call *t, const qn__launcher *launcher, qn__introduction *in,
                          double seconds, qn_error *err) {
    if (!t->done) {
        qn__fail(err, QN_CLUSTER, "%s did not bring the ranks together within %g seconds",
                 t->mpi.name, ceil(seconds * 10) / 10);
        return qn__remedy(
            err, QN_CLUSTER,
            "look whether all ranks were started; a rank that ended before it joined the "
            "others keeps them waiting");
    }
    if (t->wrong_size)
        return wrong_size(t, launcher, err);
    if (t->status != QN_OK) {
        if (err)
            *err = t->err;
        return t->status;
    }
    const qn__endpoint own = in->own;
    *in = t->result;
    in->own = own;
    in->kept = t->keeps ? t : NULL;
    t->result.endpoint = NULL;
    return QN_OK;
}

qn_status qn__mpi_introduce(const qn__launcher *launcher, qn__introduction *in, double seconds,
                            qn_error *err) {
    mpi_call *t = begin(launcher, in, err);
    if (!t)
        return QN_MEMORY;
    qn_status status = qn__mpi_open(launcher, &t->mpi, err);
    pthread_mutex_lock(&t->lock); /* the thread begins its report when `thread` is set */
    if (status == QN_OK && pthread_create(&t->thread, NULL, talk_main, t) != 0)
        status = qn__fail(err, QN_MEMORY, "cannot start a thread for the rendezvous");
    if (status != QN_OK) {
        pthread_mutex_unlock(&t->lock);
        drop(t);
        return status;
    }
    const pthread_t thread = t->thread;
    wait_until(t, &t->done, seconds);
    status = conclude(t, launcher, in, seconds, err);
    const int keeps = status == QN_OK && t->keeps, ends = t->done && !keeps;
    t->left = !keeps && !ends;
    t->ends = !keeps;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    if (ends) {
        pthread_join(thread, NULL);
        drop(t);
    } else if (!keeps) {
        pthread_detach(thread);
    }
    return status;
}

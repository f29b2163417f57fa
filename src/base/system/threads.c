#include "base/system/threads.h"
#include "base/system/float_state.h"

#include "base/encoding.h"
#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/cores.h"
#include "base/system/futex.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

enum {
    THREADS_MAX = 4096, /* more is a typing error, not a machine */
    LEAST_STACK = 1 << 20,
    LOOKS = 32 /* reads of a gate before the clock is read for the first time */
};

/* How long a thread spins before it sleeps. Longer than a wait inside a balanced step, and than a
 * futex's two system calls. Short enough that a caller's own work between two runs hardly keeps the
 * other cores busy. */
static const double SPIN_SECONDS = 100e-6;

/* A number that threads wait on until it changes. Only its setter writes `value`. */
typedef struct gate {
    _Alignas(64) atomic_uint value;
    atomic_uint sleepers; /* threads that are in, or about to enter, the kernel's wait */
} gate;

typedef struct member {
    qn__pool *pool;
    pthread_t handle;
    int thread;
    atomic_int place; /* the core on which it last began to compute */
} member;

struct qn__pool {
    gate start; /* raised by qn__pool_run; members 1 .. threads-1 wait on it between runs */
    gate round; /* raised by the last thread to arrive at a barrier */
    _Alignas(64) atomic_uint arrived; /* threads at the barrier of this round */
    _Alignas(64) int threads;
    int spins;   /* 0 if there are more threads than cores: a spinning thread would only delay the
                    thread that it waits for */
    int *cores;  /* the core of each thread, or NULL when they are not bound */
    int members; /* how many of members[] have started; member[0] never does */
    member *member;
    int stop; /* these three are published by raising `start` */
    void (*body)(void *context, int thread);
    void *context;
};

static void pause_core(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void gate_raise(gate *g) {
    atomic_fetch_add(&g->value, 1);
    /* Both this load and the sleeper's increment are sequentially consistent: either this load sees
     * the sleeper, or the sleeper's check of `value` (in the kernel) comes after the change. */
    if (atomic_load(&g->sleepers) > 0)
        qn__futex_wake(&g->value, INT_MAX, QN__FUTEX_PRIVATE);
}

static void gate_sleep(gate *g, unsigned seen) {
    atomic_fetch_add(&g->sleepers, 1);
    /* The kernel sleeps only if `value` still is `seen`; it may also return spuriously. */
    while (atomic_load(&g->value) == seen)
        qn__futex_wait(&g->value, seen, -1, QN__FUTEX_PRIVATE);
    atomic_fetch_sub(&g->sleepers, 1);
}

/* Waits until the gate's value differs from `seen`. Returns the seconds that it took, 0 when the
 * first few reads were enough. */
static double gate_wait(gate *g, unsigned seen, int spins) {
    for (int i = 0; i < LOOKS; i++) {
        if (atomic_load_explicit(&g->value, memory_order_acquire) != seen)
            return 0;
        pause_core();
    }
    const double begin = qn__now();
    while (spins && qn__now() - begin < SPIN_SECONDS) {
        for (int i = 0; i < LOOKS; i++) {
            if (atomic_load_explicit(&g->value, memory_order_acquire) != seen)
                return qn__now() - begin;
            pause_core();
        }
    }
    gate_sleep(g, seen);
    return qn__now() - begin;
}

/* Counts this thread as arrived. The last one resets the count before it raises the gate: threads
 * that continue see 0, and none can reach the next round earlier. Returns the value of the gate for
 * which the others wait to change; it cannot have changed before this thread arrived. */
static unsigned arrive(qn__pool *pool) {
    const unsigned seen = atomic_load_explicit(&pool->round.value, memory_order_relaxed);
    const unsigned before = atomic_fetch_add_explicit(&pool->arrived, 1, memory_order_acq_rel);
    if (before + 1 == (unsigned)pool->threads) {
        atomic_store_explicit(&pool->arrived, 0, memory_order_relaxed);
        gate_raise(&pool->round);
    }
    return seen;
}

/* Leaves a core. Afterwards the thread may use all of its cores again, and stays where it is. */
static void leave_core(int core) {
    size_t size;
    cpu_set_t *own = qn__own_mask(&size), *others = own ? CPU_ALLOC(8 * size) : NULL;
    if (others) {
        memcpy(others, own, size);
        CPU_CLR_S((size_t)core, size, others);
        if (CPU_COUNT_S(size, others) > 0 && sched_setaffinity(0, size, others) == 0)
            (void)sched_setaffinity(0, size, own);
        CPU_FREE(others);
    }
    if (own)
        CPU_FREE(own);
}

/* The system may wake a thread on the core on which another of the pool computes or spins, and
 * leave both there for several milliseconds while a core is idle. So this thread leaves the core
 * where one of the first `count` threads began. */
static void keep_apart(qn__pool *pool, int thread, int count) {
    if (!pool->spins || pool->cores || pool->threads == 1)
        return;
    int here = sched_getcpu(), shared = 0;
    for (int i = 0; i < count && !shared; i++)
        shared = i != thread && atomic_load(&pool->member[i].place) == here;
    if (shared && here >= 0) {
        leave_core(here);
        here = sched_getcpu();
    }
    if (atomic_load(&pool->member[thread].place) != here)
        atomic_store(&pool->member[thread].place, here);
}

double qn__pool_barrier(qn__pool *pool, int thread) {
    const double waited = gate_wait(&pool->round, arrive(pool), pool->spins);
    if (waited > SPIN_SECONDS) /* it has slept */
        keep_apart(pool, thread, pool->threads);
    return waited;
}

static void bind_to_core(int core) {
    const size_t cores = (size_t)core + 1, size = CPU_ALLOC_SIZE(cores);
    cpu_set_t *set = CPU_ALLOC(cores);
    if (!set)
        return;
    CPU_ZERO_S(size, set);
    CPU_SET_S((size_t)core, size, set);
    /* A core can be removed after the mask was read: the thread is then not bound. */
    (void)sched_setaffinity(0, size, set);
    CPU_FREE(set);
}

static void *member_main(void *argument) {
    member *self = argument;
    qn__pool *pool = self->pool;
    if (pool->cores)
        bind_to_core(pool->cores[self->thread]);
    unsigned seen = 0;
    for (;;) {
        gate_wait(&pool->start, seen, pool->spins);
        seen++;
        if (pool->stop)
            return NULL;
        keep_apart(pool, self->thread, self->thread);
        qn__float_state_set(); /* the last body may have called foreign code */
        pool->body(pool->context, self->thread);
        /* The end of a run is one more round, in which only the caller waits: it cannot start the
         * next run before this thread has arrived. */
        arrive(pool);
    }
}

/* The first `threads` cores of the mask, or NULL when it holds fewer. */
static int *choose_cores(int threads) {
    size_t size;
    cpu_set_t *set = qn__own_mask(&size);
    int *cores = NULL;
    if (set && CPU_COUNT_S(size, set) >= threads)
        cores = qn__alloc((size_t)threads, sizeof *cores, NULL);
    for (int core = 0, found = 0; cores && found < threads; core++)
        if (CPU_ISSET_S((size_t)core, size, set))
            cores[found++] = core;
    if (set)
        CPU_FREE(set);
    return cores;
}

/* A small stack limit (ulimit -s) is meant for the first thread, but is the default of all others;
 * these get at least what computing needs. Returns an errno. */
static int thread_attributes(pthread_attr_t *attributes) {
    size_t size = 0;
    int error = pthread_attr_init(attributes);
    if (error == 0)
        error = pthread_attr_getstacksize(attributes, &size);
    if (error == 0 && size < LEAST_STACK)
        error = pthread_attr_setstacksize(attributes, LEAST_STACK);
    return error;
}

int qn__thread_start(pthread_t *handle, const pthread_attr_t *attributes, void *(*body)(void *),
                     void *context) {
    static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&blocked, own[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    const int error = pthread_create(handle, attributes, body, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* Starts members 1 .. threads-1. */
static int start_members(qn__pool *pool) {
    pthread_attr_t attributes;
    int error = thread_attributes(&attributes);
    for (int i = 1; i < pool->threads && error == 0; i++) {
        member *m = &pool->member[i];
        m->pool = pool;
        m->thread = i;
        error = qn__thread_start(&m->handle, &attributes, member_main, m);
        if (error == 0)
            pool->members = i;
    }
    pthread_attr_destroy(&attributes);
    return error;
}

qn_status qn__pool_create(int threads, int pin, qn__pool **out, qn_error *err) {
    *out = NULL;
    if (threads < 1 || threads > THREADS_MAX) {
        qn__fail(err, QN_USAGE, "%d threads cannot be started", threads);
        return qn__remedy(err, QN_USAGE, "use 1 to %d threads", THREADS_MAX);
    }
    qn__pool *pool = qn__alloc(1, sizeof *pool, err);
    if (!pool)
        return QN_MEMORY;
    pool->threads = threads;
    pool->spins = threads == 1 || threads <= qn__cores(); /* which takes 15 system calls */
    pool->cores = pin ? choose_cores(threads) : NULL;
    pool->member = qn__alloc((size_t)threads, sizeof *pool->member, err);
    if (!pool->member) {
        qn__pool_destroy(pool);
        return QN_MEMORY;
    }
    for (int i = 0; i < threads; i++)
        atomic_init(&pool->member[i].place, -1); /* it has not begun */
    const int error = start_members(pool);
    if (error != 0) {
        const int started = pool->members + 1;
        qn__pool_destroy(pool);
        qn__fail(err, QN_MEMORY, "cannot start thread %d of %d: %s", started + 1, threads,
                 strerror_l(error, qn__c_locale()));
        return qn__remedy(err, QN_MEMORY,
                          "use fewer threads, or raise the limit of processes "
                          "(ulimit -u) or of memory (ulimit -v)");
    }
    *out = pool;
    return QN_OK;
}

void qn__pool_destroy(qn__pool *pool) {
    if (!pool)
        return;
    pool->stop = 1;
    gate_raise(&pool->start);
    for (int i = 1; i <= pool->members; i++)
        pthread_join(pool->member[i].handle, NULL);
    qn__free(pool->member);
    qn__free(pool->cores);
    qn__free(pool);
}

int qn__pool_threads(const qn__pool *pool) { return pool->threads; }

/* The caller is bound to its core only during a run: otherwise threads that it starts later (a GPU
 * driver's, say) would inherit the binding. */
void qn__pool_run(qn__pool *pool, void (*body)(void *context, int thread), void *context) {
    size_t size = 0;
    cpu_set_t *before = pool->cores ? qn__own_mask(&size) : NULL;
    if (before)
        bind_to_core(pool->cores[0]);

    pool->body = body;
    pool->context = context;
    keep_apart(pool, 0, 0);
    gate_raise(&pool->start);
    qn__float_state_set();
    body(context, 0);
    qn__pool_barrier(pool, 0);

    if (before) {
        (void)sched_setaffinity(0, size, before);
        CPU_FREE(before);
    }
}

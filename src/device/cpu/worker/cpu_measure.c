/* Short measurements of the CPU's speed, and its energy counter. */
#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/energy.h"
#include "base/system/threads.h"
#include "device/cpu/cpu_isa.h"
#include "device/cpu/worker/cpu_table.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Seconds of each measurement; there are seven. */
#define SPAN 0.12

enum {
    ROWS = 48,     /* of a task, a multiple of the height of most tiles */
    WIDE = 8,      /* panels of a task with integers, as in training */
    MAPPED = 4096, /* elements of a call of tanh: both arrays stay in the L1 cache */
    LARGEST = 256  /* MiB that a copy reads, and writes */
};

typedef struct bench {
    const qn__cpu_isa *isa;
    qn__pool *pool;
    int threads;
    uint32_t m, k, n;            /* the product: a is m x k, b k x n */
    float *a, *b;                /* in panels; stride of a: m rows, of b: k rows */
    size_t *a_blocks, *b_blocks; /* where the panels of a and the blocks of a panel of b begin */
    float *c; /* of each core: the panels of its task, ROWS rows, `capacity` floats */
    size_t capacity;
    int bits; /* of the integers, whose operands are these: */
    char *left, *right;
    float *factor;    /* of every block, max(m, n) of them */
    float *from, *to; /* of the copy */
    size_t bytes;     /* of each of the two */
    double begun;
    _Atomic uint64_t tasks;       /* handed out */
    _Atomic uint64_t done;        /* operations, elements or bytes */
    _Atomic uint64_t nanoseconds; /* of the slowest core */
} bench;

/* Numbers of either sign around 1, so that sums stay in the normal range. */
static void fill(float *x, size_t count) {
    uint32_t random = 12345;
    for (size_t i = 0; i < count; ++i) {
        random = random * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)random * 0x1p-31f;
    }
}

/* Ends a core's part of a measurement that began at `begun`. */
static void finish(bench *b, double begun, uint64_t done) {
    const uint64_t taken = (uint64_t)((qn__now() - begun) * 1e9);
    uint64_t longest = atomic_load(&b->nanoseconds);
    atomic_fetch_add(&b->done, done);
    while (taken > longest && !atomic_compare_exchange_weak(&b->nanoseconds, &longest, taken))
        ;
}

/* Where `count` panels or blocks begin that are `stride` floats apart. */
static size_t *spaced(uint32_t count, size_t stride, qn_error *err) {
    size_t *at = qn__alloc(count, sizeof *at, err);
    for (size_t i = 0; at && i < count; ++i)
        at[i] = i * stride;
    return at;
}

/* Allocates the results of the cores' tasks. Each task has its own memory: a delayed core may still
 * compute a task when another core takes the same task again. */
static void allocate_all(bench *x, uint32_t panels, qn_error *err) {
    x->capacity = (size_t)panels * ROWS * QN__PANEL;
    x->c = qn__alloc((size_t)x->threads * x->capacity, sizeof(float), err);
}

/* Tasks of ROWS rows by a group of panels, panels first, so that a core's weights stay in its
 * cache. */
static void multiply(void *context, int thread) {
    bench *x = context;
    const uint32_t width = x->isa->kernels->panels, groups = x->n / QN__PANEL / width;
    const uint32_t blocks = x->m / ROWS;
    const qn__cpu_chain chain = {.k = x->k, .a = x->a_blocks, .b = x->b_blocks};
    uint64_t done = 0;
    do {
        const uint64_t task = atomic_fetch_add(&x->tasks, 1) % ((uint64_t)groups * blocks);
        const size_t panel = task / blocks * width, row = task % blocks * ROWS;
        x->isa->kernels->matmul(ROWS, &chain, x->a + row * QN__PANEL,
                                x->b + panel * x->k * QN__PANEL, (size_t)x->k * QN__PANEL,
                                x->c + x->capacity * (size_t)thread, ROWS * QN__PANEL, NULL, width);
        done += 2 * (uint64_t)ROWS * x->k * width * QN__PANEL;
    } while (qn__now() - x->begun < SPAN);
    finish(x, x->begun, done);
}

/* One task of the product of integers, or one panel of it. */
static void multiply_intgemm(const bench *x, const qn__intgemm *intgemm, size_t row, size_t panel,
                             uint32_t panels, float *c, size_t stride) {
    const size_t size = intgemm->size(x->bits, x->k);
    intgemm->product(x->bits, ROWS, x->k, x->left + row / QN__PANEL * size, panels,
                     x->right + panel * size, x->factor, x->factor, x->b, c, stride);
}

static void multiply_integers(void *context, int thread) {
    bench *x = context;
    const uint32_t groups = x->n / QN__PANEL / WIDE, blocks = x->m / ROWS;
    uint64_t done = 0;
    do {
        const uint64_t task = atomic_fetch_add(&x->tasks, 1) % ((uint64_t)groups * blocks);
        const size_t panel = task / blocks * WIDE, row = task % blocks * ROWS;
        multiply_intgemm(x, x->isa->intgemm, row, panel, WIDE, x->c + x->capacity * (size_t)thread,
                         ROWS * QN__PANEL);
        done += 2 * (uint64_t)ROWS * x->k * WIDE * QN__PANEL;
    } while (qn__now() - x->begun < SPAN);
    finish(x, x->begun, done);
}

static void map_tanh(void *context, int thread) {
    bench *x = context;
    _Alignas(64) float in[MAPPED], out[MAPPED];
    uint64_t done = 0;
    (void)thread;
    fill(in, MAPPED);
    do {
        x->isa->maps->tanh(MAPPED, in, out);
        done += MAPPED;
    } while (qn__now() - x->begun < SPAN);
    finish(x, x->begun, done);
}

/* Each core copies its own part, again and again. */
static void copy(void *context, int thread) {
    bench *x = context;
    const size_t part = x->bytes / (size_t)x->threads / 64 * 16; /* floats */
    float *from = x->from + part * (size_t)thread, *to = x->to + part * (size_t)thread;
    uint64_t done = 0;
    /* The kernel allocates memory at the first write, which must not be measured. */
    memset(from, 1, part * sizeof *from);
    memset(to, 2, part * sizeof *to);
    qn__pool_barrier(x->pool, thread);
    const double begun = qn__now();
    do {
        memcpy(to, from, part * sizeof *to);
        done += 2 * part * sizeof *to;
    } while (qn__now() - begun < SPAN);
    finish(x, begun, done);
}

static double rate_of(bench *x, void (*body)(void *context, int thread)) {
    atomic_store(&x->tasks, 0);
    atomic_store(&x->done, 0);
    atomic_store(&x->nanoseconds, 0);
    x->begun = qn__now();
    qn__pool_run(x->pool, body, x);
    return (double)atomic_load(&x->done) / ((double)atomic_load(&x->nanoseconds) * 1e-9);
}

/* One tile against the scalar kernel, bit for bit: wrong products are not measured. */
static qn_status check_product(const bench *x, qn_error *err) {
    _Alignas(64) float expected[ROWS * QN__PANEL];
    const qn__cpu_chain chain = {.k = x->k, .a = x->a_blocks, .b = x->b_blocks};
    x->isa->kernels->matmul(ROWS, &chain, x->a, x->b, (size_t)x->k * QN__PANEL, x->c,
                            ROWS * QN__PANEL, NULL, 1);
    qn__cpu_kernels_scalar.matmul(ROWS, &chain, x->a, x->b, (size_t)x->k * QN__PANEL, expected,
                                  ROWS * QN__PANEL, NULL, 1);
    if (memcmp(expected, x->c, sizeof expected) == 0)
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED, "cpu computes an incorrect product with %s", x->isa->name);
    return qn__remedy(err, QN_UNSUPPORTED, "use `compute.isa` scalar; this machine may be broken");
}

/* Operations a second of products of this size; 0 after a failure. */
static qn_status measure_product(bench *x, uint32_t size, double *rate, qn_error *err) {
    x->m = (size + ROWS - 1) / ROWS * ROWS;
    x->k = size;
    x->n = size; /* a multiple of every kernel's panels */
    x->a = qn__alloc((uint64_t)x->m * x->k, sizeof(float), err);
    x->b = qn__alloc((uint64_t)x->k * x->n, sizeof(float), err);
    x->a_blocks = spaced(x->k / QN__PANEL, (size_t)x->m * QN__PANEL, err);
    x->b_blocks = spaced(x->k / QN__PANEL, QN__PANEL * QN__PANEL, err);
    allocate_all(x, x->isa->kernels->panels, err);
    qn_status status = x->a && x->b && x->c && x->a_blocks && x->b_blocks ? QN_OK : QN_MEMORY;
    if (status == QN_OK) {
        fill(x->a, (size_t)x->m * x->k);
        fill(x->b, (size_t)x->k * x->n);
        status = check_product(x, err);
    }
    if (status == QN_OK)
        *rate = rate_of(x, multiply);
    qn__free(x->a);
    qn__free(x->b);
    qn__free(x->a_blocks);
    qn__free(x->b_blocks);
    qn__free(x->c);
    return status;
}

/* Packs both operands as a table does; all values are between -1 and 1 and have one scale. */
static void pack(const bench *x, const qn__intgemm *intgemm, const size_t *blocks, char *left,
                 char *right) {
    const size_t size = intgemm->size(x->bits, x->k);
    float inverse[QN__PANEL];
    for (int i = 0; i < QN__PANEL; ++i)
        inverse[i] = qn__block_inverse(qn__block_exponent(x->bits, 0x3f800000u));
    for (uint32_t r = 0; r < x->m; r += QN__PANEL)
        intgemm->left(x->bits, QN__PANEL, x->k, x->a + (size_t)r * QN__PANEL, blocks, NULL, inverse,
                      left + r / QN__PANEL * size);
    for (uint32_t p = 0; p < x->n / QN__PANEL; ++p)
        intgemm->right(x->bits, x->k, x->b + (size_t)p * x->k * QN__PANEL, inverse,
                       right + p * size);
}

/* One tile against the scalar table, bit for bit. */
static qn_status check_integers(bench *x, qn_error *err) {
    const qn__intgemm *scalar = &qn__intgemm_scalar;
    const size_t stride = (size_t)ROWS * QN__PANEL, size = scalar->size(x->bits, x->k);
    bench y = *x;
    y.m = ROWS;
    y.n = QN__PANEL;
    y.a = qn__alloc((uint64_t)ROWS * x->k, sizeof(float), err);
    y.left = qn__alloc(ROWS / QN__PANEL, size, err);
    y.right = qn__alloc(1, size, err);
    y.c = qn__alloc(2 * stride, sizeof(float), err);
    y.a_blocks = spaced(x->k / QN__PANEL, stride, err);
    qn_status status = y.a && y.left && y.right && y.c && y.a_blocks ? QN_OK : QN_MEMORY;
    if (status == QN_OK) {
        for (uint32_t p = 0; p < x->k / QN__PANEL; ++p)
            memcpy(y.a + p * stride, x->a + (size_t)p * x->m * QN__PANEL, stride * sizeof(float));
        pack(&y, scalar, y.a_blocks, y.left, y.right);
        multiply_intgemm(&y, scalar, 0, 0, 1, y.c, stride);
        multiply_intgemm(x, x->isa->intgemm, 0, 0, 1, y.c + stride, stride);
        if (memcmp(y.c, y.c + stride, stride * sizeof(float)) != 0) {
            qn__fail(err, QN_UNSUPPORTED, "cpu computes an incorrect integer product with %s",
                     x->isa->name);
            status = qn__remedy(err, QN_UNSUPPORTED,
                                "use `compute.isa` scalar; this machine may be broken");
        }
    }
    qn__free(y.a);
    qn__free(y.left);
    qn__free(y.right);
    qn__free(y.c);
    qn__free(y.a_blocks);
    return status;
}

/* Operations a second of products of `bits` bits; the operands stay in the caches. */
static qn_status measure_intgemm(bench *x, int bits, double *rate, qn_error *err) {
    const qn__intgemm *intgemm = x->isa->intgemm;
    x->m = x->n = x->k = 768; /* a multiple of ROWS and of WIDE panels */
    x->bits = bits;
    const size_t size = intgemm->size(bits, x->k), cells = (size_t)x->m * x->n;
    x->a = qn__alloc(cells, sizeof(float), err);
    x->b = qn__alloc(cells, sizeof(float), err);
    allocate_all(x, WIDE, err);
    x->left = qn__alloc(x->m / QN__PANEL, size, err);
    x->right = qn__alloc(x->n / QN__PANEL, size, err);
    x->factor = qn__alloc(x->m, sizeof(float), err);
    x->a_blocks = spaced(x->k / QN__PANEL, (size_t)x->m * QN__PANEL, err);
    const int whole = x->a_blocks && x->a && x->b && x->c && x->left && x->right && x->factor;
    qn_status status = whole ? QN_OK : QN_MEMORY;
    if (status == QN_OK) {
        fill(x->a, cells);
        fill(x->b, cells);
        for (uint32_t i = 0; i < x->m; ++i)
            x->factor[i] = qn__block_factor(qn__block_exponent(bits, 0x3f800000u));
        pack(x, intgemm, x->a_blocks, x->left, x->right);
        status = check_integers(x, err);
    }
    if (status == QN_OK)
        *rate = rate_of(x, multiply_integers);
    qn__free(x->a);
    qn__free(x->b);
    qn__free(x->c);
    qn__free(x->a_blocks);
    qn__free(x->left);
    qn__free(x->right);
    qn__free(x->factor);
    return status;
}

/* The copy is larger than the caches, if that is at most an eighth of the memory. */
static qn_status measure_copy(bench *x, double *rate, qn_error *err) {
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    const size_t all = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0;
    x->bytes = (size_t)LARGEST << 20;
    while (x->bytes > 1 << 20 && x->bytes > all / 16)
        x->bytes /= 2;
    x->from = qn__alloc(x->bytes, 1, err);
    x->to = qn__alloc(x->bytes, 1, err);
    const qn_status status = x->from && x->to ? QN_OK : QN_MEMORY;
    if (status == QN_OK)
        *rate = rate_of(x, copy);
    qn__free(x->from);
    qn__free(x->to);
    return status;
}

qn_status qn__cpu_measure(uint32_t index, const qn_compute *compute, qn_device_rates *rates,
                          qn_error *err) {
    double small = 0, large = 0;
    (void)index;
    memset(rates, 0, sizeof *rates);
    qn_status status = qn__cpu_check(compute, err);
    if (status != QN_OK)
        return status;
    bench x = {.isa = qn__cpu_isa_find(compute->isa),
               .threads = compute->threads ? compute->threads : qn__cores()};
    status = qn__pool_create(x.threads, 0, &x.pool, err);
    if (status == QN_OK)
        status = measure_product(&x, 384, &small, err); /* stays in the caches */
    if (status == QN_OK)
        status = measure_product(&x, 1536, &large, err);
    if (status == QN_OK) {
        rates->matmul = small > large ? small : large;
        rates->tanh = rate_of(&x, map_tanh);
        status = measure_copy(&x, &rates->memory, err);
    }
    for (int i = 0; status == QN_OK && i < 3; ++i)
        status = measure_intgemm(&x, 7 * (i + 1), &rates->integers[i], err);
    snprintf(rates->integers_by, sizeof rates->integers_by, "%s", x.isa->intgemm->name);
    qn__pool_destroy(x.pool);
    return status;
}

/* The energy counters measure the whole processor; there is one for the process. */
int qn__cpu_energy(uint32_t index, double *joules) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static qn__energy energy;
    static int open;
    (void)index;
    pthread_mutex_lock(&lock);
    if (!open)
        qn__energy_open(&energy, "/sys/class/powercap");
    open = 1;
    const int known = qn__energy_read(&energy, joules);
    pthread_mutex_unlock(&lock);
    return known;
}

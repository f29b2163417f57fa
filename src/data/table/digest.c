/* The digest of a data set: of its contents, independent of the file format.
 *
 * Values, labels and weights are hashed in blocks of 1 MiB by any thread, and the digests of the
 * blocks are hashed in order. So the result does not depend on the number of threads. */
#include "base/binary/little_endian.h"
#include "base/memory.h"
#include "base/system/futex.h"
#include "base/system/threads.h"
#include "data/table/data.h"
#include "data/table/wide.h"
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define BLOCK QN__DIGEST_BLOCK
/* Bytes that more than one thread hashes, where the caller has none. */
#define WORTH_THREADS 0x1p24
/* Blocks whose digests are kept at once. So few need no memory that could be missing. */
enum { AT_ONCE = 256 };
/* No process has this number. */
#define DONE UINT_MAX

typedef struct blocks {
    const uint8_t *bytes;
    size_t size, first, end;
    size_t item, step; /* bytes of an item, and from one to the next; 0: they follow one another */
    int width;         /* bytes of a number; 1: its order of bytes needs no care */
    uint8_t digests[AT_ONCE][32];
    atomic_size_t next;
} blocks;

/* A digest that is computed when somebody asks for it. */
struct qn__late_digest {
    const qn_data *table; /* all of it, for its views too */
    /* 0, DONE, or the process one of whose threads computes it. A lock would stay locked in a child
     * that a process makes meanwhile. */
    atomic_uint owner;
    char text[65];
};

static void add_number(qn__sha256 *hash, uint64_t number) {
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> (8 * i));
    qn__sha256_add(hash, bytes, sizeof bytes);
}

/* `size` bytes of numbers of 1, 2, 4 or 8 bytes, which are hashed as little-endian ones. */
static void add_numbers(qn__sha256 *hash, const uint8_t *from, size_t size, int width) {
    uint8_t piece[4096];
    if (width == 1 || __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
        qn__sha256_add(hash, from, size);
        return;
    }
    for (size_t now; size > 0; from += now, size -= now) {
        now = size < sizeof piece ? size : sizeof piece;
        if (width == 2)
            qn__copy_little_halves(piece, from, now / 2);
        else if (width == 4)
            qn__copy_little(piece, from, now / 4);
        else
            qn__copy_little_reals(piece, from, now / 8);
        qn__sha256_add(hash, piece, now);
    }
}

/* Bytes of items that share some: `size` of them from `at` on, if they followed one another. */
static void add_items(qn__sha256 *hash, const blocks *work, size_t at, size_t size) {
    for (size_t now; size > 0; at += now, size -= now) {
        const size_t within = at % work->item;
        now = work->item - within < size ? work->item - within : size;
        add_numbers(hash, work->bytes + at / work->item * work->step + within, now, work->width);
    }
}

static void hash_blocks(void *context, int thread) {
    (void)thread;
    blocks *work = context;
    size_t i;
    while ((i = atomic_fetch_add(&work->next, 1)) < work->end) {
        const size_t left = work->size - i * BLOCK, size = left < BLOCK ? left : BLOCK;
        qn__sha256 hash;
        qn__sha256_begin(&hash);
        if (work->step)
            add_items(&hash, work, i * BLOCK, size);
        else
            add_numbers(&hash, work->bytes + i * BLOCK, size, work->width);
        qn__sha256_end(&hash, work->digests[i - work->first]);
    }
}

void qn__digest_block(const void *bytes, size_t size, int width, uint8_t digest[32]) {
    qn__sha256 hash;
    qn__sha256_begin(&hash);
    add_numbers(&hash, bytes, size, width);
    qn__sha256_end(&hash, digest);
}

void qn__digest_items(const void *items, size_t item, size_t step, size_t at, size_t size,
                      int width, uint8_t digest[32]) {
    const blocks work = {.bytes = items, .item = item, .step = step, .width = width};
    qn__sha256 hash;
    qn__sha256_begin(&hash);
    if (step == item)
        add_numbers(&hash, work.bytes + at, size, width);
    else
        add_items(&hash, &work, at, size);
    qn__sha256_end(&hash, digest);
}

/* D(bytes) of docs/exactness.md 2.2. */
static void hash_all(blocks *work, qn__pool *pool, uint8_t digest[32]) {
    const size_t all = work->size / BLOCK + (work->size % BLOCK != 0);
    qn__sha256 whole;
    qn__sha256_begin(&whole);
    for (; work->first < all; work->first = work->end) {
        work->end = all - work->first < AT_ONCE ? all : work->first + AT_ONCE;
        atomic_store(&work->next, work->first);
        if (pool && work->end - work->first > 1)
            qn__pool_run(pool, hash_blocks, work);
        else
            hash_blocks(work, 0);
        qn__sha256_add(&whole, work->digests, (work->end - work->first) * sizeof *work->digests);
    }
    qn__sha256_end(&whole, digest);
}

static void hash_in_blocks(const void *bytes, size_t size, int width, qn__pool *pool,
                           uint8_t digest[32]) {
    blocks work = {.bytes = bytes, .size = size, .width = width};
    hash_all(&work, pool, digest);
}

void qn__data_values_digest(const qn_data *table, qn__pool *pool, uint8_t digest[32]) {
    blocks work = {.bytes = table->values,
                   .size = (size_t)table->items * qn__data_stride(table),
                   .width = (int)qn__element_of(table->type)->size,
                   .item = qn__data_stride(table),
                   .step = table->context ? qn__data_step(table) : 0};
    hash_all(&work, pool, digest);
}

/* The exact values of wide columns: docs/exactness.md 23.5. */
static void add_wide(qn__sha256 *hash, const qn_data *data, qn__pool *pool) {
    const qn__wide *wide = data->wide;
    uint8_t values[32];
    add_number(hash, wide->columns);
    for (uint32_t j = 0; j < wide->columns; j++) {
        const uint8_t kind = (uint8_t)data->schema->feature[wide->feature[j]].exact;
        hash_in_blocks(qn__wide_of(wide, j), (size_t)wide->rows * sizeof(qn__wide_value), 8, pool,
                       values);
        add_number(hash, wide->feature[j]);
        qn__sha256_add(hash, &kind, 1);
        qn__sha256_add(hash, values, sizeof values);
    }
}

/* Several targets of an item: docs/exactness.md 24.75. */
static void add_several(qn__sha256 *hash, const qn__several *several, const uint8_t targets[32]) {
    add_number(hash, several->each);
    add_number(hash, several->height);
    add_number(hash, several->width);
    qn__sha256_add(hash, targets, 32);
}

/* The texts of columns of texts: docs/exactness.md 25.61. */
static void add_texts(qn__sha256 *hash, const qn__schema *schema) {
    add_number(hash, qn__schema_texts(schema));
    for (uint32_t k = 0; k < schema->features; k++) {
        const qn__feature *feature = &schema->feature[k];
        if (!feature->text)
            continue;
        add_number(hash, k);
        add_number(hash, feature->categories);
        for (uint32_t i = 0; i < feature->categories; i++)
            qn__sha256_add(hash, feature->category[i], strlen(feature->category[i]) + 1);
    }
}

static uint8_t parts_of(const qn_data *data) {
    const int kind = data->several ? 3 : data->targets ? 2 : data->labels != NULL;
    return (uint8_t)(kind + (data->weights ? 4 : 0));
}

void qn__data_digest(const qn_data *data, qn__pool *pool, char text[65]) {
    qn__data_digests d;
    const void *given = data->targets ? (const void *)data->targets : data->labels;
    if (data->values_digest)
        memcpy(d.values, data->values_digest, sizeof d.values);
    else
        qn__data_values_digest(data, pool, d.values);
    if (given)
        hash_in_blocks(given, (size_t)data->items * sizeof(int32_t), 4, pool, d.labels);
    if (data->several)
        hash_in_blocks(data->several->target, (size_t)data->items * data->several->each, 1, pool,
                       d.several);
    if (data->weights)
        hash_in_blocks(data->weights, (size_t)data->items * sizeof(float), 4, pool, d.weights);
    qn__data_digest_join(data, data->items, &d, pool, text);
}

void qn__data_digest_join(const qn_data *data, uint64_t items, const qn__data_digests *d,
                          qn__pool *pool, char text[65]) {
    uint8_t whole[32];
    const uint8_t parts = parts_of(data);
    qn__sha256 hash;
    qn__sha256_begin(&hash);
    const int texts = qn__schema_texts(data->schema) > 0;
    qn__sha256_add(&hash,
                   texts        ? "quern data 3\n"
                   : data->wide ? "quern data 2\n"
                                : "quern data 1\n",
                   13);
    qn__sha256_add(&hash, &(uint8_t){(uint8_t)data->type}, 1);
    add_number(&hash, items);
    add_number(&hash, data->features);
    qn__sha256_add(&hash, &parts, 1);
    qn__sha256_add(&hash, d->values, sizeof d->values);
    if (data->targets || data->labels)
        qn__sha256_add(&hash, d->labels, sizeof d->labels);
    if (data->several)
        add_several(&hash, data->several, d->several);
    if (data->weights)
        qn__sha256_add(&hash, d->weights, sizeof d->weights);
    if (data->wide)
        add_wide(&hash, data, pool);
    else if (texts)
        add_number(&hash, 0);
    if (texts)
        add_texts(&hash, data->schema);
    qn__sha256_end(&hash, whole);
    qn__hex(whole, text);
}

void qn__data_digest_now(const qn_data *data, char text[65]) {
    qn__pool *pool = NULL;
    if ((double)data->items * (double)qn__data_stride(data) >= WORTH_THREADS &&
        qn__pool_create(qn__cores(), 0, &pool, NULL) != QN_OK)
        pool = NULL; /* the thread of the caller is enough */
    qn__data_digest(data, pool, text);
    qn__pool_destroy(pool);
}

/* ------------------------------------------------------------------------------ when asked for */

qn_status qn__late_digest_create(const qn_data *table, qn__late_digest **out, qn_error *err) {
    qn__late_digest *late = qn__alloc(1, sizeof *late, err);
    if (!late)
        return QN_MEMORY;
    late->table = table;
    atomic_init(&late->owner, 0);
    *out = late;
    return QN_OK;
}

void qn__late_digest_free(qn__late_digest *late) { qn__free(late); }

/* The first thread that asks computes it, and others sleep until it has. A child computes what its
 * parent was computing. */
const char *qn__late_digest_text(qn__late_digest *late) {
    const unsigned own = (unsigned)getpid();
    unsigned owner = atomic_load(&late->owner);
    while (owner != DONE) {
        if (owner == own) {
            qn__futex_wait(&late->owner, own, -1, QN__FUTEX_PRIVATE);
            owner = atomic_load(&late->owner);
        } else if (atomic_compare_exchange_strong(&late->owner, &owner, own)) {
            qn__data_digest_now(late->table, late->text);
            atomic_store(&late->owner, DONE);
            qn__futex_wake(&late->owner, INT_MAX, QN__FUTEX_PRIVATE);
            owner = DONE;
        }
    }
    return late->text;
}

/* The digest of a data set: of its contents, independent of the file format.
 *
 * Values, labels and weights are hashed in blocks of 1 MiB by any thread, and the digests of the
 * blocks are hashed in order. So the result does not depend on the number of threads. */
#include "base/little_endian.h"
#include "base/memory.h"
#include "data/data.h"
#include <stdatomic.h>
#include <string.h>

#define BLOCK ((size_t)1 << 20)

typedef struct blocks {
    const uint8_t *bytes;
    size_t size, count;
    int numbers; /* 32-bit numbers, not bytes */
    uint8_t (*digests)[32];
    atomic_size_t next;
} blocks;

static void hash_blocks(void *context, int thread) {
    (void)thread;
    blocks *work = context;
    size_t i;
    while ((i = atomic_fetch_add(&work->next, 1)) < work->count) {
        const size_t left = work->size - i * BLOCK, size = left < BLOCK ? left : BLOCK;
        qn__sha256 hash;
        qn__sha256_begin(&hash);
        if (work->numbers)
            qn__sha256_add_little(&hash, work->bytes + i * BLOCK, size / 4);
        else
            qn__sha256_add(&hash, work->bytes + i * BLOCK, size);
        qn__sha256_end(&hash, work->digests[i]);
    }
}

/* D(bytes) of docs/exactness.md 2.2. */
static qn_status hash_in_blocks(const void *bytes, size_t size, int numbers, qn__pool *pool,
                                uint8_t digest[32], qn_error *err) {
    blocks work = {.bytes = bytes,
                   .size = size,
                   .count = size / BLOCK + (size % BLOCK != 0),
                   .numbers = numbers};
    work.digests = qn__alloc(work.count, sizeof *work.digests, err);
    if (!work.digests)
        return QN_MEMORY;
    if (pool && work.count > 1)
        qn__pool_run(pool, hash_blocks, &work);
    else
        hash_blocks(&work, 0);
    qn__sha256_of(work.digests, work.count * sizeof *work.digests, digest);
    qn__free(work.digests);
    return QN_OK;
}

static void add_number(qn__sha256 *hash, uint64_t number) {
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> (8 * i));
    qn__sha256_add(hash, bytes, sizeof bytes);
}

qn_status qn__data_values_digest(const qn_data *table, qn__pool *pool, uint8_t digest[32],
                                 qn_error *err) {
    return hash_in_blocks(table->values, (size_t)table->items * qn__data_stride(table),
                          table->type == QN_F32, pool, digest, err);
}

qn_status qn__data_digest(const qn_data *data, qn__pool *pool, char text[65], qn_error *err) {
    uint8_t values[32], labels[32], weights[32], whole[32];
    qn_status status = QN_OK;
    if (data->values_digest)
        memcpy(values, data->values_digest, sizeof values);
    else
        status = qn__data_values_digest(data, pool, values, err);
    const void *given = data->targets ? (const void *)data->targets : data->labels;
    if (status == QN_OK && given)
        status = hash_in_blocks(given, (size_t)data->items * sizeof(int32_t), 1, pool, labels, err);
    if (status == QN_OK && data->weights)
        status = hash_in_blocks(data->weights, (size_t)data->items * sizeof(float), 1, pool,
                                weights, err);
    if (status != QN_OK)
        return status;
    const uint8_t parts = (uint8_t)((data->targets ? 2 : given != NULL) + (data->weights ? 4 : 0));
    qn__sha256 hash;
    qn__sha256_begin(&hash);
    qn__sha256_add(&hash, "quern data 1\n", 13);
    qn__sha256_add(&hash, &(uint8_t){data->type == QN_U8 ? 1 : 2}, 1);
    add_number(&hash, data->items);
    add_number(&hash, data->features);
    qn__sha256_add(&hash, &parts, 1);
    qn__sha256_add(&hash, values, sizeof values);
    if (given)
        qn__sha256_add(&hash, labels, sizeof labels);
    if (data->weights)
        qn__sha256_add(&hash, weights, sizeof weights);
    qn__sha256_end(&hash, whole);
    qn__hex(whole, text);
    return QN_OK;
}

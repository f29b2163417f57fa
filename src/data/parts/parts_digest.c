#include "data/parts/parts_digest.h"
#include "base/digest/sha256.h"
#include "base/memory.h"
#include "base/system/threads.h"
#include <stdatomic.h>
#include <string.h>

#define BLOCK ((uint64_t)QN__DIGEST_BLOCK)

/* Bytes of a rank that travel at once. */
enum { SLICE = 1 << 16 };

typedef struct slice {
    uint8_t present[8]; /* not 0 */
    uint8_t bytes[SLICE];
} slice;

/* One of the arrays of the table: all ranks have a range of its bytes. */
typedef struct stream {
    const qn_parts *parts;
    const uint8_t *bytes; /* of this rank */
    uint64_t each, step;  /* bytes of an item, and from one to the next */
    int width;            /* bytes of a number */
    uint64_t begin, end, all;
    uint64_t first, last; /* blocks that begin here: first .. last - 1 */
    uint8_t *rest;        /* the last of them, where other ranks have its end; else NULL */
    uint8_t (*digest)[32];
    atomic_uint_fast64_t next;
} stream;

static uint64_t blocks(uint64_t bytes) { return bytes / BLOCK + (bytes % BLOCK != 0); }

/* Copies bytes of this rank from `at` on, counted as if its items followed one another. */
static void copy(const stream *s, uint64_t at, uint64_t size, uint8_t *to) {
    for (uint64_t now; size > 0; at += now, to += now, size -= now) {
        const uint64_t within = at % s->each;
        now = s->each == s->step || s->each - within > size ? size : s->each - within;
        memcpy(to, s->bytes + at / s->each * s->step + within, (size_t)now);
    }
}

/* The bytes at the beginning of a rank's range that belong to a block which begins before it. */
static uint64_t leading(const stream *s, uint32_t rank) {
    const uint64_t begin = s->parts->first[rank] * s->each;
    const uint64_t end = s->parts->first[rank + 1] * s->each;
    const uint64_t block = blocks(begin) * BLOCK;
    return (block < end ? block : end) - begin;
}

/* The bytes of this rank's last block that others have. */
static void take_slice(const stream *s, const slice *all, uint64_t at) {
    const uint64_t block = (s->last - 1) * BLOCK;
    for (uint32_t r = s->parts->rank + 1; s->rest && r < s->parts->ranks; r++) {
        const uint64_t lead = leading(s, r), from = s->parts->first[r] * s->each + at;
        const uint64_t left = lead > at ? lead - at : 0, size = left < SLICE ? left : SLICE;
        if (size > 0 && from >= s->end && from < block + BLOCK)
            memcpy(s->rest + (from - block), all[r].bytes, size);
    }
}

/* All ranks send the bytes that others need. */
static qn_status exchange(const stream *s, qn_error *err) {
    uint64_t most = 0;
    for (uint32_t r = 0; r < s->parts->ranks; r++)
        most = leading(s, r) > most ? leading(s, r) : most;
    if (most == 0)
        return QN_OK;
    slice *own = qn__alloc(1, sizeof *own, err);
    slice *all = own ? qn__alloc(s->parts->ranks, sizeof *all, err) : NULL;
    qn_status status = all ? QN_OK : QN_MEMORY;
    if (status != QN_OK && s->parts->cluster)
        qn__cluster_fail(s->parts->cluster, err);
    const uint64_t lead = leading(s, s->parts->rank);
    for (uint64_t at = 0; at < most && status == QN_OK; at += SLICE) {
        const uint64_t left = lead > at ? lead - at : 0, size = left < SLICE ? left : SLICE;
        own->present[0] = 1;
        if (size > 0)
            copy(s, at, size, own->bytes);
        status = qn__parts_gather_each(s->parts, own, sizeof *own, all, err);
        if (status == QN_OK)
            take_slice(s, all, at);
    }
    qn__free(own);
    qn__free(all);
    return status;
}

static void hash_blocks(void *context, int thread) {
    stream *s = context;
    (void)thread;
    for (uint64_t i; (i = s->first + atomic_fetch_add(&s->next, 1)) < s->last;) {
        const uint64_t at = i * BLOCK, left = s->all - at;
        const size_t size = (size_t)(left < BLOCK ? left : BLOCK);
        if (s->rest && i + 1 == s->last)
            qn__digest_block(s->rest, size, s->width, s->digest[i - s->first]);
        else
            qn__digest_items(s->bytes, (size_t)s->each, (size_t)s->step, (size_t)(at - s->begin),
                             size, s->width, s->digest[i - s->first]);
    }
}

/* The last block of this rank as far as its own bytes go. */
static qn_status begin_rest(stream *s, qn_error *err) {
    const uint64_t block = s->last > s->first ? (s->last - 1) * BLOCK : 0;
    const uint64_t end = block + BLOCK < s->all ? block + BLOCK : s->all;
    if (s->last == s->first || end <= s->end)
        return QN_OK;
    s->rest = qn__alloc(BLOCK, 1, err);
    if (s->rest)
        copy(s, block - s->begin, s->end - block, s->rest);
    return s->rest ? QN_OK : QN_MEMORY;
}

static qn_status join(const stream *s, uint8_t digest[32], qn_error *err) {
    qn__parts_blobs blobs;
    qn__sha256 hash;
    const qn_status status = qn__parts_gather_blobs(
        s->parts, s->digest, (s->last - s->first) * sizeof *s->digest, &blobs, err);
    qn__sha256_begin(&hash);
    for (uint32_t r = 0; r < s->parts->ranks && status == QN_OK; r++)
        qn__sha256_add(&hash, blobs.all + r * blobs.each, (size_t)blobs.size[r]);
    qn__sha256_end(&hash, digest);
    qn__parts_blobs_release(&blobs);
    return status;
}

static qn_status digest_of(const qn_parts *parts, const void *bytes, uint64_t each, uint64_t step,
                           int width, qn__pool *pool, uint8_t digest[32], qn_error *err) {
    stream s = {.parts = parts,
                .bytes = bytes,
                .each = each,
                .step = step,
                .width = width,
                .begin = parts->first[parts->rank] * each,
                .end = parts->first[parts->rank + 1] * each,
                .all = qn__parts_items(parts) * each};
    s.first = blocks(s.begin);
    s.last = blocks(s.end);
    s.digest = qn__alloc(s.last - s.first, sizeof *s.digest, err);
    qn_status status = s.digest ? begin_rest(&s, err) : QN_MEMORY;
    status = qn__parts_agree(parts, status, err);
    if (status == QN_OK)
        status = exchange(&s, err);
    if (status == QN_OK && pool)
        qn__pool_run(pool, hash_blocks, &s);
    else if (status == QN_OK)
        hash_blocks(&s, 0);
    if (status == QN_OK)
        status = join(&s, digest, err);
    qn__free(s.digest);
    qn__free(s.rest);
    return status;
}

qn_status qn__parts_digest(qn_parts *parts, qn_error *err) {
    const qn_data *own = parts->own;
    const void *labels = own->targets ? (const void *)own->targets : own->labels;
    qn__data_digests d;
    qn__pool *pool = NULL;
    if (qn__pool_create(qn__cores(), 0, &pool, NULL) != QN_OK)
        pool = NULL; /* the thread of the caller is enough */
    qn_status status = digest_of(parts, own->values, qn__data_stride(own), qn__data_step(own),
                                 (int)qn__element_of(own->type)->size, pool, d.values, err);
    if (status == QN_OK && labels)
        status = digest_of(parts, labels, sizeof(int32_t), sizeof(int32_t), 4, pool, d.labels, err);
    if (status == QN_OK && own->several)
        status = digest_of(parts, own->several->target, own->several->each, own->several->each, 1,
                           pool, d.several, err);
    if (status == QN_OK && own->weights)
        status =
            digest_of(parts, own->weights, sizeof(float), sizeof(float), 4, pool, d.weights, err);
    if (status == QN_OK)
        qn__data_digest_join(own, qn__parts_items(parts), &d, pool, parts->digest);
    qn__pool_destroy(pool);
    return status;
}

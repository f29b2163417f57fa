/* How a blob is distributed. An attempt has four steps. Each ends with a gather, after which all
 * ranks hold the same data and take the same decision: continue, fail, or try again because a rank
 * died.
 *
 *   1. On each machine one rank is chosen. It makes the bytes and publishes their number.
 *   2. Each machine maps shared memory for them, which its chosen rank fills.
 *   3. With from_first the bytes are sent to that memory, and compared by SHA-256.
 *   4. Each rank checks whether the memory of its machine was filled completely. */
#include "cluster/blob.h"
#include "base/digest/sha256.h"
#include "base/memory.h"
#include <stdatomic.h>
#include <string.h>

/* Bytes of one message. */
#define PIECE ((uint64_t)4 << 20)

/* Header of the shared memory. */
typedef struct front {
    _Atomic uint64_t bytes;
    atomic_uint filled;
} front;
enum { FRONT = 64 };

/* What each rank publishes after it made the bytes or failed to. */
typedef struct announcement {
    uint64_t bytes; /* 0: this rank made none */
    uint32_t status;
    uint8_t hash[32];
    char what[512], where[512], remedy[512];
} announcement;

typedef struct blob {
    qn_cluster *c;
    int from_first, made, filler; /* filler: this rank fills the shared memory of its machine */
    const qn__blob_maker *maker;
    uint64_t bytes;          /* made by this rank */
    announcement *announced; /* of each rank */
    uint32_t maker_0;        /* the lowest rank that made bytes */
    uint64_t capacity;       /* capacity of the memory: the largest size that any rank made */
    uint8_t *memory;
} blob;

void qn__cluster_name_error(const qn_cluster *c, uint32_t rank, qn_error *err) {
    char what[sizeof err->what], where[sizeof err->where], remedy[sizeof err->remedy];
    const char *name = qn_cluster_name(c, rank);
    const size_t length = strlen(name);
    if (!err || (strncmp(err->what, name, length) == 0 && strchr(": ", err->what[length])))
        return;
    memcpy(what, err->what, sizeof what);
    memcpy(where, err->where, sizeof where);
    memcpy(remedy, err->remedy, sizeof remedy);
    const qn_status status = err->status;
    qn__fail(err, status, "%s: %s", name, what);
    if (*where)
        qn__at_of(err, where);
    if (*remedy)
        qn__remedy(err, status, "%s", remedy);
}

/* A failure between two gathers: it is broadcast, or the other ranks would wait for this one. */
static qn_status fail(blob *b, qn_error *err) {
    qn__cluster_fail(b->c, err);
    return err->status;
}

/* Step 1: the chosen rank makes the bytes. */
static qn_status make(blob *b, announcement *own, qn_error *err) {
    void *unused;
    qn_error why = {0};
    int first = 0;
    /* A minimal allocation returns which rank of the machine is the first. */
    qn_status status = qn__cluster_common(b->c, FRONT, &unused, &first, err);
    if (status != QN_OK)
        return fail(b, err);
    if ((b->from_first ? qn__cluster_is_first(b->c) : first) && !b->made) {
        own->status = b->maker->make(b->maker->user, &b->bytes, &why);
        b->made = own->status == QN_OK;
        memcpy(own->what, why.what, sizeof own->what);
        memcpy(own->where, why.where, sizeof own->where);
        memcpy(own->remedy, why.remedy, sizeof own->remedy);
    }
    own->bytes = b->made ? b->bytes : 0;
    return QN_OK;
}

/* SHA-256 of the bytes, which the receivers compare. 0: out of memory. */
static int hash_own(const blob *b, uint8_t hash[32], qn_error *err) {
    void *copy = qn__alloc(b->bytes, 1, err);
    if (!copy)
        return 0;
    b->maker->write(b->maker->user, copy);
    qn__sha256_of(copy, (size_t)b->bytes, hash);
    qn__free(copy);
    return 1;
}

/* Checks what all ranks published: QN_OK, or the failure of the lowest rank that failed. */
static qn_status listen(blob *b, qn_error *err) {
    const uint32_t ranks = qn_cluster_ranks(b->c);
    b->maker_0 = ranks;
    b->capacity = 0;
    for (uint32_t r = 0; r < ranks; ++r) {
        const announcement *w = &b->announced[r];
        if (w->status != QN_OK) {
            qn__fail(err, (qn_status)w->status, "%.511s", w->what);
            qn__at_of(err, w->where);
            qn__remedy(err, (qn_status)w->status, "%.511s", w->remedy);
            qn__cluster_name_error(b->c, r, err);
            return (qn_status)w->status;
        }
        if (w->bytes > 0 && b->maker_0 == ranks)
            b->maker_0 = r;
        /* With from_first only the bytes of the lowest rank count. */
        if (!b->from_first || b->maker_0 == r)
            b->capacity = w->bytes > b->capacity ? w->bytes : b->capacity;
    }
    return QN_OK;
}

/* Step 3 on one rank: takes part in each copy, and keeps the bytes where this rank fills the
 * memory. */
static qn_status send_pieces(blob *b, qn_error *err) {
    const int source = b->maker_0 == qn_cluster_rank(b->c);
    uint8_t *to = b->memory + FRONT;
    uint8_t *own = b->filler ? NULL : qn__alloc(source ? b->capacity : PIECE, 1, err);
    if (!own && !b->filler)
        return fail(b, err);
    if (source)
        b->maker->write(b->maker->user, own ? own : to);
    qn_status status = QN_OK;
    for (uint64_t at = 0; status == QN_OK && at < b->capacity; at += PIECE) {
        const uint64_t size = b->capacity - at < PIECE ? b->capacity - at : PIECE;
        uint8_t *piece = !own ? to + at : source ? own + at : own;
        status = qn__cluster_from_first(b->c, piece, size, err);
    }
    qn__free(own);
    return status;
}

/* Steps 2 and 3: fills the memory of this machine. `filled` is set only if that was complete. */
static qn_status fill(blob *b, qn_error *err) {
    void *memory;
    qn_status status = qn__cluster_common(b->c, b->capacity + FRONT, &memory, &b->filler, err);
    if (status != QN_OK)
        return fail(b, err);
    b->memory = memory;
    front *head = memory;
    int whole = b->filler && b->made;
    if (b->from_first) {
        uint8_t hash[32] = {0};
        status = send_pieces(b, err);
        if (status != QN_OK)
            return status;
        if (b->filler)
            qn__sha256_of(b->memory + FRONT, (size_t)b->capacity, hash);
        /* The maker may have died halfway; the rest then came from another rank's memory. */
        whole = b->filler && memcmp(hash, b->announced[b->maker_0].hash, sizeof hash) == 0;
    } else if (whole) {
        b->maker->write(b->maker->user, b->memory + FRONT);
    }
    if (whole) {
        atomic_store(&head->bytes, b->from_first ? b->capacity : b->bytes);
        atomic_store(&head->filled, 1);
    }
    return QN_OK;
}

/* Whether all live ranks answer 1. The answer of a dead rank reads as 0 and is ignored. */
static qn_status all_agree(blob *b, int yes, int *all, qn_error *err) {
    const uint32_t ranks = qn_cluster_ranks(b->c);
    enum { YES = 1, NO = 2 };
    uint64_t own = yes ? YES : NO;
    uint64_t *answers = qn__alloc(ranks, sizeof *answers, err);
    if (!answers)
        return fail(b, err);
    const qn_status status = qn__cluster_gather(b->c, &own, sizeof own, answers, err);
    *all = 1;
    for (uint32_t r = 0; status == QN_OK && r < ranks; ++r)
        *all &= answers[r] != NO;
    qn__free(answers);
    return status;
}

/* One attempt. *done stays 0 if a rank died whose work was needed. */
static qn_status attempt(blob *b, int *done, qn_error *err) {
    announcement own = {0};
    qn_status status = make(b, &own, err);
    if (status == QN_OK && b->from_first && own.bytes > 0 && !hash_own(b, own.hash, err))
        return fail(b, err);
    if (status == QN_OK)
        status = qn__cluster_gather(b->c, &own, sizeof own, b->announced, err);
    if (status == QN_OK)
        status = listen(b, err);
    if (status != QN_OK || b->capacity == 0)
        return status;
    if (b->capacity > SIZE_MAX / 2) {
        qn__fail_memory(err, SIZE_MAX, 2);
        return fail(b, err);
    }
    status = fill(b, err);
    int filled = 0; /* the first gather is a barrier: all ranks have filled their memory */
    if (status == QN_OK)
        status = all_agree(b, 1, &filled, err);
    if (status == QN_OK)
        status = all_agree(b, (int)atomic_load(&((front *)(void *)b->memory)->filled), done, err);
    return status;
}

qn_status qn__cluster_blob(qn_cluster *c, int from_first, const qn__blob_maker *maker,
                           const void **memory, uint64_t *bytes, qn_error *err) {
    blob b = {.c = c, .from_first = from_first, .maker = maker};
    qn_error unwanted;
    if (!err)
        err = &unwanted;
    *memory = NULL;
    *bytes = 0;
    b.announced = qn__alloc(qn_cluster_ranks(c), sizeof *b.announced, err);
    if (!b.announced)
        return fail(&b, err);
    qn_status status = QN_OK;
    int done = 0;
    /* Each failed attempt has cost a rank, which bounds the loop. */
    for (uint32_t tries = 0; status == QN_OK && !done; ++tries) {
        status = attempt(&b, &done, err);
        if (status == QN_OK && !done && tries > qn_cluster_ranks(c))
            status = qn__fail(err, QN_CLUSTER, "the ranks could not agree on what to share");
    }
    qn__free(b.announced);
    if (status != QN_OK)
        return status;
    *memory = b.memory + FRONT;
    *bytes = atomic_load(&((front *)(void *)b.memory)->bytes);
    /* Another process wrote this size: it is checked against what is mapped. */
    if (*bytes == 0 || *bytes > b.capacity) {
        *memory = NULL;
        qn__fail(err, QN_CLUSTER, "the memory that the ranks of this machine share was changed");
        qn__cluster_fail(c, err);
        return QN_CLUSTER;
    }
    return QN_OK;
}

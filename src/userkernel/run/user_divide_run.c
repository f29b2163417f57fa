#include "userkernel/run/user_divide_run.h"

#include "base/memory.h"
#include <string.h>

/* ------------------------------------------------------------------ totals */

/* What each rank tells: the first faulty item + 1, whether it has items left, was stopped or
 * failed, the time of its items; then extremes, as userkernel/execution/user_run.c has them. */
enum { FAULT, LEFT, STOPPED, FAILED, SECONDS, EXTREMES };

typedef struct layout {
    uint64_t total[QN__USER_PARTS], extreme[QN__USER_PARTS], ranks, of_a_rank, words;
} layout;

static int is_extreme(const qn__user_part *p) { return qn__user_use_is_extreme(p->use); }

static layout lay_out(const qn_kernel *k) {
    layout at = {.of_a_rank = EXTREMES};
    for (uint32_t i = 0; i < k->source.parts; i++) {
        const qn__user_part *p = &k->source.part[i];
        at.total[i] = at.words;
        at.words += qn__user_total_words(p);
        at.extreme[i] = at.of_a_rank;
        at.of_a_rank += !is_extreme(p) ? 0 : p->bins > 0 ? 2 * (uint64_t)p->bins : 2;
    }
    at.ranks = at.words;
    at.words += k->divided->parts.ranks * at.of_a_rank;
    return at;
}

static void put_totals(const qn_kernel *k, const layout *at, qn__user_total *total, int64_t *own,
                       int64_t *words) {
    for (uint32_t i = 0; i < k->source.parts; i++) {
        const qn__user_part *p = &k->source.part[i];
        if (qn__user_total_words(p) > 0)
            qn__user_total_put(&total[i], p, words + at->total[i]);
        if (is_extreme(p) && p->bins > 0)
            qn__user_bins_tell(total[i].bins, p, own + at->extreme[i]);
        else if (is_extreme(p) && total[i].has_value) {
            memcpy(own + at->extreme[i], &total[i].value, sizeof *own);
            own[at->extreme[i] + 1] = total[i].item + 1;
        }
    }
}

static void put(const qn_kernel *k, const layout *at, qn__user_total *total, int left,
                qn_status status, int64_t *words) {
    int64_t *own = words + at->ranks + k->divided->parts.rank * at->of_a_rank;
    own[FAULT] = status == QN_NUMERIC && k->job.faulty < INT64_MAX ? k->job.faulty + 1 : 0;
    own[LEFT] = left;
    own[STOPPED] = status == QN_INTERRUPTED;
    own[FAILED] = status != QN_OK && !own[FAULT] && !own[STOPPED];
    own[SECONDS] = (int64_t)(k->job.own_seconds * 1e9);
    if (status == QN_OK && !left)
        put_totals(k, at, total, own, words);
}

static void take(const qn_kernel *k, const layout *at, const int64_t *words,
                 qn__user_total *total) {
    qn__user_totals_clear(&k->source, total);
    for (uint32_t i = 0; i < k->source.parts; i++) {
        const qn__user_part *p = &k->source.part[i];
        if (qn__user_total_words(p) > 0)
            qn__user_total_take(&total[i], p, words + at->total[i]);
        for (uint32_t r = 0; r < k->divided->parts.ranks && is_extreme(p); r++) {
            const int64_t *extreme = words + at->ranks + r * at->of_a_rank + at->extreme[i];
            if (p->bins > 0)
                qn__user_bins_hear(total[i].bins, p, extreme);
            else if (extreme[1] > 0)
                qn__user_total_offer(&total[i], p, (uint64_t)extreme[0], extreme[1] - 1);
        }
    }
}

/* What all ranks have told. */
typedef struct told {
    int64_t fault, left, stopped, failed; /* of the ranks: the first fault, the numbers of others */
    uint32_t finder;                      /* of the fault */
} told;

static told hear(qn_kernel *k, const layout *at, const int64_t *words) {
    told t = {.fault = 0};
    int64_t slowest = 0;
    for (uint32_t r = 0; r < k->divided->parts.ranks; r++) {
        const int64_t *own = words + at->ranks + r * at->of_a_rank;
        if (own[FAULT] > 0 && (t.fault == 0 || own[FAULT] < t.fault)) {
            t.fault = own[FAULT];
            t.finder = r;
        }
        t.left += own[LEFT];
        t.stopped += own[STOPPED];
        t.failed += own[FAILED];
        slowest = own[SECONDS] > slowest ? own[SECONDS] : slowest;
    }
    k->job.seconds = (double)slowest * 1e-9;
    return t;
}

/* The status of all ranks, by what this one has. */
static qn_status judge(const qn_kernel *k, const told *t, qn_status status, qn_error *err) {
    const qn_parts *parts = &k->divided->parts;
    const int failed = status != QN_NUMERIC && status != QN_INTERRUPTED;
    if (t->failed > 0)
        return qn__parts_agree(parts, failed ? status : QN_OK, err);
    if (t->stopped > 0)
        return status == QN_INTERRUPTED
                   ? status
                   : qn__fail(err, QN_INTERRUPTED, "the run of the kernel was stopped");
    if (t->fault > 0)
        return qn__parts_agree(parts, t->finder == parts->rank ? status : QN_OK, err);
    return QN_OK;
}

qn_status qn__user_divide_join(qn_kernel *k, qn__user_total *total, int *left, int64_t *fault,
                               qn_status status, qn_error *err) {
    const layout at = lay_out(k);
    qn_error why;
    int64_t *words = qn__alloc(at.words, sizeof *words, &why);
    if (!words) {
        *err = why;
        *left = 0;
        return qn__parts_fail(&k->divided->parts, QN_MEMORY, err);
    }
    put(k, &at, total, *left, status, words);
    const qn_status joined = qn__parts_add(&k->divided->parts, words, at.words, &why);
    const told t = joined == QN_OK ? hear(k, &at, words) : (told){.failed = 1};
    *left = t.left > 0 && t.failed + t.stopped == 0;
    *fault = t.fault > 0 ? t.fault - 1 : INT64_MAX;
    if (joined != QN_OK)
        *err = why;
    else if (!*left)
        status = judge(k, &t, status, err);
    if (joined == QN_OK && status == QN_OK && !*left)
        take(k, &at, words, total);
    qn__free(words);
    return joined == QN_OK ? status : joined;
}

/* ------------------------------------------------------------------ rows of other ranks */

void qn__user_divide_places(qn_kernel *k, const qn__user_array *spare) {
    for (uint32_t i = 0; i < k->source.parts; i++) {
        const qn__user_array *a = &k->part[i].array;
        if (k->source.part[i].use != QN__USER_OUTPUT)
            continue;
        k->divided->output[i].row = qn__user_array_bytes(a) / a->shape[0];
        k->divided->output[i].place[0] = a->data;
        k->divided->output[i].place[1] = spare ? spare[i].data : NULL;
    }
}

/* The rows of a range that are not this rank's, in one or two pieces. */
static qn_status read_around(const qn_kernel *k, uint32_t array, uint64_t row, qn__row_range range,
                             uint8_t *base, qn_error *err) {
    const qn__row_range own = qn__part_own_rows(k->divided);
    const uint64_t before = range.end < own.begin ? range.end : own.begin;
    const uint64_t after = range.begin > own.end ? range.begin : own.end;
    qn_status status = QN_OK;
    if (range.begin < before)
        status = qn__part_rows_read(k->divided, array, range.begin * row, before * row,
                                    base + range.begin * row, err);
    if (status == QN_OK && after < range.end)
        status = qn__part_rows_read(k->divided, array, after * row, range.end * row,
                                    base + after * row, err);
    return status;
}

qn_status qn__user_divide_refresh(const qn_kernel *k, uint32_t place, qn_error *err) {
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK; i++) {
        const qn__user_part *p = &k->source.part[i];
        qn__row_range range[2];
        if (p->use != QN__USER_OUTPUT || !p->next)
            continue;
        const uint32_t count = qn__user_divide_needs(k, p->next - 1, range);
        uint8_t *base = (uint8_t *)(uintptr_t)k->divided->output[i].place[place];
        for (uint32_t n = 0; n < count && status == QN_OK; n++)
            status = read_around(k, qn__part_array(i, place), k->divided->output[i].row, range[n],
                                 base, err);
    }
    return status;
}

qn_status qn__user_divide_gather(const qn_kernel *k, uint32_t part, qn_error *err) {
    const qn__user_array *a = &k->part[part].array;
    return read_around(k, qn__part_array(part, 0), k->divided->output[part].row,
                       (qn__row_range){0, a->shape[0]}, a->data, err);
}

/* ------------------------------------------------------------------ digests */

/* The blocks that begin in the rows of a rank. */
static qn__row_range blocks_of(const uint64_t *first, uint64_t row, uint32_t rank) {
    const uint64_t block = QN__ARRAY_BLOCK;
    return (qn__row_range){(first[rank] * row + block - 1) / block,
                           (first[rank + 1] * row + block - 1) / block};
}

/* Their digests, 32 bytes each. The last block may end in the rows of other ranks. */
static qn_status hash_own(const qn_kernel *k, uint32_t array, const qn__user_array *a,
                          qn__row_range blocks, uint8_t *digests, qn_error *err) {
    const uint64_t block = QN__ARRAY_BLOCK, all = qn__user_array_bytes(a);
    qn_status status = QN_OK;
    uint8_t *bytes = qn__alloc(1, block, err);
    if (!bytes)
        return QN_MEMORY;
    for (uint64_t b = blocks.begin; b < blocks.end && status == QN_OK; b++) {
        const uint64_t from = b * block, to = all - from < block ? all : from + block;
        status = qn__part_rows_read(k->divided, array, from, to, bytes, err);
        if (status == QN_OK)
            qn__user_array_hash(a, bytes, to - from, digests + 32 * (b - blocks.begin));
    }
    qn__free(bytes);
    return status;
}

/* Puts the digests of all ranks one after the other. */
static qn_status join_digests(const qn_parts *parts, const uint8_t *own, uint64_t count,
                              const qn__user_array *a, char hex[65], qn_error *err) {
    qn__parts_blobs blobs = {.all = NULL};
    uint64_t at = 0;
    qn_status status = qn__parts_gather_blobs(parts, own, 32 * count, &blobs, err);
    for (uint32_t r = 0; r < parts->ranks && status == QN_OK; r++) {
        memmove(blobs.all + at, blobs.all + r * blobs.each, blobs.size[r]);
        at += blobs.size[r];
    }
    if (status == QN_OK)
        qn__user_array_digest_of(a, blobs.all, hex);
    qn__parts_blobs_release(&blobs);
    return status;
}

static qn_status digest_array(qn_kernel *k, uint32_t part, qn_status status, qn_error *err) {
    const qn__part_space *s = k->divided;
    const int output = k->source.part[part].use == QN__USER_OUTPUT;
    const uint64_t *first = output ? s->parts.first : s->input[part].first;
    const uint64_t row = output ? s->output[part].row : s->input[part].row;
    const qn__row_range blocks = blocks_of(first, row, s->parts.rank);
    const uint64_t count = blocks.end - blocks.begin;
    uint8_t *own = status == QN_OK ? qn__alloc(count, 32, err) : NULL;
    if (status == QN_OK)
        status = own ? hash_own(k, output ? qn__part_array(part, 0) : part, &k->part[part].array,
                                blocks, own, err)
                     : QN_MEMORY;
    status = qn__parts_agree(&s->parts, status, err);
    if (status == QN_OK)
        status =
            join_digests(&s->parts, own, count, &k->part[part].array, k->part[part].digest, err);
    qn__free(own);
    return status;
}

qn_status qn__user_divide_digest(qn_kernel *k, qn_status status, qn_error *err) {
    status = qn__parts_agree(&k->divided->parts, status, err);
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK; i++)
        if (k->source.part[i].use == QN__USER_OUTPUT || k->divided->input[i].first)
            status = digest_array(k, i, QN_OK, err);
    return status;
}

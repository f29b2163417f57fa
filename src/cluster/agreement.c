/* Ranks compare their inputs. They first gather digests, which are nearly always equal. Only if
 * they differ do they gather the texts, to report which rank differs in what. All ranks gather the
 * same records, so all reach the same verdict. Of several ranks that differ or fail, each names
 * itself in its message; all others name the lowest. */
#include "cluster/agreement.h"
#include "base/argument.h"
#include "base/digest/sha256.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/text/text.h"
#include "cluster/blob.h"
#include "cluster/cluster_state.h"
#include <quern/cluster.h>
#include <stdio.h>
#include <string.h>

/* The byte that ends each of a rank's texts. */
enum { END = 0x1e };

typedef struct record {
    uint32_t present; /* 0: the rank is dead */
    uint32_t status;
    uint64_t length; /* of its texts */
    uint8_t hash[32];
    char what[512], where[512], remedy[512];
} record;

/* All items as one text: name, END, value, END, remedy, END, and so on. */
static qn_status join(const qn_agreement *item, uint32_t count, qn__text *text, qn_error *err) {
    for (uint32_t i = 0; i < count; ++i)
        qn__text_add(text, "%s%c%s%c%s%c", item[i].name, END, item[i].value, END,
                     item[i].remedy ? item[i].remedy : "", END);
    qn__text_add(text, "%s", "");
    if (text->failed)
        return qn__fail_memory(err, text->size + 1, 1);
    if (text->size > QN__AGREED_BYTES)
        return qn__fail(err, QN_USAGE, "%zu bytes are too many for ranks to compare", text->size);
    return QN_OK;
}

static void tell(const qn__text *text, const qn_error *own, record *r) {
    *r = (record){.present = 1, .length = text->size};
    qn__sha256_of(text->data, text->size, r->hash);
    if (!own || own->status == QN_OK)
        return;
    r->status = own->status;
    memcpy(r->what, own->what, sizeof r->what);
    memcpy(r->where, own->where, sizeof r->where);
    memcpy(r->remedy, own->remedy, sizeof r->remedy);
}

static int same_failure(const record *a, const record *b) {
    return a->status == b->status && strncmp(a->what, b->what, sizeof a->what) == 0;
}

/* The failure of this rank, or of the lowest rank that has one, with its name unless all fail in
 * the same way. The status is that of the lowest, so all ranks return the same. */
static qn_status verdict_on_failures(const qn_cluster *c, const record *all, qn_error *err) {
    const uint32_t ranks = qn_cluster_ranks(c);
    const uint32_t self = qn_cluster_rank(c);
    uint32_t lowest = ranks, failed = 0, alike = 0, present = 0;
    for (uint32_t r = 0; r < ranks; ++r) {
        present += all[r].present;
        if (all[r].status == QN_OK)
            continue;
        lowest = lowest == ranks ? r : lowest;
        failed++;
        alike += (uint32_t)same_failure(&all[r], &all[lowest]);
    }
    if (failed == 0)
        return QN_OK;
    const uint32_t who = all[self].status != QN_OK ? self : lowest;
    const record *told = &all[who];
    const qn_status status = (qn_status)all[lowest].status;
    qn__fail(err, status, "%.511s", told->what);
    qn__at_of(err, told->where);
    qn__remedy(err, status, "%.511s", told->remedy);
    if (alike < present)
        qn__cluster_name_error(c, who, err);
    if (failed > 1 && alike < present) {
        char what[400];
        snprintf(what, sizeof what, "%.399s", err->what);
        snprintf(err->what, sizeof err->what, "%s (and %u more rank%s failed)", what, failed - 1,
                 failed > 2 ? "s" : "");
    }
    return status;
}

/* --------------------------------------------------------------------------- which rank differs */

/* Text number `n` of a rank's texts, which end at `end`; its length in *length. NULL: none. */
static const char *nth(const char *text, uint64_t size, uint64_t n, size_t *length) {
    const char *end = text + size;
    for (;; --n) {
        const char *stop = memchr(text, END, (size_t)(end - text));
        if (!stop)
            return NULL;
        *length = (size_t)(stop - text);
        if (n == 0)
            return text;
        text = stop + 1;
    }
}

typedef struct texts {
    const qn_cluster *c;
    const record *record;
    const char *all;
    uint64_t each; /* bytes of each rank in `all` */
    qn__text_differences *differ;
} texts;

static const char *text_of(const texts *t, uint32_t rank, uint64_t n, size_t *length) {
    return nth(t->all + rank * t->each, t->record[rank].length, n, length);
}

static int same_text(const texts *t, uint32_t a, uint32_t b, uint64_t n) {
    size_t length[2] = {0, 0};
    const char *x = text_of(t, a, n, &length[0]), *y = text_of(t, b, n, &length[1]);
    return (x == NULL) == (y == NULL) && length[0] == length[1] &&
           (!x || memcmp(x, y, length[0]) == 0);
}

/* The lowest rank of the largest group with the same text, and the size of the group. */
static uint32_t most_common(const texts *t, uint64_t n, uint32_t *count) {
    const uint32_t ranks = qn_cluster_ranks(t->c);
    uint32_t best = 0;
    *count = 0;
    for (uint32_t r = 0; r < ranks; ++r) {
        uint32_t equal = 0;
        for (uint32_t other = 0; t->record[r].present && other < ranks; ++other)
            equal += t->record[other].present && same_text(t, r, other, n);
        if (equal > *count) {
            *count = equal;
            best = r;
        }
    }
    return best;
}

/* A copy of a text with a NUL; "" if there is none. */
static char *copy_of(const texts *t, uint32_t rank, uint64_t n, qn_error *err) {
    size_t length = 0;
    const char *text = text_of(t, rank, n, &length);
    char *copy = qn__alloc(length + 1, 1, err);
    if (copy && text)
        memcpy(copy, text, length);
    return copy;
}

/* "rank 2 on host-b", "rank 2 on host-b (and 3 more ranks)": this rank where it differs itself, or
 * the lowest that does, whose number is put into *named. */
static void name_minority(const texts *t, uint32_t usual, uint64_t n, uint32_t *named, char *text,
                          size_t size) {
    const uint32_t ranks = qn_cluster_ranks(t->c), self = qn_cluster_rank(t->c);
    uint32_t differ = 0;
    for (uint32_t r = ranks; r-- > 0;)
        if (t->record[r].present && !same_text(t, r, usual, n)) {
            differ++;
            *named = r;
        }
    if (!same_text(t, self, usual, n))
        *named = self;
    snprintf(text, size, "%s", qn_cluster_name(t->c, *named));
    if (differ > 1)
        snprintf(text + strlen(text), size - strlen(text), " (and %u more rank%s)", differ - 1,
                 differ > 2 ? "s" : "");
}

static qn_status report_difference(const texts *t, uint64_t item, uint32_t usual, qn_error *err) {
    uint32_t odd = 0;
    char who[160], differences[320];
    name_minority(t, usual, 3 * item + 1, &odd, who, sizeof who);
    char *name = copy_of(t, usual, 3 * item, err), *remedy = copy_of(t, usual, 3 * item + 2, err);
    char *one = copy_of(t, odd, 3 * item + 1, err), *other = copy_of(t, usual, 3 * item + 1, err);
    if (name && remedy && one && other) {
        if (*one == '{' && t->differ) {
            t->differ(one, other, differences, sizeof differences);
            qn__fail(err, QN_MISMATCH, "%s differs from %s in %s: %s", who,
                     qn_cluster_name(t->c, usual), name, differences);
        } else {
            qn__fail(err, QN_MISMATCH, "%s differs from %s in %s: %.150s, not %.150s", who,
                     qn_cluster_name(t->c, usual), name, one, other);
        }
        if (*remedy)
            qn__remedy(err, QN_MISMATCH, "%s", remedy);
    }
    qn__free(name);
    qn__free(remedy);
    qn__free(one);
    qn__free(other);
    return QN_MISMATCH;
}

static qn_status verdict_on_texts(const texts *t, uint32_t count, qn_error *err) {
    const uint32_t ranks = qn_cluster_ranks(t->c);
    uint32_t present = 0, equal = 0;
    for (uint32_t r = 0; r < ranks; ++r)
        present += t->record[r].present;
    for (uint64_t n = 0; n < 3 * (uint64_t)count; ++n) {
        const uint32_t usual = most_common(t, n, &equal);
        if (equal < present && n % 3 == 1)
            return report_difference(t, n / 3, usual, err);
        if (equal < present)
            break;
    }
    qn__fail(err, QN_MISMATCH, "the ranks compare different things");
    return qn__remedy(err, QN_MISMATCH,
                      "start all of them with the same command and the same version of Quern");
}

/* The texts differ: gathers all of them. */
static qn_status compare(qn_cluster *c, const record *told, const qn__text *own, uint32_t count,
                         qn__text_differences *differ, qn_error *err) {
    const uint32_t ranks = qn_cluster_ranks(c);
    texts t = {.c = c, .record = told, .each = 1, .differ = differ};
    for (uint32_t r = 0; r < ranks; ++r) {
        if (told[r].length > QN__AGREED_BYTES)
            return qn__fail(err, QN_CLUSTER, "%s sent a malformed message", qn_cluster_name(c, r));
        t.each = told[r].length > t.each ? told[r].length : t.each;
    }
    char *mine = qn__alloc(t.each, 1, err), *all = NULL;
    if (mine)
        all = qn__alloc(t.each, ranks, err);
    qn_status status = all ? QN_OK : QN_MEMORY;
    if (status == QN_OK) {
        memcpy(mine, own->data, own->size);
        status = qn__cluster_gather(c, mine, t.each, all, err);
    } else {
        qn__cluster_fail(c, err);
    }
    t.all = all;
    if (status == QN_OK)
        status = verdict_on_texts(&t, count, err);
    qn__free(mine);
    qn__free(all);
    return status;
}

/* Of the others only digests are known. */
static qn_status differs_from_run(const qn_cluster *c, qn_error *err) {
    qn__fail(err, QN_MISMATCH, "%s has other options or other data than the run",
             qn_cluster_name(c, qn_cluster_rank(c)));
    return qn__remedy(err, QN_MISMATCH, "start it with the same command");
}

static qn_status agree(qn_cluster *c, const qn_error *own, const qn__text *text, uint32_t count,
                       qn__text_differences *differ, qn_error *err) {
    const uint32_t ranks = qn_cluster_ranks(c);
    record mine;
    record *all = qn__alloc(ranks, sizeof *all, err);
    if (!all) {
        qn__cluster_fail(c, err);
        return QN_MEMORY;
    }
    tell(text, own, &mine);
    if (own && own->status != QN_OK &&
        qn__cluster_takes_history(c)) { /* the others had no failure */
        qn__free(all);
        *err = *own;
        return own->status;
    }
    qn_status status = qn__cluster_gather(c, &mine, sizeof mine, all, err);
    if (status == QN_OK)
        status = verdict_on_failures(c, all, err);
    int other = 0;
    for (uint32_t r = 0; status == QN_OK && r < ranks; ++r)
        other |= all[r].present && memcmp(all[r].hash, mine.hash, sizeof mine.hash) != 0;
    if (status == QN_OK && other && qn__cluster_takes_history(c))
        status = differs_from_run(c, err);
    else if (status == QN_OK && other)
        status = compare(c, all, text, count, differ, err);
    qn__free(all);
    return status;
}

static qn_status agree_on(qn_cluster *cluster, const qn_error *own, const qn_agreement *item,
                          uint32_t count, qn__text_differences *differ, qn_error *err) {
    qn__text text = {0};
    qn_error why = {0};
    if (!cluster) {
        if (own && own->status != QN_OK && err && err != own)
            *err = *own;
        return own ? own->status : QN_OK;
    }
    /* a rank that failed to make its texts sends that failure */
    qn_status status = join(item, count, &text, &why);
    if (status != QN_OK && (!own || own->status == QN_OK))
        own = &why;
    if (status != QN_OK) {
        text.size = 0;
        count = 0;
    }
    qn_error verdict = {0};
    status = agree(cluster, own, &text, count, differ, &verdict);
    if (status != QN_OK && err)
        *err = verdict;
    if (status == QN_OK && count > 0) { /* a rank that joins later compares the same */
        qn__text_release(&cluster->agreed);
        cluster->agreed = text;
        cluster->differ = differ;
    } else {
        qn__text_release(&text);
    }
    return status;
}

qn_status qn__cluster_same_as(const qn_cluster *c, const char *other, uint64_t bytes,
                              qn_error *err) {
    const uint32_t ranks = qn_cluster_ranks(c), self = qn_cluster_rank(c);
    const qn__text *own = &c->agreed;
    if (own->size == bytes && (bytes == 0 || memcmp(own->data, other, bytes) == 0))
        return QN_OK;
    texts t = {.c = c, .each = own->size > bytes ? own->size : bytes, .differ = c->differ};
    record *told = qn__alloc(ranks, sizeof *told, err);
    char *all = told ? qn__alloc(t.each, ranks, err) : NULL;
    qn_status status = QN_MEMORY;
    if (all) {
        uint32_t count = 0;
        told[0] = (record){.present = 1, .length = bytes};
        told[self] = (record){.present = 1, .length = own->size};
        memcpy(all, other, bytes);
        if (own->size > 0)
            memcpy(all + self * t.each, own->data, own->size);
        for (size_t i = 0; i < own->size; ++i)
            count += own->data[i] == END;
        t.record = told;
        t.all = all;
        status = verdict_on_texts(&t, count / 3, err);
    }
    qn__free(told);
    qn__free(all);
    return status;
}

qn_status qn__cluster_agree(qn_cluster *cluster, const qn_error *own, const qn_agreement *item,
                            uint32_t count, qn__text_differences *differ, qn_error *err) {
    if (count > 0 && !item) /* named as the caller knows it */
        return qn__fail_null(err, "qn_cluster_agree", "item");
    qn_status status;
    qn_agreement *items =
        qn__sized_take_all(QN__SIZED("item", qn_agreement), item, count, &status, err);
    for (uint32_t i = 0; i < count && status == QN_OK; ++i)
        if (!items[i].name || !items[i].value)
            status = qn__fail_null_at(err, "qn_cluster_agree", "item", i,
                                      items[i].name ? ".value" : ".name");
    if (status == QN_OK)
        status = agree_on(cluster, own, items, count, differ, err);
    qn__free(items);
    return status;
}

#include "data/parts/parts_mend.h"
#include "base/argument.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "data/parts/parts_digest.h"
#include "data/parts/parts_heads.h"
#include "data/parts/parts_read.h"
#include "data/parts/parts_tokens.h"
#include "data/table/data_options.h"
#include <stdio.h>
#include <string.h>

/* The first rank that was lost; parts->ranks: none. */
static uint32_t lost_of(const qn_parts *parts) {
    uint32_t rank = 0;
    while (rank < parts->ranks && parts->gone[rank] != QN__PART_LOST)
        rank++;
    return rank;
}

int qn__parts_lost(const qn_parts *parts) { return lost_of(parts) < parts->ranks; }

static void settle(qn_parts *parts) {
    for (uint32_t r = 0; r < parts->ranks; r++)
        if (parts->gone[r] == QN__PART_LOST)
            parts->gone[r] = QN__PART_SETTLED;
}

int qn__parts_deal_again(qn_parts *parts, qn_status *status) {
    if (*status != QN_IO || parts->paths || !qn__parts_lost(parts))
        return 0;
    settle(parts); /* the next deal looks whether the files are known */
    return 1;
}

/* ------------------------------------------------------------------ who takes what */

static int on_one_host(const qn_parts *parts, uint32_t one, uint32_t other) {
    return strcmp(qn__cluster_host(parts->cluster, one), qn__cluster_host(parts->cluster, other)) ==
           0;
}

/* The rank that takes the rows of one that is gone: the next one or the one before, so that the
 * order of the rows stays. That on the same host is more likely to have the files. */
static uint32_t heir_of(const qn_parts *parts, uint32_t rank) {
    uint32_t next = rank + 1, before = rank;
    while (next < parts->ranks && parts->gone[next] != QN__PART_THERE)
        next++;
    while (before > 0 && parts->gone[before - 1] != QN__PART_THERE)
        before--;
    if (before == 0)
        return next;
    if (next == parts->ranks ||
        (on_one_host(parts, rank, before - 1) && !on_one_host(parts, rank, next)))
        return before - 1;
    return next;
}

/* Those between a rank and its heir are gone, too, and have nothing. */
static void move(uint64_t *first, uint32_t rank, uint32_t heir) {
    for (uint32_t r = rank + 1; r <= heir; r++)
        first[r] = first[rank];
    for (uint32_t r = heir + 1; r <= rank; r++)
        first[r] = first[rank + 1];
}

/* Of rows, texts and tokens. What was before the first document of one is now before the other's.
 */
static void move_items(qn_parts *parts, uint32_t rank, uint32_t heir) {
    qn__part_row *row = parts->row;
    move(parts->first, rank, heir);
    move(parts->text, rank, heir);
    if (!row)
        return;
    move(row->token, rank, heir);
    move(row->first, rank, heir);
    row->before[heir] += row->before[rank];
    row->before[rank] = 0;
}

static qn_status refuse(const qn_parts *parts, uint32_t rank, const char *why, qn_error *err) {
    qn__fail(err, QN_IO, "%s has ended, and its part cannot be read: %s",
             qn_cluster_name(parts->cluster, rank), why);
    qn__at_of(err, parts->name[rank]);
    return qn__remedy(err, QN_IO, "start all ranks again");
}

static qn_status check(const qn_parts *parts, qn_error *err) {
    for (uint32_t r = 0; r < parts->ranks; r++) {
        if (parts->gone[r] != QN__PART_LOST)
            continue;
        if (parts->given && !(parts->agreed && parts->first[r] == parts->first[r + 1]))
            return refuse(parts, r, "it was in the memory of that rank", err);
        if (parts->paths->keyed)
            return refuse(parts, r, "folders name columns of its files", err);
    }
    return QN_OK;
}

/* Moves the files, and the rows where these are counted. *takes: 1 if this rank has more now. */
static void move_all(qn_parts *parts, uint32_t *lost, int *takes) {
    *takes = 0;
    for (uint32_t r = 0; r < parts->ranks; r++) {
        if (parts->gone[r] != QN__PART_LOST)
            continue;
        const uint32_t heir = heir_of(parts, r);
        if (parts->paths->first[r] < parts->paths->first[r + 1] && heir == parts->rank) {
            *takes = 1;
            *lost = r;
        }
        move(parts->paths->first, r, heir);
        if (parts->agreed)
            move_items(parts, r, heir);
        parts->gone[r] = QN__PART_SETTLED;
    }
}

/* What this rank could not read was the part of another. */
qn_status qn__parts_name_lost(const qn_parts *parts, uint32_t lost, qn_status status,
                              qn_error *err) {
    const qn_error why = *err;
    if (status == QN_OK)
        return QN_OK;
    qn__fail(err, QN_IO, "%s has ended, and its part cannot be read: %.300s",
             qn_cluster_name(parts->cluster, lost), why.what);
    qn__at_of(err, why.where);
    return qn__remedy(err, QN_IO,
                      "put the files of all parts where every rank can read them, or start again");
}

/* ------------------------------------------------------------------ before there is a table */

static qn_status list_files(const qn_parts *parts, qn__parts_lot *lot, qn_error *err) {
    const qn__part_paths *p = parts->paths;
    const uint64_t from = p->first[parts->rank], count = p->first[parts->rank + 1] - from;
    qn__parts_lot_release(lot);
    lot->labels = (qn__file_list){.count = 0};
    lot->from = 0;
    const qn_status status = qn__parts_files_of(parts, parts->rank, &lot->list, err);
    lot->to = lot->list.count;
    if (status != QN_OK || count == 0 || !p->labels[from])
        return status;
    lot->labels.file = qn__alloc(count, sizeof *lot->labels.file, err);
    if (!lot->labels.file)
        return QN_MEMORY;
    lot->labels.count = lot->labels.capacity = count;
    for (uint64_t i = 0; i < count; i++)
        lot->labels.file[i] = (qn__listed_file){.path = p->labels[from + i], .below = SIZE_MAX};
    return QN_OK;
}

int qn__parts_take_files(qn_parts *parts, qn__parts_lot *lot, qn_status *status, qn_error *err) {
    uint32_t lost = lost_of(parts);
    int takes;
    if (*status != QN_IO || lost == parts->ranks)
        return 0;
    *status = check(parts, err); /* alike on all ranks */
    if (*status != QN_OK)
        return 0;
    move_all(parts, &lost, &takes);
    parts->heir_of = takes ? lost + 1 : parts->heir_of;
    *status = qn__parts_agree(parts, list_files(parts, lot, err), err);
    return *status == QN_OK;
}

/* ------------------------------------------------------------------ afterwards */

/* Callers keep pointers to the table. */
static void exchange(qn_data *own, qn_data *read) {
    const qn_data before = *own;
    char *note = read->note;
    *own = *read;
    *read = before;
    own->note = before.note; /* that of the whole */
    read->note = note;
}

static qn_status read_more(qn_parts *parts, qn_error *err) {
    qn_data *read = NULL;
    const qn_status status = qn__parts_read(parts, parts->rank, &read, err);
    if (status != QN_OK)
        return status;
    qn__late_digest_free(read->late);
    qn__late_digest_free(parts->own->late);
    read->late = parts->own->late = NULL;
    exchange(parts->own, read);
    qn_data_close(read);
    return parts->own->items == parts->first[parts->rank + 1] - parts->first[parts->rank]
               ? QN_OK
               : qn__fail(err, QN_MISMATCH, "the files are not those that the rank had");
}

/* The rows are those of before. */
static qn_status check_digest(qn_parts *parts, qn_error *err) {
    char before[sizeof parts->digest];
    memcpy(before, parts->digest, sizeof before);
    qn_status status = qn__parts_digest(parts, err);
    if (status == QN_OK && before[0] && strcmp(before, parts->digest) != 0)
        return qn__fail(err, QN_MISMATCH,
                        "a rank has ended, and its files are not those that it had");
    if (status == QN_OK && !parts->own->late)
        status = qn__late_digest_create(parts->own, &parts->own->late, err);
    return status;
}

int qn__parts_mend(qn_parts *parts, qn_status *status, qn_error *err) {
    uint32_t lost = lost_of(parts);
    if (*status != QN_IO || lost == parts->ranks)
        return 0;
    do {
        int takes = 0;
        *status = check(parts, err); /* alike on all ranks */
        if (*status != QN_OK)
            return 0;
        move_all(parts, &lost, &takes);
        if (takes)
            *status = qn__parts_name_lost(parts, lost, read_more(parts, err), err);
        *status = qn__parts_agree(parts, *status, err);
        if (*status == QN_OK)
            *status = check_digest(parts, err);
    } while (*status == QN_IO && qn__parts_lost(parts));
    return *status == QN_OK;
}

qn_status qn_parts_mend(qn_parts *parts, int *moved, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(parts, err);
    QN__NEED(moved, err);
    const uint64_t there = UINT64_MAX;
    qn_error unheard;
    err = err ? err : &unheard;
    *moved = 0;
    uint64_t *all = qn__alloc(parts->ranks, sizeof *all, err);
    qn_status status = all ? qn__parts_gather_each(parts, &there, sizeof there, all, err)
                           : qn__parts_fail(parts, QN_MEMORY, err);
    qn__free(all);
    *moved = qn__parts_mend(parts, &status, err);
    return status;
}

/* The rank that has the rows of `rank`, or writes for it where it had none. */
static uint32_t keeper_of(const qn_parts *parts, uint32_t rank) {
    const int none = parts->had[rank] == parts->had[rank + 1];
    uint32_t r = 0;
    if (parts->gone[rank] == QN__PART_THERE)
        return rank;
    while (r < parts->ranks &&
           (parts->gone[r] != QN__PART_THERE || (!none && parts->first[r + 1] <= parts->had[rank])))
        r++;
    return r;
}

qn__part_range qn__parts_range(const qn_parts *parts, uint32_t rank) {
    const uint64_t row = parts->first[parts->rank], text = parts->text[parts->rank];
    if (rank >= parts->ranks || keeper_of(parts, rank) != parts->rank)
        return (qn__part_range){.is_here = 0};
    if (parts->had[rank] == parts->had[rank + 1])
        return (qn__part_range){.is_here = 1};
    return (qn__part_range){.is_here = 1,
                            .row = parts->had[rank] - row,
                            .row_end = parts->had[rank + 1] - row,
                            .text = parts->had_text[rank] - text,
                            .text_end = parts->had_text[rank + 1] - text};
}

int qn_parts_range(const qn_parts *parts, uint32_t rank, uint64_t *first, uint64_t *count) {
    const qn__part_range range =
        parts ? qn__parts_range(parts, rank) : (qn__part_range){.is_here = 0};
    if (first)
        *first = range.row;
    if (count)
        *count = range.row_end - range.row;
    return range.is_here;
}

#include "data/parts/part_rows.h"

#include "base/memory.h"
#include <string.h>

/* A row that was asked for. */
typedef struct place {
    uint64_t row; /* of its part */
    uint32_t part;
    uint8_t *to;
} place;

struct qn__asked_rows {
    uint32_t count, requests;
    place *row;                 /* of one part after the other */
    qn__item_request **request; /* of the rows of other ranks, in that order */
};

/* The part that has a row. */
static uint32_t part_of(const qn__part_rows *from, uint64_t row) {
    uint32_t low = 0, high = from->ranks;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (from->first[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Rows of one request. */
static uint32_t rows_at_once(const qn__part_rows *from) {
    const uint64_t fit = QN__ANSWER_MOST / from->stride;
    return fit > QN__PIECES_MOST ? QN__PIECES_MOST : fit > 0 ? (uint32_t)fit : 1;
}

static void free_all(qn__asked_rows *a) {
    qn__free(a->row);
    qn__free((void *)a->request);
    qn__free(a);
}

/* Sorts the rows by their parts. 0: out of memory. */
static int sort(const qn__part_rows *from, const uint64_t *row, uint8_t *const *to,
                qn__asked_rows *a, qn_error *err) {
    uint32_t *at = qn__alloc((uint64_t)from->ranks + 1, sizeof *at, err);
    uint32_t *part = qn__alloc(a->count, sizeof *part, err);
    const int fine = at && part;
    for (uint32_t i = 0; fine && i < a->count; ++i)
        ++at[1 + (part[i] = part_of(from, row[i]))];
    for (uint32_t p = 0; fine && p < from->ranks; ++p)
        at[p + 1] += at[p];
    for (uint32_t i = 0; fine && i < a->count; ++i)
        a->row[at[part[i]]++] = (place){row[i] - from->first[part[i]], part[i], to[i]};
    qn__free(at);
    qn__free(part);
    return fine;
}

/* The end of the rows of one part, or of one request of it, that begin at `i`. */
static uint32_t end_of(const qn__asked_rows *a, uint32_t i, uint32_t most) {
    uint32_t end = i + 1;
    while (end < a->count && end - i < most && a->row[end].part == a->row[i].part)
        ++end;
    return end;
}

static int send(const qn__part_rows *from, qn__asked_rows *a, uint32_t i, uint32_t end,
                qn__item_piece *piece, qn_error *err) {
    for (uint32_t k = i; k < end; ++k)
        piece[k - i] = (qn__item_piece){0, (uint32_t)from->stride, a->row[k].row * from->step};
    qn__item_request *request = qn__items_ask(from->items, a->row[i].part, piece, end - i, err);
    if (!request)
        return 0;
    a->request[a->requests++] = request;
    return 1;
}

static int send_all(const qn__part_rows *from, qn__asked_rows *a, qn_error *err) {
    const uint32_t most = rows_at_once(from);
    qn__item_piece *piece = qn__alloc(most, sizeof *piece, err);
    int fine = piece != NULL;
    for (uint32_t i = 0, end; fine && i < a->count; i = end) {
        end = end_of(a, i, most);
        if (a->row[i].part != from->rank)
            fine = send(from, a, i, end, piece, err);
    }
    qn__free(piece);
    return fine;
}

qn__asked_rows *qn__part_rows_ask(const qn__part_rows *from, const uint64_t *row,
                                  uint8_t *const *to, uint32_t count, qn_error *err) {
    qn__asked_rows *a = qn__alloc(1, sizeof *a, err);
    if (!a)
        return NULL;
    a->count = count;
    a->row = qn__alloc(count, sizeof *a->row, err);
    a->request = (qn__item_request **)qn__alloc(count, sizeof *a->request, err);
    if (a->row && a->request && sort(from, row, to, a, err) && send_all(from, a, err))
        return a;
    qn__part_rows_drop(from, a);
    return NULL;
}

static void copy_own(const qn__part_rows *from, const qn__asked_rows *a, uint32_t i, uint32_t end) {
    for (; i < end; ++i)
        memcpy(a->row[i].to, from->local->values + a->row[i].row * from->step, from->stride);
}

qn_status qn__part_rows_take(const qn__part_rows *from, qn__asked_rows *a, qn_error *err) {
    const uint32_t most = rows_at_once(from);
    qn_status status = QN_OK;
    uint32_t request = 0;
    for (uint32_t i = 0, end; status == QN_OK && i < a->count; i = end) {
        const uint8_t *bytes;
        end = end_of(a, i, most);
        if (a->row[i].part == from->rank) {
            copy_own(from, a, i, end);
            continue;
        }
        status = qn__items_wait(from->items, a->request[request++], &bytes, err);
        for (uint32_t k = i; status == QN_OK && k < end; ++k, bytes += from->stride)
            memcpy(a->row[k].to, bytes, from->stride);
    }
    qn__part_rows_drop(from, a);
    return status;
}

void qn__part_rows_drop(const qn__part_rows *from, qn__asked_rows *a) {
    if (!a)
        return;
    for (uint32_t i = 0; i < a->requests; ++i)
        qn__items_drop(from->items, a->request[i]);
    free_all(a);
}

#include "userkernel/run/user_part_rows.h"

#include <string.h>

qn__row_range qn__part_own_rows(const qn__part_space *s) {
    const uint64_t *first = s->parts.first + s->parts.rank;
    return (qn__row_range){first[0], first[1]};
}

/* ------------------------------------------------------------------ what is here */

/* Bytes from `begin` on that one piece of memory has: at most end - begin. 0: they are not here. */
static uint64_t find_here(const qn__part_input *in, uint64_t begin, uint64_t end,
                          const uint8_t **at) {
    for (size_t i = 0; i < in->count; i++) {
        const qn__rows_here *h = &in->here[i];
        const uint64_t from = h->first * in->row, to = (h->first + h->rows) * in->row;
        if (begin < from || begin >= to)
            continue;
        *at = (const uint8_t *)h->array.data + (begin - from);
        return end < to ? end - begin : to - begin;
    }
    return 0;
}

/* Where the rows of each rank begin, and the bytes of a row; NULL: no array has that number. */
static const uint64_t *rows_of(const qn__part_space *s, uint32_t array, uint64_t *row) {
    const uint32_t output = (array - QN__PART_OUTPUT) / 2;
    if (array < QN__PART_OUTPUT) {
        *row = s->input[array].row;
        return s->input[array].first;
    }
    if (output >= QN__USER_PARTS || !s->output[output].place[(array - QN__PART_OUTPUT) % 2])
        return NULL;
    *row = s->output[output].row;
    return s->parts.first;
}

/* Copies what is here, from `begin` on. Returns its bytes. */
static uint64_t copy_here(const qn__part_space *s, uint32_t array, uint64_t begin, uint64_t end,
                          uint8_t *to) {
    const uint8_t *at;
    uint64_t done = 0, some;
    if (array >= QN__PART_OUTPUT) {
        const qn__row_range own = qn__part_own_rows(s);
        const uint32_t output = (array - QN__PART_OUTPUT) / 2;
        const uint64_t row = s->output[output].row;
        if (begin < own.begin * row || begin >= own.end * row)
            return 0;
        done = (end < own.end * row ? end : own.end * row) - begin;
        memcpy(to, s->output[output].place[(array - QN__PART_OUTPUT) % 2] + begin, done);
        return done;
    }
    while (begin + done < end && (some = find_here(&s->input[array], begin + done, end, &at)) > 0) {
        memcpy(to + done, at, some);
        done += some;
    }
    return done;
}

/* ------------------------------------------------------------------ what others ask */

static int copy_piece(void *user, uint32_t part, const qn__item_piece *piece, void *to) {
    const qn__part_space *s = user;
    uint64_t row = 0;
    const uint64_t *first = rows_of(s, piece->array, &row);
    if (!first || part != s->parts.rank)
        return 0;
    const uint64_t begin = first[part] * row, bytes = first[part + 1] * row - begin;
    if (piece->offset > bytes || piece->bytes > bytes - piece->offset)
        return 0;
    return copy_here(s, piece->array, begin + piece->offset, begin + piece->offset + piece->bytes,
                     to) == piece->bytes;
}

static qn_status reach(void *user, uint32_t part, qn_error *err) {
    (void)user;
    (void)part;
    return qn__fail(err, QN_UNSUPPORTED, "a run of a kernel does not read them again");
}

static const char *name_of(void *user, uint32_t part) {
    const qn__part_space *s = user;
    return s->parts.name[part];
}

qn_status qn__part_rows_open(qn__part_space *s, qn_error *err) {
    const qn__item_holder holder = {.user = s, .reach = reach, .copy = copy_piece, .name = name_of};
    return qn__items_create(s->parts.cluster, qn__cluster_table(s->parts.cluster), &holder,
                            &s->items, err);
}

/* ------------------------------------------------------------------ reading */

qn_status qn__part_rows_read(const qn__part_space *s, uint32_t array, uint64_t begin, uint64_t end,
                             void *to, qn_error *err) {
    uint64_t row = 0;
    const uint64_t *first = rows_of(s, array, &row);
    qn_status status = QN_OK;
    for (uint64_t at = begin, some; at < end && status == QN_OK; at += some) {
        uint8_t *place = (uint8_t *)to + (at - begin);
        some = copy_here(s, array, at, end, place);
        if (some > 0)
            continue;
        uint32_t part = 0;
        while (first[part + 1] * row <= at)
            part++;
        const uint64_t after = first[part + 1] * row;
        some = (end < after ? end : after) - at;
        status = qn__items_fetch(s->items, part, array, at - first[part] * row, some, place, err);
    }
    return status;
}

#include "data/prepare/coded_items.h"

#include "base/memory.h"
#include "base/system/fault_space.h"
#include "data/table/remote_rows.h"
#include <string.h>

typedef struct coded {
    qn__item_coder coder;
    const qn__remote_rows *raw;
    uint64_t items;
    size_t row, item; /* bytes */
    qn__fault_space *space;
    qn__remote_rows remote;
} coded;

/* Rows that were asked for, and the items that they become. */
typedef struct asked {
    qn__asked_rows *rows;
    uint8_t *bytes; /* of the rows */
    uint8_t **at;   /* of each row, then of its item */
    uint32_t count;
} asked;

static void free_asked(asked *a) {
    if (!a)
        return;
    qn__free(a->bytes);
    qn__free((void *)a->at);
    qn__free(a);
}

static asked *make_asked(const coded *c, uint32_t count, qn_error *err) {
    asked *a = qn__alloc(1, sizeof *a, err);
    if (!a)
        return NULL;
    a->count = count;
    a->bytes = qn__alloc(count, c->row, err);
    a->at = (uint8_t **)qn__alloc(2 * (uint64_t)count, sizeof *a->at, err);
    if (!a->bytes || !a->at) {
        free_asked(a);
        return NULL;
    }
    for (uint32_t i = 0; i < count; ++i)
        a->at[i] = a->bytes + i * c->row;
    return a;
}

static void code(const coded *c, const void *row, uint8_t *item) {
    memset(item, 0, c->item);
    c->coder.code(c->coder.user, row, item);
}

/* ------------------------------------------------------------------ items by their numbers */

static qn__asked_rows *ask(void *user, const uint64_t *row, uint8_t *const *to, uint32_t count,
                           qn_error *err) {
    coded *c = user;
    asked *a = make_asked(c, count, err);
    if (!a)
        return NULL;
    memcpy((void *)(a->at + count), (const void *)to, count * sizeof *to);
    a->rows = c->raw->ask(c->raw->user, row, a->at, count, err);
    if (a->rows)
        return (qn__asked_rows *)(void *)a;
    free_asked(a);
    return NULL;
}

static qn_status take(void *user, qn__asked_rows *rows, qn_error *err) {
    const coded *c = user;
    asked *a = (asked *)(void *)rows;
    const qn_status status = c->raw->take(c->raw->user, a->rows, err);
    for (uint32_t i = 0; status == QN_OK && i < a->count; ++i)
        code(c, a->at[i], a->at[a->count + i]);
    free_asked(a);
    return status;
}

static void drop(void *user, qn__asked_rows *rows) {
    const coded *c = user;
    asked *a = (asked *)(void *)rows;
    if (a)
        c->raw->drop(c->raw->user, a->rows);
    free_asked(a);
}

static qn_status check(void *user, qn_error *err) {
    coded *c = user;
    const qn_status status = qn__fault_space_check(c->space, err);
    return status == QN_OK ? c->raw->check(c->raw->user, err) : status;
}

static void forget(void *user) { qn__fault_space_forget(((coded *)user)->space); }

/* ------------------------------------------------------------------ items that are touched */

/* Items first .. end - 1, of which the bytes from .. after - 1 of the table are wanted. */
static void put(const coded *c, const asked *a, uint64_t first, uint8_t *item, uint64_t from,
                uint64_t after, uint8_t *to) {
    for (uint32_t i = 0; i < a->count; ++i) {
        const uint64_t begin = (first + i) * c->item, end = begin + c->item;
        const uint64_t low = begin > from ? begin : from, high = end < after ? end : after;
        code(c, a->at[i], item);
        memcpy(to + (low - from), item + (low - begin), (size_t)(high - low));
    }
}

static qn_status fill_items(const coded *c, uint64_t first, uint64_t end, uint64_t from,
                            uint64_t after, uint8_t *to, qn_error *err) {
    const uint32_t count = (uint32_t)(end - first);
    asked *a = make_asked(c, count, err);
    uint64_t *row = a ? qn__alloc(count, sizeof *row, err) : NULL;
    uint8_t *item = row ? qn__alloc(1, c->item, err) : NULL;
    qn_status status = item ? QN_OK : QN_MEMORY;
    for (uint32_t i = 0; status == QN_OK && i < count; ++i)
        row[i] = first + i;
    if (status == QN_OK) {
        a->rows = c->raw->ask(c->raw->user, row, a->at, count, err);
        status = a->rows ? c->raw->take(c->raw->user, a->rows, err) : QN_MEMORY;
    }
    if (status == QN_OK)
        put(c, a, first, item, from, after, to);
    qn__free(item);
    qn__free(row);
    free_asked(a);
    return status;
}

static qn_status fill(void *user, uint64_t first, uint64_t count, uint8_t *to, qn_error *err) {
    const coded *c = user;
    const uint64_t all = c->items * c->item, after = first + count < all ? first + count : all;
    memset(to, 0, count);
    return first < after
               ? fill_items(c, first / c->item, (after - 1) / c->item + 1, first, after, to, err)
               : QN_OK;
}

/* ------------------------------------------------------------------ the table */

int qn__coded_items_possible(const qn_data *raw) {
    return qn__data_remote(raw) && !raw->index && !raw->several && !raw->wide && !raw->listed;
}

static void release(void *memory) {
    coded *c = memory;
    qn__fault_space_destroy(c->space);
    c->coder.release(c->coder.user);
    qn__free(c);
}

qn_status qn__coded_items_open(const qn_data *raw, const qn__item_coder *coder, qn_data *table,
                               qn_error *err) {
    coded *c = qn__alloc(1, sizeof *c, err);
    if (!c)
        return QN_MEMORY;
    c->coder = *coder;
    c->raw = qn__data_remote(raw);
    c->items = raw->items;
    c->row = qn__data_stride(raw);
    c->item = qn__data_stride(table);
    const uint64_t bytes = c->items * c->item + QN__DATA_MARGIN;
    const qn__fault_filler filler = {c, fill};
    /* The last block is droppable, too: nothing lies after the values. */
    const qn_status status = qn__fault_space_create(bytes, bytes + QN__FAULT_BLOCK, c->raw->kept,
                                                    &filler, &c->space, err);
    if (status != QN_OK) {
        qn__free(c);
        return status;
    }
    c->raw->forget(c->raw->user);
    table->values = qn__fault_space_memory(c->space);
    table->memory = c;
    table->release = release;
    c->remote = (qn__remote_rows){.values = table->values,
                                  .partial = c->raw->kept < bytes,
                                  .kept = c->raw->kept,
                                  .parts = c->raw->parts,
                                  .user = c,
                                  .ask = ask,
                                  .take = take,
                                  .drop = drop,
                                  .check = check,
                                  .forget = forget};
    table->remote = &c->remote;
    return QN_OK;
}

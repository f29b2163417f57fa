#include "data/ahead/remote_ahead.h"

#include "base/memory.h"
#include "data/table/remote_rows.h"
#include "num/permutation.h"
#include "num/philox.h"

/* Steps whose items are asked for while one is computed. Positions whose items are found at once.
 */
enum { STEPS = 4, RUN = 64 };

typedef struct asked_item {
    uint64_t place;
    unsigned slot;
} asked_item;

/* Items of a step that were asked for. */
typedef struct step {
    qn__asked_rows *asked; /* NULL: none */
    asked_item *item;
    uint32_t count;
} step;

struct qn__remote_ahead {
    const qn_data *data;
    const qn__remote_rows *remote;
    uint64_t seed, epochs;
    uint32_t batch, steps; /* items of a batch; batches of an epoch */
    qn__item_buffer buffer;
    uint8_t *slots;
    size_t bytes;    /* of the slots */
    unsigned *spare; /* numbers of slots that are free, `spares` of them */
    uint32_t spares;
    step step[STEPS + 1];  /* of the batch of number n: step[n % (STEPS + 1)] */
    step more;             /* of the batch that is computed: what was not asked for before */
    uint64_t now;          /* number of the batch that is computed */
    uint64_t asked;        /* batches before this one were asked for */
    uint32_t first, count; /* what this rank computes of a batch */
    int shared;            /* that is known of the batch `now` */
    uint64_t *row;         /* space for the rows of a batch */
    uint8_t **to;
};

/* ------------------------------------------------------------ places and rows */

/* The place at which the batch of a number begins. */
static uint64_t place_of(const qn__remote_ahead *a, uint64_t number) {
    return number / a->steps * a->data->items + number % a->steps * a->batch;
}

/* The rows of the table at `count` places of one epoch. */
static void find_rows(const qn__remote_ahead *a, uint64_t place, uint32_t count, uint64_t *row) {
    const uint64_t items = a->data->items;
    qn__permutation order;
    qn__permutation_begin(&order, items, a->seed, QN__PURPOSE_ORDER, (uint32_t)(place / items));
    for (uint32_t done = 0; done < count;) {
        const uint32_t some = count - done < RUN ? count - done : RUN;
        qn__permutation_run(&order, place % items + done, some, row + done);
        done += some;
    }
    for (uint32_t i = 0; i < count && a->data->index; ++i)
        row[i] = a->data->index[row[i]];
}

static atomic_uint *slot_at(const qn__remote_ahead *a, uint64_t place) {
    return &a->buffer.slot[place % a->buffer.places];
}

/* ------------------------------------------------------------ one step */

static void forget(qn__remote_ahead *a, step *s) {
    for (uint32_t i = 0; i < s->count; ++i)
        a->spare[a->spares++] = s->item[i].slot;
    a->remote->drop(a->remote->user, s->asked);
    s->asked = NULL;
    s->count = 0;
}

/* Asks for the items of `count` places from `place` on, those that are not in the buffer. */
static qn_status ask(qn__remote_ahead *a, step *s, uint64_t place, uint32_t count, qn_error *err) {
    uint32_t asked = 0;
    find_rows(a, place, count, a->row);
    for (uint32_t i = 0; i < count && asked < a->spares; ++i) {
        if (atomic_load_explicit(slot_at(a, place + i), memory_order_relaxed))
            continue;
        const unsigned slot = a->spare[a->spares - 1 - asked];
        s->item[asked] = (asked_item){place + i, slot};
        a->to[asked] = a->slots + (size_t)slot * a->buffer.size;
        a->row[asked++] = a->row[i];
    }
    if (asked == 0)
        return QN_OK;
    s->asked = a->remote->ask(a->remote->user, a->row, a->to, asked, err);
    if (!s->asked)
        return QN_MEMORY;
    s->count = asked;
    a->spares -= asked;
    return QN_OK;
}

static qn_status take(qn__remote_ahead *a, step *s, qn_error *err) {
    if (!s->asked)
        return QN_OK;
    const qn_status status = a->remote->take(a->remote->user, s->asked, err);
    s->asked = NULL;
    if (status != QN_OK) {
        forget(a, s);
        return status;
    }
    for (uint32_t i = 0; i < s->count; ++i)
        atomic_store_explicit(slot_at(a, s->item[i].place), 1 + s->item[i].slot,
                              memory_order_release);
    s->count = 0;
    return QN_OK;
}

/* The places of a batch that this rank probably computes. */
static void probable(const qn__remote_ahead *a, uint64_t number, uint64_t *place, uint32_t *count) {
    const uint64_t left = a->data->items - number % a->steps * a->batch;
    const uint32_t items = left < a->batch ? (uint32_t)left : a->batch;
    const uint32_t first = a->first < items ? a->first : items;
    *place = place_of(a, number) + first;
    *count = a->count < items - first ? a->count : items - first;
}

static qn_status ask_ahead(qn__remote_ahead *a, qn_error *err) {
    const uint64_t all = a->epochs * a->steps;
    qn_status status = QN_OK;
    a->asked = a->asked > a->now ? a->asked : a->now + 1;
    for (; a->asked <= a->now + STEPS && a->asked < all && status == QN_OK; ++a->asked) {
        uint64_t place;
        uint32_t count;
        probable(a, a->asked, &place, &count);
        status = ask(a, &a->step[a->asked % (STEPS + 1)], place, count, err);
    }
    return status;
}

qn_status qn__remote_ahead_bring(qn__remote_ahead *a, uint32_t epoch, uint64_t position,
                                 uint32_t count, qn_error *err) {
    const uint64_t place = epoch * a->data->items + position;
    if (!a->buffer.slot || place < a->buffer.from || count > a->batch)
        return QN_OK; /* a step that is computed again: its items are read from the table */
    qn_status status = take(a, &a->step[a->now % (STEPS + 1)], err);
    if (status == QN_OK)
        status = ask(a, &a->more, place, count, err);
    if (status == QN_OK && !a->shared) {
        a->first = (uint32_t)(place - a->buffer.from);
        a->count = count;
        a->shared = 1;
        status = ask_ahead(a, err);
    }
    return status == QN_OK ? take(a, &a->more, err) : status;
}

/* -------------------------------------------------------------------------------- between steps */

static int open_buffer(qn__remote_ahead *a, uint64_t batch) {
    const uint64_t places = (STEPS + 2) * batch;
    a->batch = (uint32_t)batch;
    a->steps = (uint32_t)((a->data->items + batch - 1) / batch);
    a->bytes = (size_t)places * a->buffer.size;
    a->slots = qn__alloc_pages(a->bytes, NULL);
    a->spare = qn__alloc(places, sizeof *a->spare, NULL);
    a->row = qn__alloc(batch, sizeof *a->row, NULL);
    a->to = (uint8_t **)qn__alloc(batch, sizeof *a->to, NULL);
    a->more.item = qn__alloc(batch, sizeof *a->more.item, NULL);
    int fine = a->slots && a->spare && a->row && a->to && a->more.item;
    for (int i = 0; i < STEPS + 1 && fine; ++i)
        fine = (a->step[i].item = qn__alloc(batch, sizeof *a->step[i].item, NULL)) != NULL;
    for (uint64_t i = places; i > 0 && fine; --i)
        a->spare[a->spares++] = (unsigned)(i - 1);
    a->buffer.slots = a->slots;
    a->buffer.places = places;
    if (fine)
        a->buffer.slot = qn__alloc(places, sizeof *a->buffer.slot, NULL);
    return a->buffer.slot != NULL;
}

/* The places before `to` are done. */
static void drop_places(qn__remote_ahead *a, uint64_t to) {
    const uint64_t last = a->buffer.from + a->buffer.places;
    for (uint64_t p = a->buffer.from; p < to && p < last; ++p) {
        const unsigned slot = atomic_exchange(slot_at(a, p), 0);
        if (slot)
            a->spare[a->spares++] = slot - 1;
    }
    a->buffer.from = to;
}

const qn__item_buffer *qn__remote_ahead_move(qn__remote_ahead *a, uint32_t epoch, uint64_t position,
                                             uint64_t batch) {
    if (!a->buffer.slot && !open_buffer(a, batch))
        return NULL;
    const uint64_t number = (uint64_t)epoch * a->steps + position / a->batch;
    if (number < a->now) /* a training that goes on elsewhere */
        a->asked = 0;
    for (uint32_t i = 0; i < STEPS + 1; ++i)
        if (number < a->now || a->now + i < number)
            forget(a, &a->step[(a->now + i) % (STEPS + 1)]);
    a->now = number;
    a->shared = 0;
    drop_places(a, place_of(a, number));
    return &a->buffer;
}

qn__remote_ahead *qn__remote_ahead_create(const qn_data *data, uint64_t seed, uint64_t epochs) {
    qn__remote_ahead *a = qn__alloc(1, sizeof *a, NULL);
    if (!a)
        return NULL;
    a->data = data;
    a->remote = qn__data_remote(data);
    a->seed = seed;
    a->epochs = epochs;
    a->buffer.size = qn__data_stride(data);
    a->buffer.items = data->items;
    return a;
}

void qn__remote_ahead_destroy(qn__remote_ahead *a) {
    if (!a)
        return;
    for (int i = 0; i < STEPS + 2; ++i) {
        step *s = i > STEPS ? &a->more : &a->step[i];
        if (s->asked)
            a->remote->drop(a->remote->user, s->asked);
        qn__free(s->item);
    }
    qn__free_pages(a->slots, a->bytes);
    qn__free(a->buffer.slot);
    qn__free(a->spare);
    qn__free(a->row);
    qn__free((void *)a->to);
    qn__free(a);
}

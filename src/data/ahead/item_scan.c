#include "data/ahead/item_scan.h"
#include "base/digest/crc32.h"
#include "base/files/mapped_file.h"
#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include "data/bytes/file_pieces.h"
#include "num/permutation.h"
#include "num/philox.h"
#include <math.h>
#include <string.h>

/* Bytes that a disk of 500 MB/s reads in four seconds. */
#define SHORT ((uint64_t)2 << 30)

enum {
    READERS = 4, /* that wait for the disk while one copies items */
    LARGE_PAGE = 2 << 20,
    BLOCK_SPACE = 2 * LARGE_PAGE, /* addresses around the block, which take no memory */
    /* Bytes of a reading: a disk of 500 MB/s takes 2 ms. All readers share a large page, because a
     * block of small ones makes many more pieces for the disk. */
    PIECE = LARGE_PAGE / READERS - QN__FILE_PIECE_MARGIN,
    FIND = 256,             /* items whose places are found at a time */
    RANDOM_COST = 16 << 10, /* bytes that are read in order in the time of one request */
    LEAST_SLOTS = 1024      /* below them chance makes the numbers of items too uneven */
};

/* Seconds that a step waits at most; Ctrl-C waits, too. */
static const double WAIT = 0.2;

/* An item of a piece, and the place for which it is copied. */
typedef struct find {
    uint64_t item, place;
} find;

typedef struct reader {
    qn__item_scan *scan;
    qn__file_piece piece;
    find *found; /* twice the items of a piece: an item may be needed in two epochs */
    uint32_t *slot;
    uint64_t visit; /* under way */
    int busy, started;
    pthread_t thread;
    qn__permutation order[2]; /* of the epochs `epoch` and the next one */
    uint64_t epoch;
} reader;

struct qn__item_scan {
    const qn_data *data;
    uint64_t seed, last;  /* places of the run */
    uint64_t rows, items; /* of a piece, at most */
    size_t step;          /* bytes from one item to the next in the file */
    uint64_t pieces;
    uint64_t cycle, first; /* places; the first reading gives the cycle that begins at `first` */
    uint64_t reserved;
    uint64_t taken;  /* items that another reading had; all of them: it was the first reading */
    uint32_t *check; /* of the first item that it had of each piece; NULL: it was in vain */
    pthread_mutex_t lock; /* for all below */
    pthread_cond_t moved, arrived;
    qn__item_buffer buffer;
    uint8_t *memory;
    uint8_t *block; /* of all readers, somewhere in it */
    size_t block_bytes;
    uint32_t *free; /* slots */
    uint32_t free_count, slots;
    uint64_t next;    /* visit: a reading of a piece, counted from 0 */
    uint64_t granted; /* visits that have their slots */
    uint64_t needed;  /* visits for which the training waits; 0: it does not wait */
    int begun, ended, failed;
    int short_first; /* the first reading is short: the training waits for it */
    reader reader[READERS];
};

static _Atomic size_t reserved_bytes;

uint64_t qn__item_scan_memory(const qn__item_scan *s) { return s->reserved; }

uint64_t qn__item_scan_reserved(void) { return atomic_load(&reserved_bytes); }

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* ------------------------------------------------------------------ which items */

/* The end of the places that a visit gives. */
static uint64_t end_of(const qn__item_scan *s, uint64_t visit) {
    return s->first + visit / s->pieces * s->cycle + visit % s->pieces * s->cycle / s->pieces;
}

/* Their begin: where the visit before of the same piece ended. */
static uint64_t begin_of(const qn__item_scan *s, uint64_t visit) {
    return visit < s->pieces ? 0 : end_of(s, visit) - s->cycle;
}

/* The number of visits that give places before `to`. */
static uint64_t visits_until(const qn__item_scan *s, uint64_t to) {
    if (to <= s->first)
        return 0;
    const uint64_t after = to - s->first, part = after % s->cycle;
    return s->pieces + after / s->cycle * s->pieces + (part * s->pieces + s->cycle - 1) / s->cycle;
}

static uint64_t row_of(const qn_data *data, uint64_t item) {
    return data->index ? data->index[item] : item;
}

static void set_epoch(reader *r, uint64_t epoch) {
    const qn__item_scan *s = r->scan;
    if (r->epoch == epoch)
        return;
    r->epoch = epoch;
    for (uint32_t i = 0; i < 2; i++)
        qn__permutation_begin(&r->order[i], s->data->items, s->seed, QN__PURPOSE_ORDER,
                              (uint32_t)epoch + i);
}

/* The items first .. end-1 whose places are from `begin` to before `end_place`, which is at most a
 * cycle later. */
static uint64_t find_items(reader *r, uint64_t first, uint64_t end, uint64_t begin,
                           uint64_t end_place) {
    const uint64_t items = r->scan->data->items;
    uint64_t count = 0, position[FIND];
    if (begin >= end_place)
        return 0;
    set_epoch(r, begin / items);
    for (uint32_t e = 0; e < 2 && (r->epoch + e) * items < end_place; e++)
        for (uint64_t at = first; at < end; at += FIND) {
            const uint32_t some = (uint32_t)least(end - at, FIND);
            qn__permutation_find(&r->order[e], at, some, position);
            for (uint32_t i = 0; i < some; i++) {
                const uint64_t place = (r->epoch + e) * items + position[i];
                if (place >= begin && place < end_place)
                    r->found[count++] = (find){at + i, place};
            }
        }
    return count;
}

/* ------------------------------------------------------------------ reading */

/* Takes the next visit; 0: there is none. The places must not be so far ahead that others are in
 * their places of the buffer. */
static int take_visit(reader *r) {
    qn__item_scan *s = r->scan;
    for (;;) {
        if (s->ended || s->failed || begin_of(s, s->next) >= s->last)
            return 0;
        if (end_of(s, s->next) <= s->buffer.from + s->buffer.places)
            break;
        pthread_cond_wait(&s->moved, &s->lock);
    }
    r->visit = s->next++;
    r->busy = 1;
    return 1;
}

/* Takes `count` slots, in the order of the visits. Fewer if the training waits for this visit:
 * waiting for it to go on would be a deadlock. */
static uint64_t take_slots(reader *r, uint64_t count) {
    qn__item_scan *s = r->scan;
    while (!s->ended &&
           (s->granted != r->visit || (s->free_count < count && s->needed <= r->visit)))
        pthread_cond_wait(&s->moved, &s->lock);
    const uint64_t some = s->ended ? 0 : least(count, s->free_count);
    for (uint64_t i = 0; i < some; i++)
        r->slot[i] = s->free[--s->free_count];
    s->granted++;
    pthread_cond_broadcast(&s->moved);
    return some;
}

/* No file system may give other bytes in this way of reading than in the mapped file. An item of
 * each piece, the first, is compared with it: in the first reading, or with what another one had.
 */
static int is_right(const reader *r, uint64_t first, const uint8_t *bytes) {
    const qn__item_scan *s = r->scan;
    if (s->check && r->visit < 2 * s->pieces)
        return qn__crc32(0, bytes, s->buffer.size) == s->check[r->visit % s->pieces];
    return s->check || r->visit >= s->pieces ||
           memcmp(bytes, qn__data_item(s->data, first), s->buffer.size) == 0;
}

static void copy_items(const reader *r, const uint8_t *bytes, uint64_t row, uint64_t count) {
    const qn__item_scan *s = r->scan;
    const size_t size = s->buffer.size;
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *from = bytes + (size_t)(row_of(s->data, r->found[i].item) - row) * s->step;
        memcpy(s->memory + (size_t)r->slot[i] * size, from, size);
    }
}

/* Items whose place is over are not needed any more. */
static void publish(reader *r, uint64_t count, int good) {
    qn__item_scan *s = r->scan;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t place = r->found[i].place;
        if (good && place >= s->buffer.from)
            atomic_store_explicit(&s->buffer.slot[place % s->buffer.places], r->slot[i] + 1,
                                  memory_order_release);
        else
            s->free[s->free_count++] = r->slot[i];
    }
    s->failed |= !good;
    r->busy = 0;
    pthread_cond_signal(&s->arrived);
    if (!good)
        pthread_cond_broadcast(&s->moved);
}

static void visit(reader *r) {
    qn__item_scan *s = r->scan;
    const uint64_t row = r->visit % s->pieces * s->rows, first = qn__data_item_from(s->data, row),
                   end = qn__data_item_from(s->data, row + s->rows);
    const uint64_t from = s->buffer.from, begin = begin_of(s, r->visit);
    pthread_mutex_unlock(&s->lock);
    uint64_t count = first < end ? find_items(r, first, end, begin > from ? begin : from,
                                              least(end_of(s, r->visit), s->last))
                                 : 0;
    pthread_mutex_lock(&s->lock);
    count = take_slots(r, count);
    int good = 1;
    if (count > 0) {
        pthread_mutex_unlock(&s->lock);
        const uint64_t rows = row_of(s->data, end - 1) + 1 - row;
        const uint8_t *bytes =
            qn__file_piece_read(&r->piece, row * s->step, qn__data_bytes_of(s->data, rows));
        good =
            bytes && is_right(r, first, bytes + (size_t)(row_of(s->data, first) - row) * s->step);
        if (good)
            copy_items(r, bytes, row, count);
        pthread_mutex_lock(&s->lock);
    }
    publish(r, count, good);
}

static void *read_visits(void *context) {
    reader *r = context;
    qn__float_state_set();
    pthread_mutex_lock(&r->scan->lock);
    while (take_visit(r))
        visit(r);
    pthread_mutex_unlock(&r->scan->lock);
    return NULL;
}

/* The visits before this one are done. */
static uint64_t done(const qn__item_scan *s) {
    uint64_t before = s->next;
    for (int i = 0; i < READERS; i++)
        if (s->reader[i].busy)
            before = least(before, s->reader[i].visit);
    return before;
}

/* ------------------------------------------------------------------ another reading */

/* Copies items that lie in the mapped file to free slots, as many as there are. */
static void keep_items(qn__item_scan *s, const find *found, uint32_t count) {
    const qn__item_buffer *b = &s->buffer;
    uint32_t slot[FIND];
    pthread_mutex_lock(&s->lock);
    const uint32_t some = (uint32_t)least(count, s->free_count);
    for (uint32_t i = 0; i < some; i++)
        slot[i] = s->free[--s->free_count];
    pthread_mutex_unlock(&s->lock);
    for (uint32_t i = 0; i < some; i++) {
        memcpy(s->memory + (size_t)slot[i] * b->size, qn__data_item(s->data, found[i].item),
               b->size);
        atomic_store_explicit(&b->slot[found[i].place], slot[i] + 1, memory_order_release);
    }
}

/* An item belongs to the same place as if its piece had been read in the order of the file. */
void qn__item_scan_take(qn__item_scan *s, uint64_t first, uint64_t end) {
    qn__permutation order;
    uint64_t position[FIND];
    find found[FIND];
    qn__permutation_begin(&order, s->data->items, s->seed, QN__PURPOSE_ORDER, 0);
    for (uint64_t at = first; at < end; at += FIND) {
        const uint32_t some = (uint32_t)least(end - at, FIND);
        uint32_t count = 0;
        qn__permutation_find(&order, at, some, position);
        for (uint32_t i = 0; i < some; i++) {
            const uint64_t piece = row_of(s->data, at + i) / s->rows;
            if (position[i] < end_of(s, piece))
                found[count++] = (find){at + i, position[i]};
            if (at + i == 0 || row_of(s->data, at + i - 1) / s->rows < piece)
                s->check[piece] = qn__crc32(0, qn__data_item(s->data, at + i), s->buffer.size);
        }
        keep_items(s, found, count);
    }
    pthread_mutex_lock(&s->lock);
    s->taken += end - first;
    pthread_mutex_unlock(&s->lock);
}

/* ------------------------------------------------------------------ moving */

static void release_places(qn__item_scan *s, uint64_t from) {
    qn__item_buffer *b = &s->buffer;
    const uint64_t end = least(from, b->from + b->places);
    for (uint64_t p = b->from; p < end; p++) {
        const unsigned slot =
            atomic_exchange_explicit(&b->slot[p % b->places], 0, memory_order_relaxed);
        if (slot)
            s->free[s->free_count++] = slot - 1;
    }
    b->from = from;
}

/* During the first reading of a large file the training goes on for a part of a cycle. Its items
 * are read one by one; those that it has not come to at the end need slots, too. */
static void plan_first(qn__item_scan *s, uint64_t from) {
    release_places(s, s->buffer.places); /* all that was taken */
    s->taken = 0;
    s->buffer.from = from;
    s->first = from + (s->short_first ? 0 : s->cycle / 4);
    qn__free(s->check);
    s->check = NULL;
}

static void begin(qn__item_scan *s, uint64_t from) {
    s->begun = 1;
    if (s->taken < s->data->items || from >= s->cycle)
        plan_first(s, from);
    else
        s->next = s->granted = s->pieces;
    for (int i = 0; i < READERS; i++)
        s->reader[i].started =
            qn__thread_start(&s->reader[i].thread, NULL, read_visits, &s->reader[i]) == 0;
    s->failed = !s->reader[0].started && !s->reader[1].started;
}

static void wait_for(qn__item_scan *s, uint64_t visits) {
    const struct timespec until = qn__after(WAIT);
    s->needed = visits;
    pthread_cond_broadcast(&s->moved);
    while (!s->failed && done(s) < visits &&
           pthread_cond_timedwait(&s->arrived, &s->lock, &until) == 0)
        ;
    s->needed = 0;
}

void qn__item_scan_move(qn__item_scan *s, uint64_t from, uint64_t to) {
    pthread_mutex_lock(&s->lock);
    if (!s->begun)
        begin(s, from);
    if (from > s->buffer.from) {
        release_places(s, from);
        pthread_cond_broadcast(&s->moved);
    }
    uint64_t visits = visits_until(s, least(to, s->last));
    if (s->short_first && visits < s->pieces)
        visits = s->pieces;
    if (!s->failed && done(s) < visits)
        wait_for(s, visits);
    pthread_mutex_unlock(&s->lock);
}

qn__item_scan_stage qn__item_scan_at(qn__item_scan *s) {
    pthread_mutex_lock(&s->lock);
    const uint64_t taken = s->taken == s->data->items ? s->pieces : 0;
    const uint64_t visits = s->begun ? done(s) : taken;
    const int failed = s->failed, complete = visits >= s->pieces;
    pthread_mutex_unlock(&s->lock);
    if (failed || complete)
        return failed ? QN__SCAN_FAILED : QN__SCAN_SERVES;
    return s->short_first ? QN__SCAN_WAITS : QN__SCAN_FIRST;
}

const qn__item_buffer *qn__item_scan_buffer(const qn__item_scan *scan) { return &scan->buffer; }

/* ------------------------------------------------------------------ making */

/* The plan: how many slots, how long a cycle. 0: reading single items is better. */
static int plan(qn__item_scan *s, uint64_t memory) {
    const qn_data *data = s->data;
    const uint64_t stride = qn__data_stride(data);
    const uint64_t rows = row_of(data, data->items - 1) + 1, bytes = rows * stride;
    s->step = qn__data_step(data);
    s->rows = stride < PIECE ? PIECE / stride : 1;
    s->pieces = (rows + s->rows - 1) / s->rows;
    s->items = least(s->rows, data->items);
    const uint64_t piece = (s->rows * stride + QN__FILE_PIECE_MARGIN) / QN__FILE_SECTOR;
    s->block_bytes = (size_t)(READERS * piece * QN__FILE_SECTOR);
    const uint64_t reading =
        READERS * s->items * (2 * sizeof(find) + 2 * sizeof(uint32_t)) + s->block_bytes;
    /* A slot has its number in the list of free ones, and 2.5 places in the buffer. */
    const uint64_t slot = stride + sizeof(uint32_t) + 5 * sizeof(uint32_t) / 2;
    if (memory <= reading || memory - reading >= bytes)
        return 0;
    const uint64_t slots = least((memory - reading) / slot, data->items);
    s->slots = (uint32_t)least(slots, UINT32_MAX / 2);
    /* Half a cycle, two pieces more while they are read, and four deviations for chance. */
    const uint64_t even = (uint64_t)s->slots - 4 * (uint64_t)sqrt((double)s->slots);
    s->cycle = least(even * 2 * s->pieces / (s->pieces + 4), data->items);
    s->short_first = bytes <= SHORT;
    return s->slots >= LEAST_SLOTS &&
           (double)bytes / (double)s->cycle <= (double)(stride + RANDOM_COST);
}

static int make_readers(qn__item_scan *s) {
    const qn_data *data = s->data;
    const uint64_t at = (uint64_t)(data->values - qn__mapped_file_bytes(data->in_file));
    s->block = qn__alloc_pages(s->block_bytes + BLOCK_SPACE, NULL);
    if (!s->block)
        return 0;
    uint8_t *block = s->block + LARGE_PAGE - (uintptr_t)s->block % LARGE_PAGE;
    for (int i = 0; i < READERS; i++) {
        reader *r = &s->reader[i];
        r->scan = s;
        r->epoch = UINT64_MAX;
        r->found = qn__alloc(s->items, 2 * sizeof *r->found, NULL);
        r->slot = qn__alloc(s->items, 2 * sizeof *r->slot, NULL);
        if (!r->found || !r->slot ||
            !qn__file_piece_begin(&r->piece, qn__mapped_file_descriptor(data->in_file), at,
                                  block + (size_t)i * (s->block_bytes / READERS)))
            return 0;
    }
    return 1;
}

static int make_buffer(qn__item_scan *s) {
    qn__item_buffer *b = &s->buffer;
    b->size = qn__data_stride(s->data);
    b->items = s->data->items;
    b->places = s->cycle + s->cycle / 4 + 1;
    s->check = qn__alloc(s->pieces, sizeof *s->check, NULL);
    b->slot = qn__alloc(b->places, sizeof *b->slot, NULL);
    s->free = qn__alloc(s->slots, sizeof *s->free, NULL);
    s->memory = qn__alloc(s->slots, b->size, NULL);
    b->slots = s->memory;
    for (s->free_count = 0; s->free && s->free_count < s->slots; s->free_count++)
        s->free[s->free_count] = s->slots - 1 - s->free_count;
    return s->check && b->slot && s->free && s->memory;
}

static int make_locks(qn__item_scan *s) {
    pthread_condattr_t monotonic;
    if (pthread_condattr_init(&monotonic) != 0)
        return 0;
    int made = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0 &&
               pthread_mutex_init(&s->lock, NULL) == 0;
    if (made && pthread_cond_init(&s->moved, NULL) != 0) {
        pthread_mutex_destroy(&s->lock);
        made = 0;
    }
    if (made && pthread_cond_init(&s->arrived, &monotonic) != 0) {
        pthread_cond_destroy(&s->moved);
        pthread_mutex_destroy(&s->lock);
        made = 0;
    }
    pthread_condattr_destroy(&monotonic);
    return made;
}

static void release(qn__item_scan *s) {
    for (int i = 0; i < READERS; i++) {
        qn__free(s->reader[i].found);
        qn__free(s->reader[i].slot);
    }
    qn__free(s->check);
    qn__free(s->buffer.slot);
    qn__free(s->free);
    qn__free(s->memory);
    if (s->block)
        qn__free_pages(s->block, s->block_bytes + BLOCK_SPACE);
    atomic_fetch_sub(&reserved_bytes, (size_t)s->reserved);
    qn__free(s);
}

qn__item_scan *qn__item_scan_create(const qn_data *data, uint64_t seed, uint64_t places,
                                    uint64_t memory) {
    qn__item_scan *s = data->in_file ? qn__alloc(1, sizeof *s, NULL) : NULL;
    if (!s)
        return NULL;
    s->data = data;
    s->seed = seed;
    s->last = places;
    const int planned = plan(s, memory);
    if (planned) {
        s->reserved = least(memory, SIZE_MAX);
        atomic_fetch_add(&reserved_bytes, (size_t)s->reserved);
    }
    if (planned && make_buffer(s) && make_readers(s) && make_locks(s))
        return s;
    release(s);
    return NULL;
}

void qn__item_scan_destroy(qn__item_scan *s) {
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->ended = 1;
    pthread_cond_broadcast(&s->moved);
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < READERS; i++)
        if (s->reader[i].started)
            pthread_join(s->reader[i].thread, NULL);
    pthread_cond_destroy(&s->arrived);
    pthread_cond_destroy(&s->moved);
    pthread_mutex_destroy(&s->lock);
    release(s);
}

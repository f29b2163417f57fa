/* Objects that are written: parts, the threads that send them, and their memory. */
#include "store/write/write_kind.h"
#include "base/files/remote_write.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* The first thousand parts have 8 MiB, each further thousand twice as much: 10,000 parts, which is
 * what stores allow, are 8 TB then, and small objects need little memory. */
enum { PART = 8 << 20, PARTS_OF_A_SIZE = 1000, SENDERS = 4, FIRST_CAPACITY = 1 << 16 };

/* A part on its way, and the thread that sends it. */
typedef struct sender {
    qn__remote_writer *writer;
    int busy;
    pthread_t thread;
    uint32_t number;
    uint64_t offset;
    uint8_t *bytes;
    size_t size;
    qn_error error;
} sender;

struct qn__remote_writer {
    const qn__write_kind *kind;
    void *object;
    uint8_t *first; /* part 1 where there are more: it is sent last, since it can be replaced */
    size_t first_size;
    uint8_t *part; /* the part that is filled */
    size_t used, capacity;
    uint64_t offset; /* of that part */
    uint32_t parts;  /* begun, including the one that is filled */
    int is_begun;    /* parts were sent */
    sender sender[SENDERS];
    qn__object_tag *sent; /* by number - 1 */
    size_t sent_capacity;
};

static size_t part_size(uint32_t number) {
    return (size_t)PART << ((number - 1) / PARTS_OF_A_SIZE);
}

/* ------------------------------------------------------------------------------- sending a part */

static void send_part(sender *s) {
    qn__remote_writer *w = s->writer;
    s->error = (qn_error){0};
    w->kind->send(w->object, s->number, s->offset, s->bytes, s->size, &w->sent[s->number - 1],
                  &s->error);
}

static void *run_sender(void *context) {
    qn__float_state_set();
    send_part(context);
    return NULL;
}

/* Waits for a part that is on its way, and frees its bytes. */
static qn_status await(sender *s, qn_error *err) {
    if (!s->busy)
        return QN_OK;
    pthread_join(s->thread, NULL);
    s->busy = 0;
    qn__free(s->bytes);
    s->bytes = NULL;
    if (s->error.status != QN_OK && err)
        *err = s->error;
    return s->error.status;
}

static qn_status await_all(qn__remote_writer *w, qn_error *err) {
    qn_status status = QN_OK;
    for (int i = 0; i < SENDERS; i++) {
        const qn_status own = await(&w->sender[i], status == QN_OK ? err : NULL);
        status = status == QN_OK ? own : status;
    }
    return status;
}

/* Room for the tag of a part. No part is on its way while the list moves. */
static qn_status make_place(qn__remote_writer *w, uint32_t number, qn_error *err) {
    if (number <= w->sent_capacity)
        return QN_OK;
    qn_status status = await_all(w, err);
    const size_t capacity = w->sent_capacity ? 4 * w->sent_capacity : 64;
    qn__object_tag *larger = status == QN_OK ? qn__alloc(capacity, sizeof *larger, err) : NULL;
    if (!larger)
        return status == QN_OK ? QN_MEMORY : status;
    if (w->sent)
        memcpy(larger, w->sent, w->sent_capacity * sizeof *larger);
    qn__free(w->sent);
    w->sent = larger;
    w->sent_capacity = capacity;
    return QN_OK;
}

/* Sends a part, which belongs to the sender then, on a thread where the store takes several. */
static qn_status start_part(qn__remote_writer *w, uint32_t number, uint64_t offset, uint8_t *bytes,
                            size_t size, qn_error *err) {
    sender *s = &w->sender[number % SENDERS];
    qn_status status = await(s, err);
    if (status == QN_OK && !w->is_begun && w->kind->begin)
        status = w->kind->begin(w->object, err);
    w->is_begun |= status == QN_OK;
    if (status == QN_OK)
        status = make_place(w, number, err);
    if (status != QN_OK) {
        qn__free(bytes);
        return status;
    }
    *s = (sender){.writer = w, .number = number, .offset = offset, .bytes = bytes, .size = size};
    s->busy =
        w->kind->at_once > 1 && qn__thread_start(&s->thread, NULL, run_sender, s) == 0 ? 1 : 0;
    if (s->busy)
        return QN_OK;
    send_part(s);
    qn__free(s->bytes);
    s->bytes = NULL;
    if (s->error.status != QN_OK && err)
        *err = s->error;
    return s->error.status;
}

/* --------------------------------------------------------------------------- filling the parts */

/* The full part goes on its way; the first one stays where the rest may be sent before it. */
static qn_status end_part(qn__remote_writer *w, qn_error *err) {
    qn_status status = QN_OK;
    uint8_t *bytes = w->part;
    const size_t size = w->used;
    const uint32_t number = w->parts;
    w->part = NULL;
    w->used = w->capacity = 0;
    if (number == 1 && w->kind->at_once > 1) {
        w->first = bytes;
        w->first_size = size;
    } else {
        status = start_part(w, number, w->offset, bytes, size, err);
    }
    w->offset += size;
    w->parts++;
    return status;
}

static qn_status grow(qn__remote_writer *w, size_t needed, qn_error *err) {
    const size_t most = part_size(w->parts);
    size_t capacity = w->capacity ? 4 * w->capacity : w->parts > 1 ? most : FIRST_CAPACITY;
    while (capacity < needed)
        capacity *= 4;
    capacity = capacity < most ? capacity : most;
    uint8_t *larger = qn__alloc(capacity, 1, err);
    if (!larger)
        return QN_MEMORY;
    if (w->used > 0)
        memcpy(larger, w->part, w->used);
    qn__free(w->part);
    w->part = larger;
    w->capacity = capacity;
    return QN_OK;
}

static qn_status refuse_large(qn_error *err) {
    qn__fail(err, QN_IO, "the object is larger than a store takes: it has %d parts",
             QN__UPLOAD_PARTS);
    return qn__remedy(err, QN_IO, "write it to a file of this machine");
}

qn_status qn__remote_writer_add(qn__remote_writer *w, const void *bytes, size_t size,
                                qn_error *err) {
    const uint8_t *from = bytes;
    qn_status status = QN_OK;
    while (size > 0 && status == QN_OK) {
        const size_t most = part_size(w->parts);
        if (w->used == most) { /* only now: the last part is never empty */
            status = w->parts < QN__UPLOAD_PARTS ? end_part(w, err) : refuse_large(err);
            continue;
        }
        const size_t now = size < most - w->used ? size : most - w->used;
        if (w->used + now > w->capacity)
            status = grow(w, w->used + now, err);
        if (status != QN_OK)
            break;
        memcpy(w->part + w->used, from, now);
        w->used += now;
        from += now;
        size -= now;
    }
    return status;
}

int qn__remote_writer_replaces(const qn__remote_writer *w) { return w->kind->at_once > 1; }

qn_status qn__remote_writer_replace(qn__remote_writer *w, const void *bytes, size_t size,
                                    qn_error *err) {
    uint8_t *first = w->first ? w->first : w->part;
    const size_t there = w->first ? w->first_size : w->used;
    if (!qn__remote_writer_replaces(w) || size > there)
        return qn__fail(err, QN_IO, "the beginning of this object cannot be changed any more");
    memcpy(first, bytes, size);
    return QN_OK;
}

/* ------------------------------------------------------------------------------------ the calls */

qn_status qn__remote_writer_create(const char *address, qn__remote_writer **out, qn_error *err) {
    *out = NULL;
    const qn__write_kind *kind = qn__write_kind_of(address, err);
    if (!kind)
        return QN_UNSUPPORTED;
    qn__remote_writer *w = qn__alloc(1, sizeof *w, err);
    if (!w)
        return QN_MEMORY;
    w->kind = kind;
    w->parts = 1;
    const qn_status status = kind->open(address, &w->object, err);
    if (status != QN_OK) {
        qn__free(w);
        return status;
    }
    *out = w;
    return QN_OK;
}

static int is_one_request(const qn__remote_writer *w) { return w->parts == 1 && w->kind->put; }

qn_status qn__remote_writer_complete(qn__remote_writer *w, qn_error *err) {
    if (is_one_request(w))
        return QN_OK;
    qn_status status = QN_OK;
    if (w->used > 0 || w->parts == 1) {
        status = start_part(w, w->parts, w->offset, w->part, w->used, err);
        w->part = NULL;
        w->used = w->capacity = 0;
        w->parts++;
    }
    if (status == QN_OK && w->first) {
        status = start_part(w, 1, 0, w->first, w->first_size, err);
        w->first = NULL;
    }
    const qn_status sent = await_all(w, status == QN_OK ? err : NULL);
    return status == QN_OK ? sent : status;
}

qn_status qn__remote_writer_publish(qn__remote_writer *w, qn_error *err) {
    if (is_one_request(w))
        return w->kind->put(w->object, w->part, w->used, err);
    const qn_status status = w->kind->finish(w->object, w->sent, w->parts - 1, err);
    if (status == QN_OK)
        w->is_begun = 0;
    return status;
}

qn_status qn__remote_remove(const char *address, qn_error *err) {
    void *object = NULL;
    const qn__write_kind *kind = qn__write_kind_of(address, err);
    if (!kind)
        return QN_UNSUPPORTED;
    qn_status status = kind->open(address, &object, err);
    if (status == QN_OK) {
        status = kind->remove(object, err);
        kind->close(object);
    }
    return status;
}

void qn__remote_writer_drop(qn__remote_writer *w) {
    if (!w)
        return;
    await_all(w, NULL);
    if (w->is_begun)
        w->kind->abort(w->object);
    w->kind->close(w->object);
    qn__free(w->first);
    qn__free(w->part);
    qn__free(w->sent);
    qn__free(w);
}

qn_status qn__remote_may_write(const char *address, qn_error *err) {
    qn__remote_writer *w = NULL;
    qn_status status = qn__remote_writer_create(address, &w, err);
    if (status == QN_OK) {
        w->is_begun = 1;
        status = w->kind->probe(w->object, err);
    }
    qn__remote_writer_drop(w);
    return status;
}

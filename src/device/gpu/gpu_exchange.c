/* Copies in both directions at the same time. The host copies from and to pinned memory, because no
 * device copies asynchronously from other memory. It does some of each direction in turn, so that
 * the device has both to do, and both end together. With 8 pieces up and 4 down:
 *
 *     host:    ask D0, ask D1, send U0 U1, take D0, ask D2, send U2 U3, take D1, ...
 *
 * Two pieces down are asked for at any time, so the device copies one while the host empties the
 * pinned memory of the other. */
#include "device/gpu/gpu_kernel.h"

#include <string.h>

/* The copies of a direction, one after the other. */
typedef struct way {
    const qn__gpu_copy *copy;
    uint32_t copies, now; /* `now`: the one that is being begun */
    size_t begun;         /* bytes of it */
    uint64_t all, done;   /* bytes of all */
} way;

static way way_of(const qn__gpu_copy *copy, uint32_t copies) {
    way w = {.copy = copy, .copies = copies};
    for (uint32_t i = 0; i < copies; ++i)
        w.all += copy[i].bytes;
    return w;
}

/* The next piece, which is then begun. */
static qn__gpu_copy cut(way *w) {
    qn__gpu_copy piece = w->copy[w->now];
    const size_t left = piece.bytes - w->begun;
    piece.offset += w->begun;
    piece.from = piece.from ? (const char *)piece.from + w->begun : NULL;
    piece.to = piece.to ? (char *)piece.to + w->begun : NULL;
    piece.bytes = left < QN__GPU_PIECE ? left : QN__GPU_PIECE;
    w->begun += piece.bytes;
    if (w->begun == w->copy[w->now].bytes) {
        w->begun = 0;
        ++w->now;
    }
    return piece;
}

static qn_status send(const qn__gpu_driver *driver, qn__gpu *gpu, way *up, qn_error *err) {
    const qn__gpu_copy piece = cut(up);
    qn_status status = driver->lane(gpu, QN__GPU_UP, err);
    if (status == QN_OK)
        status = driver->write(gpu, piece.memory, piece.offset, piece.from, piece.bytes, err);
    up->done += piece.bytes;
    return status == QN_OK ? driver->flush(gpu, err) : status;
}

static qn_status ask(const qn__gpu_driver *driver, qn__gpu *gpu, const qn__gpu_copy *piece,
                     qn_error *err) {
    const qn_status status = driver->lane(gpu, QN__GPU_DOWN, err);
    return status == QN_OK ? driver->ask(gpu, piece->memory, piece->offset, piece->bytes, err)
                           : status;
}

static qn_status take(const qn__gpu_driver *driver, qn__gpu *gpu, const qn__gpu_copy *piece,
                      qn_error *err) {
    const void *data;
    size_t bytes = 0;
    const qn_status status = driver->get(gpu, &data, &bytes, err);
    if (status == QN_OK)
        memcpy(piece->to, data, bytes);
    return status;
}

/* Whether a direction has something to do and is not ahead of the other one. */
static int is_turn_of(const way *w, const way *other) {
    return w->done < w->all &&
           (other->done == other->all ||
            (double)w->done * (double)other->all <= (double)other->done * (double)w->all);
}

qn_status qn__gpu_exchange(const qn__gpu_driver *driver, qn__gpu *gpu, const qn__gpu_copy *up,
                           uint32_t ups, const qn__gpu_copy *down, uint32_t downs, qn_error *err) {
    way u = way_of(up, ups), d = way_of(down, downs);
    qn__gpu_copy asked[QN__GPU_ASKED] = {{0}};
    uint32_t asks = 0, taken = 0;
    qn_status status = QN_OK;
    while (status == QN_OK && (u.done < u.all || d.done < d.all)) {
        if (d.now < d.copies && asks - taken < QN__GPU_ASKED) {
            const qn__gpu_copy piece = cut(&d);
            asked[asks++ % QN__GPU_ASKED] = piece;
            status = ask(driver, gpu, &piece, err);
        } else if (is_turn_of(&u, &d)) {
            status = send(driver, gpu, &u, err);
        } else {
            const qn__gpu_copy *piece = &asked[taken++ % QN__GPU_ASKED];
            status = take(driver, gpu, piece, err);
            d.done += piece->bytes;
        }
    }
    return status == QN_OK ? driver->lane(gpu, QN__GPU_WORK, err) : status;
}

/* Two pieces are under way: the device copies one while the host empties the other. */
qn_status qn__gpu_read(const qn__gpu_driver *driver, qn__gpu *gpu, const qn__gpu_memory *from,
                       size_t offset, void *to, size_t bytes, qn_error *err) {
    const qn__gpu_copy all = {.memory = from, .offset = offset, .to = to, .bytes = bytes};
    way w = way_of(&all, 1);
    qn_status status = QN_OK;
    for (uint32_t pending = 0; status == QN_OK && w.done < bytes;) {
        const void *data;
        size_t piece = 0;
        if (w.now < w.copies && pending < QN__GPU_ASKED) {
            const qn__gpu_copy next = cut(&w);
            status = driver->ask(gpu, next.memory, next.offset, next.bytes, err);
            ++pending;
        } else if ((status = driver->get(gpu, &data, &piece, err)) == QN_OK) {
            memcpy((char *)to + w.done, data, piece);
            w.done += piece;
            --pending;
        }
    }
    return status;
}

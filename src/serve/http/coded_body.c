/* Bodies with a Content-Encoding. */
#include "base/memory.h"
#include "data/bytes/packing.h"
#include "serve/http/http_state.h"

#include <stdlib.h>
#include <strings.h>

enum { PIECE = 1 << 14 };

int qn__request_coding(qn__request *r, const char *name) {
    if (strcasecmp(name, "identity") == 0)
        return 1;
    if (strcasecmp(name, "gzip") == 0 || strcasecmp(name, "x-gzip") == 0)
        r->coding = &qn__gzip_unpacker;
    else if (strcasecmp(name, "deflate") == 0) /* RFC 9110: the format of zlib */
        r->coding = &qn__zlib_unpacker;
    return r->coding && r->coding->need(NULL) == QN_OK;
}

/* Adds what the bytes unpack to, until it is whole or too large. Returns 0 where they are not whole
 * members. */
static int unpack(qn__request *r, const uint8_t *bytes, size_t size, void *state, uint8_t *piece) {
    const qn__unpacker *u = r->coding;
    qn__packed_space space = {.in = bytes, .in_size = size};
    while (!r->too_large && !r->out_of_memory) {
        space.out = piece;
        space.out_size = PIECE;
        space.in = bytes + (size - space.in_size);
        const size_t before = space.in_size;
        const qn__packed_step step = u->step(state, &space, 1);
        const size_t made = PIECE - space.out_size;
        qn__request_add(r, (const char *)piece, made);
        r->out_of_memory |= step == QN__PACKED_MEMORY;
        if (step == QN__PACKED_CORRUPT ||
            (step == QN__PACKED_MORE && made == 0 && space.in_size == before))
            return 0;
        if (step != QN__PACKED_END)
            continue;
        if (space.in_size == 0)
            return 1;
        if (u->next(state, bytes + (size - space.in_size), space.in_size) != QN__PACKED_AGAIN)
            return 0;
    }
    return 1;
}

int qn__request_decode(qn__request *r) {
    char *packed = r->body;
    const size_t size = r->size, capacity = r->capacity;
    if (!r->coding || size == 0)
        return 1;
    void *state = qn__alloc(1, r->coding->state_size, NULL);
    uint8_t *piece = malloc(PIECE);
    const int begun = state && piece && r->coding->begin(state);
    int good = 1;
    r->body = NULL;
    r->size = r->capacity = 0;
    r->out_of_memory |= !begun;
    if (begun) {
        good = unpack(r, (const uint8_t *)packed, size, state, piece);
        r->coding->end(state);
    }
    if (!good)
        qn__request_drop_body(r);
    atomic_fetch_sub(&r->http->bodies, capacity);
    free(packed);
    free(piece);
    qn__free(state);
    return good;
}

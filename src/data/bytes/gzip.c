/* gzip (RFC 1952) by zlib, if the build has it.
 *
 * A file may have several members; zeros after the last are padding, as for the gzip program. zlib
 * checks each member's CRC and length. */
#include "data/bytes/gzip.h"
#include "data/bytes/packing.h"

#ifdef QN_HAVE_ZLIB

#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

#define AT_ONCE ((size_t)1 << 30)

/* 15: window bits; 16 more: accept only a gzip header. */
static int begin(void *state) { return inflateInit2((z_stream *)state, 15 + 16) == Z_OK; }
static int begin_zlib(void *state) { return inflateInit2((z_stream *)state, 15) == Z_OK; }

static qn__packed_step step(void *state, qn__packed_space *buffer, int last) {
    z_stream *s = state;
    (void)last;
    const size_t in = buffer->in_size < AT_ONCE ? buffer->in_size : AT_ONCE,
                 out = buffer->out_size < AT_ONCE ? buffer->out_size : AT_ONCE;
    s->next_in = (Bytef *)(uintptr_t)buffer->in;
    s->avail_in = (uInt)in;
    s->next_out = buffer->out;
    s->avail_out = (uInt)out;
    const int code = inflate(s, Z_NO_FLUSH);
    buffer->in_size -= in - s->avail_in;
    buffer->out_size -= out - s->avail_out;
    return code == Z_OK || code == Z_BUF_ERROR ? QN__PACKED_MORE
           : code == Z_STREAM_END              ? QN__PACKED_END
           : code == Z_MEM_ERROR               ? QN__PACKED_MEMORY
                                               : QN__PACKED_CORRUPT;
}

static qn__packed_next next(void *state, const uint8_t *first, size_t size) {
    (void)size;
    if (*first == 0)
        return QN__PACKED_FILLER;
    return *first == 0x1F && inflateReset((z_stream *)state) == Z_OK ? QN__PACKED_AGAIN
                                                                     : QN__PACKED_OTHER;
}

/* Of a zlib stream. */
static qn__packed_next next_none(void *state, const uint8_t *first, size_t size) {
    (void)state, (void)first, (void)size;
    return QN__PACKED_OTHER;
}

static void end(void *state) { inflateEnd((z_stream *)state); }

void *qn__pack(qn__pack_kind kind, const void *bytes, size_t size, size_t *packed) {
    z_stream s = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)size};
    uint8_t *to = size <= AT_ONCE ? malloc(size) : NULL;
    if (!to || deflateInit2(&s, Z_BEST_SPEED, Z_DEFLATED, kind == QN__PACK_GZIP ? 15 + 16 : 15, 8,
                            Z_DEFAULT_STRATEGY) != Z_OK) {
        free(to);
        return NULL;
    }
    s.next_out = to;
    s.avail_out = (uInt)size;
    const int is_whole = deflate(&s, Z_FINISH) == Z_STREAM_END;
    *packed = size - s.avail_out;
    deflateEnd(&s);
    if (is_whole)
        return to;
    free(to);
    return NULL;
}

qn_status qn__gzip_need(qn_error *err) {
    (void)err;
    return QN_OK;
}

int qn__gzip_block(const uint8_t *from, size_t size, uint8_t *to, size_t made) {
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)from,
                       .avail_in = (uInt)size,
                       .next_out = to,
                       .avail_out = (uInt)made};
    /* 15: window bits; 32 more: gzip or zlib by the header. */
    if (size > UINT_MAX || made > UINT_MAX || inflateInit2(&stream, 15 + 32) != Z_OK)
        return 0;
    int code = inflate(&stream, Z_FINISH);
    while (code == Z_STREAM_END && stream.avail_in > 0 && stream.avail_out > 0 &&
           inflateReset(&stream) == Z_OK) /* the next member */
        code = inflate(&stream, Z_FINISH);
    inflateEnd(&stream);
    return code == Z_STREAM_END && stream.avail_out == 0;
}

#else

qn_status qn__gzip_need(qn_error *err) {
    qn__fail(err, QN_UNSUPPORTED, "this is gzip data, and Quern was built without zlib");
    return qn__remedy(err, QN_UNSUPPORTED,
                      "write the file with another compression, or install zlib (Debian: "
                      "zlib1g-dev) and build Quern again");
}

int qn__gzip_block(const uint8_t *from, size_t size, uint8_t *to, size_t made) {
    (void)from, (void)size, (void)to, (void)made;
    return 0;
}

void *qn__pack(qn__pack_kind kind, const void *bytes, size_t size, size_t *packed) {
    (void)kind, (void)bytes, (void)size, (void)packed;
    return NULL;
}

#endif

static int is_gzip(const uint8_t *first, size_t size) {
    return size >= 2 && first[0] == 0x1F && first[1] == 0x8B;
}

const qn__unpacker qn__gzip_unpacker = {.name = "gzip",
                                        .by_hand = "gunzip",
                                        .test = "gzip -t",
                                        .is = is_gzip,
                                        .need = qn__gzip_need,
#ifdef QN_HAVE_ZLIB
                                        .state_size = sizeof(z_stream),
                                        .begin = begin,
                                        .step = step,
                                        .next = next,
                                        .end = end
#endif
};

const qn__unpacker qn__zlib_unpacker = {.name = "zlib",
                                        .need = qn__gzip_need,
#ifdef QN_HAVE_ZLIB
                                        .state_size = sizeof(z_stream),
                                        .begin = begin_zlib,
                                        .step = step,
                                        .next = next_none,
                                        .end = end
#endif
};

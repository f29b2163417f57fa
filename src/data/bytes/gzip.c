/* gzip (RFC 1952) by zlib, if the build has it.
 *
 * A file may have several members; zeros after the last are padding, as for the gzip program. zlib
 * checks each member's CRC and length. Memory is one input buffer: output goes directly to the
 * caller, who limits its size. */
#include "data/bytes/gzip.h"
#include "base/digest/crc32.h"
#include "base/memory.h"
#include "data/bytes/descriptor.h"
#include "data/bytes/packing.h"

#ifdef QN_HAVE_ZLIB

#include <limits.h>
#include <zlib.h>

#define INPUT_ROOM ((size_t)1 << 18)

typedef struct gzip_stream {
    int fd;
    const char *path; /* the source's own copy */
    z_stream stream;
    int started;   /* the stream holds memory */
    int in_member; /* between a member's first byte and its checked end */
    int ended;
    uint64_t read; /* bytes taken from the file */
    uint8_t input[INPUT_ROOM];
} gzip_stream;

static qn_status create(int fd, const char *path, uint64_t file_size, void **out, qn_error *err) {
    (void)file_size; /* DEFLATE cannot exceed qn__unpacked_bound */
    *out = NULL;
    gzip_stream *gzip = qn__alloc(1, sizeof *gzip, err);
    if (!gzip)
        return QN_MEMORY;
    gzip->fd = fd;
    gzip->path = path;
    gzip->in_member = 1;
    /* 15: window bits; 16 more: accept only a gzip header. */
    if (inflateInit2(&gzip->stream, 15 + 16) != Z_OK) {
        qn__free(gzip);
        return qn__fail_memory(err, 1, (size_t)1 << 15);
    }
    gzip->started = 1;
    *out = gzip;
    return QN_OK;
}

static void destroy(void *self) {
    gzip_stream *gzip = self;
    if (!gzip)
        return;
    if (gzip->started)
        inflateEnd(&gzip->stream);
    qn__free(gzip);
}

static qn_status refuse(const gzip_stream *gzip, qn_error *err, const char *what) {
    qn__fail(err, QN_INPUT, "%s", what);
    qn__at(err, "%s, byte %llu of the compressed file", gzip->path,
           (unsigned long long)(gzip->read - gzip->stream.avail_in));
    return qn__remedy(err, QN_INPUT, "copy or download the file again; gzip -t tests it");
}

/* Makes at least one input byte available, or sets *end at the end of the file. */
static qn_status refill(gzip_stream *gzip, int *end, qn_error *err) {
    *end = 0;
    if (gzip->stream.avail_in > 0)
        return QN_OK;
    size_t got = 0;
    qn_status status =
        qn__descriptor_read(gzip->fd, gzip->path, gzip->input, INPUT_ROOM, &got, err);
    if (status != QN_OK)
        return status;
    gzip->read += got;
    gzip->stream.next_in = gzip->input;
    gzip->stream.avail_in = (uInt)got;
    *end = got == 0;
    return QN_OK;
}

/* Between members: skips padding, begins the next member or ends. */
static qn_status next_member(gzip_stream *gzip, qn_error *err) {
    for (;;) {
        int end = 0;
        qn_status status = refill(gzip, &end, err);
        if (status != QN_OK)
            return status;
        if (end) {
            gzip->ended = 1;
            return QN_OK;
        }
        if (*gzip->stream.next_in != 0)
            break;
        gzip->stream.next_in++;
        gzip->stream.avail_in--;
    }
    if (*gzip->stream.next_in != 0x1F)
        return refuse(gzip, err, "the gzip data is followed by something that is not gzip");
    if (inflateReset(&gzip->stream) != Z_OK)
        return refuse(gzip, err, "the gzip data cannot be unpacked");
    gzip->in_member = 1;
    return QN_OK;
}

/* One call of inflate; stream.avail_out shows the output. */
static qn_status unpack(gzip_stream *gzip, qn_error *err) {
    int end = 0;
    qn_status status = refill(gzip, &end, err);
    if (status != QN_OK)
        return status;
    if (end)
        return refuse(gzip, err, "the gzip data is cut off");
    switch (inflate(&gzip->stream, Z_NO_FLUSH)) {
    case Z_OK:
    case Z_BUF_ERROR: /* more input is needed; the next call reads it or finds the end */
        return QN_OK;
    case Z_STREAM_END:
        gzip->in_member = 0;
        return QN_OK;
    case Z_MEM_ERROR:
        return qn__fail_memory(err, 1, (size_t)1 << 15);
    default:
        return refuse(gzip, err, "the gzip data is corrupt");
    }
}

static qn_status read_some(void *self, void *bytes, size_t size, size_t *got, qn_error *err) {
    gzip_stream *gzip = self;
    *got = 0;
    while (*got < size && !gzip->ended) {
        qn_status status = QN_OK;
        if (!gzip->in_member) {
            status = next_member(gzip, err);
        } else {
            size_t room = size - *got < UINT_MAX ? size - *got : UINT_MAX;
            gzip->stream.next_out = (uint8_t *)bytes + *got;
            gzip->stream.avail_out = (uInt)room;
            status = unpack(gzip, err);
            *got += room - gzip->stream.avail_out;
        }
        if (status != QN_OK)
            return status;
    }
    return QN_OK;
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

uint32_t qn__gzip_sum(const void *bytes, size_t size) {
    uLong sum = crc32(0, NULL, 0);
    for (const uint8_t *at = bytes; size > 0;) {
        const uInt now = size < INPUT_ROOM ? (uInt)size : (uInt)INPUT_ROOM;
        sum = crc32(sum, at, now);
        at += now;
        size -= now;
    }
    return (uint32_t)sum;
}

#else

uint32_t qn__gzip_sum(const void *bytes, size_t size) { return qn__crc32(0, bytes, size); }

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

static qn_status create(int fd, const char *path, uint64_t file_size, void **out, qn_error *err) {
    (void)fd, (void)file_size;
    *out = NULL;
    qn__fail(err, QN_UNSUPPORTED, "this is a gzip file, and Quern was built without zlib");
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_UNSUPPORTED,
                      "unpack it first with gunzip, or install zlib (Debian: zlib1g-dev) and build "
                      "Quern again");
}

static qn_status read_some(void *self, void *bytes, size_t size, size_t *got, qn_error *err) {
    (void)self, (void)bytes, (void)size;
    *got = 0;
    return qn__fail(err, QN_UNSUPPORTED, "Quern was built without zlib");
}

static void destroy(void *self) { (void)self; }

#endif

static int is_gzip(const uint8_t *first, size_t size) {
    return size >= 2 && first[0] == 0x1F && first[1] == 0x8B;
}

const qn__unpacker qn__gzip_unpacker = {.name = "gzip",
                                        .by_hand = "gunzip",
                                        .is = is_gzip,
                                        .create = create,
                                        .read = read_some,
                                        .destroy = destroy};

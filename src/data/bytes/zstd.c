#include "data/bytes/zstd.h"
#include "base/memory.h"
#include "base/system/library.h"
#include "data/bytes/descriptor.h"
#include "data/bytes/packing.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define INPUT_ROOM ((size_t)1 << 18)

/* Own declarations of the parts of zstd.h in use, which are stable since version 1.0. */
typedef struct input_buffer {
    const void *bytes;
    size_t size, at;
} input_buffer;

typedef struct output_buffer {
    void *bytes;
    size_t size, at;
} output_buffer;

static struct {
    qn__library library;
    void *(*create)(void);
    size_t (*destroy)(void *stream);
    size_t (*unpack)(void *stream, output_buffer *out, input_buffer *in);
    size_t (*block)(void *to, size_t room, const void *from, size_t size);
    unsigned (*is_error)(size_t code);
    const char *(*text)(size_t code);
    const char *(*version)(void);
    char name[48];
} the;
static pthread_once_t opened = PTHREAD_ONCE_INIT;

typedef struct zstd_stream {
    int fd;
    const char *path;
    void *stream;
    int in_frame, ended;
    uint64_t read, most, given; /* bytes taken from the file; that may be given; that were */
    input_buffer in;
    uint8_t input[INPUT_ROOM];
} zstd_stream;

static int is_zstd(const uint8_t *first, size_t size) {
    static const uint8_t frame[] = {0x28, 0xB5, 0x2F, 0xFD}, skipped[] = {0x2A, 0x4D, 0x18};
    return size >= 4 && (memcmp(first, frame, 4) == 0 ||
                         (first[0] >> 4 == 5 && memcmp(first + 1, skipped, 3) == 0));
}

static qn__library_function find(const char *name) { return qn__library_find(&the.library, name); }

static void open_library(void) {
    if (!qn__library_open(&the.library, "libzstd.so.1"))
        return;
    the.create = (void *(*)(void))find("ZSTD_createDStream");
    the.destroy = (size_t(*)(void *))find("ZSTD_freeDStream");
    the.unpack = (size_t(*)(void *, output_buffer *, input_buffer *))find("ZSTD_decompressStream");
    the.block = (size_t(*)(void *, size_t, const void *, size_t))find("ZSTD_decompress");
    the.is_error = (unsigned (*)(size_t))find("ZSTD_isError");
    the.text = (const char *(*)(size_t))find("ZSTD_getErrorName");
    the.version = (const char *(*)(void))find("ZSTD_versionString");
    if (qn__library_is_whole(&the.library))
        snprintf(the.name, sizeof the.name, "libzstd %.16s (libzstd.so.1)", the.version());
}

const char *qn__zstd_library(void) {
    pthread_once(&opened, open_library);
    return the.name;
}

qn_status qn__zstd_need(qn_error *err) {
    pthread_once(&opened, open_library);
    if (the.library.handle)
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED, "zstd data needs libzstd, and there is no libzstd.so.1 here");
    return qn__remedy(err, QN_UNSUPPORTED,
                      "install it (Debian: libzstd1; Fedora: libzstd), or write the file without "
                      "zstd");
}

int qn__zstd_block(const uint8_t *from, size_t size, uint8_t *to, size_t made) {
    return the.block(to, made, from, size) == made;
}

/* ------------------------------------------------------------------ files */

static qn_status create(int fd, const char *path, uint64_t file_size, void **out, qn_error *err) {
    *out = NULL;
    const qn_status status = qn__zstd_need(err);
    if (status != QN_OK) {
        qn__at(err, "%s", path);
        return status;
    }
    zstd_stream *zstd = qn__alloc(1, sizeof *zstd, err);
    if (!zstd)
        return QN_MEMORY;
    zstd->fd = fd;
    zstd->path = path;
    zstd->most = qn__unpacked_bound(file_size);
    zstd->stream = the.create();
    if (!zstd->stream) {
        qn__free(zstd);
        return qn__fail_memory(err, 1, (size_t)1 << 18);
    }
    *out = zstd;
    return QN_OK;
}

static void destroy(void *self) {
    zstd_stream *zstd = self;
    if (!zstd)
        return;
    the.destroy(zstd->stream);
    qn__free(zstd);
}

/* `what` of err is set. */
static qn_status refuse(const zstd_stream *zstd, qn_error *err, const char *remedy) {
    qn__at(err, "%s, byte %llu of the compressed file", zstd->path,
           (unsigned long long)(zstd->read - (zstd->in.size - zstd->in.at)));
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

/* Makes at least one input byte available, or sets *end at the end of the file. */
static qn_status refill(zstd_stream *zstd, int *end, qn_error *err) {
    *end = 0;
    if (zstd->in.at < zstd->in.size)
        return QN_OK;
    size_t got = 0;
    const qn_status status =
        qn__descriptor_read(zstd->fd, zstd->path, zstd->input, INPUT_ROOM, &got, err);
    if (status != QN_OK)
        return status;
    zstd->read += got;
    zstd->in = (input_buffer){zstd->input, got, 0};
    *end = got == 0;
    return QN_OK;
}

/* One call of the library. A frame may hold output back until there is room for it, so it is also
 * called where the file has ended. */
static qn_status unpack(zstd_stream *zstd, output_buffer *out, qn_error *err) {
    int end = 0;
    const qn_status status = refill(zstd, &end, err);
    if (status != QN_OK)
        return status;
    if (end && !zstd->in_frame) {
        zstd->ended = 1;
        return QN_OK;
    }
    const size_t before = out->at;
    const size_t code = the.unpack(zstd->stream, out, &zstd->in);
    if (the.is_error(code)) {
        qn__fail(err, QN_INPUT, "the zstd data is corrupt: %s", the.text(code));
        return refuse(zstd, err, "copy or download the file again; zstd -t tests it");
    }
    zstd->in_frame = code != 0;
    if (!end || out->at > before || code == 0)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the zstd data is cut off");
    return refuse(zstd, err, "copy or download the file again; zstd -t tests it");
}

static qn_status read_some(void *self, void *bytes, size_t size, size_t *got, qn_error *err) {
    zstd_stream *zstd = self;
    output_buffer out = {bytes, size, 0};
    qn_status status = QN_OK;
    while (out.at < size && !zstd->ended && status == QN_OK)
        status = unpack(zstd, &out, err);
    *got = out.at;
    zstd->given += out.at;
    if (status != QN_OK || zstd->given <= zstd->most)
        return status;
    qn__fail(err, QN_INPUT,
             "the zstd data unpacks to more than 64 MiB and %d times the size of the file",
             QN__UNPACKED_TIMES);
    return refuse(zstd, err, "unpack it with zstd -d, if you trust the file");
}

const qn__unpacker qn__zstd_unpacker = {.name = "zstd",
                                        .by_hand = "zstd -d",
                                        .is = is_zstd,
                                        .create = create,
                                        .read = read_some,
                                        .destroy = destroy};

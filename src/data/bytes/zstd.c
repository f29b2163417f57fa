#include "data/bytes/zstd.h"
#include "data/bytes/packing.h"
#include <stdio.h>
#include <string.h>

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
    void *(*create)(void);
    size_t (*destroy)(void *stream);
    size_t (*unpack)(void *stream, output_buffer *out, input_buffer *in);
    size_t (*block)(void *to, size_t capacity, const void *from, size_t size);
    unsigned (*is_error)(size_t code);
    const char *(*text)(size_t code);
    const char *(*version)(void);
} the;

static const qn__library_symbol symbols[] = {
    {"ZSTD_createDStream", &the.create},    {"ZSTD_freeDStream", &the.destroy},
    {"ZSTD_decompressStream", &the.unpack}, {"ZSTD_decompress", &the.block},
    {"ZSTD_isError", &the.is_error},        {"ZSTD_getErrorName", &the.text},
    {"ZSTD_versionString", &the.version},   {NULL, NULL}};

static void version(char text[32]) { snprintf(text, 32, "%.16s", the.version()); }

static qn__optional_library libzstd = {.name = "libzstd",
                                       .file = "libzstd.so.1",
                                       .debian = "libzstd1",
                                       .fedora = "libzstd",
                                       .symbol = symbols,
                                       .version = version};

static int is_zstd(const uint8_t *first, size_t size) {
    static const uint8_t frame[] = {0x28, 0xB5, 0x2F, 0xFD}, skipped[] = {0x2A, 0x4D, 0x18};
    return size >= 4 && (memcmp(first, frame, 4) == 0 ||
                         (first[0] >> 4 == 5 && memcmp(first + 1, skipped, 3) == 0));
}

qn_status qn__zstd_need(qn_error *err) {
    return qn__optional_need(&libzstd, "zstd data needs libzstd", "write the file without zstd",
                             err);
}

int qn__zstd_block(const uint8_t *from, size_t size, uint8_t *to, size_t made) {
    return the.block(to, made, from, size) == made;
}

/* ------------------------------------------------------------------ files */

typedef struct zstd_state {
    void *stream;
} zstd_state;

static int begin(void *state) {
    zstd_state *s = state;
    s->stream = the.create();
    return s->stream != NULL;
}

/* A frame may hold output back until there is space for it, so there are calls without input. */
static qn__packed_step step(void *state, qn__packed_space *buffer, int last) {
    input_buffer in = {buffer->in, buffer->in_size, 0};
    output_buffer out = {buffer->out, buffer->out_size, 0};
    (void)last;
    const size_t code = the.unpack(((zstd_state *)state)->stream, &out, &in);
    buffer->in_size -= in.at;
    buffer->out_size -= out.at;
    if (the.is_error(code))
        buffer->why = the.text(code);
    return buffer->why ? QN__PACKED_CORRUPT : code == 0 ? QN__PACKED_END : QN__PACKED_MORE;
}

/* The library says what is wrong with data that is not a frame. */
static qn__packed_next next(void *state, const uint8_t *first, size_t size) {
    (void)state, (void)first, (void)size;
    return QN__PACKED_AGAIN;
}

static void end(void *state) { the.destroy(((zstd_state *)state)->stream); }

const qn__unpacker qn__zstd_unpacker = {.name = "zstd",
                                        .by_hand = "zstd -d",
                                        .test = "zstd -t",
                                        .is = is_zstd,
                                        .library = &libzstd,
                                        .need = qn__zstd_need,
                                        .state_size = sizeof(zstd_state),
                                        .begin = begin,
                                        .step = step,
                                        .next = next,
                                        .end = end};

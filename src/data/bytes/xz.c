/* xz by liblzma.so.5, which is opened when the first such file is read. */
#include "data/bytes/packing.h"
#include <stdio.h>
#include <string.h>

/* Own declaration of the state of lzma/base.h, which is stable since version 5.0. */
typedef struct xz_state {
    const uint8_t *in;
    size_t in_size;
    uint64_t in_total;
    uint8_t *out;
    size_t out_size;
    uint64_t out_total;
    const void *allocator;
    void *inside;
    void *reserved_pointer[4];
    uint64_t place, reserved_number;
    size_t reserved_size[2];
    int reserved_choice[2];
} xz_state;

enum { OK = 0, STREAM_END = 1, NO_CHECK = 2, MEMORY_ERROR = 5, LIMIT_ERROR = 6, STUCK = 10 };
enum { RUN = 0, FINISH = 3, CONCATENATED = 8 };
#define MEMORY_MOST ((uint64_t)1 << 30) /* xz -9 makes files that need 65 MiB */

static struct {
    int (*begin)(xz_state *state, uint64_t memory, uint32_t flags);
    int (*unpack)(xz_state *state, int action);
    void (*end)(xz_state *state);
    const char *(*version)(void);
} the;

static const qn__library_symbol symbols[] = {{"lzma_stream_decoder", &the.begin},
                                             {"lzma_code", &the.unpack},
                                             {"lzma_end", &the.end},
                                             {"lzma_version_string", &the.version},
                                             {NULL, NULL}};

static void version(char text[32]) { snprintf(text, 32, "%.16s", the.version()); }

static qn__optional_library liblzma = {.name = "liblzma",
                                       .file = "liblzma.so.5",
                                       .debian = "liblzma5",
                                       .fedora = "xz-libs",
                                       .symbol = symbols,
                                       .version = version};

static qn_status need(qn_error *err) {
    return qn__optional_need(&liblzma, "xz data needs liblzma", "unpack the file with unxz", err);
}

static int begin(void *state) { return the.begin(state, MEMORY_MOST, CONCATENATED) == OK; }

static qn__packed_step step(void *state, qn__packed_space *buffer, int last) {
    xz_state *s = state;
    s->in = buffer->in;
    s->in_size = buffer->in_size;
    s->out = buffer->out;
    s->out_size = buffer->out_size;
    const int code = the.unpack(s, last ? FINISH : RUN);
    buffer->in_size = s->in_size;
    buffer->out_size = s->out_size;
    return code == OK || code == NO_CHECK || code == STUCK ? QN__PACKED_MORE
           : code == STREAM_END                            ? QN__PACKED_END
           : code == MEMORY_ERROR || code == LIMIT_ERROR   ? QN__PACKED_MEMORY
                                                           : QN__PACKED_CORRUPT;
}

static int is_xz(const uint8_t *first, size_t size) {
    return size >= 6 && memcmp(first,
                               "\xFD"
                               "7zXZ\0",
                               6) == 0;
}

/* The library takes streams that follow each other, and padding, itself. */
static qn__packed_next next(void *state, const uint8_t *first, size_t size) {
    (void)state, (void)first, (void)size;
    return QN__PACKED_OTHER;
}

static void end(void *state) { the.end(state); }

const qn__unpacker qn__xz_unpacker = {.name = "xz",
                                      .by_hand = "unxz",
                                      .test = "xz -t",
                                      .is = is_xz,
                                      .library = &liblzma,
                                      .need = need,
                                      .state_size = sizeof(xz_state),
                                      .begin = begin,
                                      .step = step,
                                      .next = next,
                                      .end = end};

/* bzip2 by libbz2.so.1.0, which is opened when the first such file is read. */
#include "data/bytes/packing.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Own declaration of the state of bzlib.h, which is stable since version 1.0. */
typedef struct bzip2_state {
    char *in;
    unsigned in_size, in_low, in_high;
    char *out;
    unsigned out_size, out_low, out_high;
    void *inside;
    void *(*allocate)(void *, int, int);
    void (*release)(void *, void *);
    void *user;
} bzip2_state;

enum { OK = 0, STREAM_END = 4, MEMORY_ERROR = -3 };

static struct {
    int (*begin)(bzip2_state *state, int verbosity, int small);
    int (*unpack)(bzip2_state *state);
    int (*end)(bzip2_state *state);
    const char *(*version)(void);
} the;

static const qn__library_symbol symbols[] = {{"BZ2_bzDecompressInit", &the.begin},
                                             {"BZ2_bzDecompress", &the.unpack},
                                             {"BZ2_bzDecompressEnd", &the.end},
                                             {"BZ2_bzlibVersion", &the.version},
                                             {NULL, NULL}};

/* The library says "1.0.8, 13-Jul-2019". */
static void version(char text[32]) {
    const char *all = the.version();
    snprintf(text, 32, "%.*s", (int)strcspn(all, ","), all);
}

static qn__optional_library libbz2 = {.name = "libbz2",
                                      .file = "libbz2.so.1.0",
                                      .debian = "libbz2-1.0",
                                      .fedora = "bzip2-libs",
                                      .symbol = symbols,
                                      .version = version};

static qn_status need(qn_error *err) {
    return qn__optional_need(&libbz2, "bzip2 data needs libbz2", "unpack the file with bunzip2",
                             err);
}

static int begin(void *state) { return the.begin(state, 0, 0) == OK; }

static qn__packed_step step(void *state, qn__packed_space *buffer, int last) {
    bzip2_state *s = state;
    (void)last;
    const size_t in = buffer->in_size < UINT_MAX ? buffer->in_size : UINT_MAX,
                 out = buffer->out_size < UINT_MAX ? buffer->out_size : UINT_MAX;
    s->in = (char *)(uintptr_t)buffer->in;
    s->in_size = (unsigned)in;
    s->out = (char *)buffer->out;
    s->out_size = (unsigned)out;
    const int code = the.unpack(s);
    buffer->in_size -= in - s->in_size;
    buffer->out_size -= out - s->out_size;
    return code == OK             ? QN__PACKED_MORE
           : code == STREAM_END   ? QN__PACKED_END
           : code == MEMORY_ERROR ? QN__PACKED_MEMORY
                                  : QN__PACKED_CORRUPT;
}

/* The header, and the beginning of a block or of the end: digits of pi or of its square root. */
static int is_bzip2(const uint8_t *first, size_t size) {
    return size >= 8 && memcmp(first, "BZh", 3) == 0 && first[3] >= '1' && first[3] <= '9' &&
           (memcmp(first + 4, "\x31\x41\x59\x26", 4) == 0 ||
            memcmp(first + 4, "\x17\x72\x45\x38", 4) == 0);
}

/* Several streams, one after the other, as parallel programs write them. */
static qn__packed_next next(void *state, const uint8_t *first, size_t size) {
    (void)size;
    if (*first != 'B')
        return QN__PACKED_OTHER;
    the.end(state);
    memset(state, 0, sizeof(bzip2_state));
    return begin(state) ? QN__PACKED_AGAIN : QN__PACKED_OTHER;
}

static void end(void *state) { the.end(state); }

const qn__unpacker qn__bzip2_unpacker = {.name = "bzip2",
                                         .by_hand = "bunzip2",
                                         .test = "bzip2 -t",
                                         .is = is_bzip2,
                                         .library = &libbz2,
                                         .need = need,
                                         .state_size = sizeof(bzip2_state),
                                         .begin = begin,
                                         .step = step,
                                         .next = next,
                                         .end = end};

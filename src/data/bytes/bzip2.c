#include "data/bytes/bzip2.h"
#include "base/system/library.h"
#include "data/bytes/packed_stream.h"
#include <limits.h>
#include <pthread.h>
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
    qn__library library;
    int (*begin)(bzip2_state *state, int verbosity, int small);
    int (*unpack)(bzip2_state *state);
    int (*end)(bzip2_state *state);
    const char *(*version)(void);
    char name[64];
} the;
static pthread_once_t opened = PTHREAD_ONCE_INIT;

static qn__library_function find(const char *name) { return qn__library_find(&the.library, name); }

static void open_library(void) {
    if (!qn__library_open(&the.library, "libbz2.so.1.0"))
        return;
    the.begin = (int (*)(bzip2_state *, int, int))find("BZ2_bzDecompressInit");
    the.unpack = (int (*)(bzip2_state *))find("BZ2_bzDecompress");
    the.end = (int (*)(bzip2_state *))find("BZ2_bzDecompressEnd");
    the.version = (const char *(*)(void))find("BZ2_bzlibVersion");
    if (qn__library_is_whole(&the.library)) {
        const char *version = the.version(); /* "1.0.8, 13-Jul-2019" */
        snprintf(the.name, sizeof the.name, "libbz2 %.*s (libbz2.so.1.0)",
                 (int)strcspn(version, ","), version);
    }
}

const char *qn__bzip2_library(void) {
    pthread_once(&opened, open_library);
    return the.name;
}

static qn_status need(qn_error *err) {
    pthread_once(&opened, open_library);
    if (the.library.handle)
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED, "bzip2 data needs libbz2, and there is no libbz2.so.1.0 here");
    return qn__remedy(err, QN_UNSUPPORTED,
                      "install it (Debian: libbz2-1.0; Fedora: bzip2-libs), or unpack the file "
                      "with bunzip2");
}

static int begin(void *state) { return the.begin(state, 0, 0) == OK; }

static qn__packed_step step(void *state, qn__packed_room *room, int last) {
    bzip2_state *s = state;
    (void)last;
    const size_t in = room->in_size < UINT_MAX ? room->in_size : UINT_MAX,
                 out = room->out_size < UINT_MAX ? room->out_size : UINT_MAX;
    s->in = (char *)(uintptr_t)room->in;
    s->in_size = (unsigned)in;
    s->out = (char *)room->out;
    s->out_size = (unsigned)out;
    const int code = the.unpack(s);
    room->in_size -= in - s->in_size;
    room->out_size -= out - s->out_size;
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
static int next(void *state, const uint8_t *first, size_t size) {
    if (size > 0 && *first != 'B')
        return 0;
    the.end(state);
    memset(state, 0, sizeof(bzip2_state));
    return begin(state);
}

static void end(void *state) { the.end(state); }

static const qn__packed_library library = {.name = "bzip2",
                                           .test = "bzip2 -t",
                                           .state_size = sizeof(bzip2_state),
                                           .need = need,
                                           .begin = begin,
                                           .step = step,
                                           .next = next,
                                           .end = end};

static qn_status create(int fd, const char *path, uint64_t file_size, void **out, qn_error *err) {
    return qn__packed_create(&library, fd, path, file_size, out, err);
}

const qn__unpacker qn__bzip2_unpacker = {.name = "bzip2",
                                         .by_hand = "bunzip2",
                                         .is = is_bzip2,
                                         .create = create,
                                         .read = qn__packed_read,
                                         .destroy = qn__packed_destroy};

#include "data/bytes/xz.h"
#include "base/system/library.h"
#include "data/bytes/packed_stream.h"
#include <pthread.h>
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
    qn__library library;
    int (*begin)(xz_state *state, uint64_t memory, uint32_t flags);
    int (*unpack)(xz_state *state, int action);
    void (*end)(xz_state *state);
    const char *(*version)(void);
    char name[48];
} the;
static pthread_once_t opened = PTHREAD_ONCE_INIT;

static qn__library_function find(const char *name) { return qn__library_find(&the.library, name); }

static void open_library(void) {
    if (!qn__library_open(&the.library, "liblzma.so.5"))
        return;
    the.begin = (int (*)(xz_state *, uint64_t, uint32_t))find("lzma_stream_decoder");
    the.unpack = (int (*)(xz_state *, int))find("lzma_code");
    the.end = (void (*)(xz_state *))find("lzma_end");
    the.version = (const char *(*)(void))find("lzma_version_string");
    if (qn__library_is_whole(&the.library))
        snprintf(the.name, sizeof the.name, "liblzma %.16s (liblzma.so.5)", the.version());
}

const char *qn__xz_library(void) {
    pthread_once(&opened, open_library);
    return the.name;
}

static qn_status need(qn_error *err) {
    pthread_once(&opened, open_library);
    if (the.library.handle)
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED, "xz data needs liblzma, and there is no liblzma.so.5 here");
    return qn__remedy(err, QN_UNSUPPORTED,
                      "install it (Debian: liblzma5; Fedora: xz-libs), or unpack the file with "
                      "unxz");
}

static int begin(void *state) { return the.begin(state, MEMORY_MOST, CONCATENATED) == OK; }

static qn__packed_step step(void *state, qn__packed_room *room, int last) {
    xz_state *s = state;
    s->in = room->in;
    s->in_size = room->in_size;
    s->out = room->out;
    s->out_size = room->out_size;
    const int code = the.unpack(s, last ? FINISH : RUN);
    room->in_size = s->in_size;
    room->out_size = s->out_size;
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
static int next(void *state, const uint8_t *first, size_t size) {
    (void)state, (void)first, (void)size;
    return 0;
}

static void end(void *state) { the.end(state); }

static const qn__packed_library library = {.name = "xz",
                                           .test = "xz -t",
                                           .state_size = sizeof(xz_state),
                                           .need = need,
                                           .begin = begin,
                                           .step = step,
                                           .next = next,
                                           .end = end};

static qn_status create(int fd, const char *path, uint64_t file_size, void **out, qn_error *err) {
    return qn__packed_create(&library, fd, path, file_size, out, err);
}

const qn__unpacker qn__xz_unpacker = {.name = "xz",
                                      .by_hand = "unxz",
                                      .is = is_xz,
                                      .create = create,
                                      .read = qn__packed_read,
                                      .destroy = qn__packed_destroy};

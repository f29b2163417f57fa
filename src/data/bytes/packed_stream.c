#include "data/bytes/packed_stream.h"
#include "base/memory.h"
#include "data/bytes/descriptor.h"

#define INPUT_CAPACITY ((size_t)1 << 18)

struct qn__packed {
    const qn__unpacker *library;
    int fd;
    const char *path;
    void *state;
    int inside, ended;          /* in the middle of compressed data; at the end of the file */
    uint64_t read, most, given; /* bytes taken from the file; that may be given; that were */
    size_t at, size;            /* of the input */
    uint8_t input[INPUT_CAPACITY];
};

qn_status qn__packed_create(const qn__unpacker *library, int fd, const char *path,
                            uint64_t file_size, qn__packed **out, qn_error *err) {
    *out = NULL;
    const qn_status status = library->need(err);
    if (status != QN_OK) {
        qn__at(err, "%s", path);
        return status;
    }
    qn__packed *p = qn__alloc(1, sizeof *p, err);
    if (!p)
        return QN_MEMORY;
    p->library = library;
    p->fd = fd;
    p->path = path;
    p->most = qn__unpacked_bound(file_size);
    p->inside = 1;
    p->state = qn__alloc(1, library->state_size, err);
    if (!p->state || !library->begin(p->state)) {
        qn__free(p->state);
        qn__free(p);
        return qn__fail_memory(err, 1, (size_t)1 << 20);
    }
    *out = p;
    return QN_OK;
}

void qn__packed_destroy(qn__packed *p) {
    if (!p)
        return;
    p->library->end(p->state);
    qn__free(p->state);
    qn__free(p);
}

static qn_status refuse(const qn__packed *p, const char *what, const char *why, qn_error *err) {
    qn__fail(err, QN_INPUT, "the %s data %s%s%s", p->library->name, what, why ? ": " : "",
             why ? why : "");
    qn__at(err, "%s, byte %llu of the compressed file", p->path,
           (unsigned long long)(p->read - (p->size - p->at)));
    return qn__remedy(err, QN_INPUT, "copy or download the file again; %s tests it",
                      p->library->test);
}

/* Makes input available, unless the file has ended. */
static qn_status refill(qn__packed *p, qn_error *err) {
    if (p->at < p->size)
        return QN_OK;
    p->at = p->size = 0;
    const qn_status status =
        qn__descriptor_read(p->fd, p->path, p->input, INPUT_CAPACITY, &p->size, err);
    p->read += status == QN_OK ? p->size : 0;
    return status;
}

/* After the end of compressed data: the end of the file, or more of the same kind. */
static qn_status go_on(qn__packed *p, qn_error *err) {
    if (p->at == p->size) {
        p->ended = 1;
        return QN_OK;
    }
    const qn__packed_next next = p->library->next(p->state, p->input + p->at, p->size - p->at);
    if (next == QN__PACKED_OTHER)
        return refuse(p, "is followed by something else", NULL, err);
    p->inside = next == QN__PACKED_AGAIN;
    p->at += next == QN__PACKED_FILLER;
    return QN_OK;
}

static qn_status step(qn__packed *p, uint8_t *to, size_t size, size_t *got, qn_error *err) {
    const qn_status status = refill(p, err);
    if (status != QN_OK || !p->inside)
        return status == QN_OK ? go_on(p, err) : status;
    const int last = p->size == 0;
    qn__packed_space buffer = {p->input + p->at, p->size - p->at, to, size, NULL};
    const qn__packed_step result = p->library->step(p->state, &buffer, last);
    p->at = p->size - buffer.in_size;
    *got = size - buffer.out_size;
    if (result == QN__PACKED_MEMORY)
        return qn__fail_memory(err, 1, (size_t)1 << 20);
    if (result == QN__PACKED_CORRUPT)
        return refuse(p, "is corrupt", buffer.why, err);
    p->inside = result == QN__PACKED_MORE;
    return p->inside && last && *got == 0 ? refuse(p, "is cut off", NULL, err) : QN_OK;
}

qn_status qn__packed_read(qn__packed *p, void *bytes, size_t size, size_t *got, qn_error *err) {
    qn_status status = QN_OK;
    *got = 0;
    while (*got < size && !p->ended && status == QN_OK) {
        size_t now = 0;
        status = step(p, (uint8_t *)bytes + *got, size - *got, &now, err);
        *got += now;
    }
    p->given += *got;
    if (status != QN_OK || p->given <= p->most)
        return status;
    qn__fail(err, QN_INPUT,
             "the %s data unpacks to more than 64 MiB and %d times the size of the file",
             p->library->name, QN__UNPACKED_TIMES);
    qn__at(err, "%s", p->path);
    return qn__remedy(err, QN_INPUT, "unpack it with %s, if you trust the file",
                      p->library->by_hand);
}

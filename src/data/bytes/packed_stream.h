/* Files in a compression whose library works as zlib does: a state with pointers to input and
 * output. bzip2.c and xz.c say how a call of theirs looks. */
#ifndef QN_DATA_BYTES_PACKED_STREAM_H
#define QN_DATA_BYTES_PACKED_STREAM_H

#include "data/bytes/packing.h"

typedef enum qn__packed_step {
    QN__PACKED_MORE, /* it goes on */
    QN__PACKED_END,  /* the compressed data ended; input may be left */
    QN__PACKED_CORRUPT,
    QN__PACKED_MEMORY
} qn__packed_step;

/* What is left of the input and of the space for output. */
typedef struct qn__packed_room {
    const uint8_t *in;
    size_t in_size;
    uint8_t *out;
    size_t out_size;
} qn__packed_room;

typedef struct qn__packed_library {
    const char *name, *test; /* of the compression; the command that tests a file */
    size_t state_size;       /* of what the functions get, which begins as zeros */
    qn_status (*need)(qn_error *err);
    /* Begins; 0: memory is short. */
    int (*begin)(void *state);
    /* One call. `last`: no input follows. */
    qn__packed_step (*step)(void *state, qn__packed_room *room, int last);
    /* What follows an end when there is more input. 1: another one begins; 0: that is corrupt. */
    int (*next)(void *state, const uint8_t *first, size_t size);
    void (*end)(void *state);
} qn__packed_library;

/* The functions of a qn__unpacker. */
qn_status qn__packed_create(const qn__packed_library *library, int fd, const char *path,
                            uint64_t file_size, void **out, qn_error *err);
qn_status qn__packed_read(void *self, void *bytes, size_t size, size_t *got, qn_error *err);
void qn__packed_destroy(void *self);

#endif

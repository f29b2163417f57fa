/* Reading a file of a store: its size and tag, and ranges of its bytes. */
#ifndef QN_STORE_OBJECT_H
#define QN_STORE_OBJECT_H

#include "base/files/remote.h"
#include "store/store_request.h"

/* Bytes at the beginning of a file that the first request brings: small files need one only. */
enum { QN__OBJECT_FIRST = 1 << 18 };

/* A store that has not answered yet may be a wrong address: nobody waits long for it. */
enum { QN__OBJECT_ATTEMPTS = 4 };

/* The first answer. */
typedef struct qn__object_first {
    qn__remote_about about;
    int unchanged;  /* the file has the tag that was known: nothing else is set */
    int ranges;     /* the server answers ranges */
    int sized;      /* it tells the size; else `about.size` is not set */
    uint8_t *bytes; /* the first ones, for qn__free */
    size_t size;
} qn__object_first;

/* `known`: the tag of an earlier reading, or "". Fails as qn__remote_look. */
qn_status qn__object_look(const char *address, const char *known, qn__object_first *out,
                          qn_error *err);

/* Where bytes of a range go, in order: `take` returns 0 to end the reading. */
typedef struct qn__object_range {
    const char *address;
    const qn__remote_about *about; /* what was seen when the file was opened */
    uint64_t from, end;            /* end: UINT64_MAX up to the end of the file */
    int (*take)(void *user, const void *bytes, size_t size);
    void *user;
    const atomic_int *stop; /* not 0: the reading ends soon; or NULL */
} qn__object_range;

/* Fails with QN_INPUT where the file is not the one that was seen, QN_INTERRUPTED where `take` or
 * `stop` ended it, or as qn__remote_look. */
qn_status qn__object_read(const qn__object_range *range, qn_error *err);

#endif

/* Memory whose pages are filled when they are first touched, and may be dropped again.
 *
 * The system tells which page a thread waits for (userfaultfd of Linux, for accesses of this
 * process alone). A thread of the space fills it, and the access goes on. So code that indexes an
 * array need not know that most of it is elsewhere. Pages are filled in blocks: one for an access
 * at a random place, and up to QN__FAULT_RUN bytes where accesses follow one another.
 *
 * A system call that reads the memory does not fill it: it fails, as for memory that is not there.
 * A child (fork) does not have it. */
#ifndef QN_BASE_SYSTEM_FAULT_SPACE_H
#define QN_BASE_SYSTEM_FAULT_SPACE_H

#include "base/error.h"
#include <stdint.h>

enum { QN__FAULT_BLOCK = 1 << 14, QN__FAULT_RUN = 1 << 20 };

typedef struct qn__fault_filler {
    void *user;
    /* Writes `count` bytes of the space from `first` on, at most QN__FAULT_RUN, to `to`. Several
     * threads of the space call it at the same time. It must not touch the space. */
    qn_status (*fill)(void *user, uint64_t first, uint64_t count, uint8_t *to, qn_error *err);
} qn__fault_filler;

typedef struct qn__fault_space qn__fault_space;

/* `bytes` of memory that can only be read. Of its first `droppable` bytes at most `kept` are in
 * memory at a time, but 4 MiB at least; the rest stays once it is filled. Fails with QN_MEMORY, or
 * with QN_UNSUPPORTED where the system does not permit it. */
qn_status qn__fault_space_create(uint64_t bytes, uint64_t droppable, uint64_t kept,
                                 const qn__fault_filler *filler, qn__fault_space **out,
                                 qn_error *err);
/* Accepts NULL. No thread uses the memory any more. */
void qn__fault_space_destroy(qn__fault_space *space);

const uint8_t *qn__fault_space_memory(const qn__fault_space *space);

/* Drops all that can be dropped. An access brings it again. */
void qn__fault_space_forget(qn__fault_space *space);

/* Fails as the first call of `fill` that failed: what that had to fill reads as zeros. */
qn_status qn__fault_space_check(qn__fault_space *space, qn_error *err);

/* Bytes that were filled so far, again after a drop too. */
uint64_t qn__fault_space_filled(qn__fault_space *space);

#endif

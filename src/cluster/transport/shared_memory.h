/* Memory that the ranks of one machine share, and wake-ups between them.
 *
 * One rank creates an anonymous file (memfd) and sends it to the others. The file is divided into
 * slots 2^40 bytes apart. It occupies memory only where it was written, so nothing moves when more
 * words are needed. A rank that shares with no other uses private memory through the same
 * functions. */
#ifndef QN_CLUSTER_TRANSPORT_SHARED_MEMORY_H
#define QN_CLUSTER_TRANSPORT_SHARED_MEMORY_H

#include "base/error.h"
#include <stdatomic.h>
#include <stdint.h>

/* The state that a rank publishes to the others of its machine. A tag identifies a reduction in a
 * view. Two cache lines: one is written rarely, one in each reduction. */
typedef struct qn__rank_state {
    _Alignas(128) atomic_uint wakeups; /* incremented by each wake-up; a futex */
    atomic_uint asleep;
    atomic_ullong supplied;    /* view in which it stored a complete total */
    atomic_ullong finished_in; /* generation of totals of the reduction that it finished last */
    _Alignas(64) atomic_ullong arrived; /* tag: its part is complete */
    atomic_ullong arrived_holds;        /* contributions of that part */
    atomic_ullong done;                 /* tag: it has stored its share of the total */
    atomic_ullong final_tag;            /* tag of the next two: */
    atomic_ullong final_from;           /* words from here on are complete */
    atomic_ullong final_holds;          /* contributions of these words */
    atomic_ullong signature;            /* of its current reduction */
} qn__rank_state;

typedef struct qn__mapping {
    uint64_t slot, bytes;
    void *memory;
} qn__mapping;

typedef struct qn__common {
    int file; /* -1: private */
    uint32_t locals, index;
    qn__rank_state *rank_state; /* of each of the locals */
    qn__mapping *mapping;
    uint32_t mappings, capacity;
    uint64_t heap; /* bytes allocated by qn__common_heap */
    int spins;     /* whether spinning before sleeping can pay */
} qn__common;

/* Creates the file, sealed against resizing: a descriptor, or -1 if the system supports none. */
int qn__common_file(void);

/* Takes over `file`, as rank `index` of `locals`. With -1 the memory is private, for one rank.
 * QN_CLUSTER: the file was not made by qn__common_file. */
qn_status qn__common_open(qn__common *common, int file, uint32_t index, uint32_t locals,
                          qn_error *err);
void qn__common_close(qn__common *common);
/* Unmaps rank states, parts and totals, and frees the last two, whose words become 0 for ranks that
 * still use them. The heap stays. */
void qn__common_forget(qn__common *common);

/* The part of a rank of this machine, with space for so many words. Earlier mappings stay valid and
 * refer to the same memory, if it is shared. */
int64_t *qn__common_part(qn__common *common, uint32_t local, uint64_t words, qn_error *err);
/* One of the two totals of a generation. */
int64_t *qn__common_total(qn__common *common, uint64_t generation, int odd, uint64_t words,
                          qn_error *err);
/* Further memory, initially zero. The ranks of a machine get the same memory by the same sequence
 * of calls. */
void *qn__common_heap(qn__common *common, uint64_t bytes, qn_error *err);

/* Wakes a rank of this machine. */
void qn__common_wake(qn__common *common, uint32_t local);
/* The wake-up counter: to be read before the condition that is waited for. */
unsigned qn__common_wakeups(qn__common *common);
/* Waits until the counter differs from `seen`, or for `seconds`. */
void qn__common_wait(qn__common *common, unsigned seen, double seconds);

#endif

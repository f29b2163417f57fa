/* Memory that the ranks of one machine have in common, and how they wait for one another.
 *
 * One file without a name (memfd), made by one rank and handed to the others, is cut into slots
 * that lie 2^40 bytes apart; it takes memory only where it was written to, so nothing ever has to
 * move when more words are asked for. A rank that shares with nobody has private memory instead,
 * behind the same calls. */
#ifndef QN_CLUSTER_TRANSPORT_SHARED_MEMORY_H
#define QN_CLUSTER_TRANSPORT_SHARED_MEMORY_H

#include "base/error.h"
#include <stdatomic.h>
#include <stdint.h>

/* What one rank reports to the others its machine. A tag names a reduction in a view. Two cache
 * lines: of what is seldom written, and of what each reduction writes. */
typedef struct qn__desk {
    _Alignas(128) atomic_uint bell; /* counts reasons to look again */
    atomic_uint asleep;
    atomic_ullong supplied;             /* view in which it put a whole total there */
    atomic_ullong finished_in;          /* generation of totals of the reduction it finished last */
    _Alignas(64) atomic_ullong arrived; /* tag: its part is as it will be */
    atomic_ullong arrived_holds;        /* ... and holds these contributions */
    atomic_ullong done;                 /* tag: what it had to put into the total is there */
    atomic_ullong final_tag;            /* tag for which ... */
    atomic_ullong final_from;           /* ... the words from here on are as they will be */
    atomic_ullong final_holds;          /* ... and hold these contributions */
    atomic_ullong signature;            /* of the reduction it is in */
} qn__desk;

typedef struct qn__mapping {
    uint64_t slot, bytes;
    void *memory;
} qn__mapping;

typedef struct qn__common {
    int file; /* -1: private */
    uint32_t locals, index;
    qn__desk *desk; /* of each of the locals */
    qn__mapping *mapping;
    uint32_t mappings, room;
    uint64_t heap; /* bytes given out by qn__common_heap */
    int spins;     /* whether waiting in a loop can pay */
} qn__common;

/* The file of a machine, which nobody can make shorter or longer: a descriptor, or -1 where the
 * system has none to give. */
int qn__common_file(void);

/* Takes over `file`, for rank `index` of `locals`. With -1 the memory is private, for one rank.
 * QN_CLUSTER: the file is none of qn__common_file. */
qn_status qn__common_open(qn__common *common, int file, uint32_t index, uint32_t locals,
                          qn_error *err);
void qn__common_close(qn__common *common);

/* The part of a rank of this machine, with room for so many words. What was mapped before stays
 * mapped, and is the same memory where it is shared. */
int64_t *qn__common_part(qn__common *common, uint32_t local, uint64_t words, qn_error *err);
/* One of the two totals of a generation. */
int64_t *qn__common_total(qn__common *common, uint64_t generation, int odd, uint64_t words,
                          qn_error *err);
/* Further memory, zeros at first; the ranks of a machine get the same by the same calls. */
void *qn__common_heap(qn__common *common, uint64_t bytes, qn_error *err);

/* Wakes a rank of this machine. */
void qn__common_ring(qn__common *common, uint32_t local);
/* The bell as it is: to be read before looking at whatever is waited for. */
unsigned qn__common_bell(qn__common *common);
/* Waits until the bell is another than `seen`, or the time is over. */
void qn__common_wait(qn__common *common, unsigned seen, double seconds);

#endif

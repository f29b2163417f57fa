/* Items of a table that lies in parts: each rank has one part, and any rank asks for pieces of any.
 *
 * A request names a part and pieces of its arrays. It goes to the rank whose part it is. If that
 * rank is gone, or ends meanwhile, the request goes to the next live rank in the circle, which
 * reads the part again where it can reach it. A request is bounded, and each piece of it is
 * checked. Requests and answers are messages of the cluster (cluster.h): authenticated, and sent
 * again where a connection is replaced. */
#ifndef QN_CLUSTER_ITEMS_H
#define QN_CLUSTER_ITEMS_H

#include "cluster/cluster.h"

/* Bytes of an array of a part, from `offset` on. */
typedef struct qn__item_piece {
    uint32_t array, bytes;
    uint64_t offset;
} qn__item_piece;

/* Limits of a request: its pieces, and the bytes of its answer. */
enum { QN__PIECES_MOST = 8192, QN__ANSWER_MOST = 1 << 22 };

/* What a rank can give. Any threads call these, `reach` one at a time. */
typedef struct qn__item_holder {
    void *user;
    /* Makes a part available for `copy`: reads it again unless it is there. `part` is that of
     * another rank, which is gone. */
    qn_status (*reach)(void *user, uint32_t part, qn_error *err);
    /* Copies a piece of an available part; 0: the part has no such bytes. */
    int (*copy)(void *user, uint32_t part, const qn__item_piece *piece, void *to);
    /* The files of a part, for messages; NULL: they have no place. */
    const char *(*name)(void *user, uint32_t part);
    /* As those of qn__cluster_listener; may be NULL. */
    void (*renewed)(void *user);
    int (*whole)(void *user, uint64_t first, uint64_t count, void *to);
} qn__item_holder;

typedef struct qn__items qn__items;
typedef struct qn__item_request qn__item_request;

/* Begins to answer requests for the table of this number (qn__cluster_table). Not collective, but
 * all ranks have to do it before the first request: a reduction must lie between. The cluster must
 * outlive it. */
qn_status qn__items_create(qn_cluster *c, uint64_t table, const qn__item_holder *holder,
                           qn__items **out, qn_error *err);
void qn__items_destroy(qn__items *items); /* accepts NULL; no request is open */

/* Asks for pieces of a part, at most QN__PIECES_MOST of at most QN__ANSWER_MOST bytes; returns
 * before the answer is there. NULL if out of memory. */
qn__item_request *qn__items_ask(qn__items *items, uint32_t part, const qn__item_piece *piece,
                                uint32_t count, qn_error *err);
/* Waits for the answer: the pieces one after the other, valid until the request is dropped. Fails
 * with QN_IO if no rank can give them, or QN_MEMORY. */
qn_status qn__items_wait(qn__items *items, qn__item_request *request, const uint8_t **bytes,
                         qn_error *err);
/* Frees a request, answered or not; accepts NULL. */
void qn__items_drop(qn__items *items, qn__item_request *request);

/* Gets `size` bytes of an array of a part from `offset` on, in requests as large as they may be.
 * Fails as qn__items_wait. */
qn_status qn__items_fetch(qn__items *items, uint32_t part, uint32_t array, uint64_t offset,
                          uint64_t size, void *to, qn_error *err);

#endif

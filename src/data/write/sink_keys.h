/* The keys of the rows of a CSV file that grows (sink.h). Each takes 24 bytes. */
#ifndef QN_DATA_WRITE_SINK_KEYS_H
#define QN_DATA_WRITE_SINK_KEYS_H

#include "data/write/sink.h"

typedef struct qn__sink_keys qn__sink_keys;

/* `table` must outlive it. For qn__sink_keys_free. */
qn_status qn__sink_keys_create(const qn__sink_table *table, qn__sink_keys **out, qn_error *err);
void qn__sink_keys_free(qn__sink_keys *keys); /* accepts NULL */

/* Reads the keys of a file from its beginning. *size: bytes of the whole lines; what comes after
 * is a line that was not completed. 0: there is not even a header. QN_INPUT: it has other columns,
 * or is not such a file. `shown` is its name for messages. */
qn_status qn__sink_keys_read(qn__sink_keys *keys, int file, const char *shown, uint64_t *size,
                             qn_error *err);

/* The keys that are added from here on are kept or dropped together. */
void qn__sink_keys_begin(qn__sink_keys *keys);
/* *is_new 0: it has this key. Without columns of a key each row is new. */
qn_status qn__sink_keys_add(qn__sink_keys *keys, const qn__sink_cell *row, int *is_new,
                            qn_error *err);
void qn__sink_keys_keep(qn__sink_keys *keys);
void qn__sink_keys_drop(qn__sink_keys *keys);

/* As qn__sink_holds and qn__sink_last. */
qn_status qn__sink_keys_hold(const qn__sink_keys *keys, const qn__sink_cell *key, int *holds,
                             qn_error *err);
qn_status qn__sink_keys_last(const qn__sink_keys *keys, const qn__sink_cell *first, int64_t *last,
                             qn_error *err);

#endif

/* The report of a rank on its current reduction, for a change of the view. */
#ifndef QN_CLUSTER_REDUCTION_REPORT_H
#define QN_CLUSTER_REDUCTION_REPORT_H

#include "cluster/transport/transport.h"

/* In 64-bit words: these, then two for each range (first, count). */
enum {
    R_FINISHED,
    R_BEGUN,
    R_KIND,
    R_WORDS,
    R_CHUNKS,
    R_GENERATION,
    R_OVER,
    R_CODE,
    R_RANGES,
    R_HEAD
};

static inline const uint64_t *qn__report_words(const qn__message_buffer *buffer) {
    return (const uint64_t *)(const void *)buffer->data;
}

/* 0: malformed. */
int qn__is_report(const qn__message_buffer *buffer);

#endif

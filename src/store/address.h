/* The parts of an address. */
#ifndef QN_STORE_ADDRESS_H
#define QN_STORE_ADDRESS_H

#include "base/error.h"
#include "store/sign/credentials.h"
#include <stddef.h>

enum { QN__ADDRESS_MOST = 8192, QN__BUCKET_MOST = 256 };

/* What is behind a scheme. */
typedef struct qn__store_kind {
    const char *scheme;            /* "s3://" */
    int bucket;                    /* bucket and key, by the interface of S3; else an URL */
    qn__credentials_kind keys;     /* of a bucket */
    const char *endpoint;          /* of buckets; NULL: Amazon's, by region */
    const char *endpoint_variable; /* names another one; NULL without `endpoint` */
    int hdfs;                      /* files by WebHDFS (store/hdfs) */
} qn__store_kind;

typedef struct qn__store_address {
    const qn__store_kind *kind;
    char bucket[QN__BUCKET_MOST]; /* "" for an URL */
    const char *key; /* in the address, after the bucket's slash; of an URL all of it */
} qn__store_address;

/* NULL: the text is not an address. */
const qn__store_kind *qn__store_kind_of(const char *address);

/* Fails with QN_INPUT (the address has no bucket, or is too long). `address` must outlive *out. */
qn_status qn__store_address_read(const char *address, qn__store_address *out, qn_error *err);

/* Where a request goes. */
typedef struct qn__store_target {
    char url[QN__ADDRESS_MOST + 4 * QN__BUCKET_MOST];
    char host[512];   /* with its port, as the header Host has it */
    const char *path; /* in url; up to '?' or the end */
} qn__store_target;

/* The URL of a bucket's object ("" for the bucket itself) with a query, which may be "". `region`
 * is that of the bucket. Fails with QN_INPUT: it is too long, or the endpoint is not an address. */
qn_status qn__store_target_make(const qn__store_address *address, const char *key,
                                const char *query, const char *region, qn__store_target *out,
                                qn_error *err);

#endif

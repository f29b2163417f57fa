#include "store/address.h"
#include "store/sign/profile.h"
#include "store/sign/signature.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const qn__store_kind kinds[] = {
    {"s3://", 1, QN__CREDENTIALS_AWS, NULL, NULL, 0},
    {"s3a://", 1, QN__CREDENTIALS_AWS, NULL, NULL, 0}, /* Hadoop's name of it */
    {"gs://", 1, QN__CREDENTIALS_GS, "https://storage.googleapis.com", "QUERN_GS_ENDPOINT_URL", 0},
    {"https://", 0, QN__CREDENTIALS_AWS, NULL, NULL, 0},
    {"http://", 0, QN__CREDENTIALS_AWS, NULL, NULL, 0},
    {"hdfs://", 0, QN__CREDENTIALS_AWS, NULL, NULL, 1},
    {"webhdfs://", 0, QN__CREDENTIALS_AWS, NULL, NULL, 1},
    {"swebhdfs://", 0, QN__CREDENTIALS_AWS, NULL, NULL, 1},
};

const qn__store_kind *qn__store_kind_of(const char *address) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(address, kinds[i].scheme, strlen(kinds[i].scheme)) == 0)
            return &kinds[i];
    return NULL;
}

static qn_status refuse(const char *address, const char *what, const char *remedy, qn_error *err) {
    qn__fail(err, QN_INPUT, "%s", what);
    qn__at(err, "%.200s", address);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

/* Letters of names, new and old; what else is in a host or a path means something there. */
static int is_bucket(const char *name, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (!(name[i] >= '0' && name[i] <= '9') &&
            !((name[i] | 32) >= 'a' && (name[i] | 32) <= 'z') && !strchr(".-_", name[i]))
            return 0;
    return 1;
}

qn_status qn__store_address_read(const char *address, qn__store_address *out, qn_error *err) {
    *out = (qn__store_address){.kind = qn__store_kind_of(address)};
    if (!out->kind || strlen(address) >= QN__ADDRESS_MOST / 4)
        return refuse(address, "the address is too long", "give one of at most 2047 bytes", err);
    const char *rest = address + strlen(out->kind->scheme);
    const size_t size = strcspn(rest, "/");
    out->key = rest;
    if (!out->kind->bucket)
        return QN_OK;
    if (size == 0 || size >= sizeof out->bucket || !is_bucket(rest, size))
        return refuse(address, "the address has no name of a bucket", "write it as s3://BUCKET/KEY",
                      err);
    memcpy(out->bucket, rest, size);
    out->bucket[size] = '\0';
    out->key = rest + size + (rest[size] == '/');
    return QN_OK;
}

/* The endpoint that the user names; 0: none. AWS_ENDPOINT_URL is that of Amazon's services. */
static int named_endpoint(const qn__store_kind *kind, char *endpoint, size_t capacity) {
    if (!kind->endpoint)
        return qn__profile_endpoint(qn__profile_name(), "s3", endpoint, capacity);
    const char *own = getenv(kind->endpoint_variable);
    return own && *own && (size_t)snprintf(endpoint, capacity, "%s", own) < capacity;
}

/* Amazon takes the bucket as part of the host's name. A name with a dot does not fit the
 * certificate then, so it is part of the path, as with other stores. */
static void endpoint_of(const qn__store_address *address, const char *region, char *endpoint,
                        size_t capacity, int *in_host) {
    *in_host = 0;
    if (named_endpoint(address->kind, endpoint, capacity))
        return;
    if (address->kind->endpoint) {
        snprintf(endpoint, capacity, "%s", address->kind->endpoint);
        return;
    }
    const char *end = strncmp(region, "cn-", 3) == 0 ? "amazonaws.com.cn" : "amazonaws.com";
    *in_host = !strchr(address->bucket, '.');
    if (*in_host)
        snprintf(endpoint, capacity, "https://%s.s3.%s.%s", address->bucket, region, end);
    else
        snprintf(endpoint, capacity, "https://s3.%s.%s", region, end);
}

qn_status qn__store_target_make(const qn__store_address *address, const char *key,
                                const char *query, const char *region, qn__store_target *out,
                                qn_error *err) {
    char endpoint[512], encoded[QN__ADDRESS_MOST];
    int in_host = 0;
    endpoint_of(address, region, endpoint, sizeof endpoint, &in_host);
    for (size_t size = strlen(endpoint); size > 0 && endpoint[size - 1] == '/'; size--)
        endpoint[size - 1] = '\0';
    const char *scheme = strstr(endpoint, "://");
    if (!scheme || scheme == endpoint || strchr(endpoint, '@'))
        return refuse(endpoint, "the endpoint of the store is not an address",
                      "write it as https://HOST:PORT, without user and password", err);
    const size_t host = strcspn(scheme + 3, "/");
    snprintf(out->host, sizeof out->host, "%.*s", (int)host, scheme + 3);
    if (qn__uri_encode(key, 1, encoded, sizeof encoded) >= sizeof encoded)
        return refuse(key, "the key is too long", "give one of at most 1024 bytes", err);
    const int size = snprintf(out->url, sizeof out->url, "%s/%s%s%s%s%s", endpoint,
                              in_host ? "" : address->bucket, in_host || !*key ? "" : "/", encoded,
                              *query ? "?" : "", query);
    out->path = out->url + (scheme - endpoint) + 3 + host;
    return size > 0 && (size_t)size < sizeof out->url
               ? QN_OK
               : refuse(key, "the address is too long", "give a shorter key", err);
}

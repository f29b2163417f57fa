/* The files of a bucket whose keys begin with a prefix: ListObjectsV2, a thousand a page. */
#include "base/files/remote.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "store/hdfs/webhdfs.h"
#include "store/listed.h"
#include "store/object.h"
#include "store/http/xml_answer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_MOST = 1024, TOKEN_MOST = 2048, PAGE_MOST = 1000 };

/* A list on its way. */
typedef struct listing {
    const char *prefix; /* the address */
    qn__store_address address;
    char next[TOKEN_MOST]; /* "" before the first page and after the last */
    size_t given, most;
    qn__remote_found each;
    void *user;
} listing;

static qn_status refuse_answer(const listing *l, qn_error *err) {
    qn__fail(err, QN_IO, "the store's list of files cannot be read");
    qn__at(err, "%.200s", l->prefix);
    return qn__remedy(err, QN_IO, "check the endpoint: is it a store with the interface of S3?");
}

/* One <Contents>. */
static qn_status take_file(listing *l, const char *from, const char *end, qn_error *err) {
    char key[KEY_MOST + 1], size_text[32], path[KEY_MOST + QN__BUCKET_MOST + 16];
    qn__remote_about about = {0};
    size_t size = 0, tag_size = 0, number_size = 0;
    const char *at = from, *tag_at = from, *number_at = from;
    const char *name = qn__xml_element(&at, end, "Key", &size),
               *tag = qn__xml_element(&tag_at, end, "ETag", &tag_size),
               *number = qn__xml_element(&number_at, end, "Size", &number_size);
    if (!name || !number || !qn__xml_decode(name, size, 1, key, sizeof key) ||
        !qn__xml_decode(number, number_size, 0, size_text, sizeof size_text) ||
        !qn__parse_u64(size_text, strlen(size_text), &about.size) ||
        (tag && !qn__xml_decode(tag, tag_size, 0, about.tag, sizeof about.tag)))
        return refuse_answer(l, err);
    const size_t length = strlen(key);
    if (about.size == 0 && length > 0 && key[length - 1] == '/')
        return QN_OK; /* it stands for a folder */
    snprintf(path, sizeof path, "%s%s/%s", l->address.kind->scheme, l->address.bucket, key);
    l->given++;
    if (about.tag[0])
        qn__listed_note(path, &about);
    return l->each(l->user, path, &about, err);
}

static qn_status take_page(listing *l, const char *body, size_t size, qn_error *err) {
    const char *end = body + size, *at = body, *from;
    size_t part = 0;
    qn_status status = QN_OK;
    if (!strstr(body, "<ListBucketResult"))
        return refuse_answer(l, err);
    while (status == QN_OK && (l->most == 0 || l->given < l->most) &&
           (from = qn__xml_element(&at, end, "Contents", &part)) != NULL)
        status = take_file(l, from, from + part, err);
    at = body;
    from = qn__xml_element(&at, end, "IsTruncated", &part);
    const int more = from && part == 4 && memcmp(from, "true", 4) == 0;
    at = body;
    from = more ? qn__xml_element(&at, end, "NextContinuationToken", &part) : NULL;
    char before[TOKEN_MOST];
    memcpy(before, l->next, sizeof before);
    l->next[0] = '\0';
    if (status == QN_OK && more &&
        (!from || !qn__xml_decode(from, part, 0, l->next, sizeof l->next) ||
         strcmp(l->next, before) == 0)) /* the same page again, without end */
        status = refuse_answer(l, err);
    return status;
}

/* ------------------------------------------------------------------ pages */

/* The query's parts in the order of their names. */
static qn_status ask_page(listing *l, qn_error *err) {
    char query[3 * (TOKEN_MOST + KEY_MOST) + 256], token[3 * TOKEN_MOST], prefix[3 * KEY_MOST + 1];
    qn__http_answer answer;
    const size_t left = l->most ? l->most - l->given : PAGE_MOST;
    qn__uri_encode(l->next, 0, token, sizeof token);
    if (qn__uri_encode(l->address.key, 0, prefix, sizeof prefix) >= sizeof prefix)
        return refuse_answer(l, err);
    snprintf(query, sizeof query, "%s%s%sencoding-type=url&list-type=2&max-keys=%zu&prefix=%s",
             *token ? "continuation-token=" : "", token, *token ? "&" : "",
             left < PAGE_MOST ? left : (size_t)PAGE_MOST, prefix);
    const qn__store_request request = {.method = "GET",
                                       .attempts = *token ? 0 : QN__OBJECT_ATTEMPTS,
                                       .address = l->prefix,
                                       .key = "",
                                       .query = query};
    qn_status status = qn__store_send(&request, &answer, err);
    if (status == QN_OK && answer.status != 200)
        status = qn__store_request_refuse(&request, &answer, err);
    else if (status == QN_OK)
        status =
            answer.body ? take_page(l, answer.body, answer.body_size, err) : refuse_answer(l, err);
    qn__http_release(&answer);
    return status;
}

qn_status qn__remote_list(const char *prefix, size_t most, qn__remote_found each, void *user,
                          qn_error *err) {
    const qn__store_kind *kind = qn__store_kind_of(prefix);
    if (kind && kind->hdfs)
        return qn__hdfs_list(prefix, most, each, user, err);
    listing *l = qn__alloc(1, sizeof *l, err);
    if (!l)
        return QN_MEMORY;
    *l = (listing){.prefix = prefix, .most = most, .each = each, .user = user};
    qn_status status = qn__store_address_read(prefix, &l->address, err);
    if (status == QN_OK && !l->address.kind->bucket) {
        qn__fail(err, QN_INPUT, "a web server does not list its files");
        qn__at(err, "%.200s", prefix);
        status = qn__remedy(err, QN_INPUT, "name each file, or use an address of a bucket");
    }
    while (status == QN_OK && (most == 0 || l->given < most)) {
        status = ask_page(l, err);
        if (!l->next[0])
            break;
    }
    qn__free(l);
    return status;
}

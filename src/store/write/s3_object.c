/* Objects of stores with Amazon's interface, written: one request, or several parts that are
 * completed last. */
#include "base/digest/sha256.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "store/store_request.h"
#include "store/http/http_date.h"
#include "store/write/write_kind.h"
#include "store/http/xml_answer.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { UPLOAD = 1024, QUERY = 3 * UPLOAD + 64, AT_ONCE = 4, COMPLETIONS = 4 };

/* The header by which an object tells whose upload it is. */
#define OWN "x-amz-meta-quern-upload"

typedef struct s3_object {
    char *address;
    char upload[QUERY]; /* its name, as a query has it; "": none is begun */
    char own[33];
} s3_object;

static qn_status open_object(const char *address, void **out, qn_error *err) {
    qn__store_address parts;
    uint64_t random[2] = {0, 0};
    const qn_status status = qn__store_address_read(address, &parts, err);
    if (status != QN_OK)
        return status;
    const size_t size = strlen(parts.key);
    if (size == 0 || parts.key[size - 1] == '/') {
        qn__fail(err, QN_INPUT, "cannot write %s: it names no object", address);
        return qn__remedy(err, QN_INPUT, "name an object in that bucket or folder");
    }
    s3_object *o = qn__alloc(1, sizeof *o, err);
    if (!o)
        return QN_MEMORY;
    if (!(o->address = qn__copy_text(address, err))) {
        qn__free(o);
        return QN_MEMORY;
    }
    if (getrandom(random, sizeof random, 0) != sizeof random)
        random[0] = (uint64_t)(uintptr_t)o;
    snprintf(o->own, sizeof o->own, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    *out = o;
    return QN_OK;
}

static void close_object(void *object) {
    s3_object *o = object;
    qn__free(o->address);
    qn__free(o);
}

static void digest_of(const void *bytes, size_t size, char text[65]) {
    uint8_t digest[32];
    qn__sha256_of(bytes, size, digest);
    qn__hex(digest, text);
}

/* Sends a request with a body, which may be empty. The caller releases the answer. */
static qn_status send_body(const s3_object *o, const char *method, const char *query,
                           const qn__signed_header *header, size_t headers, const void *bytes,
                           size_t size, qn__http_answer *answer, qn_error *err) {
    char digest[65];
    digest_of(bytes, size, digest);
    const qn__store_request request = {.method = method,
                                       .address = o->address,
                                       .query = query,
                                       .header = header,
                                       .headers = headers,
                                       .payload = digest,
                                       .body = bytes,
                                       .body_size = size};
    return qn__store_send(&request, answer, err);
}

static qn_status refuse(const s3_object *o, const qn__http_answer *answer, qn_error *err) {
    const qn__store_request request = {.method = "PUT", .address = o->address};
    return qn__store_request_refuse(&request, answer, err);
}

static int is_good(const qn__http_answer *answer) {
    return answer->status >= 200 && answer->status < 300;
}

static qn_status put(void *object, const void *bytes, size_t size, qn_error *err) {
    const s3_object *o = object;
    qn__http_answer answer;
    qn_status status = send_body(o, "PUT", NULL, NULL, 0, bytes ? bytes : "", size, &answer, err);
    if (status == QN_OK && !is_good(&answer))
        status = refuse(o, &answer, err);
    qn__http_release(&answer);
    return status;
}

/* --------------------------------------------------------------------------------- several parts
 */

static qn_status refuse_answer(const s3_object *o, const char *what, qn_error *err) {
    qn__fail(err, QN_IO, "the store answers something unexpected: %s", what);
    qn__at(err, "%s", o->address);
    return qn__remedy(err, QN_IO, "check that the endpoint is a store with the interface of S3");
}

static qn_status begin(void *object, qn_error *err) {
    s3_object *o = object;
    char name[UPLOAD];
    qn__http_answer answer;
    const qn__signed_header header = {OWN, o->own};
    qn_status status = send_body(o, "POST", "uploads=", &header, 1, "", 0, &answer, err);
    if (status == QN_OK && !is_good(&answer))
        status = refuse(o, &answer, err);
    else if (status == QN_OK && !qn__xml_text(answer.body, "UploadId", name, sizeof name))
        status = refuse_answer(o, "an upload without UploadId", err);
    else if (status == QN_OK)
        qn__uri_encode(name, 0, o->upload, sizeof o->upload);
    qn__http_release(&answer);
    return status;
}

static qn_status send(void *object, uint32_t number, uint64_t offset, const void *bytes,
                      size_t size, qn__object_tag *tag, qn_error *err) {
    const s3_object *o = object;
    char query[QUERY + 64];
    qn__http_answer answer;
    (void)offset;
    snprintf(query, sizeof query, "partNumber=%" PRIu32 "&uploadId=%s", number, o->upload);
    qn_status status = send_body(o, "PUT", query, NULL, 0, bytes ? bytes : "", size, &answer, err);
    if (status == QN_OK && !is_good(&answer))
        status = refuse(o, &answer, err);
    else if (status == QN_OK && !qn__http_value(&answer, "etag", tag->text, sizeof tag->text))
        status = refuse_answer(o, "a part without ETag", err);
    qn__http_release(&answer);
    return status;
}

static char *list_of_parts(const qn__object_tag *tag, uint32_t parts, qn_error *err) {
    qn__text text = {0};
    qn__text_add(&text, "<CompleteMultipartUpload "
                        "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for (uint32_t i = 0; i < parts; i++)
        qn__text_add(&text, "<Part><PartNumber>%" PRIu32 "</PartNumber><ETag>%s</ETag></Part>",
                     i + 1, tag[i].text);
    qn__text_add(&text, "</CompleteMultipartUpload>");
    return qn__text_take(&text, err);
}

/* Whether the object there is that of this upload: the answer to its completion was lost. */
static int is_published(const s3_object *o) {
    char own[64] = "";
    qn__http_answer answer;
    const qn__store_request request = {.method = "HEAD", .address = o->address, .for_write = 1};
    const int found = qn__store_send(&request, &answer, NULL) == QN_OK && is_good(&answer) &&
                      qn__http_value(&answer, OWN, own, sizeof own) && strcmp(own, o->own) == 0;
    qn__http_release(&answer);
    return found;
}

/* A store may answer 200 at once and write an error into the answer later. Such a completion is
 * asked for again. */
static qn_status finish(void *object, const qn__object_tag *tag, uint32_t parts, qn_error *err) {
    s3_object *o = object;
    char query[QUERY + 64], code[64];
    char *list = list_of_parts(tag, parts, err);
    if (!list)
        return QN_MEMORY;
    snprintf(query, sizeof query, "uploadId=%s", o->upload);
    qn_status status = QN_OK;
    int done = 0;
    for (int i = 0; i < COMPLETIONS && status == QN_OK && !done; i++) {
        qn__http_answer answer;
        status = send_body(o, "POST", query, NULL, 0, list, strlen(list), &answer, err);
        qn__store_error_code(&answer, code);
        done = status == QN_OK && is_good(&answer) && !*code;
        if (status == QN_OK && !done && answer.status == 404)
            done = is_published(o);
        if (status == QN_OK && !done && (!is_good(&answer) || i + 1 == COMPLETIONS))
            status = is_good(&answer) ? refuse_answer(o, code, err) : refuse(o, &answer, err);
        qn__http_release(&answer);
    }
    qn__free(list);
    return status;
}

static void abort_upload(void *object) {
    const s3_object *o = object;
    char query[QUERY + 64];
    qn__http_answer answer;
    if (!*o->upload)
        return;
    snprintf(query, sizeof query, "uploadId=%s", o->upload);
    const qn__store_request request = {.method = "DELETE", .address = o->address, .query = query};
    (void)qn__store_send(&request, &answer, NULL);
    qn__http_release(&answer);
}

/* --------------------------------------------------------------------------------- small objects
 */

/* By the clock of the store: both dates are in its answer. */
static int64_t seconds_since_written(const qn__http_answer *answer) {
    char now[64], then[64];
    int64_t at = 0, written = 0;
    if (!qn__http_value(answer, "date", now, sizeof now) ||
        !qn__http_value(answer, "last-modified", then, sizeof then) || !qn__http_date(now, &at) ||
        !qn__http_date(then, &written))
        return 0;
    return at - written;
}

static qn_status look(void *object, char *text, size_t capacity, qn__object_tag *tag,
                      int64_t *seconds, qn_error *err) {
    const s3_object *o = object;
    qn__http_answer answer;
    const qn__store_request request = {.method = "GET", .address = o->address, .for_write = 1};
    qn_status status = qn__store_send(&request, &answer, err);
    *text = '\0';
    *tag = (qn__object_tag){""};
    *seconds = 0;
    if (status == QN_OK && is_good(&answer)) {
        snprintf(text, capacity, "%s", answer.body ? answer.body : "");
        *seconds = seconds_since_written(&answer);
        if (!qn__http_value(&answer, "etag", tag->text, sizeof tag->text))
            status = refuse_answer(o, "an object without ETag", err);
    } else if (status == QN_OK && answer.status != 404) {
        status = refuse(o, &answer, err);
    }
    qn__http_release(&answer);
    return status;
}

/* A write that was sent twice, which libcurl may do, too: the first may have been done. */
static int is_written(const s3_object *o, const char *text, qn__object_tag *tag) {
    char now[2048];
    int64_t seconds;
    qn__object_tag found;
    if (look((void *)(uintptr_t)o, now, sizeof now, &found, &seconds, NULL) != QN_OK ||
        strcmp(now, text) != 0)
        return 0;
    *tag = found;
    return 1;
}

static qn_status swap(void *object, const char *text, qn__object_tag *tag, int *done,
                      qn_error *err) {
    const s3_object *o = object;
    const qn__signed_header condition = {*tag->text ? "if-match" : "if-none-match",
                                         *tag->text ? tag->text : "*"};
    qn__http_answer answer;
    qn_status status = send_body(o, "PUT", NULL, &condition, 1, text, strlen(text), &answer, err);
    if (status == QN_OK && answer.status == 501) { /* the store has no conditions */
        qn__http_release(&answer);
        status = send_body(o, "PUT", NULL, NULL, 0, text, strlen(text), &answer, err);
    }
    *done = status == QN_OK && is_good(&answer);
    if (*done && !qn__http_value(&answer, "etag", tag->text, sizeof tag->text))
        status = refuse_answer(o, "an object without ETag", err);
    const int is_other = answer.status == 412 || answer.status == 409 || answer.status == 404;
    if (status == QN_OK && !*done && is_other)
        *done = is_written(o, text, tag);
    else if (status == QN_OK && !*done)
        status = refuse(o, &answer, err);
    qn__http_release(&answer);
    return status;
}

static qn_status remove_object(void *object, qn_error *err) {
    const s3_object *o = object;
    qn__http_answer answer;
    const qn__store_request request = {.method = "DELETE", .address = o->address};
    qn_status status = qn__store_send(&request, &answer, err);
    if (status == QN_OK && !is_good(&answer) && answer.status != 404)
        status = refuse(o, &answer, err);
    qn__http_release(&answer);
    return status;
}

#define S3_KIND(address)                                                                           \
    {                                                                                              \
        .scheme = (address), .at_once = AT_ONCE, .open = open_object, .close = close_object,       \
        .put = put, .probe = begin, .begin = begin, .send = send, .finish = finish,                \
        .abort = abort_upload, .look = look, .swap = swap, .remove = remove_object                 \
    }

const qn__write_kind qn__write_s3 = S3_KIND("s3://"), qn__write_s3a = S3_KIND("s3a://"),
                     qn__write_gs = S3_KIND("gs://");

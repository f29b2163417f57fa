#include "store/store_request.h"
#include "base/memory.h"
#include "store/region.h"
#include "store/http/http_date.h"
#include "store/http/xml_answer.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { HEADERS = 24 };

/* A request on its way. */
typedef struct sending {
    const qn__store_request *request;
    qn__store_address address;
    qn__store_target target;
    char region[64];
    char source[160]; /* of the credentials; "": none were found */
} sending;

/* ------------------------------------------------------------------ headers */

/* Adds a header at its place in the order of names. */
static void insert_header(qn__signed_header *header, size_t *count, const char *name,
                          const char *value) {
    size_t at = *count;
    if (*count == HEADERS)
        return;
    for (; at > 0 && strcmp(header[at - 1].name, name) > 0; at--)
        header[at] = header[at - 1];
    header[at] = (qn__signed_header){name, value};
    ++*count;
}

static qn_status sign(sending *s, const qn__credentials *key, const qn__signed_header *header,
                      size_t count, const char *date, qn__http_headers *out, qn_error *err) {
    char line[QN__SIGN_LINE], path[QN__ADDRESS_MOST];
    const qn__store_request *r = s->request;
    snprintf(path, sizeof path, "%.*s", (int)strcspn(s->target.path, "?"), s->target.path);
    const qn__signing signing = {.method = r->method,
                                 .path = path,
                                 .query = r->query ? r->query : "",
                                 .header = header,
                                 .headers = count,
                                 .payload = r->payload ? r->payload : QN__SIGN_EMPTY,
                                 .date = date,
                                 .region = s->region,
                                 .service = "s3",
                                 .key_id = key->id,
                                 .secret = key->secret};
    const qn_status status = qn__sign(&signing, line, err);
    if (status == QN_OK)
        qn__http_header(out, "Authorization: %s", line);
    return status;
}

/* The headers of an attempt at a bucket. A signature holds for some minutes, so each attempt has
 * its own. */
static qn_status add_signed(sending *s, const qn__credentials *key, const char *range,
                            qn__http_headers *out, qn_error *err) {
    qn__signed_header header[HEADERS];
    size_t count = 0;
    char date[20];
    struct tm parts;
    const time_t now = time(NULL);
    strftime(date, sizeof date, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &parts));
    for (size_t i = 0; i < s->request->headers; i++)
        insert_header(header, &count, s->request->header[i].name, s->request->header[i].value);
    insert_header(header, &count, "host", s->target.host);
    if (*range)
        insert_header(header, &count, "range", range);
    insert_header(header, &count, "x-amz-content-sha256",
                  s->request->payload ? s->request->payload : QN__SIGN_EMPTY);
    insert_header(header, &count, "x-amz-date", date);
    if (key->token[0])
        insert_header(header, &count, "x-amz-security-token", key->token);
    for (size_t i = 0; i < count; i++)
        if (strcmp(header[i].name, "host") != 0)
            qn__http_header(out, "%s: %s", header[i].name, header[i].value);
    return sign(s, key, header, count, date, out, err);
}

static void add_plain(const sending *s, const char *range, qn__http_headers *out) {
    for (size_t i = 0; i < s->request->headers; i++)
        qn__http_header(out, "%s: %s", s->request->header[i].name, s->request->header[i].value);
    if (*range)
        qn__http_header(out, "range: %s", range);
}

static qn_status attempt(void *user, qn__http_headers *out, qn_error *err) {
    sending *s = user;
    char range[64] = "";
    qn__credentials *key = NULL;
    if (s->request->range)
        s->request->range(s->request->user, range);
    qn_status status = QN_OK;
    if (s->address.kind->bucket)
        status = qn__credentials_find(s->address.kind->keys, &key, err);
    snprintf(s->source, sizeof s->source, "%s", key ? key->source : "");
    if (status == QN_OK && key)
        status = add_signed(s, key, range, out, err);
    else if (status == QN_OK)
        add_plain(s, range, out);
    qn__credentials_release(key);
    return status;
}

/* ------------------------------------------------------------------ callbacks */

/* The request's functions get its own user. */
static size_t pass_body(void *user, uint64_t offset, void *bytes, size_t size) {
    const qn__store_request *r = ((sending *)user)->request;
    return r->give(r->user, offset, bytes, size);
}

static int pass_begin(void *user, const qn__http_answer *answer) {
    const qn__store_request *r = ((sending *)user)->request;
    return !r->begin || r->begin(r->user, answer);
}

static int pass_bytes(void *user, const void *bytes, size_t size) {
    const qn__store_request *r = ((sending *)user)->request;
    return r->take(r->user, bytes, size);
}

static int pass_is_enough(void *user) {
    const qn__store_request *r = ((sending *)user)->request;
    return r->is_enough(r->user);
}

/* ------------------------------------------------------------------ sending */

void qn__store_error_code(const qn__http_answer *answer, char code[64]) {
    (void)qn__xml_text(answer->body, "Code", code, 64);
}

static qn_status send_once(sending *s, qn__http_answer *answer, qn_error *err) {
    const qn__store_request *r = s->request;
    const int bucket = s->address.kind->bucket;
    qn_status status = QN_OK;
    if (bucket) {
        qn__region_of(s->address.bucket, s->address.kind->endpoint != NULL, s->region);
        status = qn__store_target_make(&s->address, r->key ? r->key : s->address.key,
                                       r->query ? r->query : "", s->region, &s->target, err);
    }
    const qn__http_request http = {.method = r->method,
                                   .url = bucket ? s->target.url : r->address,
                                   .follow = !bucket,
                                   .attempts = r->attempts,
                                   .for_write = r->for_write,
                                   .attempt = attempt,
                                   .body = r->body,
                                   .body_size = r->body_size,
                                   .give = r->give ? pass_body : NULL,
                                   .begin = pass_begin,
                                   .take = r->take ? pass_bytes : NULL,
                                   .is_enough = r->is_enough ? pass_is_enough : NULL,
                                   .stop = r->stop,
                                   .user = s};
    return status == QN_OK ? qn__http_send(&http, answer, err) : status;
}

/* Credentials that are no longer valid, which are status 400. */
static int has_ended(const char *code) {
    return strcmp(code, "ExpiredToken") == 0 || strcmp(code, "TokenRefreshRequired") == 0 ||
           strcmp(code, "InvalidToken") == 0;
}

/* Whether to send once more: the answer names the bucket's region, or the credentials have ended
 * before their time. */
static int is_mendable(const sending *s, const qn__http_answer *answer) {
    char code[64], region[64];
    if (!s->address.kind->bucket || answer->status < 300)
        return 0;
    qn__store_error_code(answer, code);
    if (qn__region_told(answer, region, sizeof region) && strcmp(region, s->region) != 0) {
        qn__region_learn(s->address.bucket, region);
        return 1;
    }
    if (!has_ended(code))
        return 0;
    qn__credentials_drop(s->address.kind->keys);
    return 1;
}

qn_status qn__store_send(const qn__store_request *request, qn__http_answer *answer, qn_error *err) {
    *answer = (qn__http_answer){0};
    sending *s = qn__alloc(1, sizeof *s, err);
    if (!s)
        return QN_MEMORY;
    s->request = request;
    qn_status status = qn__store_address_read(request->address, &s->address, err);
    if (status == QN_OK)
        status = send_once(s, answer, err);
    if (status == QN_OK && is_mendable(s, answer)) {
        qn__http_release(answer);
        status = send_once(s, answer, err);
    }
    snprintf(answer->source, sizeof answer->source, "%s", s->source);
    qn__free(s);
    return status;
}

/* ------------------------------------------------------------------ refusals */

/* What statuses mean for a reader. */
static const struct {
    int status;
    qn_status kind;
    const char *what, *remedy;
} meanings[] = {
    {400, QN_IO, "the store does not understand the request", "check the address and the region"},
    {401, QN_INPUT, "the server asks for a login",
     "give an address that needs none, or one that holds its key in the query"},
    {404, QN_INPUT, "there is no such file in the store", "check the address; case matters"},
    {410, QN_INPUT, "the file was removed from the store", "check the address"},
    {412, QN_INPUT, "the file changed while it was read",
     "read it when nothing writes to it any more, or read a copy"},
    {416, QN_INPUT, "the file has become shorter while it was read",
     "read it when nothing writes to it any more, or read a copy"},
    {429, QN_IO, "the store refuses so many requests", "try again later"},
    {503, QN_IO, "the store is busy or away", "try again later"},
};

static qn_status refuse_clock(const qn__http_answer *answer, qn_error *err) {
    char date[64];
    int64_t theirs;
    long long ahead = 0;
    if (qn__http_value(answer, "date", date, sizeof date) && qn__http_date(date, &theirs))
        ahead = (long long)time(NULL) - (long long)theirs;
    if (ahead > -60 && ahead < 60)
        return qn__remedy(err, QN_INPUT, "set the clock of this machine: signatures hold the time");
    return qn__remedy(err, QN_INPUT,
                      "set the clock of this machine, which is %lld minutes %s for the store: "
                      "signatures hold the time",
                      (ahead < 0 ? -ahead : ahead) / 60, ahead < 0 ? "slow" : "fast");
}

static qn_status refuse_access(const qn__store_request *request, const qn__http_answer *answer,
                               const char *code, qn_error *err) {
    const qn__store_kind *kind = qn__store_kind_of(request->address);
    const char *source = answer->source;
    if (!kind->bucket) {
        qn__fail(err, QN_INPUT, "the server does not give the file to everybody (status 403)");
        return qn__remedy(err, QN_INPUT, "check the address, and the key in its query");
    }
    qn__fail(err, QN_INPUT, "the store refuses access%s%s%s, %s%s", *code ? " (" : "", code,
             *code ? ")" : "", *source ? "with the credentials of " : "without credentials",
             source);
    if (strcmp(code, "RequestTimeTooSkewed") == 0)
        return refuse_clock(answer, err);
    if (has_ended(code))
        return qn__remedy(err, QN_INPUT,
                          "they have ended, or the session token is not theirs: log in again, or "
                          "get new ones");
    if (*source)
        return qn__remedy(err, QN_INPUT,
                          "check that these credentials may read the bucket; AWS_PROFILE names "
                          "another profile");
    return qn__remedy(err, QN_INPUT,
                      "give credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, "
                      "or aws configure");
}

qn_status qn__store_request_refuse(const qn__store_request *request, const qn__http_answer *answer,
                                   qn_error *err) {
    char shown[512], code[64];
    qn_status status = QN_IO;
    qn__store_error_code(answer, code);
    size_t i = 0;
    const size_t count = sizeof meanings / sizeof *meanings;
    while (i < count && meanings[i].status != answer->status)
        i++;
    if (answer->status == 403 || (has_ended(code) && *answer->source)) {
        status = refuse_access(request, answer, code, err);
    } else if (strcmp(code, "NoSuchBucket") == 0) {
        qn__fail(err, QN_INPUT, "there is no such bucket");
        status = qn__remedy(err, QN_INPUT, "check the address, and the endpoint of the store");
    } else if (i < count) {
        status = meanings[i].kind;
        qn__fail(err, status, "%s%s%s%s", meanings[i].what,
                 *code && answer->status == 400 ? ": " : "", answer->status == 400 ? code : "", "");
        qn__remedy(err, status, "%s", meanings[i].remedy);
    } else {
        qn__fail(err, QN_IO, "the store answers with status %d%s%s, after %d attempt%s",
                 answer->status, *code ? ", " : "", code, answer->attempts,
                 answer->attempts == 1 ? "" : "s");
        qn__remedy(err, QN_IO, "try again; if it fails again, look at the store's log");
    }
    qn__http_shown(request->address, shown, sizeof shown);
    qn__at(err, "%s", shown);
    return status;
}

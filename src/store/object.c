#include "store/object.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "store/hdfs/webhdfs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of "bytes 0-9/200": the first byte and the size of the file; 0: it is not such a text. */
static int read_content_range(const char *text, uint64_t *from, uint64_t *size) {
    const char *at = strncmp(text, "bytes ", 6) == 0 ? text + 6 : "";
    const size_t begin = strcspn(at, "-/"), slash = strcspn(at, "/");
    if (at[slash] != '/' || !qn__parse_u64(at + slash + 1, strlen(at + slash + 1), size))
        return 0;
    *from = 0;
    return *at == '*' || qn__parse_u64(at, begin, from);
}

/* The ETag, or the time of the last change: "" where the server tells neither. */
static void read_tag(const qn__http_answer *answer, char tag[QN__REMOTE_TAG]) {
    if (!qn__http_value(answer, "etag", tag, QN__REMOTE_TAG) &&
        !qn__http_value(answer, "last-modified", tag, QN__REMOTE_TAG))
        tag[0] = '\0';
}

/* A strong ETag: it can be a condition of a request. */
static int is_strong(const char *tag) { return tag[0] == '"'; }

/* ------------------------------------------------------------------ the first answer */

typedef struct looking {
    qn__object_first *out;
    int is_memory_short;
} looking;

static void first_range(void *user, char text[64]) {
    (void)user;
    snprintf(text, 64, "bytes=0-%d", QN__OBJECT_FIRST - 1);
}

static int first_is_enough(void *user) {
    const qn__object_first *out = ((looking *)user)->out;
    return out->size == QN__OBJECT_FIRST || (out->sized && out->size == out->about.size);
}

static int first_begin(void *user, const qn__http_answer *answer) {
    qn__object_first *out = ((looking *)user)->out;
    char text[128];
    uint64_t from = 0;
    read_tag(answer, out->about.tag);
    out->size = 0;
    out->ranges = answer->status == 206;
    if (out->ranges)
        out->sized = qn__http_value(answer, "content-range", text, sizeof text) &&
                     read_content_range(text, &from, &out->about.size) && from == 0;
    else
        out->sized = qn__http_value(answer, "content-length", text, sizeof text) &&
                     qn__parse_u64(text, strlen(text), &out->about.size);
    return 1;
}

static int first_take(void *user, const void *bytes, size_t size) {
    qn__object_first *out = ((looking *)user)->out;
    if (out->size == 0 && !out->bytes)
        out->bytes = qn__alloc(QN__OBJECT_FIRST, 1, NULL);
    if (!out->bytes)
        return 0;
    const size_t space = QN__OBJECT_FIRST - out->size, now = size < space ? size : space;
    memcpy(out->bytes + out->size, bytes, now);
    out->size += now;
    return now == size; /* a server that knows no ranges sends all: it is enough */
}

static qn_status check_first(const qn__store_request *request, const qn__http_answer *answer,
                             qn__object_first *out, qn_error *err) {
    out->unchanged = answer->status == 304;
    if (out->unchanged)
        return QN_OK;
    if (answer->status == 416) { /* only an empty file has no first byte */
        out->ranges = out->sized = 1;
        read_tag(answer, out->about.tag);
        return QN_OK;
    }
    if (answer->status == 200 && out->size == 0) { /* an empty file: no byte came to look at */
        (void)first_begin(&(looking){.out = out}, answer);
        out->sized = 1;
        return QN_OK;
    }
    if (answer->status != 200 && answer->status != 206)
        return qn__store_request_refuse(request, answer, err);
    if (!out->ranges || out->sized)
        return QN_OK;
    char shown[512];
    qn__http_shown(request->address, shown, sizeof shown);
    qn__fail(err, QN_IO, "the server sends a part of the file, and not which");
    qn__at(err, "%s", shown);
    return qn__remedy(err, QN_IO, "copy the file to this machine");
}

/* A file of HDFS: its name node tells its state, and the first bytes come later. */
static qn_status look_hdfs(const char *address, const char *known, qn__object_first *out,
                           qn_error *err) {
    qn__hdfs_status now;
    qn_status status = qn__hdfs_look(address, &now, err);
    if (status == QN_OK && (!now.exists || now.is_folder)) {
        qn__fail(err, QN_INPUT,
                 now.exists ? "it is a folder" : "there is no such file in the store");
        qn__at(err, "%s", address);
        status = qn__remedy(err, QN_INPUT, "check the address; case matters");
    }
    if (status != QN_OK)
        return status;
    qn__hdfs_tag(&now, out->about.tag);
    out->about.size = now.size;
    out->unchanged = strcmp(out->about.tag, known) == 0;
    out->ranges = out->sized = 1;
    return QN_OK;
}

qn_status qn__object_look(const char *address, const char *known, qn__object_first *out,
                          qn_error *err) {
    looking l = {.out = out};
    qn__http_answer answer;
    *out = (qn__object_first){0};
    if (qn__store_kind_of(address) && qn__store_kind_of(address)->hdfs)
        return look_hdfs(address, known, out, err);
    const qn__signed_header condition = {"if-none-match", known};
    const qn__store_request request = {.method = "GET",
                                       .attempts = QN__OBJECT_ATTEMPTS,
                                       .address = address,
                                       .header = &condition,
                                       .headers = (size_t)is_strong(known),
                                       .range = first_range,
                                       .begin = first_begin,
                                       .take = first_take,
                                       .is_enough = first_is_enough,
                                       .user = &l};
    qn_status status = qn__store_send(&request, &answer, err);
    if (status == QN_OK)
        status = check_first(&request, &answer, out, err);
    qn__http_release(&answer);
    if (status != QN_OK) {
        qn__free(out->bytes);
        out->bytes = NULL;
    }
    return status;
}

/* ------------------------------------------------------------------ ranges */

typedef struct reading {
    const qn__object_range *range;
    uint64_t at;       /* the next byte that `take` gets */
    uint64_t skip;     /* bytes of the answer before it */
    int changed, done; /* the file is another one; the server sends more than was asked for */
} reading;

static void rest_range(void *user, char text[64]) {
    const reading *r = user;
    if (r->range->end == UINT64_MAX)
        snprintf(text, 64, "bytes=%llu-", (unsigned long long)r->at);
    else
        snprintf(text, 64, "bytes=%llu-%llu", (unsigned long long)r->at,
                 (unsigned long long)r->range->end - 1);
}

static int rest_begin(void *user, const qn__http_answer *answer) {
    reading *r = user;
    char text[128], tag[QN__REMOTE_TAG];
    uint64_t from = 0, size = 0;
    const qn__remote_about *about = r->range->about;
    read_tag(answer, tag);
    r->skip = answer->status == 206 ? 0 : r->at;
    if (answer->status == 206)
        r->changed = !qn__http_value(answer, "content-range", text, sizeof text) ||
                     !read_content_range(text, &from, &size) || from != r->at ||
                     size != about->size;
    r->changed |= strcmp(tag, about->tag) != 0;
    return !r->changed;
}

static int rest_take(void *user, const void *bytes, size_t size) {
    reading *r = user;
    const uint64_t before = r->skip < size ? r->skip : size;
    const uint64_t left = r->range->end - r->at;
    r->skip -= before;
    size -= (size_t)before;
    const size_t now = size < left ? size : (size_t)left;
    if (now > 0 && !r->range->take(r->range->user, (const char *)bytes + before, now))
        return 0;
    r->at += now;
    r->done = now < size || r->at == r->range->end;
    return now == size;
}

static int rest_is_enough(void *user) {
    const reading *r = user;
    return r->done;
}

static qn_status refuse_change(const char *address, qn_error *err) {
    char shown[512];
    qn__http_shown(address, shown, sizeof shown);
    qn__fail(err, QN_INPUT, "the file changed while it was read");
    qn__at(err, "%s", shown);
    return qn__remedy(err, QN_INPUT, "read it when nothing writes to it any more, or read a copy");
}

/* One request for what is left of the range. */
static qn_status read_some(const qn__object_range *range, const qn__store_request *request,
                           reading *r, qn_error *err) {
    qn__http_answer answer;
    qn_error why = {.what = ""};
    qn_status status = qn__store_send(request, &answer, &why);
    if (r->changed)
        status = refuse_change(range->address, err);
    else if (status == QN_IO && answer.stopped)
        status = qn__fail(err, QN_INTERRUPTED, "the reading was ended");
    else if (status == QN_OK && answer.status != 200 && answer.status != 206)
        status = qn__store_request_refuse(request, &answer, err);
    else if (status != QN_OK && err)
        *err = why;
    qn__http_release(&answer);
    return status;
}

/* HDFS has no conditions of a reading: the name node is asked again after it. */
static qn_status read_hdfs(const qn__object_range *range, qn_error *err) {
    char tag[QN__REMOTE_TAG];
    qn__hdfs_status now;
    qn_status status = qn__hdfs_read(range->address, range->from, range->end, range->take,
                                     range->user, range->stop, err);
    if (status == QN_OK)
        status = qn__hdfs_look(range->address, &now, err);
    if (status != QN_OK)
        return status;
    qn__hdfs_tag(&now, tag);
    return strcmp(tag, range->about->tag) == 0 ? QN_OK : refuse_change(range->address, err);
}

/* A server may send less than was asked for, and say so: the rest is asked for again. */
qn_status qn__object_read(const qn__object_range *range, qn_error *err) {
    const qn__store_kind *kind = qn__store_kind_of(range->address);
    if (kind && kind->hdfs)
        return read_hdfs(range, err);
    reading r = {.range = range, .at = range->from};
    const qn__signed_header condition = {"if-match", range->about->tag};
    const qn__store_request request = {.method = "GET",
                                       .address = range->address,
                                       .header = &condition,
                                       .headers = (size_t)is_strong(range->about->tag),
                                       .range = rest_range,
                                       .begin = rest_begin,
                                       .take = rest_take,
                                       .is_enough = rest_is_enough,
                                       .stop = range->stop,
                                       .user = &r};
    for (;;) {
        const uint64_t before = r.at;
        const qn_status status = read_some(range, &request, &r, err);
        if (status != QN_OK || r.done || range->end == UINT64_MAX || r.at == range->end)
            return status;
        if (r.at == before)
            return refuse_change(range->address, err);
    }
}

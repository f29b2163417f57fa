/* Files of HDFS, written: under a temporary name in their folder, renamed last. */
#include "base/memory.h"
#include "store/hdfs/webhdfs.h"
#include "store/sign/signature.h"
#include "store/write/write_kind.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { NAME = 4096 };

typedef struct hdfs_object {
    char *address;
    char *temporary; /* its address while it is written */
    uint64_t size;   /* of what was sent */
} hdfs_object;

static void hdfs_close(void *object) {
    hdfs_object *o = object;
    qn__free(o->address);
    qn__free(o->temporary);
    qn__free(o);
}

static qn_status hdfs_open(const char *address, void **out, qn_error *err) {
    char name[NAME];
    uint64_t random = 0;
    const char *slash = strrchr(address, '/');
    if (!slash || !slash[1] || slash[-1] == '/' || strlen(address) + 64 > NAME) {
        qn__fail(err, QN_INPUT, "cannot write %.400s: it names no file", address);
        return qn__remedy(err, QN_INPUT, "name a file in that folder");
    }
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        random = (uint64_t)(uintptr_t)name;
    /* Programs of Hadoop leave names with a point out. */
    snprintf(name, sizeof name, "%.*s/.%s.quern-%016" PRIx64, (int)(slash - address), address,
             slash + 1, random);
    hdfs_object *o = qn__alloc(1, sizeof *o, err);
    if (!o)
        return QN_MEMORY;
    o->address = qn__copy_text(address, err);
    o->temporary = o->address ? qn__copy_text(name, err) : NULL;
    if (!o->temporary) {
        hdfs_close(o);
        return QN_MEMORY;
    }
    *out = o;
    return QN_OK;
}

/* Creates a file with these bytes; *done is 0 where one is there that must not be replaced. */
static qn_status create_file(const char *address, int replaces, const void *bytes, size_t size,
                             int *done, qn_error *err) {
    char name[64];
    qn__http_answer answer;
    qn_status status =
        qn__hdfs_write(address, "PUT", "CREATE", replaces ? "&overwrite=true" : "&overwrite=false",
                       bytes, size, NULL, NULL, &answer, err);
    qn__hdfs_exception(&answer, name);
    *done = status == QN_OK && (answer.status == 201 || answer.status == 200);
    if (status == QN_OK && !*done && (replaces || strcmp(name, "FileAlreadyExistsException") != 0))
        status = qn__hdfs_refuse(address, &answer, err);
    qn__http_release(&answer);
    return status;
}

static qn_status hdfs_probe(void *object, qn_error *err) {
    const hdfs_object *o = object;
    int done;
    return create_file(o->temporary, 1, "", 0, &done, err);
}

/* Bytes that are added: before they are sent again, what the file has is looked at. */
typedef struct adding {
    const hdfs_object *object;
    size_t size;
    int attempts, is_there;
} adding;

static qn_status before_adding(void *user, qn__http_headers *headers, qn_error *err) {
    adding *a = user;
    qn__hdfs_status now;
    (void)headers;
    if (++a->attempts == 1)
        return QN_OK;
    const qn_status status = qn__hdfs_look(a->object->temporary, &now, err);
    if (status != QN_OK || now.size == a->object->size)
        return status;
    a->is_there = now.size == a->object->size + a->size;
    return qn__fail(err, QN_IO, "a part was written partly: the file has %" PRIu64 " bytes",
                    now.size);
}

static qn_status append_file(const hdfs_object *o, const void *bytes, size_t size, qn_error *err) {
    qn__http_answer answer;
    adding a = {.object = o, .size = size};
    qn_error why = {.what = ""};
    qn_status status = qn__hdfs_write(o->temporary, "POST", "APPEND", "", bytes, size,
                                      before_adding, &a, &answer, &why);
    if (status != QN_OK && a.is_there)
        status = QN_OK;
    else if (status != QN_OK && err)
        *err = why;
    else if (status == QN_OK && answer.status != 200)
        status = qn__hdfs_refuse(o->address, &answer, err);
    qn__http_release(&answer);
    return status;
}

static qn_status hdfs_send(void *object, uint32_t number, uint64_t offset, const void *bytes,
                           size_t size, qn__object_tag *tag, qn_error *err) {
    hdfs_object *o = object;
    int done;
    *tag = (qn__object_tag){"-"};
    o->size = offset;
    const qn_status status =
        number == 1 ? create_file(o->temporary, 1, bytes ? bytes : "", size, &done, err)
                    : append_file(o, bytes, size, err);
    o->size = offset + size;
    return status;
}

static qn_status remove_file(const char *address, qn_error *err) {
    qn__http_answer answer;
    qn_status status = qn__hdfs_ask(address, "DELETE", "DELETE", "&recursive=false", &answer, err);
    if (status == QN_OK && answer.status != 200)
        status = qn__hdfs_refuse(address, &answer, err);
    qn__http_release(&answer);
    return status;
}

static void hdfs_abort(void *object) {
    (void)remove_file(((const hdfs_object *)object)->temporary, NULL);
}

/* Whether the rename was done, and only its answer was lost. */
static int is_renamed(const hdfs_object *o) {
    qn__hdfs_status from, to;
    return qn__hdfs_look(o->temporary, &from, NULL) == QN_OK && !from.exists &&
           qn__hdfs_look(o->address, &to, NULL) == QN_OK && to.exists && to.size == o->size;
}

/* The answer of a server without `renameoptions`: it does not replace a file. */
static int is_refusal(const qn__http_answer *answer) {
    return answer->body && strstr(answer->body, "false") != NULL;
}

static qn_status rename_file(const hdfs_object *o, const char *query, int *is_refused,
                             qn_error *err) {
    qn__http_answer answer;
    qn_status status = qn__hdfs_ask(o->temporary, "PUT", "RENAME", query, &answer, err);
    *is_refused = status == QN_OK && answer.status == 200 && is_refusal(&answer);
    if (status == QN_OK && answer.status != 200 && !is_renamed(o))
        status = qn__hdfs_refuse(o->address, &answer, err);
    qn__http_release(&answer);
    return status;
}

static qn_status hdfs_finish(void *object, const qn__object_tag *tag, uint32_t parts,
                             qn_error *err) {
    const hdfs_object *o = object;
    char encoded[3 * NAME], query[3 * NAME + 64];
    const char *host = strstr(o->address, "://");
    int is_refused = 0;
    (void)tag;
    (void)parts;
    qn__uri_encode(strchr(host + 3, '/'), 0, encoded, sizeof encoded);
    snprintf(query, sizeof query, "&destination=%s&renameoptions=OVERWRITE", encoded);
    qn_status status = rename_file(o, query, &is_refused, err);
    if (status != QN_OK || !is_refused)
        return status;
    status = remove_file(o->address, err);
    if (status == QN_OK)
        status = rename_file(o, query, &is_refused, err);
    if (status == QN_OK && is_refused)
        status = qn__fail(err, QN_IO, "HDFS does not rename %.400s to its name", o->temporary);
    return status;
}

/* --------------------------------------------------------------------------------- small files */

typedef struct text_space {
    char *text;
    size_t size, capacity;
} text_space;

static int take_text(void *user, const void *bytes, size_t size) {
    text_space *t = user;
    if (size >= t->capacity - t->size)
        return 0;
    memcpy(t->text + t->size, bytes, size);
    t->size += size;
    t->text[t->size] = '\0';
    return 1;
}

static qn_status hdfs_look_at(void *object, char *text, size_t capacity, qn__object_tag *tag,
                              int64_t *seconds, qn_error *err) {
    const hdfs_object *o = object;
    char found[QN__REMOTE_TAG];
    qn__hdfs_status now;
    text_space space = {text, 0, capacity};
    *text = '\0';
    *tag = (qn__object_tag){""};
    qn_status status = qn__hdfs_look(o->address, &now, err);
    *seconds = now.seconds;
    if (status != QN_OK || !now.exists)
        return status;
    qn__hdfs_tag(&now, found);
    snprintf(tag->text, sizeof tag->text, "%.100s", found);
    status = qn__hdfs_read(o->address, 0, UINT64_MAX, take_text, &space, NULL, err);
    return status == QN_INTERRUPTED ? QN_OK : status; /* it is longer: something else */
}

/* Only the first writing is a condition of HDFS itself. Between the look and the replacement
 * another process could write; the reader of a lease reads it again. */
static qn_status hdfs_swap(void *object, const char *text, qn__object_tag *tag, int *done,
                           qn_error *err) {
    const hdfs_object *o = object;
    char found[QN__REMOTE_TAG] = "";
    qn__hdfs_status now;
    *done = 0;
    qn_status status = qn__hdfs_look(o->address, &now, err);
    if (status != QN_OK)
        return status;
    if (now.exists)
        qn__hdfs_tag(&now, found);
    if (strcmp(found, tag->text) != 0)
        return QN_OK;
    status = create_file(o->address, now.exists, text, strlen(text), done, err);
    if (status == QN_OK && *done)
        status = qn__hdfs_look(o->address, &now, err);
    qn__hdfs_tag(&now, found);
    snprintf(tag->text, sizeof tag->text, "%.100s", found);
    return status;
}

static qn_status hdfs_remove(void *object, qn_error *err) {
    return remove_file(((const hdfs_object *)object)->address, err);
}

#define HDFS_KIND(address)                                                                         \
    {                                                                                              \
        .scheme = (address), .at_once = 1, .open = hdfs_open, .close = hdfs_close,                 \
        .probe = hdfs_probe, .send = hdfs_send, .finish = hdfs_finish, .abort = hdfs_abort,        \
        .look = hdfs_look_at, .swap = hdfs_swap, .remove = hdfs_remove                             \
    }

const qn__write_kind qn__write_hdfs = HDFS_KIND("hdfs://"),
                     qn__write_webhdfs = HDFS_KIND("webhdfs://"),
                     qn__write_swebhdfs = HDFS_KIND("swebhdfs://");

#include "store/hdfs/webhdfs.h"
#include "base/memory.h"
#include "base/text/json.h"
#include "store/http/http_date.h"
#include "store/sign/secret.h"
#include "store/sign/signature.h"
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 4096, URL = 4 * PATH };

/* The schemes of Hadoop. Only the last one is encrypted. */
static const struct {
    const char *scheme, *http;
} schemes[] = {{"hdfs://", "http"}, {"webhdfs://", "http"}, {"swebhdfs://", "https"}};

/* The port of a name node where an address has none. */
#define PORT ":9870"

/* Who asks: a delegation token, else the user's name as Hadoop's own programs find it. */
static void write_user(char *text, size_t capacity) {
    char encoded[PATH];
    const char *token = qn__secret_variable("QUERN_HDFS_TOKEN"), *name = getenv("HADOOP_USER_NAME");
    if (token) {
        qn__uri_encode(token, 0, encoded, sizeof encoded);
        snprintf(text, capacity, "&delegation=%s", encoded);
        explicit_bzero(encoded, sizeof encoded);
        return;
    }
    const struct passwd *own = name && *name ? NULL : getpwuid(geteuid());
    qn__uri_encode(own ? own->pw_name : name ? name : "", 0, encoded, sizeof encoded);
    snprintf(text, capacity, *encoded ? "&user.name=%s" : "%s", encoded);
}

static qn_status refuse_address(const char *address, const char *what, qn_error *err) {
    qn__fail(err, QN_INPUT, "%s", what);
    qn__at(err, "%.200s", address);
    return qn__remedy(err, QN_INPUT, "write it as hdfs://HOST:PORT/PATH, with WebHDFS's port");
}

/* `url` is secret memory: a token may be in it. */
static qn_status make_url(const char *address, const char *operation, const char *query, char *url,
                          qn_error *err) {
    char path[3 * PATH], user[PATH + 32];
    const char *rest = NULL, *http = NULL;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncmp(address, schemes[i].scheme, strlen(schemes[i].scheme)) == 0) {
            rest = address + strlen(schemes[i].scheme);
            http = schemes[i].http;
        }
    const size_t host = rest ? strcspn(rest, "/") : 0;
    if (host == 0 || host > 255 || memchr(rest, '@', host) || strlen(rest) >= PATH)
        return refuse_address(address, "the address has no host, or is too long", err);
    qn__uri_encode(rest[host] ? rest + host : "/", 1, path, sizeof path);
    write_user(user, sizeof user);
    const int has_port = memchr(rest, ':', host) != NULL;
    const int size = snprintf(url, URL, "%s://%.*s%s/webhdfs/v1%s?op=%s%s%s", http, (int)host, rest,
                              has_port ? "" : PORT, path, operation, user, query);
    explicit_bzero(user, sizeof user);
    return size < URL ? QN_OK : refuse_address(address, "the address is too long", err);
}

static qn_status send_to(const qn__http_request *request, const char *address,
                         qn__http_answer *answer, qn_error *err) {
    const qn_status status = qn__http_send(request, answer, err);
    if (status != QN_OK)
        qn__at(err, "%.400s", address);
    return status;
}

qn_status qn__hdfs_ask(const char *address, const char *method, const char *operation,
                       const char *query, qn__http_answer *answer, qn_error *err) {
    *answer = (qn__http_answer){0};
    char *url = qn__secret_make(URL, err);
    if (!url)
        return QN_MEMORY;
    qn_status status = make_url(address, operation, query, url, err);
    /* Most of these questions come before a write. */
    const qn__http_request request = {.method = method, .url = url, .for_write = 1};
    if (status == QN_OK)
        status = send_to(&request, address, answer, err);
    qn__secret_free(url);
    return status;
}

qn_status qn__hdfs_write(const char *address, const char *method, const char *operation,
                         const char *query, const void *bytes, size_t size,
                         qn_status (*attempt)(void *user, qn__http_headers *headers, qn_error *err),
                         void *user, qn__http_answer *answer, qn_error *err) {
    qn_status status = qn__hdfs_ask(address, method, operation, query, answer, err);
    if (status != QN_OK || answer->status != 307)
        return status;
    char *place = qn__secret_make(URL, err);
    if (!place)
        return QN_MEMORY;
    if (!qn__http_value(answer, "location", place, URL))
        status = refuse_address(address, "the name node names no data node", err);
    qn__http_release(answer);
    const qn__http_request request = {.method = method,
                                      .url = place,
                                      .fresh = attempt != NULL,
                                      .attempt = attempt,
                                      .body = bytes,
                                      .body_size = size,
                                      .user = user};
    if (status == QN_OK)
        status = send_to(&request, address, answer, err);
    qn__secret_free(place);
    return status;
}

/* ---------------------------------------------------------------------------------- what it says
 */

static qn__json *parse(const qn__http_answer *answer) {
    qn__json *json = NULL;
    if (!answer->body || qn__json_parse(answer->body, answer->body_size, &json, NULL) != QN_OK)
        return NULL;
    return json;
}

static const qn__json_node *root_of(const qn__json *json) {
    return json ? qn__json_root(json) : NULL;
}

/* A text of the exception in an answer. */
static void exception_text(const qn__http_answer *answer, const char *member, char *text,
                           size_t capacity) {
    qn__json *json = parse(answer);
    const qn__json_node *why = qn__json_get(root_of(json), "RemoteException");
    const char *found = qn__json_string(qn__json_get(why, member));
    snprintf(text, capacity, "%s", found ? found : "");
    text[strcspn(text, "\r\n")] = '\0';
    qn__json_free(json);
}

void qn__hdfs_exception(const qn__http_answer *answer, char name[64]) {
    exception_text(answer, "exception", name, 64);
}

/* Exceptions whose cause is what was asked for, not the cluster's state. */
static const struct {
    const char *name, *remedy;
} exceptions[] = {
    {"FileNotFoundException", "check the address; case matters"},
    {"AccessControlException", "name a user who may: HADOOP_USER_NAME; or give a delegation "
                               "token in QUERN_HDFS_TOKEN"},
    {"SecurityException", "give a delegation token in QUERN_HDFS_TOKEN; `hdfs fetchdt` makes one"},
    {"InvalidToken", "fetch a new delegation token"},
    {"FileAlreadyExistsException", "name another path"},
    {"StandbyException", "name the host of the active name node"},
};

qn_status qn__hdfs_refuse(const char *address, const qn__http_answer *answer, qn_error *err) {
    char name[64], message[256];
    qn__hdfs_exception(answer, name);
    exception_text(answer, "message", message, sizeof message);
    const char *remedy = "try again; if it fails again, look at the log of the name node";
    qn_status status = QN_IO;
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (strcmp(exceptions[i].name, name) == 0) {
            remedy = exceptions[i].remedy;
            status = QN_INPUT;
        }
    if (!*name) {
        qn__fail(err, status, "the server answers with status %d, not as WebHDFS", answer->status);
        remedy = "check that the port is that of WebHDFS: 9870 for most name nodes";
    } else {
        qn__fail(err, status, "HDFS refuses: %s%s%.200s", name, *message ? ": " : "", message);
    }
    qn__at(err, "%.400s", address);
    return qn__remedy(err, status, "%s", remedy);
}

static void read_status(const qn__json_node *node, qn__hdfs_status *out) {
    const char *type = qn__json_string(qn__json_get(node, "type"));
    out->exists = type != NULL;
    out->is_folder = type && strcmp(type, "DIRECTORY") == 0;
    qn__json_u64(qn__json_get(node, "length"), &out->size);
    qn__json_u64(qn__json_get(node, "fileId"), &out->number);
    qn__json_u64(qn__json_get(node, "modificationTime"), &out->time);
}

void qn__hdfs_tag(const qn__hdfs_status *status, char tag[QN__REMOTE_TAG]) {
    snprintf(tag, QN__REMOTE_TAG, "%" PRIu64 "-%" PRIu64 "-%" PRIu64, status->number, status->time,
             status->size);
}

qn_status qn__hdfs_look(const char *address, qn__hdfs_status *out, qn_error *err) {
    char name[64], date[64];
    int64_t now = 0;
    qn__http_answer answer;
    *out = (qn__hdfs_status){0};
    qn_status status = qn__hdfs_ask(address, "GET", "GETFILESTATUS", "", &answer, err);
    qn__json *json = status == QN_OK ? parse(&answer) : NULL;
    if (status == QN_OK && answer.status == 200)
        read_status(qn__json_get(root_of(json), "FileStatus"), out);
    qn__hdfs_exception(&answer, name);
    if (status == QN_OK && !out->exists && strcmp(name, "FileNotFoundException") != 0)
        status = qn__hdfs_refuse(address, &answer, err);
    if (qn__http_value(&answer, "date", date, sizeof date) && qn__http_date(date, &now))
        out->seconds = now - (int64_t)(out->time / 1000);
    qn__json_free(json);
    qn__http_release(&answer);
    return status;
}

/* ---------------------------------------------------------------------------------------- bytes */

typedef struct reading {
    uint64_t from, at,
        end;       /* of the request: its first byte, the next one, the one after the last */
    uint64_t skip; /* bytes of a repeated request that came before */
    int (*take)(void *user, const void *bytes, size_t size);
    void *user;
} reading;

static qn_status begin_reading(void *user, qn__http_headers *headers, qn_error *err) {
    reading *r = user;
    (void)headers;
    (void)err;
    r->skip = r->at - r->from;
    return QN_OK;
}

static int take_bytes(void *user, const void *bytes, size_t size) {
    reading *r = user;
    const uint64_t before = r->skip < size ? r->skip : size;
    const uint64_t left = r->end - r->at;
    r->skip -= before;
    size -= (size_t)before;
    const size_t now = size < left ? size : (size_t)left;
    if (now > 0 && !r->take(r->user, (const char *)bytes + before, now))
        return 0;
    r->at += now;
    return now == size;
}

static qn_status read_with(const char *address, reading *r, const atomic_int *stop, char *url,
                           qn_error *err) {
    char query[96] = "";
    qn__http_answer answer;
    if (r->end == UINT64_MAX)
        snprintf(query, sizeof query, "&offset=%" PRIu64, r->at);
    else
        snprintf(query, sizeof query, "&offset=%" PRIu64 "&length=%" PRIu64, r->at, r->end - r->at);
    qn_status status = make_url(address, "OPEN", query, url, err);
    const qn__http_request request = {.method = "GET",
                                      .url = url,
                                      .follow = 1,
                                      .attempt = begin_reading,
                                      .take = take_bytes,
                                      .stop = stop,
                                      .user = r};
    if (status != QN_OK)
        return status;
    qn_error why = {.what = ""};
    status = qn__http_send(&request, &answer, &why);
    if (status == QN_OK && answer.status != 200)
        status = qn__hdfs_refuse(address, &answer, err);
    else if (status != QN_OK && answer.stopped)
        status = r->at == r->end ? QN_OK : QN_INTERRUPTED;
    else if (status != QN_OK && err)
        *err = why;
    qn__http_release(&answer);
    return status;
}

qn_status qn__hdfs_read(const char *address, uint64_t from, uint64_t end,
                        int (*take)(void *user, const void *bytes, size_t size), void *user,
                        const atomic_int *stop, qn_error *err) {
    reading r = {.from = from, .at = from, .end = end, .take = take, .user = user};
    char *url = qn__secret_make(URL, err);
    const qn_status status = url ? read_with(address, &r, stop, url, err) : QN_MEMORY;
    qn__secret_free(url);
    return status;
}

/* ---------------------------------------------------------------------------------------- lists */

typedef struct found_file {
    char *address;
    qn__remote_about about;
} found_file;

typedef struct found_files {
    found_file *file;
    size_t count, capacity;
} found_files;

static qn_status add_found(found_files *all, const char *folder, const char *name,
                           const qn__hdfs_status *status, qn_error *err) {
    if (all->count == all->capacity) {
        const size_t capacity = all->capacity ? 2 * all->capacity : 64;
        found_file *larger = qn__alloc(capacity, sizeof *larger, err);
        if (!larger)
            return QN_MEMORY;
        if (all->count > 0)
            memcpy(larger, all->file, all->count * sizeof *larger);
        qn__free(all->file);
        all->file = larger;
        all->capacity = capacity;
    }
    found_file *f = &all->file[all->count];
    const size_t size = strlen(folder) + strlen(name) + 1;
    if (!(f->address = qn__alloc(size, 1, err)))
        return QN_MEMORY;
    snprintf(f->address, size, "%s%s", folder, name);
    f->about.size = status->size;
    qn__hdfs_tag(status, f->about.tag);
    all->count++;
    return QN_OK;
}

static qn_status list_folder(const char *folder, const char *begins, int depth, found_files *all,
                             qn_error *err);

static qn_status take_entry(const qn__json_node *node, const char *folder, const char *begins,
                            int depth, found_files *all, qn_error *err) {
    char inner[PATH];
    qn__hdfs_status status = {0};
    const char *name = qn__json_string(qn__json_get(node, "pathSuffix"));
    read_status(node, &status);
    if (!name || !*name || strncmp(name, begins, strlen(begins)) != 0)
        return QN_OK;
    if (!status.is_folder)
        return add_found(all, folder, name, &status, err);
    if (snprintf(inner, sizeof inner, "%s%s/", folder, name) >= PATH)
        return refuse_address(folder, "the address is too long", err);
    return list_folder(inner, "", depth + 1, all, err);
}

/* The files of a folder, which ends in '/', whose names begin with `begins`, and all files of the
 * folders in it that do. */
static qn_status list_folder(const char *folder, const char *begins, int depth, found_files *all,
                             qn_error *err) {
    enum { DEEPEST = 64 };
    char name[64];
    qn__http_answer answer;
    if (depth > DEEPEST)
        return refuse_address(folder, "the folders are nested too deeply", err);
    qn_status status = qn__hdfs_ask(folder, "GET", "LISTSTATUS", "", &answer, err);
    qn__json *json = status == QN_OK && answer.status == 200 ? parse(&answer) : NULL;
    const qn__json_node *list =
        qn__json_get(qn__json_get(root_of(json), "FileStatuses"), "FileStatus");
    qn__hdfs_exception(&answer, name);
    if (status == QN_OK && !list && strcmp(name, "FileNotFoundException") != 0)
        status = qn__hdfs_refuse(folder, &answer, err);
    qn__http_release(&answer);
    for (size_t i = 0; i < qn__json_count(list) && status == QN_OK; i++)
        status = take_entry(qn__json_at(list, i), folder, begins, depth, all, err);
    qn__json_free(json);
    return status;
}

static int by_address(const void *one, const void *other) {
    return strcmp(((const found_file *)one)->address, ((const found_file *)other)->address);
}

qn_status qn__hdfs_list(const char *prefix, size_t most, qn__remote_found each, void *user,
                        qn_error *err) {
    char folder[PATH];
    found_files all = {NULL, 0, 0};
    const char *slash = strrchr(prefix, '/');
    if (!slash || (slash > prefix && slash[-1] == '/') || strlen(prefix) >= PATH)
        return refuse_address(prefix, "the address has no path, or is too long", err);
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - prefix) + 1, prefix);
    qn_status status = list_folder(folder, slash + 1, 0, &all, err);
    if (all.count > 1)
        qsort(all.file, all.count, sizeof *all.file, by_address);
    for (size_t i = 0; i < all.count; i++) {
        if (status == QN_OK && (most == 0 || i < most))
            status = each(user, all.file[i].address, &all.file[i].about, err);
        qn__free(all.file[i].address);
    }
    qn__free(all.file);
    return status;
}

/* What stores answer, and the texts that say how to reach them. The first byte of an input says who
 * reads the rest. The answers are in the place of those that libcurl would bring: each ends with
 * 0x1F, and has a letter for its status, its headers up to 0x1E, and its body. */
#include "fuzz/fuzz.h"

#include "base/files/remote.h"
#include "base/memory.h"
#include "store/address.h"
#include "store/hdfs/webhdfs.h"
#include "store/http/curl.h"
#include "store/http/http_date.h"
#include "store/object.h"
#include "store/region.h"
#include "store/sign/profile.h"
#include "store/sign/roles.h"
#include "store/sign/secret_json.h"
#include "store/sign/sts.h"
#include "store/http/xml_answer.h"
#include <stdarg.h>

enum { ANSWER_END = 0x1F, HEADERS_END = 0x1E };
static const char *next_answer, *answers_end;

/* ------------------------------------------------------------------------ in the place of libcurl
 */

typedef size_t take_bytes(char *bytes, size_t one, size_t size, void *user);

/* Who gets what of an answer. */
static struct {
    take_bytes *header, *body;
    void *header_user, *body_user;
} taker;

static int set_option(void *handle, int option, ...) {
    va_list value;
    (void)handle;
    va_start(value, option);
    if (option == QN__CURL_HEADERFUNCTION)
        taker.header = va_arg(value, take_bytes *);
    else if (option == QN__CURL_WRITEFUNCTION)
        taker.body = va_arg(value, take_bytes *);
    else if (option == QN__CURL_HEADERDATA)
        taker.header_user = va_arg(value, void *);
    else if (option == QN__CURL_WRITEDATA)
        taker.body_user = va_arg(value, void *);
    va_end(value);
    return QN__CURL_OK;
}

/* In parts of at most `most` bytes, each a copy that the taker may change; 0: it did not want one.
 */
static int give(take_bytes *take, void *user, const char *from, size_t size, size_t most) {
    char part[256];
    for (size_t n; size > 0; from += n, size -= n) {
        n = size < most ? size : most;
        memcpy(part, from, n);
        if (take(part, 1, n, user) != n)
            return 0;
    }
    return 1;
}

static int give_header(const char *line, size_t size) {
    return give(taker.header, taker.header_user, line, size, 256);
}

/* One answer as libcurl gives it: the status, the headers, and the body in parts. */
static int give_answer(const char *from, const char *end) {
    static const int statuses[] = {200, 206, 301, 304, 307, 400, 403, 404, 416, 500};
    char line[32];
    const char *split = memchr(from + 1, HEADERS_END, (size_t)(end - from) - 1);
    const char *stop = split ? split : end, *body = split ? split + 1 : end;
    const int size =
        snprintf(line, sizeof line, "HTTP/1.1 %d\r\n", statuses[(unsigned char)*from % 10]);
    int given = give_header(line, (size_t)size);
    for (const char *at = from + 1, *next; given && at < stop; at = next) {
        next = memchr(at, '\n', (size_t)(stop - at));
        next = next ? next + 1 : stop;
        given = give_header(at, (size_t)(next - at));
    }
    return given && give(taker.body, taker.body_user, body, (size_t)(end - body), 7);
}

/* Without further answers nothing is there. */
static int perform(void *handle) {
    (void)handle;
    if (next_answer >= answers_end)
        return QN__CURL_NOT_CONNECTED;
    const char *from = next_answer;
    const char *end = memchr(from, ANSWER_END, (size_t)(answers_end - from));
    next_answer = end ? end + 1 : answers_end;
    end = end ? end : answers_end;
    if (from == end)
        return QN__CURL_NOTHING;
    return give_answer(from, end) ? QN__CURL_OK : QN__CURL_WRITE;
}

static char anything;

static int begin(long flags, void *(*make)(size_t), void (*release)(void *),
                 void *(*resize)(void *, size_t), char *(*copy)(const char *),
                 void *(*many)(size_t, size_t)) {
    (void)flags, (void)make, (void)release, (void)resize, (void)copy, (void)many;
    return QN__CURL_OK;
}

static void *make(void) { return &anything; }

static void release(void *made) { (void)made; }

static const char *text_of(int code) {
    (void)code;
    return "it failed";
}

/* A line of a request cannot become two. */
static void *add_line(void *list, const char *line) {
    FUZZ_MUST(strcspn(line, "\r\n") == strlen(line));
    return list ? list : &anything;
}

static void replace_libcurl(void) {
    qn__curl_functions = (qn__curl){.global_init = begin,
                                    .make = make,
                                    .reset = release,
                                    .free = release,
                                    .set = set_option,
                                    .perform = perform,
                                    .text = text_of,
                                    .list_add = add_line,
                                    .list_free = release};
    qn__curl_library.library.handle = &anything;
    atomic_store(&qn__curl_library.asked, 1);
}

/* ------------------------------------------------------------------------------ readers of answers
 */

static void check_status(qn_status status, const qn_error *err) {
    FUZZ_MUST(status == QN_OK || (err->what[0] && err->status == status));
}

static qn_status count_file(void *user, const char *address, const qn__remote_about *about,
                            qn_error *err) {
    (void)err;
    FUZZ_MUST(strstr(address, "://") && memchr(about->tag, '\0', sizeof about->tag));
    ++*(int *)user;
    return QN_OK;
}

static void list_bucket(const char *unused) {
    int files = 0;
    qn_error err = {0};
    (void)unused;
    check_status(qn__remote_list("s3://bucket/folder/", 0, count_file, &files, &err), &err);
}

static void list_hdfs(const char *unused) {
    int files = 0;
    qn_error err = {0};
    (void)unused;
    check_status(qn__remote_list("hdfs://host/folder/", 3, count_file, &files, &err), &err);
    FUZZ_MUST(files <= 3);
}

static int count_bytes(void *user, const void *bytes, size_t size) {
    uint64_t *sum = user;
    for (size_t i = 0; i < size; i++)
        sum[1] += ((const uint8_t *)bytes)[i];
    sum[0] += size;
    return 1;
}

/* A range of it. */
static void read_range(const char *address, const qn__remote_about *about) {
    uint64_t sum[2] = {0};
    qn_error err = {0};
    const uint64_t end = about->size < 40 ? about->size : 40;
    const qn__object_range range = {.address = address,
                                    .about = about,
                                    .from = end / 2,
                                    .end = end,
                                    .take = count_bytes,
                                    .user = sum};
    if (end == 0)
        return;
    const qn_status status = qn__object_read(&range, &err);
    check_status(status, &err);
    FUZZ_MUST(status != QN_OK || sum[0] <= end - end / 2);
}

/* The first answer of a file, and then a range of it. */
static void read_object(const char *address) {
    qn__object_first first;
    qn_error err = {0};
    const qn_status status = qn__object_look(address, "\"old\"", &first, &err);
    check_status(status, &err);
    if (status == QN_OK && !first.unchanged && first.sized)
        read_range(address, &first.about);
    qn__free(first.bytes);
}

static void read_bucket(const char *unused) {
    (void)unused;
    read_object("s3://bucket/a b+c");
}

static void read_web(const char *unused) {
    (void)unused;
    read_object("https://user:password@host/file?key=1");
}

static void read_hdfs(const char *unused) {
    (void)unused;
    read_object("hdfs://host/file");
}

static void ask_role(const char *unused) {
    static const qn__credentials by = {.id = "key", .secret = "secret"};
    static qn__credentials key;
    int found = 0;
    qn_error err = {0};
    (void)unused;
    key = (qn__credentials){0};
    check_status(qn__role_container("default", &key, &found, &err), &err);
    check_status(qn__role_instance("default", &key, &found, &err), &err);
    check_status(qn__sts_assume("default", &by, &key, &err), &err);
}

/* -------------------------------------------------------------------------------- readers of texts
 */

static void find_settings(const char *text) {
    static const char *const sections[] = {"default", "profile work", "sso-session a"};
    static const char *const above[] = {NULL, NULL, "s3"};
    static const char *const keys[] = {"aws_access_key_id", "region", "endpoint_url", ""};
    char value[32];
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 4; k++)
            if (qn__profile_find(text, sections[i], above[i], keys[k], value, sizeof value) &&
                *keys[k])
                FUZZ_MUST(*value && !strchr(value, '\n'));
}

static void find_secrets(const char *text) {
    char value[32];
    for (int i = 0; i < 2; i++)
        if (qn__secret_json(text, i ? "accessToken" : "expiration", value, sizeof value))
            FUZZ_MUST(*value && strlen(value) < sizeof value);
}

static void read_address(const char *text) {
    static qn__store_target target;
    qn__store_address address;
    qn_error err = {0};
    char shown[512];
    qn__remote_shown(text, shown, sizeof shown);
    if (!qn__store_kind_of(text))
        return;
    qn_status status = qn__store_address_read(text, &address, &err);
    check_status(status, &err);
    if (status != QN_OK || !address.kind->bucket)
        return;
    status =
        qn__store_target_make(&address, address.key, "list-type=2", "eu-central-1", &target, &err);
    check_status(status, &err);
    FUZZ_MUST(status != QN_OK || strcspn(target.url, " \r\n#") == strlen(target.url));
}

static void read_texts(const char *text) {
    char value[16];
    int64_t seconds;
    if (qn__xml_text(text, "Code", value, sizeof value))
        FUZZ_MUST(*value && strlen(value) < sizeof value);
    (void)qn__http_date(text, &seconds);
    const qn__http_answer answer = {.body = (char *)(uintptr_t)text};
    if (qn__region_told(&answer, value, sizeof value)) /* it becomes a part of a host's name */
        FUZZ_MUST(*value && !strpbrk(value, ".:/?#@ "));
}

static const struct {
    char letter;
    void (*read)(const char *text);
    int answers;
} readers[] = {{'l', list_bucket, 1},   {'f', list_hdfs, 1},    {'b', read_bucket, 1},
               {'w', read_web, 1},      {'h', read_hdfs, 1},    {'r', ask_role, 1},
               {'p', find_settings, 0}, {'j', find_secrets, 0}, {'a', read_address, 0},
               {'x', read_texts, 0}};

static void set_up(void) {
    replace_libcurl();
    static const char *const variables[][2] = {
        {"AWS_ACCESS_KEY_ID", "id"},
        {"AWS_SECRET_ACCESS_KEY", "secret"},
        {"AWS_REGION", "eu-central-1"},
        {"AWS_ENDPOINT_URL", "http://127.0.0.1:1/"},
        {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1/role"},
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1/"},
        {"QUERN_STORE_PAUSE_MS", "0"},
        {"HADOOP_USER_NAME", "name"}};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        setenv(variables[i][0], variables[i][1], 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static int ready;
    if (!ready++)
        set_up();
    for (size_t i = 0; size > 0 && i < sizeof readers / sizeof *readers; i++) {
        if (readers[i].letter != *bytes)
            continue;
        char *text = fuzz_text(bytes + 1, size - 1);
        next_answer = text;
        answers_end = readers[i].answers ? text + size - 1 : text;
        readers[i].read(text);
        free(text);
    }
    return 0;
}

/* Which requests are sent again, and when. */
#include "store/http/attempt.h"
#include "base/files/remote.h"
#include "store/http/curl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* The pause before attempt n is random, from half of PAUSE times 2^n to all of it: many readers
 * that failed together do not come back together. */
enum { ATTEMPTS = 9, ATTEMPTS_FEW = 2, PAUSE_MS = 250, PAUSE_MOST_MS = 20000, ASKED_MOST_S = 120 };

/* Answers that mean "later" (RFC 9110; 509 is used by some stores for their limits). */
static const int passing[] = {408, 425, 429, 500, 502, 503, 504, 509};

/* Failures of a transfer, and how often it is tried at most. A name or a port that is wrong
 * stays wrong, so these are tried less often than what a busy network causes. */
static const struct {
    int code, attempts;
} failures[] = {
    {QN__CURL_PROXY_UNKNOWN, 3},  {QN__CURL_HOST_UNKNOWN, 3},       {QN__CURL_NOT_CONNECTED, 4},
    {QN__CURL_PARTIAL, ATTEMPTS}, {QN__CURL_TIMEOUT, ATTEMPTS},     {QN__CURL_TLS_CONNECT, 4},
    {QN__CURL_NOTHING, ATTEMPTS}, {QN__CURL_SEND, ATTEMPTS},        {QN__CURL_RECEIVE, ATTEMPTS},
    {QN__CURL_CHUNK, ATTEMPTS},   {QN__CURL_HTTP2_STREAM, ATTEMPTS}};

int qn__http_is_passing(int status) {
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        if (passing[i] == status)
            return 1;
    return 0;
}

/* Where the program is to end, reading is not tried again, and writing twice. */
static int most_at_the_end(const qn__http_request *request, int most) {
    enum { WRITES = 3 };
    if (atomic_load(&qn__remote_hurries) == 0)
        return most;
    return qn__http_reads(request) ? 0 : most < WRITES ? most : WRITES;
}

/* How many attempts a result allows; 0: it is final. */
static int attempts_of(const qn__http_request *request, const qn__http_answer *answer) {
    int most = 0;
    if (answer->code == QN__CURL_OK)
        most = qn__http_is_passing(answer->status) ? ATTEMPTS : 0;
    for (size_t i = 0; answer->code && i < sizeof failures / sizeof *failures; i++)
        if (failures[i].code == answer->code)
            most = failures[i].attempts;
    if (request->attempts > 0 && most > request->attempts)
        most = request->attempts;
    most = most_at_the_end(request, most);
    return request->few && most > ATTEMPTS_FEW ? ATTEMPTS_FEW : most;
}

static long pause_ms(void) {
    const char *text = getenv("QUERN_STORE_PAUSE_MS");
    const long given = text ? strtol(text, NULL, 10) : 0;
    return text && given >= 0 && given < PAUSE_MOST_MS ? given : PAUSE_MS;
}

/* In steps, so that a request that is stopped ends soon. */
static void sleep_ms(long long wait, const qn__http_request *request) {
    enum { STEP = 100 };
    const atomic_int *stop = request->stop;
    for (; wait > 0 && !(stop && atomic_load(stop)); wait -= STEP) {
        if (qn__http_reads(request) && atomic_load(&qn__remote_hurries) > 0)
            return;
        const long long now = wait < STEP ? wait : STEP;
        struct timespec left = {0, (long)now * 1000000L};
        while (nanosleep(&left, &left) != 0 && errno == EINTR)
            ;
    }
}

static void wait_before(int failed, const qn__http_request *request,
                        const qn__http_answer *answer) {
    char text[32];
    uint32_t random = 0;
    const long base = pause_ms();
    long long most = (long long)base << (failed < 8 ? failed : 8);
    if (most > PAUSE_MOST_MS)
        most = PAUSE_MOST_MS;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
        random = (uint32_t)clock();
    long long wait = most / 2 + (most / 2) * (long long)(random >> 16) / 65536;
    /* A date in the header, which is allowed too, is left to the growing pauses. */
    if (base > 0 && qn__http_value(answer, "retry-after", text, sizeof text)) {
        const long asked = strtol(text, NULL, 10);
        if (asked > 0)
            wait += 1000LL * (asked < ASKED_MOST_S ? asked : ASKED_MOST_S);
    }
    sleep_ms(wait, request);
}

/* Remedies of failures without an answer. */
static const char *remedy_of(int code) {
    switch (code) {
    case QN__CURL_BAD_URL:
        return "check the address";
    case QN__CURL_HOST_UNKNOWN:
    case QN__CURL_PROXY_UNKNOWN:
        return "check the host's name, and that this machine reaches a name server";
    case QN__CURL_NOT_CONNECTED:
        return "check the address and the port, and that the server runs";
    case QN__CURL_TLS_CONNECT:
        return "check that the server speaks TLS on this port; http:// is without";
    case QN__CURL_PEER:
        return "name the certificate of its authority by AWS_CA_BUNDLE, if you trust it";
    case QN__CURL_CA_FILE:
        return "check the file that AWS_CA_BUNDLE names, or install ca-certificates";
    default:
        return "try again; if it fails again, look at the server's log";
    }
}

static qn_status refuse(const qn__http_request *request, const qn__http_answer *answer,
                        qn_error *err) {
    char shown[512];
    qn__http_shown(request->url, shown, sizeof shown);
    qn__fail(err, QN_IO, "the server did not answer wholly, in %d attempt%s: %s", answer->attempts,
             answer->attempts == 1 ? "" : "s", answer->reason);
    qn__at(err, "%s", shown);
    return qn__remedy(err, QN_IO, "%s", remedy_of(answer->code));
}

qn_status qn__http_send(const qn__http_request *request, qn__http_answer *answer, qn_error *err) {
    *answer = (qn__http_answer){0};
    for (int failed = 0;; failed++) {
        int moved = 0;
        const qn_status status = qn__http_attempt(request, answer, &moved, err);
        if (status != QN_OK)
            return status;
        if (answer->code != QN__CURL_OK && request->is_enough &&
            request->is_enough(request->user)) {
            answer->code = QN__CURL_OK;
            return QN_OK;
        }
        if (moved)
            failed = 0; /* bytes came: the server is there */
        if (answer->stopped || failed + 1 >= attempts_of(request, answer))
            return answer->code == QN__CURL_OK ? QN_OK : refuse(request, answer, err);
        wait_before(failed, request, answer);
    }
}

#include "store/sign/asking.h"
#include "store/http/xml_answer.h"
#include "store/sign/secret.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

int64_t qn__seconds_of(const char *text) {
    struct tm t = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &t);
    return rest ? (int64_t)timegm(&t) : 0;
}

static qn_status add_headers(void *user, qn__http_headers *headers, qn_error *err) {
    const qn__asking *a = user;
    if (a->attempt)
        return a->attempt(a->user, headers, err);
    if (a->header)
        qn__http_header(headers, "%s: %s", a->header, a->value);
    return QN_OK;
}

static int take(void *user, const void *bytes, size_t size) {
    qn__asking *a = user;
    if (size >= QN__ASKING_ANSWER - a->size)
        return 0;
    memcpy(a->answer + a->size, bytes, size);
    a->size += size;
    a->answer[a->size] = '\0';
    return 1;
}

/* An attempt begins anew. */
static int begin(void *user, const qn__http_answer *answer) {
    qn__asking *a = user;
    (void)answer;
    a->size = 0;
    a->answer[0] = '\0';
    return 1;
}

static void keep_reason(qn__asking *a, const qn__http_answer *answer) {
    char code[64], why[240];
    const int named = qn__xml_text(answer->body, "Code", code, sizeof code);
    const int explained = qn__xml_text(answer->body, "Message", why, sizeof why);
    snprintf(a->said, sizeof a->said, "%s%s%s", code, named && explained ? ": " : "", why);
}

qn_status qn__ask(qn__asking *a, const char *method, const char *url, qn_error *err) {
    qn__http_answer answer;
    const qn__http_request request = {.method = method,
                                      .url = url,
                                      .few = a->few,
                                      .attempt = add_headers,
                                      .body = a->body,
                                      .body_size = a->body ? strlen(a->body) : 0,
                                      .begin = begin,
                                      .take = take,
                                      .user = a};
    if (!a->answer)
        a->answer = qn__secret_make(QN__ASKING_ANSWER, err);
    if (!a->answer)
        return QN_MEMORY;
    a->size = 0;
    a->answer[0] = a->said[0] = '\0';
    const qn_status sent = qn__http_send(&request, &answer, err);
    a->status = sent == QN_OK ? answer.status : 0;
    if (sent == QN_OK)
        keep_reason(a, &answer);
    qn__http_release(&answer);
    return sent;
}

qn_status qn__asking_refuse(const qn__asking *a, const char *service, const char *url,
                            const char *remedy, qn_error *err) {
    char shown[512];
    qn__http_shown(url, shown, sizeof shown);
    if (a->status == 200)
        qn__fail(err, QN_IO, "%s gave no credentials that can be read", service);
    else
        qn__fail(err, QN_IO, "%s gave no credentials: status %d%s%s", service, a->status,
                 *a->said ? ", " : "", a->said);
    qn__at(err, "%s", shown);
    return qn__remedy(err, QN_IO, "%s", remedy);
}

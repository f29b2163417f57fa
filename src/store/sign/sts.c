#include "store/sign/sts.h"
#include "base/digest/sha256.h"
#include "base/text/text.h"
#include "store/http/xml_answer.h"
#include "store/sign/asking.h"
#include "store/sign/profile.h"
#include "store/sign/secret.h"
#include "store/sign/signature.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BODY = 2 * QN__ASKING_TOKEN, ARN = 2049, NAME = 128 };
static const char FORM[] = "application/x-www-form-urlencoded; charset=utf-8";

/* A request on its way. */
typedef struct sts {
    const char *profile;
    const qn__credentials *by; /* NULL: it is not signed */
    char url[QN__ASKING_URL], host[256], region[64];
    char *body; /* in secret memory */
    size_t size;
    int is_full;
    qn__asking asking;
} sts;

/* ------------------------------------------------------------------ the request */

/* Adds "name=value", the value encoded. */
static void add(sts *s, const char *name, const char *value) {
    const int n = snprintf(s->body + s->size, BODY - s->size, "%s%s=", s->size ? "&" : "", name);
    s->size += n > 0 ? (size_t)n : 0;
    if (s->size < BODY)
        s->size += qn__uri_encode(value, 0, s->body + s->size, BODY - s->size);
    s->is_full |= s->size >= BODY;
    s->size = s->is_full ? 0 : s->size;
}

static qn_status begin(sts *s, const char *profile, const char *action, const char *arn,
                       const char *session, qn_error *err) {
    *s = (sts){.profile = profile, .body = qn__secret_make(BODY, err)};
    if (!s->body)
        return QN_MEMORY;
    add(s, "Action", action);
    add(s, "Version", "2011-06-15");
    add(s, "RoleArn", arn);
    add(s, "RoleSessionName", *session ? session : "quern");
    return QN_OK;
}

/* Without a region the service of all regions is asked, which lies in us-east-1. */
static qn_status find_service(sts *s, qn_error *err) {
    const int regional = qn__profile_region(s->profile, s->region, sizeof s->region);
    if (!regional)
        snprintf(s->region, sizeof s->region, "us-east-1");
    if (!qn__profile_endpoint(s->profile, "sts", s->url, sizeof s->url - 1))
        snprintf(s->url, sizeof s->url - 1, "https://sts%s%s.amazonaws.com%s", regional ? "." : "",
                 regional ? s->region : "", strncmp(s->region, "cn-", 3) == 0 ? ".cn" : "");
    const char *scheme = strstr(s->url, "://");
    const size_t host = scheme ? strcspn(scheme + 3, "/?#") : 0;
    if (host > 0 && host < sizeof s->host && !strpbrk(s->url, "@?#")) {
        snprintf(s->host, sizeof s->host, "%.*s", (int)host, scheme + 3);
        if (!scheme[3 + host])
            strcat(s->url, "/");
        return QN_OK;
    }
    qn__fail(err, QN_INPUT, "the endpoint of AWS Security Token Service is not an address");
    qn__at(err, "AWS_ENDPOINT_URL_STS, AWS_ENDPOINT_URL or endpoint_url of the profile %.80s",
           s->profile);
    return qn__remedy(err, QN_INPUT, "write it as https://HOST:PORT, without user and password");
}

/* A signature holds for some minutes, so each attempt has its own. */
static qn_status add_signed(void *user, qn__http_headers *out, qn_error *err) {
    const sts *s = user;
    char date[20], line[QN__SIGN_LINE], digest[65];
    uint8_t bytes[32];
    struct tm parts;
    const time_t now = time(NULL);
    strftime(date, sizeof date, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &parts));
    qn__http_header(out, "Content-Type: %s", FORM);
    if (!s->by)
        return QN_OK;
    qn__sha256_of(s->body, s->size, bytes);
    qn__hex(bytes, digest);
    const qn__signed_header header[] = {{"content-type", FORM},
                                        {"host", s->host},
                                        {"x-amz-content-sha256", digest},
                                        {"x-amz-date", date},
                                        {"x-amz-security-token", s->by->token}};
    const size_t count = sizeof header / sizeof *header - !s->by->token[0];
    const qn__signing signing = {.method = "POST",
                                 .path = strchr(strstr(s->url, "://") + 3, '/'),
                                 .query = "",
                                 .header = header,
                                 .headers = count,
                                 .payload = digest,
                                 .date = date,
                                 .region = s->region,
                                 .service = "sts",
                                 .key_id = s->by->id,
                                 .secret = s->by->secret};
    const qn_status status = qn__sign(&signing, line, err);
    for (size_t i = 2; i < count; i++)
        qn__http_header(out, "%s: %s", header[i].name, header[i].value);
    if (status == QN_OK)
        qn__http_header(out, "Authorization: %s", line);
    return status;
}

static int take(const char *xml, qn__credentials *key) {
    char end[64];
    if (!qn__xml_text(xml, "AccessKeyId", key->id, sizeof key->id) ||
        !qn__xml_text(xml, "SecretAccessKey", key->secret, sizeof key->secret) ||
        !qn__xml_text(xml, "SessionToken", key->token, sizeof key->token))
        return 0;
    key->expires = qn__xml_text(xml, "Expiration", end, sizeof end) ? qn__seconds_of(end) : 0;
    return 1;
}

static qn_status send(sts *s, const char *remedy, qn__credentials *key, qn_error *err) {
    qn_status status = s->is_full ? qn__fail(err, QN_INPUT, "the token or role is too long")
                                  : find_service(s, err);
    s->asking.attempt = add_signed;
    s->asking.user = s;
    s->asking.body = s->body;
    if (status == QN_OK)
        status = qn__ask(&s->asking, "POST", s->url, err);
    if (status == QN_OK && (s->asking.status != 200 || !take(s->asking.answer, key)))
        status = qn__asking_refuse(&s->asking, "AWS Security Token Service", s->url, remedy, err);
    return status;
}

static void end(sts *s) {
    qn__secret_free(s->body);
    qn__secret_free(s->asking.answer);
}

/* ------------------------------------------------------------------ roles */

static qn_status refuse_code(const char *profile, qn_error *err) {
    qn__fail(err, QN_INPUT,
             "the role needs a code of a device (mfa_serial), which nobody types here");
    qn__at(err, "the profile %.80s of ~/.aws/config", profile);
    return qn__remedy(err, QN_INPUT,
                      "put what \"aws configure export-credentials\" prints into the environment");
}

qn_status qn__sts_assume(const char *profile, const qn__credentials *by, qn__credentials *key,
                         qn_error *err) {
    sts s;
    char arn[ARN] = "", session[NAME] = "", text[1300];
    (void)qn__profile_setting(profile, "role_arn", arn, sizeof arn);
    (void)qn__profile_setting(profile, "role_session_name", session, sizeof session);
    if (qn__profile_setting(profile, "mfa_serial", text, sizeof text))
        return refuse_code(profile, err);
    qn_status status = begin(&s, profile, "AssumeRole", arn, session, err);
    if (status != QN_OK)
        return status;
    s.by = by;
    if (qn__profile_setting(profile, "external_id", text, sizeof text))
        add(&s, "ExternalId", text);
    if (qn__profile_setting(profile, "duration_seconds", text, sizeof text))
        add(&s, "DurationSeconds", text);
    status =
        send(&s, "check role_arn of the profile, and that the role trusts its caller", key, err);
    snprintf(key->source, sizeof key->source, "the role %.80s of the profile %.40s", arn, profile);
    end(&s);
    return status;
}

static qn_status refuse_token(const char *path, qn_error *err) {
    qn__fail(err, QN_INPUT, "the file with the token of a web identity cannot be read");
    qn__at(err, "%.300s", path);
    return qn__remedy(err, QN_INPUT,
                      "check AWS_WEB_IDENTITY_TOKEN_FILE, or web_identity_token_file of the "
                      "profile");
}

static qn_status refuse_role(const char *path, qn_error *err) {
    qn__fail(err, QN_INPUT, "a web identity has a token, and its role is not named");
    qn__at(err, "%.300s", path);
    return qn__remedy(err, QN_INPUT, "set AWS_ROLE_ARN, or role_arn in the profile");
}

/* The file is read each time: who writes it puts a new token there before the old one ends. */
static qn_status ask_for(const char *profile, const char *path, const char *arn,
                         const char *session, qn__credentials *key, qn_error *err) {
    sts s;
    char *token = qn__secret_file(path);
    if (!token || !*token) {
        qn__secret_free(token);
        return refuse_token(path, err);
    }
    token[strcspn(token, "\r\n")] = '\0';
    qn_status status = begin(&s, profile, "AssumeRoleWithWebIdentity", arn, session, err);
    if (status == QN_OK) {
        add(&s, "WebIdentityToken", token);
        status = send(&s, "check the role, and that it trusts the issuer of the token", key, err);
        snprintf(key->source, sizeof key->source, "the role %.80s of the web identity", arn);
        end(&s);
    }
    qn__secret_free(token);
    return status;
}

static int is_set(const char *text) { return text && *text; }

qn_status qn__sts_web_identity_here(const char *profile, qn__credentials *key, int *found,
                                    qn_error *err) {
    const char *path = getenv("AWS_WEB_IDENTITY_TOKEN_FILE"), *arn = getenv("AWS_ROLE_ARN"),
               *session = getenv("AWS_ROLE_SESSION_NAME");
    char role[ARN];
    *found = is_set(path);
    if (!*found)
        return QN_OK;
    if (!is_set(arn))
        arn = qn__profile_setting(profile, "role_arn", role, sizeof role) ? role : NULL;
    return arn ? ask_for(profile, path, arn, session ? session : "", key, err)
               : refuse_role(path, err);
}

qn_status qn__sts_web_identity(const char *profile, qn__credentials *key, int *found,
                               qn_error *err) {
    char path[PATH_MAX], arn[ARN], session[NAME] = "";
    *found = qn__profile_setting(profile, "web_identity_token_file", path, sizeof path);
    if (!*found)
        return QN_OK;
    if (!qn__profile_setting(profile, "role_arn", arn, sizeof arn))
        return refuse_role(path, err);
    (void)qn__profile_setting(profile, "role_session_name", session, sizeof session);
    return ask_for(profile, path, arn, session, key, err);
}

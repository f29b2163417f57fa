#include "store/sign/roles.h"
#include "store/sign/asking.h"
#include "store/sign/profile.h"
#include "store/sign/secret.h"
#include "store/sign/secret_json.h"
#include "store/sign/signature.h"
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* ------------------------------------------------------------------ container and instance */

static int take_role(const char *json, qn__credentials *key) {
    char end[64];
    if (!qn__secret_json(json, "AccessKeyId", key->id, sizeof key->id) ||
        !qn__secret_json(json, "SecretAccessKey", key->secret, sizeof key->secret))
        return 0;
    (void)qn__secret_json(json, "Token", key->token, sizeof key->token);
    key->expires = qn__secret_json(json, "Expiration", end, sizeof end) ? qn__seconds_of(end) : 0;
    return 1;
}

/* Plain HTTP is for addresses that only this machine reaches. */
static int is_near(const char *url) {
    static const char *const hosts[] = {"localhost", "[::1]", "169.254.170.2", "169.254.170.23"};
    if (strncmp(url, "https://", 8) == 0)
        return 1;
    if (strncmp(url, "http://", 7) != 0)
        return 0;
    const char *host = url + 7;
    size_t size = strspn(host, "0123456789.");
    int near = strncmp(host, "127.", 4) == 0 && strchr(":/", host[size]) != NULL;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        size = strlen(hosts[i]);
        near |= strncmp(host, hosts[i], size) == 0 && strchr(":/", host[size]) != NULL;
    }
    return near && !strchr(host, '@');
}

static qn_status container_url(char url[QN__ASKING_URL], int *found, qn_error *err) {
    const char *below = getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
               *full = getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    *found = (below && *below) || (full && *full);
    if (below && *below)
        snprintf(url, QN__ASKING_URL, "http://169.254.170.2%s", below);
    else if (full && *full)
        snprintf(url, QN__ASKING_URL, "%s", full);
    if (!*found || is_near(url))
        return QN_OK;
    qn__fail(err, QN_INPUT, "credentials would come over plain HTTP from another machine");
    qn__at(err, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    return qn__remedy(err, QN_INPUT, "give an https:// address, or one of this machine");
}

qn_status qn__role_container(const char *profile, qn__credentials *key, int *found, qn_error *err) {
    static const char service[] = "the container's agent";
    char url[QN__ASKING_URL];
    (void)profile;
    const char *path = getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    qn_status status = container_url(url, found, err);
    if (status != QN_OK || !*found)
        return status;
    char *token = path && *path ? qn__secret_file(path) : NULL;
    qn__asking a = {.header = NULL};
    a.value = token ? token : qn__secret_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    a.header = a.value ? "Authorization" : NULL;
    if (token)
        token[strcspn(token, "\r\n")] = '\0';
    status = qn__ask(&a, "GET", url, err);
    if (status == QN_OK && (a.status != 200 || !take_role(a.answer, key)))
        status = qn__asking_refuse(&a, service, url, "look at the role of the container", err);
    snprintf(key->source, sizeof key->source, "the role of the container");
    qn__secret_free(a.answer);
    qn__secret_free(token);
    return status;
}

/* Whether the machine's vendor is Amazon: elsewhere the address below leads nowhere, after a
 * second. */
static int is_instance(void) {
    static const char *const names[] = {"/sys/class/dmi/id/sys_vendor",
                                        "/sys/class/dmi/id/board_vendor", "/sys/hypervisor/uuid"};
    char text[64];
    int found = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++) {
        FILE *file = fopen(names[i], "re");
        found = file && fgets(text, sizeof text, file) != NULL &&
                (strncasecmp(text, "amazon", 6) == 0 || strncasecmp(text, "ec2", 3) == 0);
        if (file)
            fclose(file);
    }
    return found;
}

static qn_status ask_instance(const char *base, qn__asking *a, qn__credentials *key, int *found,
                              qn_error *err) {
    char url[QN__ASKING_URL], role[256];
    static const char below[] = "/latest/meta-data/iam/security-credentials/";
    char *token = qn__secret_make(QN__ASKING_TOKEN, err);
    if (!token)
        return QN_MEMORY;
    snprintf(url, sizeof url, "%s/latest/api/token", base);
    a->header = "X-aws-ec2-metadata-token-ttl-seconds";
    a->value = "21600";
    a->few = 1;
    qn_status status = qn__ask(a, "PUT", url, NULL);
    if (status == QN_OK && a->status == 200) {
        snprintf(token, QN__ASKING_TOKEN, "%s", a->answer);
        a->header = "X-aws-ec2-metadata-token";
        a->value = token;
        snprintf(url, sizeof url, "%s%s", base, below);
        status = qn__ask(a, "GET", url, NULL);
    }
    *found = status == QN_OK && a->status == 200 && a->answer[0];
    status = status == QN_IO ? QN_OK : status; /* nothing is there: not an instance of Amazon's */
    if (*found) {
        a->answer[strcspn(a->answer, "\r\n")] = '\0';
        snprintf(role, sizeof role, "%s", a->answer);
        snprintf(url, sizeof url, "%s%s%s", base, below, role);
        a->few = 0;
        status = qn__ask(a, "GET", url, err);
        if (status == QN_OK && (a->status != 200 || !take_role(a->answer, key)))
            status = qn__asking_refuse(a, "the metadata of the instance", url,
                                       "look at the role of the instance", err);
        snprintf(key->source, sizeof key->source, "the role %.80s of the instance", role);
    }
    qn__secret_free(token);
    return status;
}

qn_status qn__role_instance(const char *profile, qn__credentials *key, int *found, qn_error *err) {
    const char *base = getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT"),
               *off = getenv("AWS_EC2_METADATA_DISABLED");
    char given[512];
    (void)profile;
    *found = 0;
    if ((off && strcasecmp(off, "true") == 0) || ((!base || !*base) && !is_instance()))
        return QN_OK;
    snprintf(given, sizeof given, "%s", base && *base ? base : "http://169.254.169.254");
    for (size_t size = strlen(given); size > 0 && given[size - 1] == '/'; size--)
        given[size - 1] = '\0';
    qn__asking a = {.header = NULL};
    const qn_status status = ask_instance(given, &a, key, found, err);
    qn__secret_free(a.answer);
    return status;
}

/* ------------------------------------------------------------------ SSO */

/* What a profile says about its login. */
typedef struct login {
    char start[512], region[64], account[64], role[128];
} login;

static int read_login(const char *profile, login *l) {
    char session[128];
    const int named =
        qn__profile_get(profile, QN__PROFILE_CONFIG, "sso_session", session, sizeof session);
    const int there = named ? qn__profile_section_get("sso-session", session, "sso_start_url",
                                                      l->start, sizeof l->start) &&
                                  qn__profile_section_get("sso-session", session, "sso_region",
                                                          l->region, sizeof l->region)
                            : qn__profile_get(profile, QN__PROFILE_CONFIG, "sso_start_url",
                                              l->start, sizeof l->start) &&
                                  qn__profile_get(profile, QN__PROFILE_CONFIG, "sso_region",
                                                  l->region, sizeof l->region);
    return there &&
           qn__profile_get(profile, QN__PROFILE_CONFIG, "sso_account_id", l->account,
                           sizeof l->account) &&
           qn__profile_get(profile, QN__PROFILE_CONFIG, "sso_role_name", l->role, sizeof l->role);
}

/* The token of a file of the cache, if it is that of this login and has not ended. */
static int take_token(const char *path, const char *start, char *token) {
    char url[512], end[64];
    char *json = qn__secret_file(path);
    const int found = json && qn__secret_json(json, "startUrl", url, sizeof url) &&
                      strcmp(url, start) == 0 &&
                      qn__secret_json(json, "expiresAt", end, sizeof end) &&
                      qn__seconds_of(end) > (int64_t)time(NULL) &&
                      qn__secret_json(json, "accessToken", token, QN__ASKING_TOKEN);
    qn__secret_free(json);
    return found;
}

/* The AWS command names the file by a digest; the file says itself what it belongs to. */
static int find_token(const char *start, char *token) {
    char folder[PATH_MAX], path[PATH_MAX];
    DIR *names = qn__profile_home(".aws/sso/cache", folder, sizeof folder) ? opendir(folder) : NULL;
    int found = 0;
    for (const struct dirent *e; names && !found && (e = readdir(names)) != NULL;) {
        const size_t size = strlen(e->d_name);
        if (size < 5 || strcmp(e->d_name + size - 5, ".json") != 0 ||
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= PATH_MAX)
            continue;
        found = take_token(path, start, token);
    }
    if (names)
        closedir(names);
    return found;
}

static qn_status refuse_login(const char *profile, qn_error *err) {
    qn__fail(err, QN_INPUT, "the login of AWS IAM Identity Center has ended, or there was none");
    qn__at(err, "the profile %.80s of ~/.aws/config", profile);
    return qn__remedy(err, QN_INPUT, "log in: aws sso login, with this profile");
}

static int take_login(const char *json, qn__credentials *key) {
    char end[64];
    if (!qn__secret_json(json, "accessKeyId", key->id, sizeof key->id) ||
        !qn__secret_json(json, "secretAccessKey", key->secret, sizeof key->secret) ||
        !qn__secret_json(json, "sessionToken", key->token, sizeof key->token))
        return 0;
    key->expires =
        qn__secret_json(json, "expiration", end, sizeof end) ? strtoll(end, NULL, 10) / 1000 : 0;
    return 1;
}

static qn_status ask_login(const char *profile, const login *l, qn__asking *a, qn__credentials *key,
                           qn_error *err) {
    char url[QN__ASKING_URL], role[512], account[256];
    const char *base = getenv("AWS_ENDPOINT_URL_SSO");
    qn__uri_encode(l->role, 0, role, sizeof role);
    qn__uri_encode(l->account, 0, account, sizeof account);
    if (base && *base)
        snprintf(url, sizeof url, "%s", base);
    else
        snprintf(url, sizeof url, "https://portal.sso.%s.amazonaws.com", l->region);
    const size_t size = strlen(url);
    snprintf(url + size, sizeof url - size, "/federation/credentials?role_name=%s&account_id=%s",
             role, account);
    const qn_status status = qn__ask(a, "GET", url, err);
    if (status != QN_OK)
        return status;
    if (a->status == 401 || a->status == 403)
        return refuse_login(profile, err);
    if (a->status != 200 || !take_login(a->answer, key))
        return qn__asking_refuse(a, "AWS IAM Identity Center", url,
                                 "look at sso_account_id and sso_role_name of the profile", err);
    snprintf(key->source, sizeof key->source, "the login (SSO) of the profile %.80s", profile);
    return QN_OK;
}

qn_status qn__role_sso(const char *profile, qn__credentials *key, int *found, qn_error *err) {
    login l;
    *found = read_login(profile, &l);
    if (!*found)
        return QN_OK;
    qn__asking a = {.header = "x-amz-sso_bearer_token"};
    char *token = qn__secret_make(QN__ASKING_TOKEN, err);
    a.value = token;
    qn_status status = QN_MEMORY;
    if (token)
        status = find_token(l.start, token) ? ask_login(profile, &l, &a, key, err)
                                            : refuse_login(profile, err);
    qn__secret_free(token);
    qn__secret_free(a.answer);
    return status;
}

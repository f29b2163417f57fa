#include "store/sign/credentials.h"
#include "store/sign/profile.h"
#include "store/sign/roles.h"
#include "store/sign/secret.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Seconds before their end at which credentials are fetched anew. */
enum { EARLY = 300, KINDS = QN__CREDENTIALS_GS + 1 };

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static qn__credentials *held[KINDS]; /* each counts as a user */

static int copy_variable(const char *name, char *to, size_t capacity) {
    const char *value = qn__secret_variable(name);
    return value && (size_t)snprintf(to, capacity, "%s", value) < capacity;
}

static int take_pair(qn__credentials *key, const char *id, const char *secret, const char *token) {
    const int found = copy_variable(id, key->id, sizeof key->id) &&
                      copy_variable(secret, key->secret, sizeof key->secret);
    if (found && token)
        (void)copy_variable(token, key->token, sizeof key->token);
    if (found)
        snprintf(key->source, sizeof key->source, "the environment (%s)", id);
    return found;
}

static qn_status from_environment(qn__credentials *key, int *found, qn_error *err) {
    (void)err;
    *found = take_pair(key, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN");
    return QN_OK;
}

static qn_status from_file(qn__profile_file file, qn__credentials *key, int *found) {
    *found = qn__profile_get(file, "aws_access_key_id", key->id, sizeof key->id) &&
             qn__profile_get(file, "aws_secret_access_key", key->secret, sizeof key->secret);
    if (*found) {
        (void)qn__profile_get(file, "aws_session_token", key->token, sizeof key->token);
        snprintf(key->source, sizeof key->source, "the profile %.80s of ~/.aws/%s",
                 qn__profile_name(), file == QN__PROFILE_CONFIG ? "config" : "credentials");
    }
    return QN_OK;
}

static qn_status from_credentials_file(qn__credentials *key, int *found, qn_error *err) {
    (void)err;
    return from_file(QN__PROFILE_CREDENTIALS, key, found);
}

/* Settings by which the AWS command would get credentials in ways that are not built in. */
static qn_status from_config_file(qn__credentials *key, int *found, qn_error *err) {
    static const char *const others[] = {"role_arn", "credential_process",
                                         "web_identity_token_file"};
    char value[1024];
    const qn_status status = from_file(QN__PROFILE_CONFIG, key, found);
    for (size_t i = 0; !*found && i < sizeof others / sizeof *others; i++)
        if (qn__profile_get(QN__PROFILE_CONFIG, others[i], value, sizeof value)) {
            qn__fail(err, QN_UNSUPPORTED, "the profile has %s, which Quern does not follow",
                     others[i]);
            qn__at(err, "the profile %.80s of ~/.aws/config", qn__profile_name());
            return qn__remedy(err, QN_UNSUPPORTED,
                              "let the AWS command give them: aws configure "
                              "export-credentials, and put them into the environment");
        }
    return status;
}

/* A name that was given wrongly: without credentials the store could only refuse the request. */
static qn_status from_no_profile(qn__credentials *key, int *found, qn_error *err) {
    const char *name = getenv("AWS_PROFILE");
    (void)key, (void)found;
    if (!name || !*name || qn__profile_exists())
        return QN_OK;
    qn__fail(err, QN_INPUT, "there is no such profile of AWS");
    qn__at(err, "%.80s (AWS_PROFILE)", name);
    return qn__remedy(err, QN_INPUT,
                      "name one of ~/.aws/config or ~/.aws/credentials, or unset AWS_PROFILE");
}

/* In the order of the AWS command. */
static qn_status (*const sources[])(qn__credentials *, int *, qn_error *) = {
    from_environment, from_no_profile,    qn__role_sso,     from_credentials_file,
    from_config_file, qn__role_container, qn__role_instance};

static qn_status look(qn__credentials_kind kind, qn__credentials *key, int *found, qn_error *err) {
    *found = kind == QN__CREDENTIALS_GS &&
             take_pair(key, "GS_ACCESS_KEY_ID", "GS_SECRET_ACCESS_KEY", NULL);
    qn_status status = QN_OK;
    for (size_t i = 0; status == QN_OK && !*found && i < sizeof sources / sizeof *sources; i++)
        status = sources[i](key, found, err);
    return status;
}

/* Without a lock. */
static void release(qn__credentials *credentials) {
    if (credentials && --credentials->users == 0)
        qn__secret_free(credentials);
}

static int is_fresh(const qn__credentials *key) {
    return key && (key->expires == 0 || key->expires - EARLY > (int64_t)time(NULL));
}

static qn_status refresh(qn__credentials_kind kind, qn_error *err) {
    int found = 0;
    qn__credentials *key = qn__secret_make(sizeof *key, err);
    if (!key)
        return QN_MEMORY;
    key->users = 1;
    const qn_status status = look(kind, key, &found, err);
    /* Those that are held serve until their end if the service is away for a while. */
    const int keep = status != QN_OK && held[kind] && held[kind]->expires > (int64_t)time(NULL);
    if (status == QN_OK && found) {
        release(held[kind]);
        held[kind] = key;
        return QN_OK;
    }
    release(key);
    if (keep)
        return QN_OK;
    release(held[kind]);
    held[kind] = NULL;
    return status;
}

qn_status qn__credentials_find(qn__credentials_kind kind, qn__credentials **out, qn_error *err) {
    qn_status status = QN_OK;
    pthread_mutex_lock(&guard);
    if (!is_fresh(held[kind]))
        status = refresh(kind, err);
    *out = status == QN_OK ? held[kind] : NULL;
    if (*out)
        (*out)->users++;
    pthread_mutex_unlock(&guard);
    return status;
}

void qn__credentials_release(qn__credentials *credentials) {
    pthread_mutex_lock(&guard);
    release(credentials);
    pthread_mutex_unlock(&guard);
}

void qn__credentials_drop(qn__credentials_kind kind) {
    pthread_mutex_lock(&guard);
    release(held[kind]);
    held[kind] = NULL;
    pthread_mutex_unlock(&guard);
}

#include "store/sign/credentials.h"
#include "base/system/clock.h"
#include "store/sign/credential_program.h"
#include "store/sign/profile.h"
#include "store/sign/roles.h"
#include "store/sign/secret.h"
#include "store/sign/sts.h"
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Seconds before their end at which credentials are fetched anew, and for which a failure holds. */
enum { EARLY = 300, REFUSED = 5, KINDS = QN__CREDENTIALS_GS + 1 };

typedef struct refusal {
    qn_error why;
    double until; /* by qn__now */
} refusal;

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static qn__credentials *held[KINDS]; /* each counts as a user */
static refusal refused[KINDS];

static int copy_variable(const char *name, char *to, size_t capacity) {
    const char *value = qn__secret_variable(name);
    return value && (size_t)snprintf(to, capacity, "%s", value) < capacity;
}

/* A pair of which one is missing: without it requests would not be signed, or by another key. */
static qn_status refuse_half(const char *id, const char *secret, const char *where, qn_error *err) {
    qn__fail(err, QN_INPUT, "%s is set, but %s is missing or too long", id, secret);
    qn__at(err, "%s", where);
    return qn__remedy(err, QN_INPUT, "set both, or none of them");
}

static qn_status take_pair(qn__credentials *key, const char *id, const char *secret,
                           const char *token, int *found, qn_error *err) {
    const int has_id = copy_variable(id, key->id, sizeof key->id) && *key->id;
    *found = has_id && copy_variable(secret, key->secret, sizeof key->secret) && *key->secret;
    if (has_id && !*found)
        return refuse_half(id, secret, "the environment", err);
    if (*found && token)
        (void)copy_variable(token, key->token, sizeof key->token);
    if (*found)
        snprintf(key->source, sizeof key->source, "the environment (%s)", id);
    return QN_OK;
}

static qn_status from_environment(const char *profile, qn__credentials *key, int *found,
                                  qn_error *err) {
    (void)profile;
    return take_pair(key, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", found,
                     err);
}

static qn_status from_file(const char *profile, qn__profile_file file, qn__credentials *key,
                           int *found, qn_error *err) {
    static const char *const id = "aws_access_key_id", *const secret = "aws_secret_access_key";
    *found = qn__profile_get(profile, file, id, key->id, sizeof key->id);
    if (!*found)
        return QN_OK;
    snprintf(key->source, sizeof key->source, "the profile %.80s of ~/.aws/%s", profile,
             file == QN__PROFILE_CONFIG ? "config" : "credentials");
    if (!qn__profile_get(profile, file, secret, key->secret, sizeof key->secret))
        return refuse_half(id, secret, key->source, err);
    (void)qn__profile_get(profile, file, "aws_session_token", key->token, sizeof key->token);
    return QN_OK;
}

static qn_status from_credentials_file(const char *profile, qn__credentials *key, int *found,
                                       qn_error *err) {
    return from_file(profile, QN__PROFILE_CREDENTIALS, key, found, err);
}

static qn_status from_config_file(const char *profile, qn__credentials *key, int *found,
                                  qn_error *err) {
    return from_file(profile, QN__PROFILE_CONFIG, key, found, err);
}

/* A name that was given wrongly: without credentials the store could only refuse the request. */
static qn_status from_no_profile(const char *profile, qn__credentials *key, int *found,
                                 qn_error *err) {
    const char *variable = qn__profile_variable();
    (void)key, (void)found;
    if (!variable || qn__profile_exists(profile))
        return QN_OK;
    qn__fail(err, QN_INPUT, "the configuration of AWS has no such profile");
    qn__at(err, "%.80s (%s)", profile, variable);
    return qn__remedy(err, QN_INPUT, "name one of ~/.aws/config or ~/.aws/credentials, or unset %s",
                      variable);
}

/* The first of the places that has credentials, in their order. */
static qn_status look_at(qn__credentials_source *const *place, size_t places, const char *profile,
                         qn__credentials *key, int *found, qn_error *err) {
    qn_status status = QN_OK;
    *found = 0;
    for (size_t i = 0; status == QN_OK && !*found && i < places; i++)
        status = place[i](profile, key, found, err);
    return status;
}

/* ------------------------------------------------------------------ assumed roles */

enum { ROLES = 8, PROFILE = 128 };

/* The profiles of roles, each assumed with the credentials of the next one, and where those of the
 * last one are from. */
typedef struct roles {
    char profile[ROLES][PROFILE];
    size_t count;
    char base[PROFILE]; /* a profile; "": `source` */
    char source[64];    /* credential_source */
    int keys_only;      /* the profile is a role itself, whose own keys assume it */
} roles;

static qn_status refuse_roles(const char *profile, const char *what, const char *remedy,
                              qn_error *err) {
    qn__fail(err, QN_INPUT, "%s", what);
    qn__at(err, "the profile %.80s of ~/.aws/config", profile);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

static int has(const char *profile, const char *key) {
    char value[PATH_MAX];
    return qn__profile_setting(profile, key, value, sizeof value);
}

/* A web identity is a role that needs no credentials. */
static int is_role(const char *profile) {
    return has(profile, "role_arn") && !has(profile, "web_identity_token_file");
}

static qn_status follow(roles *r, const char *profile, qn_error *err) {
    char name[PROFILE], next[PROFILE];
    snprintf(name, sizeof name, "%s", profile);
    while (is_role(name) && (r->count == 0 || !has(name, "aws_access_key_id"))) {
        if (r->count == ROLES)
            return refuse_roles(profile,
                                "the roles of profiles lead in a circle, or are more than 8",
                                "look at source_profile of each", err);
        snprintf(r->profile[r->count++], PROFILE, "%s", name);
        if (qn__profile_setting(name, "source_profile", next, sizeof next)) {
            r->keys_only = strcmp(name, next) == 0;
            if (!qn__profile_exists(next))
                return refuse_roles(name, "its source_profile is not there",
                                    "name a profile of ~/.aws/config or ~/.aws/credentials", err);
            snprintf(name, sizeof name, "%s", next);
            if (r->keys_only)
                break;
        } else if (qn__profile_setting(name, "credential_source", r->source, sizeof r->source)) {
            return QN_OK;
        } else {
            return refuse_roles(name,
                                "the profile has role_arn, and does not say who assumes the role",
                                "add source_profile or credential_source", err);
        }
    }
    snprintf(r->base, sizeof r->base, "%s", name);
    return QN_OK;
}

static qn_status find_base(const roles *r, qn__credentials *key, qn_error *err) {
    static qn__credentials_source *const of_profile[] = {
        qn__sts_web_identity, qn__role_sso, from_credentials_file, qn__credentials_of_program,
        from_config_file};
    static qn__credentials_source *const keys[] = {from_credentials_file, from_config_file};
    static const struct {
        const char *name;
        qn__credentials_source *source;
    } named[] = {{"Environment", from_environment},
                 {"EcsContainer", qn__role_container},
                 {"Ec2InstanceMetadata", qn__role_instance}};
    qn_status status = QN_OK;
    int found = 0;
    if (*r->base && r->keys_only)
        status = look_at(keys, sizeof keys / sizeof *keys, r->base, key, &found, err);
    else if (*r->base)
        status =
            look_at(of_profile, sizeof of_profile / sizeof *of_profile, r->base, key, &found, err);
    for (size_t i = 0; i < sizeof named / sizeof *named && !*r->base; i++)
        if (strcmp(named[i].name, r->source) == 0)
            status = named[i].source("", key, &found, err);
    if (status != QN_OK || found)
        return status;
    return refuse_roles(r->profile[r->count - 1],
                        "there are no credentials to assume its role with",
                        *r->base ? "look at the profile that source_profile names"
                                 : "credential_source is Environment, EcsContainer or "
                                   "Ec2InstanceMetadata",
                        err);
}

/* In turns from the last role to the first, whose credentials are wanted. */
static qn_status from_role(const char *profile, qn__credentials *key, int *found, qn_error *err) {
    roles r = {.count = 0};
    qn_status status = follow(&r, profile, err);
    *found = status == QN_OK && r.count > 0;
    if (!*found)
        return status;
    qn__credentials *by = qn__secret_make(sizeof *by, err);
    status = by ? find_base(&r, by, err) : QN_MEMORY;
    for (size_t i = r.count; i > 0 && status == QN_OK; i--) {
        status = qn__sts_assume(r.profile[i - 1], by, key, err);
        if (status == QN_OK && i > 1)
            memcpy(by, key, sizeof *by);
    }
    qn__secret_free(by);
    return status;
}

/* ------------------------------------------------------------------ all of them */

/* In the order of the AWS command. */
static qn__credentials_source *const places[] = {from_environment,
                                                 from_no_profile,
                                                 from_role,
                                                 qn__sts_web_identity_here,
                                                 qn__sts_web_identity,
                                                 qn__role_sso,
                                                 from_credentials_file,
                                                 qn__credentials_of_program,
                                                 from_config_file,
                                                 qn__role_container,
                                                 qn__role_instance};

static qn_status look(qn__credentials_kind kind, qn__credentials *key, int *found, qn_error *err) {
    qn_status status = QN_OK;
    *found = 0;
    if (kind == QN__CREDENTIALS_GS)
        status = take_pair(key, "GS_ACCESS_KEY_ID", "GS_SECRET_ACCESS_KEY", NULL, found, err);
    if (status != QN_OK || *found)
        return status;
    return look_at(places, sizeof places / sizeof *places, qn__profile_name(), key, found, err);
}

/* Without a lock. */
static void release(qn__credentials *credentials) {
    if (credentials && --credentials->users == 0)
        qn__secret_free(credentials);
}

static int is_fresh(const qn__credentials *key) {
    return key && (key->expires == 0 || key->expires - key->early > (int64_t)time(NULL));
}

static void replace(qn__credentials_kind kind, qn__credentials *key) {
    release(held[kind]);
    held[kind] = key;
}

/* Those that last for minutes only are used for half of their time, so that they are not asked for
 * by each request. */
static qn_status check_end(qn__credentials *key, qn_error *err) {
    const int64_t now = (int64_t)time(NULL), left = key->expires - now;
    key->early = left / 2 < EARLY ? left / 2 : EARLY;
    if (key->expires == 0 || left > 0)
        return QN_OK;
    qn__fail(err, QN_IO, "the credentials ended %lld minutes ago", -(long long)left / 60);
    qn__at(err, "%s", key->source);
    return qn__remedy(err, QN_IO, "log in again, or set the clock of this machine");
}

static qn_status ask(qn__credentials_kind kind, qn_error *err) {
    int found = 0;
    qn__credentials *key = qn__secret_make(sizeof *key, err);
    if (!key)
        return QN_MEMORY;
    key->users = 1;
    qn_status status = look(kind, key, &found, err);
    if (status == QN_OK && found)
        status = check_end(key, err);
    if (status != QN_OK || !found) {
        release(key);
        key = NULL;
    }
    if (status == QN_OK)
        replace(kind, key);
    return status;
}

/* A service that has just failed is not asked again: a command wants credentials several times. */
static qn_status refresh(qn__credentials_kind kind, qn_error *err) {
    refusal *last = &refused[kind];
    if (last->until <= qn__now()) {
        const qn_status status = ask(kind, &last->why);
        if (status == QN_OK)
            return QN_OK;
        last->until = status == QN_IO ? qn__now() + REFUSED : 0;
    }
    /* Those that are held serve until their end if the service is away for a while. */
    if (held[kind] && held[kind]->expires > (int64_t)time(NULL))
        return QN_OK;
    replace(kind, NULL);
    if (err)
        *err = last->why;
    return last->why.status;
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
    replace(kind, NULL);
    refused[kind].until = 0;
    pthread_mutex_unlock(&guard);
}

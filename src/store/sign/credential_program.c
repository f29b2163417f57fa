#include "store/sign/credential_program.h"
#include "base/system/process.h"
#include "store/sign/asking.h"
#include "store/sign/profile.h"
#include "store/sign/secret.h"
#include "store/sign/secret_json.h"
#include <stdio.h>
#include <string.h>

static const double PATIENCE = 60;

static qn_status refuse(const char *profile, const char *why, int code, qn_error *err) {
    if (code)
        qn__fail(err, QN_IO, "the program of credential_process failed with exit code %d", code);
    else
        qn__fail(err, QN_IO, "%s", why);
    qn__at(err, "credential_process of the profile %.80s", profile);
    return qn__remedy(err, QN_IO, "run it by hand: it must print the JSON of its version 1");
}

static int take(const char *json, qn__credentials *key) {
    char text[64];
    if (!qn__secret_json(json, "Version", text, sizeof text) || strcmp(text, "1") != 0 ||
        !qn__secret_json(json, "AccessKeyId", key->id, sizeof key->id) ||
        !qn__secret_json(json, "SecretAccessKey", key->secret, sizeof key->secret))
        return 0;
    (void)qn__secret_json(json, "SessionToken", key->token, sizeof key->token);
    key->expires =
        qn__secret_json(json, "Expiration", text, sizeof text) ? qn__seconds_of(text) : 0;
    return 1;
}

qn_status qn__credentials_of_program(const char *profile, qn__credentials *key, int *found,
                                     qn_error *err) {
    char command[4096];
    int code = 0;
    *found = qn__profile_setting(profile, "credential_process", command, sizeof command);
    if (!*found)
        return QN_OK;
    char *said = qn__secret_make(QN__ASKING_ANSWER, err);
    if (!said)
        return QN_MEMORY;
    const char *const words[] = {"/bin/sh", "-c", command, NULL};
    qn_status status = qn__process_run(words, "", NULL, QN__PROCESS_ERRORS_PASS, PATIENCE, said,
                                       QN__ASKING_ANSWER, &code, err);
    if (status == QN_BUSY)
        status =
            refuse(profile, "the program of credential_process did not end in a minute", 0, err);
    else if (status == QN_OK && (code != 0 || !take(said, key)))
        status =
            refuse(profile, "the program of credential_process printed no credentials", code, err);
    snprintf(key->source, sizeof key->source, "credential_process of the profile %.80s", profile);
    qn__secret_free(said);
    return status;
}

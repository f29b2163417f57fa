#include "serve/security.h"

#include "base/files/file.h"
#include "base/memory.h"
#include "store/sign/secret.h"

#include <string.h>

enum { LEAST_TOKEN = 16 };

static qn_status read_text(const char *path, char **out, qn_error *err) {
    qn__bytes file;
    qn_status status = qn__file_read(path, &file, err);
    if (status != QN_OK)
        return status;
    *out = qn__secret_make(file.size + 1, err);
    if (*out)
        memcpy(*out, file.data, file.size);
    explicit_bzero((void *)(uintptr_t)file.data, file.size);
    qn__bytes_release(&file);
    return *out ? QN_OK : QN_MEMORY;
}

static qn_status check_token(const char *token, qn_error *err) {
    const size_t size = strlen(token);
    if (size < LEAST_TOKEN) {
        qn__fail(err, QN_USAGE, "`server.token` has less than %d characters", LEAST_TOKEN);
        return qn__remedy(err, QN_USAGE, "make one with: head -c 32 /dev/urandom | base64");
    }
    for (size_t i = 0; i < size; i++)
        if (token[i] <= ' ' || token[i] > '~')
            return qn__fail(err, QN_USAGE,
                            "`server.token` has a character that a header cannot hold");
    return QN_OK;
}

qn_status qn__security_read(const qn_server_options *o, qn__security *out, qn_error *err) {
    qn_status status = QN_OK;
    if (!o->tls_certificate != !o->tls_key) {
        qn__fail(err, QN_USAGE, "TLS needs `server.tls_certificate` and `server.tls_key`");
        return qn__remedy(err, QN_USAGE, "name both files, in PEM");
    }
    if (o->token) {
        status = check_token(o->token, err);
        out->token = status == QN_OK ? qn__secret_make(strlen(o->token) + 1, err) : NULL;
        if (out->token)
            memcpy(out->token, o->token, strlen(o->token));
        else if (status == QN_OK)
            status = QN_MEMORY;
    }
    if (status == QN_OK && o->tls_certificate)
        status = read_text(o->tls_certificate, &out->certificate, err);
    if (status == QN_OK && o->tls_key)
        status = read_text(o->tls_key, &out->key, err);
    return status;
}

qn_status qn__security_check(const qn_server_options *o, const char *address, int loopback,
                             qn_error *err) {
    if (loopback || o->insecure || (o->tls_certificate && o->token))
        return QN_OK;
    qn__fail(err, QN_USAGE, "other machines reach %s, and %s", address,
             o->tls_certificate ? "`server.token` is not given"
             : o->token         ? "`server.tls_certificate` is not given"
                                : "neither TLS nor a token protects it");
    return qn__remedy(err, QN_USAGE,
                      "give `server.tls_certificate`, `server.tls_key` and `server.token`, listen "
                      "on 127.0.0.1, or set `server.insecure` where the network protects it");
}

void qn__security_free(qn__security *security) {
    qn__secret_free(security->certificate);
    qn__secret_free(security->key);
    qn__secret_free(security->token);
    *security = (qn__security){0};
}

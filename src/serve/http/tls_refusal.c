/* libmicrohttpd does not say why it cannot use a certificate and its key. GnuTLS, which it uses for
 * them, does. */
#include "base/system/library.h"
#include "serve/http/http_state.h"
#include <string.h>

enum { PEM = 1 };

typedef struct datum {
    const char *data;
    unsigned size;
} datum;

typedef int make_credentials(void **credentials);
typedef int set_key(void *credentials, const datum *certificate, const datum *key, int format);
typedef void free_credentials(void *credentials);
typedef const char *tell_error(int error);

static datum datum_of(const char *text) { return (datum){text, (unsigned)strlen(text)}; }

/* "The certificate and the given key do not match."; NULL: it is not known. */
static const char *reason(qn__library *library, const char *certificate, const char *key) {
    make_credentials *make =
        (make_credentials *)qn__library_find(library, "gnutls_certificate_allocate_credentials");
    set_key *set = (set_key *)qn__library_find(library, "gnutls_certificate_set_x509_key_mem");
    free_credentials *release =
        (free_credentials *)qn__library_find(library, "gnutls_certificate_free_credentials");
    tell_error *tell = (tell_error *)qn__library_find(library, "gnutls_strerror");
    const datum certificates = datum_of(certificate), keys = datum_of(key);
    void *credentials;
    if (!qn__library_is_whole(library) || make(&credentials) != 0)
        return NULL;
    const int error = set(credentials, &certificates, &keys, PEM);
    release(credentials);
    return error < 0 ? tell(error) : NULL;
}

qn_status qn__tls_refuse(const char *certificate, const char *key, qn_error *err) {
    qn__library gnutls = {.handle = NULL};
    const char *why =
        qn__library_open(&gnutls, "libgnutls.so.30") ? reason(&gnutls, certificate, key) : NULL;
    qn__fail(err, QN_IO, "the server cannot use this certificate and key%s%s", why ? ": " : "",
             why ? why : "");
    qn__library_close(&gnutls);
    return qn__remedy(err, QN_IO,
                      "give a certificate and the key that it was made for as PEM, and a "
                      "libmicrohttpd with TLS");
}

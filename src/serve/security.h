/* Who may ask a server: TLS and a token where more than this machine reaches it. */
#ifndef QN_SERVE_SECURITY_H
#define QN_SERVE_SECURITY_H

#include "base/error.h"
#include <quern/serve.h>

/* What was read of certificate, key and token; NULL: not given. */
typedef struct qn__security {
    char *certificate, *key, *token;
} qn__security;

/* Reads the files and copies the token. Fails with QN_USAGE (one of two files; a short token),
 * QN_IO or QN_MEMORY. */
qn_status qn__security_read(const qn_server_options *options, qn__security *out, qn_error *err);
/* Refuses an address that other machines reach without TLS and a token. */
qn_status qn__security_check(const qn_server_options *options, const char *address, int loopback,
                             qn_error *err);
void qn__security_free(qn__security *security);

#endif

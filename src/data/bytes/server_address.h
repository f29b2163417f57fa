/* Addresses of database servers in the place of a path. */
#ifndef QN_DATA_BYTES_SERVER_ADDRESS_H
#define QN_DATA_BYTES_SERVER_ADDRESS_H

#include "base/error.h"

/* Whether a path is the address of a server: "postgresql://..." or "postgres://...". */
int qn__is_server(const char *path);

/* The '@' after user and password, or NULL. A password that was not encoded may contain '@', '/'
 * and '?'. */
const char *qn__server_user_end(const char *address);

/* The address as messages show it: without user, password and options. For qn__free. */
char *qn__server_shown(const char *address, qn_error *err);

#endif

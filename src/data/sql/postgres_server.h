/* Connections to PostgreSQL servers, for those who read rows, write rows and keep runs there. */
#ifndef QN_DATA_SQL_POSTGRES_SERVER_H
#define QN_DATA_SQL_POSTGRES_SERVER_H

#include "base/error.h"

typedef struct qn__server {
    const char *shown; /* for messages; the caller's */
    void *connection;  /* a PGconn *; NULL: there is none */
} qn__server;

/* Connects to an address, "postgresql://...", as qn__pq_functions have it; for
 * qn__server_disconnect. Texts are UTF-8. libpq must be there (qn__optional_need). Fails with
 * QN_USAGE (not an address; it holds a password), QN_IO or QN_MEMORY. */
qn_status qn__server_check(const qn__server *server, const char *address, qn_error *err);
qn_status qn__server_connect(qn__server *server, const char *address, qn_error *err);
void qn__server_disconnect(qn__server *server);

/* Whether the connection was lost, or the server is stopping. `result`: of what has failed, or
 * NULL. */
int qn__server_is_lost(const qn__server *server, const void *result);

/* What the server says about a failure: one line. `result` as above. */
enum { QN__SERVER_LINE = 320 };
void qn__server_says(const qn__server *server, const void *result, char line[QN__SERVER_LINE]);

#endif

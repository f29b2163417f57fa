#include "data/sql/postgres_server.h"

#include "base/system/postgres_library.h"
#include "data/bytes/server_address.h"
#include <stdio.h>
#include <string.h>

static qn_status refuse(const qn__server *s, qn_status status, const char *remedy, qn_error *err) {
    qn__at(err, "%s", s->shown);
    return qn__remedy(err, status, "%s", remedy);
}

/* The first line of what libpq says, without a line end. */
static void first_line(const char *from, char to[320]) {
    snprintf(to, 320, "%.300s", from ? from : "");
    to[strcspn(to, "\r\n")] = '\0';
}

/* Whether a ':' stands before the '@' of the user. libpq would take what is after it for a port
 * where the password has a '/' or '?', and say it. */
static int names_password(const char *address) {
    const char *at = qn__server_user_end(address);
    const char *colon = strchr(strstr(address, "://") + 3, ':');
    return at && colon && colon < at;
}

/* A password in a command line can be read by all users of a machine, and would stay in records. */
qn_status qn__server_check(const qn__server *s, const char *address, qn_error *err) {
    int password = names_password(address);
    qn__pq_option *options = qn__pq_functions.parse(address, NULL);
    if (!options && !password) {
        qn__fail(err, QN_USAGE, "the address of the server is not one that libpq takes");
        return refuse(s, QN_USAGE, "write it as postgresql://USER@HOST:PORT/DATABASE", err);
    }
    for (const qn__pq_option *o = options; o && o->keyword; o++)
        password |= o->value && *o->value &&
                    (strcmp(o->keyword, "password") == 0 || strcmp(o->keyword, "sslpassword") == 0);
    if (options)
        qn__pq_functions.forget(options);
    if (!password)
        return QN_OK;
    qn__fail(err, QN_USAGE, "the address of the server holds a password");
    return refuse(s, QN_USAGE,
                  "leave it out of the address, and give it in the file ~/.pgpass or the "
                  "environment variable PGPASSWORD: other users can read command lines",
                  err);
}

/* Settings before the address are defaults, those after it are fixed. */
qn_status qn__server_connect(qn__server *s, const char *address, qn_error *err) {
    static const char *const keyword[] = {"connect_timeout",
                                          "tcp_user_timeout",
                                          "keepalives_idle",
                                          "application_name",
                                          "dbname",
                                          "client_encoding",
                                          NULL};
    const char *const value[] = {"10", "30000", "30", "quern", address, "UTF8", NULL};
    char line[320];
    s->connection = qn__pq_functions.connect(keyword, value, 1);
    if (!s->connection)
        return qn__fail_memory(err, 1, 1 << 16);
    if (qn__pq_functions.status(s->connection) == QN__PQ_CONNECTED)
        return QN_OK;
    first_line(qn__pq_functions.text(s->connection), line);
    const int password = strstr(line, "password") != NULL;
    qn__fail(err, QN_IO, "there is no connection to the server: %s", line);
    return refuse(s, QN_IO,
                  password ? "give the password in the file ~/.pgpass or the environment variable "
                             "PGPASSWORD, and check the user's name"
                           : "check host, port and database, and that the server runs: psql "
                             "takes the same address",
                  err);
}

/* Codes 08... (connection) and 57P... (the server is stopped). */
int qn__server_is_lost(const qn__server *s, const void *result) {
    const char *code = result ? qn__pq_functions.field(result, QN__PQ_FIELD_CODE) : NULL;
    return !code || strncmp(code, "08", 2) == 0 || strncmp(code, "57P", 3) == 0 ||
           qn__pq_functions.status(s->connection) != QN__PQ_CONNECTED;
}

void qn__server_says(const qn__server *s, const void *result, char line[QN__SERVER_LINE]) {
    const char *primary = result ? qn__pq_functions.field(result, QN__PQ_FIELD_MESSAGE) : NULL;
    first_line(primary ? primary : qn__pq_functions.text(s->connection), line);
}

void qn__server_disconnect(qn__server *s) {
    if (s->connection)
        qn__pq_functions.close(s->connection);
    s->connection = NULL;
}

/* Rows of a query to a PostgreSQL server (docs/exactness.md 2.1.13), by libpq.so.5, opened at run
 * time. Rows come one by one, as text. */
#include "base/encoding.h"
#include "base/system/available.h"
#include "base/system/float_state.h"
#include "base/system/postgres_library.h"
#include "data/arrow/arrow_build.h"
#include "data/cells/cell.h"
#include "data/cells/readers.h"
#include "data/sql/postgres_server.h"
#include "data/table/query.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows between two looks at how much memory is left. */
enum { LOOK = 1 << 16 };

/* ------------------------------------------------------------------ reading */

typedef struct reading {
    qn__server server;
    qn__arrow_build *build;
    uint64_t row;
    int columns;
} reading;

static qn_status refuse(const reading *r, qn_status status, const char *remedy, qn_error *err) {
    qn__at(err, "%s", r->server.shown);
    return qn__remedy(err, status, "%s", remedy);
}

static qn_status fail_result(const reading *r, const void *result, qn_error *err) {
    char line[QN__SERVER_LINE];
    qn__server_says(&r->server, result, line);
    if (result && !qn__server_is_lost(&r->server, result)) {
        qn__fail(err, QN_INPUT, "the server says: %s", line);
        return refuse(r, QN_INPUT, "correct `data.query`, or the rights of the user", err);
    }
    qn__fail(err, QN_IO, "the connection to the server was lost after %" PRIu64 " rows: %s", r->row,
             line);
    return refuse(r, QN_IO, "start again when the server runs", err);
}

/* ------------------------------------------------------------------ columns */

/* Numbers of types that every server has (pg_type.dat); EMPTY: the type is not read. */
static qn__build_type type_of(unsigned number) {
    switch (number) {
    case 16:
        return QN__BUILD_BOOL;
    case 20: /* int8, int2, int4, oid */
    case 21:
    case 23:
    case 26:
        return QN__BUILD_INT;
    case 700: /* float4, float8, numeric */
    case 701:
    case 1700:
        return QN__BUILD_DOUBLE;
    case 18: /* "char", name, text, unknown, char, varchar */
    case 19:
    case 25:
    case 705:
    case 1042:
    case 1043:
    case 1082: /* dates and timestamps: texts of ISO 8601, and zones in UTC */
    case 1114:
    case 1184:
        return QN__BUILD_TEXT;
    default:
        return QN__BUILD_EMPTY;
    }
}

static const char *name_of_type(unsigned number) {
    static const struct {
        unsigned number;
        const char *name;
    } known[] = {{17, "bytes (bytea)"}, {114, "json"},  {1083, "times"},
                 {1186, "intervals"},   {2950, "uuid"}, {3802, "jsonb"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].number == number)
            return known[i].name;
    return "a type that is not a number, text or boolean";
}

static qn_status refuse_column(const reading *r, const char *name, int column, const char *what,
                               const char *remedy, qn_error *err) {
    char shown[64];
    qn__cell_show(&(qn__cell){.text = name, .size = strlen(name)}, shown);
    qn__fail(err, QN_INPUT, "the column \"%s\" holds %s", shown, what);
    qn__at(err, "%s, column %d", r->server.shown, column + 1);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

static qn_status add_columns(reading *r, const void *result, qn_error *err) {
    r->columns = qn__pq_functions.columns(result);
    qn_status status = qn__build_create(&r->build, err);
    for (int i = 0; i < r->columns && status == QN_OK; i++) {
        const char *name = qn__pq_functions.name(result, i);
        const unsigned number = qn__pq_functions.type(result, i);
        const qn__build_type type = type_of(number);
        if (type == QN__BUILD_EMPTY)
            return refuse_column(r, name, i, name_of_type(number),
                                 "convert it in the query, such as CAST(x AS text), or leave it "
                                 "out",
                                 err);
        status = qn__build_add(r->build, name, strlen(name), type, err);
    }
    return status;
}

/* ------------------------------------------------------------------ rows */

static qn_status put_text(const reading *r, const void *result, int column, const char *text,
                          size_t size, qn_error *err) {
    if (!qn__cell_is_utf8(&(qn__cell){.text = text, .size = size}))
        return refuse_column(r, qn__pq_functions.name(result, column), column,
                             "a text that is not UTF-8", "convert it in the query, or leave it out",
                             err);
    return qn__build_put_text(r->build, (uint64_t)column, text, size, err);
}

/* Numbers are in the form that the server writes, which strtod reads in the C locale. */
static qn_status put(const reading *r, const void *result, int column, qn_error *err) {
    const uint64_t at = (uint64_t)column;
    if (qn__pq_functions.is_null(result, 0, column))
        return qn__build_put_missing(r->build, at, err);
    const char *text = qn__pq_functions.value(result, 0, column);
    switch (qn__build_type_of(r->build, at)) {
    case QN__BUILD_BOOL:
        return qn__build_put_whole(r->build, at, *text == 't', err);
    case QN__BUILD_INT:
        return qn__build_put_whole(r->build, at, strtoll(text, NULL, 10), err);
    case QN__BUILD_DOUBLE:
        return qn__build_put_number(r->build, at, strtod_l(text, NULL, qn__c_locale()), err);
    default:
        return put_text(r, result, column, text, (size_t)qn__pq_functions.length(result, 0, column),
                        err);
    }
}

/* The server can send more than this machine can hold. */
static qn_status check_memory(const reading *r, qn_error *err) {
    if (r->row % LOOK != LOOK - 1 || qn__available_memory() > qn__build_bytes(r->build) / 2)
        return QN_OK;
    qn__fail(err, QN_MEMORY, "more than %" PRIu64 " rows of %d columns do not fit into memory",
             r->row, r->columns);
    return refuse(r, QN_MEMORY, "read fewer columns or rows, with `data.query`", err);
}

static qn_status take(reading *r, const void *result, qn_error *err) {
    const int kind = qn__pq_functions.kind(result);
    if (kind != QN__PQ_SINGLE_ROW && kind != QN__PQ_ROWS)
        return fail_result(r, result, err);
    qn_status status = r->build ? QN_OK : add_columns(r, result, err);
    if (kind == QN__PQ_ROWS || status != QN_OK) /* the end */
        return status;
    status = check_memory(r, err);
    for (int i = 0; i < r->columns && status == QN_OK; i++)
        status = put(r, result, i, err);
    r->row++;
    return status;
}

/* A failure closes the connection, which ends the query. */
static qn_status read_rows(reading *r, const char *query, qn_error *err) {
    qn_status status = QN_OK;
    if (!qn__pq_functions.send(r->server.connection, query) ||
        !qn__pq_functions.single(r->server.connection))
        return fail_result(r, NULL, err);
    for (void *result; status == QN_OK && (result = qn__pq_functions.result(r->server.connection));
         qn__pq_functions.clear(result))
        status = take(r, result, err);
    if (status == QN_OK && !r->build)
        return fail_result(r, NULL, err);
    return status;
}

/* Commands without rows. */
static qn_status set_up(reading *r, qn_error *err) {
    qn_status status = QN_OK;
    if (!qn__pq_functions.send(
            r->server.connection,
            "SET default_transaction_read_only = on; SET extra_float_digits = 3; "
            "SET datestyle = iso; SET timezone = 'UTC'"))
        return fail_result(r, NULL, err);
    for (void *result; (result = qn__pq_functions.result(r->server.connection));
         qn__pq_functions.clear(result))
        if (status == QN_OK && qn__pq_functions.kind(result) != QN__PQ_COMMAND)
            status = fail_result(r, result, err);
    return status;
}

static qn_status need_query(const reading *r, const char *query, qn_error *err) {
    if (query)
        return qn__query_check(query, r->server.shown, err);
    qn__fail(err, QN_USAGE, "a server needs a query that says which rows to read");
    return refuse(r, QN_USAGE, "give `data.query`, such as \"SELECT * FROM patients ORDER BY id\"",
                  err);
}

static qn_status read_all(reading *r, const char *address, const qn_data_options *options,
                          qn_data *data, qn_error *err) {
    qn_status status = qn__server_check(&r->server, address, err);
    if (status == QN_OK)
        status = need_query(r, options->query, err);
    if (status == QN_OK)
        status = qn__server_connect(&r->server, address, err);
    if (status == QN_OK)
        status = set_up(r, err);
    if (status == QN_OK)
        status = read_rows(r, options->query, err);
    if (status != QN_OK)
        return status;
    return qn__build_fill(&r->build, r->server.shown, options, data, err);
}

static qn_status read_postgres(qn__source *source, const qn_data_options *options, qn__pool *pool,
                               qn_data *data, qn_error *err) {
    reading r = {.server = {.shown = qn__source_path(source)}};
    (void)pool;
    qn_status status = qn__optional_need(&qn__pq_library, "a PostgreSQL server is asked by libpq",
                                         "write the rows as CSV with psql's \\copy", err);
    if (status != QN_OK) {
        qn__at(err, "%s", r.server.shown);
        return status;
    }
    status = read_all(&r, qn__source_address(source), options, data, err);
    qn__server_disconnect(&r.server);
    qn__build_destroy(r.build);
    qn__float_state_set();
    return status;
}

/* No file is a server. */
static int probe(const uint8_t *first, size_t size, const char *path) {
    (void)first, (void)size, (void)path;
    return QN__PROBE_NO;
}

const qn__reader qn__postgres_reader = {
    .name = QN__PLAIN_NAME("postgresql"),
    .about = "the rows of a PostgreSQL server, by its address",
    .addresses = 1,
    .columns = 1,
    .weights = 1,
    .quantities = 1,
    .typed = 1,
    .queries = 1,
    .labels_remedy =
        "leave out `data.labels_path` and name the label's column with `data.label_column`",
    .library = &qn__pq_library,
    .probe = probe,
    .read = read_postgres,
};

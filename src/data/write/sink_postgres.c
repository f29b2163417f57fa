/* The sink of PostgreSQL: a table of a server. Rows go there by COPY, in one transaction. */
#include "base/digest/sha256.h"
#include "base/memory.h"
#include "base/system/postgres_library.h"
#include "data/sql/postgres_server.h"
#include "data/write/sink_database.h"
#include "data/write/sink_names.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of rows that are sent together. */
enum { PIECE = 1 << 16 };

/* Where a batch of a growing table stands before it is compared with what is there. */
#define BATCH "pg_temp.quern_rows"

typedef struct postgres_state {
    qn__server server;
    qn__text rows; /* in the form of COPY */
    int copies;    /* 1: the server takes rows */
} postgres_state;

static qn_status need(const qn__sink_target *to, qn_error *err) {
    const qn__server server = {.shown = to->shown};
    const qn_status status = qn__optional_need(
        &qn__pq_library, "a PostgreSQL server is asked by libpq", "write a CSV file", err);
    if (status == QN_OK)
        return qn__server_check(&server, to->place, err);
    qn__at(err, "%.400s", to->shown);
    return status;
}

/* Codes 40...: the server has undone the transaction, and another try may do. */
static int may_repeat(const void *result) {
    const char *code = result ? qn__pq_functions.field(result, QN__PQ_FIELD_CODE) : NULL;
    return code && strncmp(code, "40", 2) == 0;
}

static qn_status fail(qn__sink *s, const void *result, qn_error *err) {
    const postgres_state *own = s->own;
    char line[QN__SERVER_LINE];
    const int lost = qn__server_is_lost(&own->server, result);
    qn__server_says(&own->server, result, line);
    s->is_lost = lost || may_repeat(result);
    qn__fail(err, QN_IO, lost ? "the connection to the server was lost: %s" : "the server says: %s",
             line);
    qn__at(err, "%.400s, table %.100s", s->to.shown, s->table.name);
    return qn__remedy(err, QN_IO, "%s",
                      lost ? "start again when the server runs"
                           : "correct the table or the rights of the user, or name another table "
                             "at the end of the address, such as ?table=NAME");
}

/* Runs one statement with texts as values; *result, for `clear`, is NULL after a failure. */
static qn_status ask_texts(qn__sink *s, const char *sql, int count, const char *const *values,
                           void **result, qn_error *err) {
    const postgres_state *own = s->own;
    *result = qn__pq_functions.exec_values(own->server.connection, sql, count, NULL, values, NULL,
                                           NULL, 0);
    const int kind = *result ? qn__pq_functions.kind(*result) : -1;
    if (kind == QN__PQ_ROWS || kind == QN__PQ_COMMAND)
        return QN_OK;
    const qn_status status = fail(s, *result, err);
    if (*result)
        qn__pq_functions.clear(*result);
    *result = NULL;
    return status;
}

static qn_status run_sql(qn__sink *s, const char *sql, qn_error *err) {
    void *result;
    const qn_status status = ask_texts(s, sql, 0, NULL, &result, err);
    if (result)
        qn__pq_functions.clear(result);
    return status;
}

static qn_status ask(qn__sink *s, const char *sql, const qn__sink_cell *cells, uint32_t count,
                     int64_t *number, qn_error *err) {
    qn__text texts[QN__SINK_KEYS] = {{0}};
    const char *values[QN__SINK_KEYS] = {NULL};
    void *result = NULL;
    qn_status status = QN_OK;
    *number = -1;
    for (uint32_t k = 0; k < count && status == QN_OK; k++) {
        qn__text_add(&texts[k], "%s", "");
        qn__sink_add_value(&texts[k], &cells[k]);
        values[k] = texts[k].data;
        if (texts[k].failed)
            status = qn__fail_memory(err, texts[k].size, 1);
    }
    if (status == QN_OK)
        status = ask_texts(s, sql, (int)count, values, &result, err);
    if (result && qn__pq_functions.rows(result) > 0 && !qn__pq_functions.is_null(result, 0, 0))
        *number = strtoll(qn__pq_functions.value(result, 0, 0), NULL, 10);
    if (result)
        qn__pq_functions.clear(result);
    for (int k = 0; k < QN__SINK_KEYS; k++)
        qn__text_release(&texts[k]);
    return status;
}

/* ------------------------------------------------------------------ the table */

static const char *const type_names[] = {[QN__SINK_INTEGER] = "bigint",
                                         [QN__SINK_SINGLE] = "real",
                                         [QN__SINK_REAL] = "double precision",
                                         [QN__SINK_TEXT] = "text"};

/* Numbers of the types of a column that takes such values (pg_type.dat); the last is 0. */
static const unsigned fitting[][5] = {[QN__SINK_INTEGER] = {20, 23, 1700, 0},
                                      [QN__SINK_SINGLE] = {700, 701, 0},
                                      [QN__SINK_REAL] = {701, 0},
                                      [QN__SINK_TEXT] = {25, 1043, 0}};

static int fits(unsigned type, qn__sink_type wanted) {
    for (const unsigned *at = fitting[wanted]; *at; at++)
        if (*at == type)
            return 1;
    return 0;
}

static qn_status check_column(const qn__sink *s, const void *result, const char *name,
                              qn__sink_type wanted, qn_error *err) {
    for (int i = 0; i < qn__pq_functions.rows(result); i++) {
        if (strcmp(qn__pq_functions.value(result, i, 0), name) != 0)
            continue;
        const unsigned type = (unsigned)strtoul(qn__pq_functions.value(result, i, 1), NULL, 10);
        return fits(type, wanted)
                   ? QN_OK
                   : qn__sink_other_type(s, name, qn__pq_functions.value(result, i, 2),
                                         type_names[wanted], err);
    }
    return qn__sink_lacks_column(s, name, type_names[wanted], err);
}

static qn_status check_columns(const qn__sink *s, const void *result, qn_error *err) {
    qn_status status = s->run ? check_column(s, result, "run", QN__SINK_TEXT, err) : QN_OK;
    for (uint32_t k = 0; k < s->table.columns && status == QN_OK; k++)
        status = check_column(s, result, s->table.column[k].name, s->table.column[k].type, err);
    return status;
}

/* The columns of the table; no row where it is not there. */
static qn_status find_columns(qn__sink *s, void **result, qn_error *err) {
    static const char sql[] = "SELECT attname, atttypid::bigint, format_type(atttypid, NULL) FROM "
                              "pg_catalog.pg_attribute WHERE attrelid = "
                              "pg_catalog.to_regclass($1) AND attnum > 0 AND NOT attisdropped";
    qn__text name = {0};
    qn__sink_add_table(&name, s);
    const char *const values[] = {name.data};
    const qn_status status = name.failed ? qn__fail_memory(err, name.size, 1)
                                         : ask_texts(s, sql, 1, values, result, err);
    qn__text_release(&name);
    return status;
}

/* Another process that does the same waits here until this transaction ends. */
static qn_status take_turn(qn__sink *s, const char *what, qn_error *err) {
    qn__sha256 hash;
    uint8_t digest[32];
    qn__sink_cell key = {.type = QN__SINK_INTEGER};
    int64_t nothing;
    qn__sha256_begin(&hash);
    qn__sha256_add(&hash, s->table.name, strlen(s->table.name) + 1);
    qn__sha256_add(&hash, what, strlen(what));
    qn__sha256_end(&hash, digest);
    memcpy(&key.of.whole, digest, sizeof key.of.whole);
    return ask(s, "SELECT pg_catalog.pg_advisory_xact_lock($1::bigint)", &key, 1, &nothing, err);
}

/* *there: the table is there, with the columns. */
static qn_status find_table(qn__sink *s, int *there, qn_error *err) {
    void *result = NULL;
    *there = 0;
    qn_status status = find_columns(s, &result, err);
    if (status != QN_OK)
        return status;
    *there = qn__pq_functions.rows(result) > 0;
    if (*there)
        status = check_columns(s, result, err);
    qn__pq_functions.clear(result);
    return status;
}

static qn_status make_table(qn__sink *s, qn_error *err) {
    int there = 0;
    qn__text sql = {0};
    qn_status status = take_turn(s, "", err);
    if (status == QN_OK)
        status = find_table(s, &there, err);
    if (status != QN_OK || there)
        return status;
    qn__sink_add_create(&sql, s, type_names);
    return qn__database_run(s, &sql, err);
}

/* A process whose connection was lost may still be committing its result: its server lets us wait
 * for it. */
static qn_status ready_table(qn__sink *s, qn_error *err) {
    int there = 0;
    qn_status status = find_table(s, &there, err);
    if (status == QN_OK && !there)
        status = make_table(s, err);
    return status == QN_OK && s->run ? take_turn(s, s->run, err) : status;
}

/* ------------------------------------------------------------------ rows */

/* Text as COPY has it: a backslash begins what is not itself. */
static void add_copy_text(qn__text *to, const char *text) {
    for (;;) {
        const size_t plain = strcspn(text, "\\\t\n\r");
        qn__text_add(to, "%.*s", (int)plain, text);
        text += plain;
        if (!*text)
            return;
        qn__text_add(to, "\\%c",
                     *text == '\t'   ? 't'
                     : *text == '\n' ? 'n'
                     : *text == '\r' ? 'r'
                                     : '\\');
        text++;
    }
}

static void add_copy_number(qn__text *to, double value) {
    if (isfinite(value))
        qn__text_add(to, "%.17g", value);
    else
        qn__text_add(to, "%s", isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

static void add_copy_cell(qn__text *to, const qn__sink_cell *cell) {
    switch (cell->type) {
    case QN__SINK_INTEGER:
        qn__text_add(to, "%" PRId64, cell->of.whole);
        break;
    case QN__SINK_SINGLE:
    case QN__SINK_REAL:
        add_copy_number(to, cell->of.number);
        break;
    case QN__SINK_TEXT:
        add_copy_text(to, cell->of.text);
        break;
    default:
        qn__text_add(to, "\\N");
    }
}

static qn_status send_rows(qn__sink *s, qn_error *err) {
    postgres_state *own = s->own;
    qn__text *rows = &own->rows;
    qn_status status = rows->failed ? qn__fail_memory(err, rows->size, 1) : QN_OK;
    if (status == QN_OK && rows->size > 0 &&
        qn__pq_functions.copy(own->server.connection, rows->data, (int)rows->size) != 1)
        status = fail(s, NULL, err);
    rows->size = 0;
    return status;
}

/* Rows follow with `add`. `table`: NULL for that of the sink. */
static qn_status begin_copy(qn__sink *s, const char *table, qn_error *err) {
    postgres_state *own = s->own;
    qn__text sql = {0};
    qn__text_add(&sql, "COPY %s", table ? table : "");
    if (!table)
        qn__sink_add_table(&sql, s);
    qn__text_add(&sql, " (");
    qn__sink_add_names(&sql, s);
    qn__text_add(&sql, ") FROM STDIN");
    if (sql.failed)
        return qn__fail_memory(err, sql.size, 1);
    void *result = qn__pq_functions.exec(own->server.connection, sql.data);
    qn__text_release(&sql);
    const qn_status status =
        result && qn__pq_functions.kind(result) == QN__PQ_COPY_IN ? QN_OK : fail(s, result, err);
    own->copies = status == QN_OK;
    if (result)
        qn__pq_functions.clear(result);
    return status;
}

static qn_status add(qn__sink *s, const qn__sink_cell *cells, qn_error *err) {
    postgres_state *own = s->own;
    qn__text *rows = &own->rows;
    const qn_status status = own->copies ? QN_OK : begin_copy(s, NULL, err);
    if (status != QN_OK)
        return status;
    if (s->run) {
        add_copy_text(rows, s->run);
        qn__text_add(rows, "\t");
    }
    for (uint32_t k = 0; k < s->table.columns; k++) {
        qn__text_add(rows, "%s", k ? "\t" : "");
        add_copy_cell(rows, &cells[k]);
    }
    qn__text_add(rows, "\n");
    return rows->size < PIECE && !rows->failed ? QN_OK : send_rows(s, err);
}

static qn_status end_copy(qn__sink *s, qn_error *err) {
    postgres_state *own = s->own;
    qn_status status = own->copies ? send_rows(s, err) : QN_OK;
    if (!own->copies)
        return status;
    own->copies = 0;
    if (status != QN_OK)
        return status;
    if (qn__pq_functions.copy_end(own->server.connection, NULL) != 1)
        return fail(s, NULL, err);
    for (void *result; (result = qn__pq_functions.result(own->server.connection));
         qn__pq_functions.clear(result))
        if (status == QN_OK && qn__pq_functions.kind(result) != QN__PQ_COMMAND)
            status = fail(s, result, err);
    return status;
}

/* ------------------------------------------------------------------ opening */

static qn_status connect_server(qn__sink *s, qn_error *err) {
    postgres_state *own = s->own = qn__alloc(1, sizeof *own, err);
    if (!own)
        return QN_MEMORY;
    own->server.shown = s->to.shown;
    const qn_status status = qn__server_connect(&own->server, s->to.place, err);
    if (status == QN_OK)
        s->was_connected = 1;
    if (status == QN_OK || !s->was_connected)
        return status;
    s->is_lost = 1; /* a server that starts again is not there for a while */
    if (err)
        err->status = QN_IO;
    return QN_IO;
}

static void close_postgres(qn__sink *s) {
    postgres_state *own = s->own;
    qn__server_disconnect(&own->server); /* an open transaction is undone */
    qn__text_release(&own->rows);
    qn__free(own);
}

/* ------------------------------------------------------------------ a table that grows */

/* A whole result is copied into the table itself. */
static qn_status make_batch(qn__sink *s, qn_error *err) {
    qn__text sql = {0};
    if (s->run)
        return QN_OK;
    qn__text_add(&sql, "CREATE TEMP TABLE quern_rows ON COMMIT DELETE ROWS AS SELECT ");
    qn__sink_add_names(&sql, s);
    qn__text_add(&sql, " FROM ");
    qn__sink_add_table(&sql, s);
    qn__text_add(&sql, " WITH NO DATA");
    return qn__database_run(s, &sql, err);
}

static void add_keys(qn__text *sql, const qn__sink *s) {
    for (uint32_t k = 0; k < s->table.keys; k++) {
        qn__text_add(sql, "%s", k ? ", " : "");
        qn__sink_add_name(sql, s->table.column[k].name);
    }
}

/* From the batch to the table, but for rows whose key is there. */
static qn_status take_batch(qn__sink *s, qn_error *err) {
    qn__text sql = {0};
    qn__text_add(&sql, "INSERT INTO ");
    qn__sink_add_table(&sql, s);
    qn__text_add(&sql, " (");
    qn__sink_add_names(&sql, s);
    qn__text_add(&sql, ") SELECT ");
    if (s->table.keys > 0) {
        qn__text_add(&sql, "DISTINCT ON (");
        add_keys(&sql, s);
        qn__text_add(&sql, ") ");
    }
    qn__sink_add_names(&sql, s);
    qn__text_add(&sql, " FROM " BATCH " AS new");
    for (uint32_t k = 0; k < s->table.keys; k++) {
        qn__text_add(&sql, "%s", k ? " AND " : " WHERE NOT EXISTS (SELECT 1 FROM ");
        if (k == 0) {
            qn__sink_add_table(&sql, s);
            qn__text_add(&sql, " AS old WHERE ");
        }
        qn__text_add(&sql, "old.");
        qn__sink_add_name(&sql, s->table.column[k].name);
        qn__text_add(&sql, " = new.");
        qn__sink_add_name(&sql, s->table.column[k].name);
    }
    qn__text_add(&sql, "%s ON CONFLICT DO NOTHING", s->table.keys ? ")" : "");
    return qn__database_run(s, &sql, err);
}

static qn_status put(qn__sink *s, const qn__sink_cell *cells, uint64_t rows, qn_error *err) {
    postgres_state *own = s->own;
    qn_status status = begin_copy(s, BATCH, err);
    own->rows.size = 0;
    for (uint64_t i = 0; i < rows && status == QN_OK; i++)
        status = add(s, cells + i * s->table.columns, err);
    if (status == QN_OK)
        status = end_copy(s, err);
    else if (own->copies)
        (void)qn__pq_functions.copy_end(own->server.connection, "stopped");
    own->copies = 0;
    return status == QN_OK ? take_batch(s, err) : status;
}

static const char *const schemes[] = {"postgresql://", "postgres://", NULL};

static const qn__sink_database database = {.mark = "$",
                                           .begin = "BEGIN",
                                           .run = run_sql,
                                           .ask = ask,
                                           .ready = ready_table,
                                           .prepare = make_batch,
                                           .put = put,
                                           .finish = end_copy};

const qn__sink_kind qn__postgres_sink = {.schemes = schemes,
                                         .is_server = 1,
                                         .database = &database,
                                         .most_columns = 1600,
                                         .need = need,
                                         .connect = connect_server,
                                         .begin = qn__database_begin,
                                         .add = add,
                                         .commit = qn__database_commit,
                                         .open = qn__database_open,
                                         .put = qn__database_put,
                                         .holds = qn__database_holds,
                                         .last = qn__database_last,
                                         .close = close_postgres};

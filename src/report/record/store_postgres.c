/* Records of runs in the table quern_runs of a PostgreSQL server. */
#include "base/encoding.h"
#include "base/memory.h"
#include "base/system/postgres_library.h"
#include "data/sql/postgres_server.h"
#include "report/record/store_kinds.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The comment of the table marks it, so that tables of others are never changed. */
#define MARK "Runs of Quern, 1"

static const char table[] =
    "CREATE TABLE quern_runs (place bigserial, id text PRIMARY KEY, name text NOT NULL, state "
    "text, started text, "
    "ended text, host text, command text, data text, model text, epochs bigint, seconds double "
    "precision, scored text, accuracy double precision, loss double precision, rmse double "
    "precision, r2 double precision, record text NOT NULL, metrics text NOT NULL); "
    "COMMENT ON TABLE quern_runs IS '" MARK "'";

enum { VALUES = QN__STORE_TEXTS + 1 + QN__STORE_NUMBERS };

static qn_status fail(const qn__store *s, const void *result, qn_error *err) {
    const qn__server *server = s->base;
    char line[QN__SERVER_LINE];
    qn__server_says(server, result, line);
    const int lost = qn__server_is_lost(server, result);
    qn__fail(err, QN_IO, lost ? "the connection to the server was lost: %s" : "the server says: %s",
             line);
    qn__at(err, "%.400s, table quern_runs", s->path);
    return qn__remedy(err, QN_IO, "%s",
                      lost ? "start again when the server runs"
                           : "name a database in which the user may make that table "
                             "(`train.runs`)");
}

/* Runs statements without values. */
static qn_status run_sql(const qn__store *s, const char *sql, qn_error *err) {
    const qn__server *server = s->base;
    void *result = qn__pq_functions.exec(server->connection, sql);
    const qn_status status =
        result && qn__pq_functions.kind(result) == QN__PQ_COMMAND ? QN_OK : fail(s, result, err);
    if (result)
        qn__pq_functions.clear(result);
    return status;
}

/* Runs one statement; *result is the caller's. */
static qn_status ask(const qn__store *s, const char *sql, int count, const char *const *values,
                     void **result, qn_error *err) {
    const qn__server *server = s->base;
    *result =
        qn__pq_functions.exec_values(server->connection, sql, count, NULL, values, NULL, NULL, 0);
    const int kind = *result ? qn__pq_functions.kind(*result) : -1;
    if (kind == QN__PQ_ROWS || kind == QN__PQ_COMMAND)
        return QN_OK;
    const qn_status status = fail(s, *result, err);
    if (*result)
        qn__pq_functions.clear(*result);
    *result = NULL;
    return status;
}

/* ------------------------------------------------------------------ the table */

static qn_status refuse(const qn__store *s, const char *what, const char *remedy, qn_error *err) {
    qn__fail(err, QN_FORMAT, "%s", what);
    qn__at(err, "%.400s", s->path);
    return qn__remedy(err, QN_FORMAT, "%s", remedy);
}

/* *there: the table is there, and ours. */
static qn_status find_table(const qn__store *s, int *there, qn_error *err) {
    static const char sql[] =
        "SELECT to_regclass('quern_runs') IS NOT NULL, "
        "coalesce(obj_description(to_regclass('quern_runs'), 'pg_class'), '')";
    void *result;
    qn_status status = ask(s, sql, 0, NULL, &result, err);
    if (status != QN_OK)
        return status;
    *there = *qn__pq_functions.value(result, 0, 0) == 't';
    if (*there && strcmp(qn__pq_functions.value(result, 0, 1), MARK) != 0)
        status = refuse(s, "the table quern_runs is not one of this version's runs",
                        "name another database (`train.runs`)", err);
    qn__pq_functions.clear(result);
    return status;
}

/* Several trainings may begin at once: one makes the table, and the others wait for it. */
static qn_status make_table(const qn__store *s, qn_error *err) {
    int there = 0;
    void *result = NULL;
    qn_status status = run_sql(s, "BEGIN", err);
    if (status == QN_OK)
        status = ask(s, "SELECT pg_advisory_xact_lock(1364358510)", 0, NULL, &result, err);
    if (result)
        qn__pq_functions.clear(result);
    if (status == QN_OK)
        status = find_table(s, &there, err);
    if (status == QN_OK && !there)
        status = run_sql(s, table, err);
    return status == QN_OK ? run_sql(s, "COMMIT", err) : status;
}

static qn_status open_postgres(qn__store *out, const char *path, int write, qn_error *err) {
    int there = 0;
    qn__server *server = NULL;
    qn_status status = qn__optional_need(&qn__pq_library, "runs on a server need libpq",
                                         "keep them in a SQLite file (`train.runs`)", err);
    if (status != QN_OK)
        return status;
    server = out->base = qn__alloc(1, sizeof *server, err);
    if (!server)
        return QN_MEMORY;
    server->shown = out->path;
    status = qn__server_check(server, path, err);
    if (status == QN_OK)
        status = qn__server_connect(server, path, err);
    if (status == QN_OK) /* without notices, which libpq would print */
        status = run_sql(out, "SET client_min_messages = warning", err);
    if (status == QN_OK)
        status = find_table(out, &there, err);
    if (status == QN_OK && !there)
        status =
            write ? make_table(out, err)
                  : refuse(out, "the database has no table quern_runs",
                           "a training with `train.runs` makes it; name the database of that one",
                           err);
    return status;
}

static void close_postgres(qn__store *s) {
    qn__server_disconnect(s->base);
    qn__free(s->base);
}

/* ------------------------------------------------------------------ writing */

/* The second writing of a run replaces the first. */
static qn_status put(const qn__store *s, const qn__store_row *row, qn_error *err) {
    static const char sql[] =
        "INSERT INTO quern_runs (" QN__STORE_WRITTEN
        ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, nullif($9, ''), nullif($10, ''), $11, $12, $13, "
        "$14, $15, $16, $17, "
        "$18) ON CONFLICT (id) DO UPDATE SET (name, state, started, ended, host, command, data, "
        "model, scored, record, metrics, epochs, seconds, accuracy, loss, rmse, r2) = "
        "(EXCLUDED.name, EXCLUDED.state, EXCLUDED.started, EXCLUDED.ended, EXCLUDED.host, "
        "EXCLUDED.command, EXCLUDED.data, EXCLUDED.model, EXCLUDED.scored, EXCLUDED.record, "
        "EXCLUDED.metrics, EXCLUDED.epochs, EXCLUDED.seconds, EXCLUDED.accuracy, EXCLUDED.loss, "
        "EXCLUDED.rmse, EXCLUDED.r2)";
    const char *values[VALUES];
    char number[1 + QN__STORE_NUMBERS][32];
    void *result;
    memcpy(values, row->text, sizeof row->text);
    snprintf(number[0], sizeof number[0], "%" PRId64, row->epochs);
    values[QN__STORE_TEXTS] = number[0];
    for (int i = 0; i < QN__STORE_NUMBERS; i++) {
        snprintf(number[1 + i], sizeof number[1 + i], "%.17g", row->number[i]);
        values[QN__STORE_TEXTS + 1 + i] = isfinite(row->number[i]) ? number[1 + i] : NULL;
    }
    const qn_status status = ask(s, sql, VALUES, values, &result, err);
    if (result)
        qn__pq_functions.clear(result);
    return status;
}

/* ------------------------------------------------------------------ reading */

static qn_status find(const qn__store *s, const char *run, qn__store_found *take, void *user,
                      qn_error *err) {
    static const char sql[] = QN__STORE_FIND("quern_runs", "$1");
    const char *const values[] = {run};
    void *result;
    const qn_status status = ask(s, sql, 1, values, &result, err);
    if (status != QN_OK)
        return status;
    for (int i = 0; i < qn__pq_functions.rows(result); i++)
        take(user, qn__pq_functions.value(result, i, 0), qn__pq_functions.value(result, i, 1),
             *qn__pq_functions.value(result, i, 2) - '0');
    qn__pq_functions.clear(result);
    return QN_OK;
}

static double number_at(const void *result, int row, int column) {
    return qn__pq_functions.is_null(result, row, column)
               ? (double)NAN
               : strtod_l(qn__pq_functions.value(result, row, column), NULL, qn__c_locale());
}

static qn_status list(const qn__store *s, qn__store_listed *take, void *user, qn_error *err) {
    static const char sql[] =
        "SELECT " QN__STORE_COLUMNS " FROM quern_runs ORDER BY started, place";
    qn__store_row row;
    void *result;
    qn_status status = ask(s, sql, 0, NULL, &result, err);
    if (status != QN_OK)
        return status;
    for (int i = 0; i < qn__pq_functions.rows(result) && status == QN_OK; i++) {
        for (int k = 0; k < QN__STORE_LISTED; k++)
            row.text[k] = qn__pq_functions.value(result, i, k); /* "" for NULL */
        row.epochs = strtoll(qn__pq_functions.value(result, i, QN__STORE_LISTED), NULL, 10);
        for (int k = 0; k < QN__STORE_NUMBERS; k++)
            row.number[k] = number_at(result, i, QN__STORE_LISTED + 1 + k);
        status = take(user, &row, err);
    }
    qn__pq_functions.clear(result);
    return status;
}

const qn__store_kind qn__postgres_store = {.open = open_postgres,
                                           .close = close_postgres,
                                           .begin = "BEGIN",
                                           .run = run_sql,
                                           .put = put,
                                           .find = find,
                                           .list = list};

/* Records of runs in a SQLite file. */
#include "base/files/remote.h"
#include "base/memory.h"
#include "report/record/store_kinds.h"
#include "base/system/sqlite_library.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* "QRun": marks the file, so that tables of others are never changed. */
#define MARK 1364358510
/* Of the tables. */
#define VERSION 1
#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(number) #number
/* Milliseconds that a writer waits for others. */
#define PATIENCE "30000"

static const char tables[] =
    "CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, state "
    "TEXT, "
    "started TEXT, ended TEXT, host TEXT, command TEXT, data TEXT, model TEXT, epochs INTEGER, "
    "seconds REAL, scored TEXT, accuracy REAL, loss REAL, rmse REAL, r2 REAL, "
    "record TEXT NOT NULL, metrics TEXT NOT NULL)";

/* Returns QN_IO with what SQLite says. */
static qn_status fail(const qn__store *s, int code, qn_error *err) {
    if (code == QN__SQLITE_MEMORY)
        return qn__fail_memory(err, 1, 1 << 20);
    qn__fail(err, QN_IO, "SQLite says: %.300s", qn__sqlite_functions.text(s->base));
    qn__at(err, "%.400s", s->path);
    return qn__remedy(err, QN_IO,
                      "name a file of runs that can be written and read (`train.runs`)");
}

static qn_status run_sql(const qn__store *s, const char *sql, qn_error *err) {
    const int code = qn__sqlite_functions.exec(s->base, sql, NULL, NULL, NULL);
    return code == QN__SQLITE_OK ? QN_OK : fail(s, code, err);
}

/* The first number of the answer. */
static qn_status ask(const qn__store *s, const char *sql, int64_t *number, qn_error *err) {
    void *statement = NULL;
    int code = qn__sqlite_functions.prepare(s->base, sql, -1, &statement, NULL);
    if (code == QN__SQLITE_OK)
        code = qn__sqlite_functions.step(statement);
    const qn_status status = code == QN__SQLITE_ROW ? QN_OK : fail(s, code, err);
    *number = status == QN_OK ? qn__sqlite_functions.whole(statement, 0) : 0;
    qn__sqlite_functions.finalize(statement);
    return status;
}

static qn_status check_version(const qn__store *s, qn_error *err) {
    int64_t version = 0;
    const qn_status status = ask(s, "PRAGMA user_version", &version, err);
    if (status != QN_OK || version <= VERSION)
        return status;
    qn__fail(err, QN_FORMAT, "this file of runs was written by a newer version of Quern");
    qn__at(err, "%.400s", s->path);
    return qn__remedy(err, QN_FORMAT, "install that, or name another file (`train.runs`)");
}

/* A file with our mark, or one without tables. */
static qn_status check_mark(const qn__store *s, int write, int *fresh, qn_error *err) {
    int64_t mark = 0, count = 0;
    qn_status status = ask(s, "PRAGMA application_id", &mark, err);
    if (status == QN_OK)
        status = ask(s, "SELECT count(*) FROM sqlite_master", &count, err);
    *fresh = status == QN_OK && count == 0;
    if (status == QN_OK && !*fresh && mark == MARK)
        return check_version(s, err);
    if (status != QN_OK || (*fresh && write))
        return status;
    qn__fail(err, QN_FORMAT,
             *fresh ? "the file is empty: no training has written a run to it"
                    : "this is a SQLite file, but not one of runs");
    qn__at(err, "%.400s", s->path);
    return qn__remedy(err, QN_FORMAT, "name another file (`train.runs`)");
}

static qn_status make_tables(const qn__store *s, int write, qn_error *err) {
    int fresh;
    qn_status status = write ? run_sql(s, "BEGIN IMMEDIATE", err) : QN_OK;
    if (status != QN_OK)
        return status;
    status = check_mark(s, write, &fresh, err);
    if (status == QN_OK && write && fresh)
        status = run_sql(
            s, "PRAGMA application_id = " TEXT(MARK) "; PRAGMA user_version = " TEXT(VERSION), err);
    if (status == QN_OK && write && fresh)
        status = run_sql(s, tables, err);
    if (write && status == QN_OK)
        status = run_sql(s, "COMMIT", err);
    else if (write)
        (void)qn__sqlite_functions.exec(s->base, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

static qn_status need_library(const qn__store *s, qn_error *err) {
    const qn_status status =
        qn__optional_need(&qn__sqlite_library, "runs are kept in a SQLite file",
                          "keep the record in a folder (`train.run_dir`)", err);
    if (status != QN_OK)
        qn__at(err, "%.400s", s->path);
    return status;
}

/* SQLite has no words of its own for a folder, and for a missing file makes one. */
static qn_status check_path(const char *path, int write, qn_error *err) {
    struct stat about;
    if (qn__remote_is(path)) {
        qn__fail(err, QN_UNSUPPORTED, "a file of runs changes in place, which a store cannot do");
        qn__at(err, "%s", path);
        return qn__remedy(err, QN_UNSUPPORTED,
                          "name a file of this machine, or keep a folder in the store: "
                          "`train.run_dir`");
    }
    const int there = stat(path, &about) == 0;
    if (!there && !write)
        return qn__fail_errno(err, "open", path);
    if (there && S_ISDIR(about.st_mode)) {
        errno = EISDIR;
        return qn__fail_errno(err, "open", path);
    }
    return QN_OK;
}

/* SQLite makes the file before it knows that the disk is full. */
static void remove_empty(const char *path) {
    struct stat about;
    if (stat(path, &about) == 0 && S_ISREG(about.st_mode) && about.st_size == 0)
        unlink(path);
}

static qn_status open_sqlite(qn__store *out, const char *path, int write, qn_error *err) {
    static const char guards[] = "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; "
                                 "PRAGMA busy_timeout = " PATIENCE;
    const int how = write ? QN__SQLITE_WRITE | QN__SQLITE_CREATE : QN__SQLITE_READ;
    qn_status status = need_library(out, err);
    if (status == QN_OK)
        status = check_path(path, write, err);
    if (status != QN_OK)
        return status;
    const int is_new = access(path, F_OK) != 0;
    const int code = qn__sqlite_functions.open(path, &out->base, how, NULL);
    if (!out->base)
        return qn__fail_memory(err, 1, 1 << 16);
    status = code == QN__SQLITE_OK ? run_sql(out, guards, err) : fail(out, code, err);
    if (status == QN_OK)
        status = make_tables(out, write, err);
    if (status != QN_OK && is_new)
        remove_empty(path);
    return status;
}

static void close_sqlite(qn__store *s) { qn__sqlite_functions.close(s->base); }

/* ?1 to ?12 are texts, ?13 the epochs, the rest numbers. */
static qn_status bind_all(const qn__store *s, void *statement, const qn__store_row *row,
                          qn_error *err) {
    int code = QN__SQLITE_OK;
    for (int i = 0; i < QN__STORE_TEXTS && code == QN__SQLITE_OK; ++i)
        code = qn__sqlite_functions.bind_text(statement, i + 1, row->text[i], -1, NULL);
    if (code == QN__SQLITE_OK)
        code = qn__sqlite_functions.bind_whole(statement, QN__STORE_TEXTS + 1, row->epochs);
    for (int i = 0; i < QN__STORE_NUMBERS && code == QN__SQLITE_OK; ++i)
        if (isfinite(row->number[i]))
            code = qn__sqlite_functions.bind_number(statement, QN__STORE_TEXTS + 2 + i,
                                                    row->number[i]);
    return code == QN__SQLITE_OK ? QN_OK : fail(s, code, err);
}

static qn_status put(const qn__store *s, const qn__store_row *row, qn_error *err) {
    static const char sql[] =
        "INSERT OR REPLACE INTO runs (" QN__STORE_WRITTEN ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, "
        "?8, nullif(?9, ''), nullif(?10, ''), ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";
    void *statement = NULL;
    int code = qn__sqlite_functions.prepare(s->base, sql, -1, &statement, NULL);
    qn_status status = code == QN__SQLITE_OK ? QN_OK : fail(s, code, err);
    if (status == QN_OK)
        status = bind_all(s, statement, row, err);
    if (status == QN_OK && (code = qn__sqlite_functions.step(statement)) != QN__SQLITE_DONE)
        status = fail(s, code, err);
    qn__sqlite_functions.finalize(statement);
    return status;
}

static qn_status find(const qn__store *s, const char *run, qn__store_found *take, void *user,
                      qn_error *err) {
    static const char sql[] = QN__STORE_FIND("runs", "?1");
    void *statement = NULL;
    int code = qn__sqlite_functions.prepare(s->base, sql, -1, &statement, NULL);
    if (code == QN__SQLITE_OK)
        code = qn__sqlite_functions.bind_text(statement, 1, run, -1, NULL);
    if (code == QN__SQLITE_OK)
        while ((code = qn__sqlite_functions.step(statement)) == QN__SQLITE_ROW)
            take(user, (const char *)qn__sqlite_functions.words(statement, 0),
                 (const char *)qn__sqlite_functions.words(statement, 1),
                 (int)qn__sqlite_functions.whole(statement, 2));
    const qn_status status = code == QN__SQLITE_DONE ? QN_OK : fail(s, code, err);
    qn__sqlite_functions.finalize(statement);
    return status;
}

static qn_status give(void *statement, qn__store_listed *take, void *user, qn_error *err) {
    qn__store_row row;
    for (int i = 0; i < QN__STORE_LISTED; ++i) {
        const char *text = (const char *)qn__sqlite_functions.words(statement, i);
        row.text[i] = text ? text : "";
    }
    row.epochs = qn__sqlite_functions.whole(statement, QN__STORE_LISTED);
    for (int i = 0; i < QN__STORE_NUMBERS; ++i) /* type 5: NULL */
        row.number[i] = qn__sqlite_functions.type(statement, QN__STORE_LISTED + 1 + i) == 5
                            ? (double)NAN
                            : qn__sqlite_functions.number(statement, QN__STORE_LISTED + 1 + i);
    return take(user, &row, err);
}

static qn_status list(const qn__store *s, qn__store_listed *take, void *user, qn_error *err) {
    static const char sql[] = "SELECT " QN__STORE_COLUMNS " FROM runs ORDER BY started, rowid";
    void *statement = NULL;
    qn_status status = QN_OK;
    int code = qn__sqlite_functions.prepare(s->base, sql, -1, &statement, NULL);
    if (code == QN__SQLITE_OK)
        while (status == QN_OK && (code = qn__sqlite_functions.step(statement)) == QN__SQLITE_ROW)
            status = give(statement, take, user, err);
    if (status == QN_OK && code != QN__SQLITE_DONE)
        status = fail(s, code, err);
    qn__sqlite_functions.finalize(statement);
    return status;
}

const qn__store_kind qn__sqlite_store = {.open = open_sqlite,
                                         .close = close_sqlite,
                                         .begin = "BEGIN IMMEDIATE",
                                         .run = run_sql,
                                         .put = put,
                                         .find = find,
                                         .list = list};

/* Tables of SQLite's files (docs/exactness.md 2.1.13), by libsqlite3.so.0, opened at run time. */
#include "base/files/remote.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/system/sqlite_library.h"
#include "data/arrow/arrow_build.h"
#include "data/cells/cell.h"
#include "data/cells/readers.h"
#include "data/table/query.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Values that a file may demand: 64 for each of its bytes, and 64 Mi more (docs/formats.md). */
#define VALUES_PER_BYTE 64.0
#define VALUES_FREE 0x1p26

enum { IS_INTEGER = 1, IS_FLOAT, IS_TEXT, IS_BLOB, IS_NULL };

/* ------------------------------------------------------------------ reading */

typedef struct reading {
    const qn__sqlite *lib;
    const char *path;
    uint64_t size;
    void *base, *statement;
    qn__arrow_build *build;
    qn__contents contents; /* of an address: the whole file */
    uint64_t row;
    int columns;
} reading;

static qn_status refuse(const reading *r, qn_status status, const char *remedy, qn_error *err) {
    qn__at(err, "%s", r->path);
    return qn__remedy(err, status, "%s", remedy);
}

static qn_status fail(const reading *r, int code, const char *remedy, qn_error *err) {
    if (code == QN__SQLITE_MEMORY)
        return qn__fail_memory(err, 1, 1 << 20);
    qn__fail(err, QN_INPUT, "SQLite says: %.300s", r->lib->text(r->base));
    return refuse(
        r, QN_INPUT,
        code == QN__SQLITE_BUSY ? "start again when the other program has written" : remedy, err);
}

static qn_status refuse_value(const reading *r, int column, const char *what, const char *remedy,
                              qn_error *err) {
    char name[64];
    const char *text = r->lib->name(r->statement, column);
    text = text ? text : "";
    qn__cell_show(&(qn__cell){.text = text, .size = strlen(text)}, name);
    qn__fail(err, QN_INPUT, "the column \"%s\" %s", name, what);
    qn__at(err, "%s, row %" PRIu64 ", column %d", r->path, r->row + 1, column + 1);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

static qn_status put_text(const reading *r, int column, qn_error *err) {
    const char *text = (const char *)r->lib->words(r->statement, column);
    const size_t size = (size_t)r->lib->bytes(r->statement, column);
    if (!text)
        return qn__fail_memory(err, size, 1);
    if (!qn__cell_is_utf8(&(qn__cell){.text = text, .size = size}))
        return refuse_value(r, column, "holds a text that is not UTF-8, or a zero byte in it",
                            "leave the column out, or correct the text", err);
    return qn__build_put_text(r->build, (uint64_t)column, text, size, err);
}

static qn_status put(const reading *r, int column, qn_error *err) {
    static const qn__build_type types[] = {
        [IS_INTEGER] = QN__BUILD_INT, [IS_FLOAT] = QN__BUILD_DOUBLE, [IS_TEXT] = QN__BUILD_TEXT};
    const uint64_t at = (uint64_t)column;
    const int kind = r->lib->type(r->statement, column);
    qn_status status = QN_OK;
    if (kind == IS_NULL)
        return qn__build_put_missing(r->build, at, err);
    if (kind == IS_BLOB)
        return refuse_value(r, column, "holds bytes (a BLOB)", "leave it out of the query", err);
    qn__build_type type = types[kind];
    const qn__build_type own = qn__build_type_of(r->build, at);
    if (type == QN__BUILD_INT && own == QN__BUILD_DOUBLE)
        type = QN__BUILD_DOUBLE;
    if (own != type && !qn__build_widen(r->build, at, type, &status, err))
        return status != QN_OK ? status
                               : refuse_value(r, column, "holds texts and numbers",
                                              "convert it in the query, such as CAST(x AS TEXT) "
                                              "or CAST(x AS REAL)",
                                              err);
    if (type == QN__BUILD_TEXT)
        return put_text(r, column, err);
    if (type == QN__BUILD_DOUBLE) /* of an integer too */
        return qn__build_put_number(r->build, at, r->lib->number(r->statement, column), err);
    return qn__build_put_whole(r->build, at, r->lib->whole(r->statement, column), err);
}

static qn_status add_columns(reading *r, qn_error *err) {
    r->columns = r->lib->columns(r->statement);
    qn_status status = qn__build_create(&r->build, err);
    for (int i = 0; i < r->columns && status == QN_OK; i++) {
        const char *name = r->lib->name(r->statement, i);
        if (!name)
            return qn__fail_memory(err, 1, 64);
        status = qn__build_add(r->build, name, strlen(name), QN__BUILD_EMPTY, err);
    }
    return status;
}

static qn_status check_size(const reading *r, qn_error *err) {
    if ((double)(r->row + 1) * r->columns <= VALUES_PER_BYTE * (double)r->size + VALUES_FREE)
        return QN_OK;
    qn__fail(err, QN_INPUT,
             "more than %" PRIu64 " rows with %d columns are too many for a file of "
             "%" PRIu64 " bytes",
             r->row, r->columns, r->size);
    return refuse(r, QN_INPUT, "read fewer columns or rows, with `data.query`", err);
}

static qn_status read_rows(reading *r, qn_error *err) {
    int code;
    qn_status status = add_columns(r, err);
    while (status == QN_OK && (code = r->lib->step(r->statement)) == QN__SQLITE_ROW) {
        status = check_size(r, err);
        for (int i = 0; i < r->columns && status == QN_OK; i++)
            status = put(r, i, err);
        r->row++;
    }
    if (status == QN_OK && code != QN__SQLITE_DONE)
        return fail(r, code, "check the file with: sqlite3 FILE 'PRAGMA integrity_check'", err);
    return status;
}

/* ------------------------------------------------------------------ which rows */

/* The tables of a file, as texts for a message and a query. */
typedef struct tables {
    int count;
    char list[200], query[300];
} tables;

/* Names in double quotes, a quote in them doubled; cut where there is no space. */
static int note_table(void *user, int columns, char **value, char **name) {
    tables *t = user;
    char quoted[200];
    size_t used = 0;
    (void)columns, (void)name;
    for (const char *p = value[0] ? value[0] : ""; *p && used < sizeof quoted - 3; p++) {
        if (*p == '"')
            quoted[used++] = '"';
        quoted[used++] = *p;
    }
    quoted[used] = '\0';
    const size_t listed = strlen(t->list);
    snprintf(t->list + listed, sizeof t->list - listed, "%s%.60s", t->count ? ", " : "", quoted);
    snprintf(t->query, sizeof t->query, "SELECT * FROM \"%s\" ORDER BY rowid", quoted);
    t->count++;
    return 0;
}

/* The query of the options, or that of the only table by rowid. */
static qn_status choose_rows(reading *r, const char *query, tables *t, qn_error *err) {
    *t = (tables){0};
    if (query)
        return qn__query_check(query, r->path, err);
    const int code =
        r->lib->exec(r->base,
                     "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT "
                     "LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
                     note_table, t, NULL);
    if (code != QN__SQLITE_OK)
        return fail(r, code, "check the file with: sqlite3 FILE 'PRAGMA integrity_check'", err);
    if (t->count == 1)
        return QN_OK;
    if (t->count == 0)
        qn__fail(err, QN_INPUT, "the SQLite file has no table");
    else
        qn__fail(err, QN_INPUT, "the SQLite file has %d tables: %s", t->count, t->list);
    return refuse(r, QN_INPUT,
                  t->count ? "say which rows to read, such as `data.query` \"SELECT * FROM NAME "
                             "ORDER BY rowid\""
                           : "give a file with a table",
                  err);
}

static qn_status note_choice(const tables *t, qn_data *data, qn_error *err) {
    char text[400];
    if (t->count == 0)
        return QN_OK;
    snprintf(text, sizeof text, "the rows are those of: %.300s", t->query);
    data->note = qn__copy_text(text, err);
    return data->note ? QN_OK : QN_MEMORY;
}

/* SQLite reads local files by itself. That of an address is given to it as memory, in which the
 * mode of writing ahead would need a second file. */
static qn_status open_base(reading *r, int *code, qn_error *err) {
    enum { READ_ONLY = 4, ROLLBACK = 1 };
    typedef int (*deserialize)(void *base, const char *name, uint8_t *bytes, int64_t size,
                               int64_t space, unsigned flags);
    const char *path = r->contents.data ? ":memory:" : r->path;
    *code = r->lib->open(path, &r->base, QN__SQLITE_READ, NULL);
    if (!r->base)
        return qn__fail_memory(err, 1, 1 << 16);
    if (!r->contents.data || *code != QN__SQLITE_OK)
        return QN_OK;
    const deserialize take =
        (deserialize)qn__library_find(&qn__sqlite_library.library, "sqlite3_deserialize");
    if (!take) {
        qn__fail(err, QN_UNSUPPORTED, "this libsqlite3 reads no database from memory");
        return refuse(r, QN_UNSUPPORTED, "copy the file to this machine", err);
    }
    uint8_t *bytes = r->contents.memory;
    const int64_t size = (int64_t)r->contents.size;
    if (size > 19)
        bytes[18] = bytes[19] = ROLLBACK;
    *code = take(r->base, "main", bytes, size, size, READ_ONLY);
    return QN_OK;
}

static qn_status prepare(reading *r, const qn_data_options *options, qn_data *data, qn_error *err) {
    static const char guards[] = "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; "
                                 "PRAGMA query_only = ON; PRAGMA busy_timeout = 5000";
    tables t;
    int code;
    qn_status status = open_base(r, &code, err);
    if (status != QN_OK)
        return status;
    if (code == QN__SQLITE_OK)
        code = r->lib->exec(r->base, guards, NULL, NULL, NULL);
    if (code != QN__SQLITE_OK)
        return fail(r, code, "check that the file is a SQLite database that you can read", err);
    status = choose_rows(r, options->query, &t, err);
    if (status != QN_OK)
        return status;
    code = r->lib->prepare(r->base, options->query ? options->query : t.query, -1, &r->statement,
                           NULL);
    if (code != QN__SQLITE_OK || !r->statement)
        return fail(r, code,
                    options->query ? "correct `data.query`"
                                   : "give `data.query`: a SELECT with ORDER BY",
                    err);
    return note_choice(&t, data, err);
}

static qn_status read_all(reading *r, const qn_data_options *options, qn_data *data,
                          qn_error *err) {
    qn_status status = prepare(r, options, data, err);
    if (status == QN_OK)
        status = read_rows(r, err);
    if (status != QN_OK)
        return status;
    return qn__build_fill(&r->build, r->path, options, data, err);
}

/* In this mode a database is written to while others read a state of it (SQLite's file
 * format, 1.3.3).
 */
static int is_write_ahead(qn__source *source) {
    uint8_t head[20] = {0};
    size_t got = 0;
    return qn__source_peek(source, head, sizeof head, &got, NULL) == QN_OK && head[18] == 2 &&
           head[19] == 2;
}

static qn_status read_sqlite(qn__source *source, const qn_data_options *options, qn__pool *pool,
                             qn_data *data, qn_error *err) {
    reading r = {.lib = &qn__sqlite_functions,
                 .path = qn__source_path(source),
                 .size = qn__source_file_size(source)};
    (void)pool;
    if (qn__source_is_stream(source)) {
        qn__fail(err, QN_INPUT, "SQLite opens files, and this one has no name");
        qn__at(err, "%s", r.path);
        return qn__remedy(err, QN_INPUT, "name the file of the database");
    }
    qn_status status =
        qn__optional_need(&qn__sqlite_library, "this is a SQLite file, which libsqlite3 reads",
                          "write the table as CSV", err);
    if (status != QN_OK) {
        qn__at(err, "%s", r.path);
        return status;
    }
    if (is_write_ahead(source))
        qn__source_share(source);
    if (qn__remote_has(qn__source_descriptor(source)))
        status = qn__source_contents(source, &r.contents, err);
    if (status == QN_OK)
        status = read_all(&r, options, data, err);
    r.lib->finalize(r.statement);
    r.lib->close(r.base);
    qn__contents_release(&r.contents);
    qn__build_destroy(r.build);
    qn__float_state_set();
    return status;
}

static int probe(const uint8_t *first, size_t size, const char *path) {
    (void)path;
    return size >= 16 && memcmp(first, "SQLite format 3", 16) == 0 ? QN__PROBE_MAGIC : QN__PROBE_NO;
}

const qn__reader qn__sqlite_reader = {
    .name = QN__PLAIN_NAME("sqlite"),
    .about = "the rows of a SQLite file",
    .endings = {"sqlite", "db"},
    .columns = 1,
    .weights = 1,
    .quantities = 1,
    .typed = 1,
    .queries = 1,
    .labels_remedy =
        "leave out `data.labels_path` and name the label's column with `data.label_column`",
    .library = &qn__sqlite_library,
    .probe = probe,
    .read = read_sqlite,
};

/* The sink of SQLite: a table of a file. A result is one transaction. */
#include "base/files/remote.h"
#include "base/memory.h"
#include "base/system/sqlite_library.h"
#include "data/write/sink_database.h"
#include "data/write/sink_names.h"
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Milliseconds that a writer waits for others; that of a table that grows asks again. */
#define PATIENCE "30000"
#define SHORT_PATIENCE "1000"

typedef struct sqlite_state {
    const qn__sqlite *lib;
    void *base, *insert;
    int is_new; /* the file was made here */
} sqlite_state;

static qn_status need(const qn__sink_target *to, qn_error *err) {
    const qn_status status = qn__optional_need(
        &qn__sqlite_library, "SQLite files are written by libsqlite3", "write a CSV file", err);
    if (status != QN_OK)
        qn__at(err, "%.400s", to->shown);
    if (status != QN_OK || !qn__remote_is(to->place))
        return status;
    qn__fail(err, QN_UNSUPPORTED, "a database changes in place, which a store cannot do");
    qn__at(err, "%.400s", to->shown);
    return qn__remedy(err, QN_UNSUPPORTED,
                      "name a SQLite file of this machine, or write a CSV file to the store");
}

static qn_status fail(const qn__sink *s, int code, qn_error *err) {
    const sqlite_state *own = s->own;
    if (code == QN__SQLITE_MEMORY)
        return qn__fail_memory(err, 1, 1 << 20);
    const int is_busy = code == QN__SQLITE_BUSY;
    qn__fail(err, is_busy ? QN_BUSY : QN_IO, "SQLite says: %.300s", own->lib->text(own->base));
    qn__at(err, "%.400s, table %.100s", s->to.shown, s->table.name);
    return qn__remedy(err, is_busy ? QN_BUSY : QN_IO, "%s",
                      is_busy ? "start again when the other program has written"
                              : "name a SQLite file and a table that can be written, or new ones");
}

static qn_status run_sql(qn__sink *s, const char *sql, qn_error *err) {
    const sqlite_state *own = s->own;
    const int code = own->lib->exec(own->base, sql, NULL, NULL, NULL);
    return code == QN__SQLITE_OK ? QN_OK : fail(s, code, err);
}

/* Releases the text. */
static qn_status prepare(const qn__sink *s, qn__text *sql, void **statement, qn_error *err) {
    const sqlite_state *own = s->own;
    *statement = NULL;
    int code = sql->failed ? QN__SQLITE_MEMORY
                           : own->lib->prepare(own->base, sql->data, -1, statement, NULL);
    qn__text_release(sql);
    return code == QN__SQLITE_OK ? QN_OK : fail(s, code, err);
}

/* ------------------------------------------------------------------ values */

static int bind(const sqlite_state *own, void *statement, int at, const qn__sink_cell *cell) {
    switch (cell->type) {
    case QN__SINK_INTEGER:
        return own->lib->bind_whole(statement, at, cell->of.whole);
    case QN__SINK_SINGLE:
    case QN__SINK_REAL: /* SQLite has no NaN, and stores NULL for it */
        return own->lib->bind_number(statement, at, cell->of.number);
    case QN__SINK_TEXT:
        return own->lib->bind_text(statement, at, cell->of.text, -1, NULL);
    default:
        return own->lib->bind_null(statement, at);
    }
}

static int bind_all(const sqlite_state *own, void *statement, int first, const qn__sink_cell *cells,
                    uint32_t count) {
    int code = QN__SQLITE_OK;
    for (uint32_t k = 0; k < count && code == QN__SQLITE_OK; k++)
        code = bind(own, statement, first + (int)k, &cells[k]);
    return code;
}

static qn_status ask(qn__sink *s, const char *sql, const qn__sink_cell *cells, uint32_t count,
                     int64_t *number, qn_error *err) {
    const sqlite_state *own = s->own;
    void *statement = NULL;
    qn_status status = QN_OK;
    int code = own->lib->prepare(own->base, sql, -1, &statement, NULL);
    *number = -1;
    if (code == QN__SQLITE_OK)
        code = bind_all(own, statement, 1, cells, count);
    if (code == QN__SQLITE_OK)
        code = own->lib->step(statement);
    if (code == QN__SQLITE_ROW && own->lib->words(statement, 0))
        *number = own->lib->whole(statement, 0);
    else if (code != QN__SQLITE_ROW && code != QN__SQLITE_DONE)
        status = fail(s, code, err);
    own->lib->finalize(statement);
    return status;
}

/* ------------------------------------------------------------------ the table */

static const char *const type_names[] = {[QN__SINK_INTEGER] = "INTEGER",
                                         [QN__SINK_SINGLE] = "REAL",
                                         [QN__SINK_REAL] = "REAL",
                                         [QN__SINK_TEXT] = "TEXT"};

/* What SQLite makes of a declared type (datatype3.html, 3.1), as a kind of column. */
static qn__sink_type affinity(const char *declared) {
    static const struct {
        const char *part;
        qn__sink_type type;
    } rules[] = {{"INT", QN__SINK_INTEGER}, {"CHAR", QN__SINK_TEXT}, {"CLOB", QN__SINK_TEXT},
                 {"TEXT", QN__SINK_TEXT},   {"REAL", QN__SINK_REAL}, {"FLOA", QN__SINK_REAL},
                 {"DOUB", QN__SINK_REAL}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcasestr(declared, rules[i].part))
            return rules[i].type;
    return QN__SINK_MISSING; /* without a type it holds what comes */
}

static qn_status check_column(const qn__sink *s, void *statement, const char *name,
                              qn__sink_type type, qn_error *err) {
    const sqlite_state *own = s->own;
    int code = own->lib->bind_text(statement, 2, name, -1, NULL);
    if (code == QN__SQLITE_OK)
        code = own->lib->step(statement);
    if (code == QN__SQLITE_DONE)
        return qn__sink_lacks_column(s, name, type_names[type], err);
    if (code != QN__SQLITE_ROW)
        return fail(s, code, err);
    const char *declared = (const char *)own->lib->words(statement, 0);
    const qn__sink_type is = affinity(declared ? declared : "");
    const int fits = is == type || (is == QN__SINK_REAL && type == QN__SINK_SINGLE) ||
                     (is == QN__SINK_MISSING && !(declared && *declared));
    return fits ? QN_OK : qn__sink_other_type(s, name, declared, type_names[type], err);
}

static qn_status check_columns(const qn__sink *s, qn_error *err) {
    const sqlite_state *own = s->own;
    qn__text sql = {0};
    void *statement;
    qn__text_add(&sql, "SELECT type FROM pragma_table_info(?1) WHERE name = ?2 COLLATE NOCASE");
    qn_status status = prepare(s, &sql, &statement, err);
    if (status == QN_OK)
        (void)own->lib->bind_text(statement, 1, s->table.name, -1, NULL);
    if (status == QN_OK && s->run)
        status = check_column(s, statement, "run", QN__SINK_TEXT, err);
    for (uint32_t k = 0; k < s->table.columns && status == QN_OK; k++) {
        (void)own->lib->reset(statement);
        status = check_column(s, statement, s->table.column[k].name, s->table.column[k].type, err);
    }
    own->lib->finalize(statement);
    return status;
}

static qn_status ready_table(qn__sink *s, qn_error *err) {
    const qn__sink_cell name = {QN__SINK_TEXT, {.text = s->table.name}};
    int64_t found;
    const qn_status status = ask(s,
                                 "SELECT 1 FROM sqlite_master WHERE type IN ('table', 'view') AND "
                                 "name = ?1 COLLATE NOCASE",
                                 &name, 1, &found, err);
    if (status != QN_OK || found == 1)
        return status != QN_OK ? status : check_columns(s, err);
    qn__text sql = {0};
    qn__sink_add_create(&sql, s, type_names);
    return qn__database_run(s, &sql, err);
}

/* ------------------------------------------------------------------ opening */

/* SQLite has no words for a folder. */
static qn_status connect(qn__sink *s, qn_error *err) {
    /* The patience first: the level of syncing reads the file, which may be locked. */
    static const char guards[] = "PRAGMA busy_timeout = " PATIENCE "; PRAGMA trusted_schema = OFF; "
                                 "PRAGMA cell_size_check = ON; PRAGMA synchronous = FULL";
    sqlite_state *own = s->own = qn__alloc(1, sizeof *own, err);
    struct stat about;
    if (!own)
        return QN_MEMORY;
    own->lib = &qn__sqlite_functions;
    own->is_new = stat(s->to.place, &about) != 0;
    if (!own->is_new && S_ISDIR(about.st_mode)) {
        qn__fail(err, QN_IO, "this is a folder");
        qn__at(err, "%.400s", s->to.shown);
        return qn__remedy(err, QN_IO, "name a file in it");
    }
    const int code =
        own->lib->open(s->to.place, &own->base, QN__SQLITE_WRITE | QN__SQLITE_CREATE, NULL);
    if (!own->base)
        return qn__fail_memory(err, 1, 1 << 16);
    if (code != QN__SQLITE_OK)
        return fail(s, code, err);
    /* The second one reads the file, so that one of another kind is found here. */
    const qn_status status = run_sql(s, guards, err);
    return status == QN_OK ? run_sql(s, "SELECT count(*) FROM sqlite_master", err) : status;
}

/* SQLite makes the file before it has something to store. */
static void close_sqlite(qn__sink *s) {
    sqlite_state *own = s->own;
    struct stat about;
    if (own->base) {
        own->lib->finalize(own->insert);
        own->lib->close(own->base); /* an open transaction is undone */
    }
    if (own->is_new && stat(s->to.place, &about) == 0 && S_ISREG(about.st_mode) &&
        about.st_size == 0)
        unlink(s->to.place);
    qn__free(own);
}

/* ------------------------------------------------------------------ rows */

/* ?1 is the run where there is one. */
static qn_status prepare_insert(qn__sink *s, qn_error *err) {
    sqlite_state *own = s->own;
    const uint32_t count = s->table.columns + (s->run ? 1 : 0);
    qn__text sql = {0};
    const qn_status status =
        s->run ? QN_OK : run_sql(s, "PRAGMA busy_timeout = " SHORT_PATIENCE, err);
    if (status != QN_OK)
        return status;
    qn__text_add(&sql, "INSERT INTO ");
    qn__sink_add_table(&sql, s);
    qn__text_add(&sql, " (");
    qn__sink_add_names(&sql, s);
    qn__text_add(&sql, ") SELECT ");
    for (uint32_t k = 1; k <= count; k++)
        qn__text_add(&sql, "%s?%u", k > 1 ? ", " : "", k);
    if (!s->run && s->table.keys > 0) {
        qn__text_add(&sql, " WHERE NOT EXISTS (SELECT 1 FROM ");
        qn__sink_add_table(&sql, s);
        qn__sink_add_where(&sql, s, s->table.keys);
        qn__text_add(&sql, ")");
    }
    return prepare(s, &sql, &own->insert, err);
}

static qn_status add(qn__sink *s, const qn__sink_cell *cells, qn_error *err) {
    const sqlite_state *own = s->own;
    int code = s->run ? own->lib->bind_text(own->insert, 1, s->run, -1, NULL) : QN__SQLITE_OK;
    if (code == QN__SQLITE_OK)
        code = bind_all(own, own->insert, s->run ? 2 : 1, cells, s->table.columns);
    if (code == QN__SQLITE_OK)
        code = own->lib->step(own->insert);
    const qn_status status = code == QN__SQLITE_DONE ? QN_OK : fail(s, code, err);
    (void)own->lib->reset(own->insert);
    return status;
}

static qn_status put(qn__sink *s, const qn__sink_cell *cells, uint64_t rows, qn_error *err) {
    qn_status status = QN_OK;
    for (uint64_t i = 0; i < rows && status == QN_OK; i++)
        status = add(s, cells + i * s->table.columns, err);
    return status;
}

static const char *const schemes[] = {"sqlite:", NULL};

static const qn__sink_database database = {.mark = "?",
                                           .begin = "BEGIN IMMEDIATE",
                                           .run = run_sql,
                                           .ask = ask,
                                           .ready = ready_table,
                                           .prepare = prepare_insert,
                                           .put = put};

const qn__sink_kind qn__sqlite_sink = {.schemes = schemes,
                                       .database = &database,
                                       .most_columns = 2000, /* unless SQLite was built otherwise */
                                       .need = need,
                                       .connect = connect,
                                       .begin = qn__database_begin,
                                       .add = add,
                                       .commit = qn__database_commit,
                                       .open = qn__database_open,
                                       .put = qn__database_put,
                                       .holds = qn__database_holds,
                                       .last = qn__database_last,
                                       .close = close_sqlite};

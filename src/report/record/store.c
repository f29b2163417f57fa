#include "report/record/store.h"

#include "base/digest/sha256.h"
#include "base/files/remote.h"
#include "base/memory.h"
#include "base/system/clock.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
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

qn_status qn__store_fail(const qn__store *store, qn_error *err) {
    qn__fail(err, QN_IO, "SQLite says: %.300s", store->lib->text(store->base));
    qn__at(err, "%.400s", store->path);
    return qn__remedy(err, QN_IO,
                      "name a file of runs that can be written and read (`train.runs`)");
}

static qn_status fail(const qn__store *s, int code, qn_error *err) {
    return code == QN__SQLITE_MEMORY ? qn__fail_memory(err, 1, 1 << 20) : qn__store_fail(s, err);
}

static qn_status run_sql(const qn__store *s, const char *sql, qn_error *err) {
    const int code = s->lib->exec(s->base, sql, NULL, NULL, NULL);
    return code == QN__SQLITE_OK ? QN_OK : fail(s, code, err);
}

/* The first number of the answer. */
static qn_status ask(const qn__store *s, const char *sql, int64_t *number, qn_error *err) {
    void *statement = NULL;
    int code = s->lib->prepare(s->base, sql, -1, &statement, NULL);
    if (code == QN__SQLITE_OK)
        code = s->lib->step(statement);
    const qn_status status = code == QN__SQLITE_ROW ? QN_OK : fail(s, code, err);
    *number = status == QN_OK ? s->lib->whole(statement, 0) : 0;
    s->lib->finalize(statement);
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
        (void)s->lib->exec(s->base, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

static qn_status need_library(const char *path, qn__store *out, qn_error *err) {
    *out = (qn__store){.lib = &qn__sqlite_functions};
    const qn_status status =
        qn__optional_need(&qn__sqlite_library, "runs are kept in a SQLite file",
                          "keep the record in a folder (`train.run_dir`)", err);
    if (status != QN_OK) {
        qn__at(err, "%.400s", path);
        return status;
    }
    out->path = qn__copy_text(path, err);
    return out->path ? QN_OK : QN_MEMORY;
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

qn_status qn__store_open(const char *path, int write, qn__store *out, qn_error *err) {
    static const char guards[] = "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; "
                                 "PRAGMA busy_timeout = " PATIENCE;
    const int how = write ? QN__SQLITE_WRITE | QN__SQLITE_CREATE : QN__SQLITE_READ;
    qn_status status = need_library(path, out, err);
    if (status == QN_OK)
        status = check_path(path, write, err);
    if (status != QN_OK)
        return status;
    const int is_new = access(path, F_OK) != 0;
    const int code = out->lib->open(path, &out->base, how, NULL);
    if (!out->base)
        return qn__fail_memory(err, 1, 1 << 16);
    status = code == QN__SQLITE_OK ? run_sql(out, guards, err) : fail(out, code, err);
    if (status == QN_OK)
        status = make_tables(out, write, err);
    if (status != QN_OK && is_new)
        remove_empty(path);
    return status;
}

void qn__store_close(qn__store *store) {
    if (store->base)
        store->lib->close(store->base);
    qn__free(store->path);
    *store = (qn__store){0};
}

void qn__store_number(char id[QN__STORE_ID + 1]) {
    static unsigned count;
    char text[512], host[256] = "", digits[65];
    uint8_t digest[32];
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    snprintf(text, sizeof text, "%s %ld %lld %ld %.9f %u", host, (long)getpid(),
             (long long)now.tv_sec, now.tv_nsec, qn__now(),
             __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED));
    qn__sha256_of(text, strlen(text), digest);
    qn__hex(digest, digits);
    snprintf(id, QN__STORE_ID + 1, "%.12s", digits);
}

/* ----------------------------------------------------------------------------------------- writing
 */

/* The columns that are not texts of the record themselves. */
typedef struct row {
    qn__past_run run;
    qn__text command;
    const char *scored; /* the set of the scores; NULL: none */
    double number[5];   /* seconds, accuracy, loss, rmse, r2 */
} row;

/* The test set, else the validation set, else the training items. */
static void fill_scores(row *r) {
    static const char *const sets[] = {"test", "valid", "train"};
    static const char *const keys[] = {"loss", "rmse", "r2"};
    const qn__json_node *score = NULL;
    uint64_t items, correct;
    for (int i = 0; i < 3 && !score; ++i)
        if (qn__json_is_object(score = qn__json_get(r->run.facts, sets[i])))
            r->scored = sets[i];
        else
            score = NULL;
    r->number[0] = qn__fact_number(r->run.facts, "seconds");
    r->number[1] = NAN;
    if (qn__json_u64(qn__json_get(score, "items"), &items) && items > 0 &&
        qn__json_u64(qn__json_get(score, "correct"), &correct))
        r->number[1] = (double)correct / (double)items;
    for (int i = 0; i < 3; ++i)
        r->number[2 + i] = qn__fact_number(score, keys[i]);
}

static void fill_command(row *r) {
    const qn__json_node *command = qn__json_get(r->run.facts, "command");
    for (size_t i = 0; i < qn__json_count(command); ++i) {
        const char *word = qn__json_string(qn__json_at(command, i));
        qn__text_add(&r->command, "%s%s", i ? " " : "", word ? word : "");
    }
}

static qn_status bind_all(const qn__store *s, void *statement, const row *r, const char *id,
                          const char *name, const qn__text *about, const qn__text *metrics,
                          qn_error *err) {
    const qn__json_node *recipe = qn__json_get(r->run.facts, "recipe");
    const char *data = qn__json_string(qn__json_get(recipe, "data"));
    const char *text[] = {id,
                          name,
                          qn__past_run_text(&r->run, "state"),
                          qn__past_run_text(&r->run, "started"),
                          qn__past_run_text(&r->run, "ended"),
                          qn__past_run_text(&r->run, "host"),
                          r->command.data ? r->command.data : "",
                          data ? data : "",
                          qn__past_run_text(&r->run, "model"),
                          r->scored ? r->scored : "",
                          about->data,
                          metrics->data};
    enum { TEXTS = sizeof text / sizeof *text };
    int code = QN__SQLITE_OK;
    for (int i = 0; i < TEXTS && code == QN__SQLITE_OK; ++i)
        code = s->lib->bind_text(statement, i + 1, text[i], -1, NULL);
    if (code == QN__SQLITE_OK)
        code = s->lib->bind_whole(statement, TEXTS + 1, (int64_t)r->run.epochs);
    for (int i = 0; i < 5 && code == QN__SQLITE_OK; ++i)
        if (isfinite(r->number[i]))
            code = s->lib->bind_number(statement, TEXTS + 2 + i, r->number[i]);
    return code == QN__SQLITE_OK ? QN_OK : fail(s, code, err);
}

static qn_status put_row(const qn__store *s, const row *r, const char *id, const char *name,
                         const qn__text *about, const qn__text *metrics, qn_error *err) {
    static const char sql[] =
        "INSERT OR REPLACE INTO runs (id, name, state, started, ended, host, command, data, model, "
        "scored, record, metrics, epochs, seconds, accuracy, loss, rmse, r2) VALUES (?1, "
        "?2, ?3, ?4, ?5, ?6, ?7, ?8, nullif(?9, ''), nullif(?10, ''), ?11, ?12, ?13, ?14, ?15, "
        "?16, "
        "?17, ?18)";
    void *statement = NULL;
    int code = s->lib->prepare(s->base, sql, -1, &statement, NULL);
    qn_status status = code == QN__SQLITE_OK ? QN_OK : fail(s, code, err);
    if (status == QN_OK)
        status = bind_all(s, statement, r, id, name, about, metrics, err);
    if (status == QN_OK && (code = s->lib->step(statement)) != QN__SQLITE_DONE)
        status = fail(s, code, err);
    s->lib->finalize(statement);
    return status;
}

/* Another rank that has become the writer has written the row, or waits for this transaction. */
static qn_status may_put(const qn__store *store, const qn__owner *owner, qn_error *err) {
    if (!owner->may || owner->may(owner->user))
        return QN_OK;
    return qn__fail(err, QN_BUSY, "the run in %.400s now belongs to another process", store->path);
}

qn_status qn__store_put(const qn__store *store, const char *id, const char *name,
                        const qn__text *about, const qn__text *metrics, const qn__owner *owner,
                        qn_error *err) {
    row r = {.scored = NULL};
    qn_status status = qn__past_run_parse("the record", about, metrics, &r.run, err);
    if (status != QN_OK)
        return status;
    fill_scores(&r);
    fill_command(&r);
    status = r.command.failed ? qn__fail_memory(err, r.command.size + 1, 1)
                              : run_sql(store, "BEGIN IMMEDIATE", err);
    if (status == QN_OK) {
        status = put_row(store, &r, id, name, about, metrics, err);
        if (status == QN_OK)
            status = may_put(store, owner, err);
        if (status == QN_OK)
            status = run_sql(store, "COMMIT", err);
        if (status != QN_OK)
            (void)store->lib->exec(store->base, "ROLLBACK", NULL, NULL, NULL);
    }
    qn__text_release(&r.command);
    qn__past_run_release(&r.run);
    return status;
}

/* ----------------------------------------------------------------------------------------- reading
 */

qn_status qn__store_refuse(const qn__store *s, const char *run, int several, qn_error *err) {
    if (several)
        qn__fail(err, QN_INPUT, "several runs are called \"%.100s\", or begin so", run);
    else
        qn__fail(err, QN_INPUT, "there is no run \"%.100s\"", run);
    qn__at(err, "%.400s", s->path);
    return qn__remedy(
        err, QN_INPUT,
        several ? "give more of its identifier"
                : "give the identifier of a run, or its name; the list of the runs has both");
}

static void take(const qn__store *s, void *statement, int column, qn__text *out) {
    const char *text = (const char *)s->lib->words(statement, column);
    out->size = 0;
    qn__text_add(out, "%s", text ? text : "");
}

/* The number itself counts before names, and these before beginnings. */
qn_status qn__store_get(const qn__store *s, const char *run, qn__text *about, qn__text *metrics,
                        qn_error *err) {
    static const char sql[] =
        "SELECT record, metrics, CASE WHEN id = ?1 THEN 0 WHEN name = ?1 THEN 1 ELSE 2 END AS how "
        "FROM runs WHERE id = ?1 OR name = ?1 OR (length(?1) >= 4 AND substr(id, 1, length(?1)) = "
        "?1) ORDER BY how LIMIT 2";
    void *statement = NULL;
    int64_t how = -1;
    int several = 0, rows = 0;
    int code = s->lib->prepare(s->base, sql, -1, &statement, NULL);
    if (code == QN__SQLITE_OK)
        code = s->lib->bind_text(statement, 1, run, -1, NULL);
    while (code == QN__SQLITE_OK || code == QN__SQLITE_ROW) {
        code = s->lib->step(statement);
        if (code != QN__SQLITE_ROW)
            break;
        if (rows++ == 0) {
            take(s, statement, 0, about);
            take(s, statement, 1, metrics);
            how = s->lib->whole(statement, 2);
        } else {
            several = how > 0 && s->lib->whole(statement, 2) == how;
        }
    }
    qn_status status = code == QN__SQLITE_DONE ? QN_OK : fail(s, code, err);
    s->lib->finalize(statement);
    if (status == QN_OK && (rows == 0 || several))
        status = qn__store_refuse(s, run, several, err);
    if (status == QN_OK && (about->failed || metrics->failed))
        status = qn__fail_memory(err, about->size + metrics->size, 1);
    return status;
}

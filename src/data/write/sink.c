/* Sinks of any kind (sink.h). */
#include "data/write/sink.h"

#include "base/memory.h"
#include "data/write/sink_kinds.h"
#include <quern/convert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* How often a lost connection is made again, with waits that double: about half a minute. */
enum { TRIES = 8, FIRST_WAIT = 250 /* milliseconds */ };

static qn_status copy_table(qn__sink *s, const qn__sink_table *table, qn_error *err) {
    qn__sink_column *own = qn__alloc(table->columns, sizeof *own, err);
    if (!own)
        return QN_MEMORY;
    s->table = *table;
    s->table.column = own;
    s->table.columns = 0;
    s->table.name = NULL;
    for (uint32_t k = 0; k < table->columns; k++) {
        own[k] = table->column[k];
        own[k].name = qn__copy_text(table->column[k].name, err);
        if (!own[k].name)
            return QN_MEMORY;
        s->table.columns++;
    }
    s->table.name = qn__copy_text(s->to.table ? s->to.table : table->name, err);
    return s->table.name ? QN_OK : QN_MEMORY;
}

/* A table under the name of another format would be read wrongly. */
static qn_status check_ending(const qn__sink *s, qn_error *err) {
    const char *format = s->kind->database ? NULL : qn_data_write_format(s->to.place);
    if (!format || strcmp(format, "csv") == 0)
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED, "answers are written as CSV, and the file's name says %s",
             format);
    qn__at(err, "%.400s", s->to.shown);
    return qn__remedy(err, QN_UNSUPPORTED,
                      "name it .csv; quern data convert makes a file of another format of it");
}

/* A column more says the run of a whole result. */
static qn_status check_columns(const qn__sink *s, const qn__sink_table *table, qn_error *err) {
    const uint32_t most = s->kind->most_columns;
    if (!s->kind->database || table->columns < most)
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED, "the results have %u columns, and a table there at most %u",
             table->columns, most - 1);
    qn__at(err, "%.400s", s->to.shown);
    return qn__remedy(err, QN_UNSUPPORTED, "write a file, or fewer numbers of an item");
}

static qn_status make(const char *to, const qn__sink_table *table, qn__sink **out, qn_error *err) {
    qn__sink *s = *out = qn__alloc(1, sizeof *s, err);
    if (!s)
        return QN_MEMORY;
    qn_status status = qn__sink_target_of(to, &s->kind, &s->to, err);
    if (status == QN_OK)
        status = check_ending(s, err);
    if (status == QN_OK)
        status = check_columns(s, table, err);
    if (status == QN_OK)
        status = copy_table(s, table, err);
    if (status == QN_OK && s->kind->need)
        status = s->kind->need(&s->to, err);
    return status;
}

void qn__sink_close(qn__sink *s) {
    if (!s)
        return;
    if (s->own)
        s->kind->close(s);
    for (uint32_t k = 0; k < s->table.columns; k++)
        qn__free((char *)(uintptr_t)s->table.column[k].name);
    qn__free((void *)(uintptr_t)s->table.column);
    qn__free((char *)(uintptr_t)s->table.name);
    qn__sink_target_release(&s->to);
    qn__free(s);
}

static void close_lost(qn__sink *s) {
    s->is_lost = 0;
    if (s->own)
        s->kind->close(s);
    s->own = NULL;
}

/* Whether another try may help. Waits before it. */
static int try_again(qn__sink *s, int *tries) {
    if (!s->is_lost || ++*tries >= TRIES)
        return 0;
    const long wait = (long)FIRST_WAIT << (*tries - 1);
    const struct timespec pause = {wait / 1000, wait % 1000 * 1000000};
    nanosleep(&pause, NULL);
    close_lost(s);
    return 1;
}

/* The same of a table that grows: at once, and only once. Its owner waits, who may have to end. */
static int connect_again(qn__sink *s, int *tries) {
    if (!s->is_lost)
        return 0;
    close_lost(s);
    return ++*tries == 1;
}

/* ------------------------------------------------------------------ a whole result */

qn_status qn__sink_add(qn__sink *s, const qn__sink_cell *cells, qn_error *err) {
    return s->kind->add(s, cells, err);
}

static qn_status connect_sink(qn__sink *s, qn_error *err) {
    return s->kind->connect ? s->kind->connect(s, err) : QN_OK;
}

/* What is done once; after a lost connection again from its beginning. */
static qn_status write_once(qn__sink *s, const qn__sink_order *order, int *there, qn_error *err) {
    qn_status status = connect_sink(s, err);
    if (status == QN_OK)
        status = s->kind->begin(s, there, err);
    if (status != QN_OK || *there)
        return status;
    status = order->rows(order->user, s, err);
    return status == QN_OK ? s->kind->commit(s, order->may, order->may_user, err) : status;
}

qn_status qn__sink_write(const qn__sink_order *order, qn__sink_written *written, qn_error *err) {
    qn__sink *s = NULL;
    int tries = 0, there = 0;
    qn__sink_written unwanted;
    written = written ? written : &unwanted;
    *written = (qn__sink_written){.there = 0};
    qn_status status = make(order->to, order->table, &s, err);
    if (status == QN_OK) {
        s->run = s->to.run ? s->to.run : order->run;
        do {
            there = 0;
            status = write_once(s, order, &there, err);
        } while (status != QN_OK && try_again(s, &tries));
        /* Rows whose first try was stored, although its answer was lost, are these. */
        written->there = there && tries == 0;
        if (s->kind->database)
            snprintf(written->run, sizeof written->run, "%.*s", QN__SINK_NAME - 1, s->run);
    }
    qn__sink_close(s);
    return status;
}

qn_status qn__sink_try(const char *to, const qn__sink_table *table, qn_error *err) {
    qn__sink *s = NULL;
    int there = 0;
    qn_status status = make(to, table, &s, err);
    if (status == QN_OK && s->kind->database) {
        s->run = s->to.run ? s->to.run : "";
        status = connect_sink(s, err);
        if (status == QN_OK)
            status = s->kind->begin(s, &there, err);
    }
    qn__sink_close(s);
    return status;
}

/* ------------------------------------------------------------------ a table that grows */

/* The first time, and after a lost connection again. */
static qn_status open_sink(qn__sink *s, qn_error *err) {
    if (s->own)
        return QN_OK;
    qn_status status = connect_sink(s, err);
    if (status == QN_OK)
        status = s->kind->open(s, err);
    if (status == QN_OK || !s->own)
        return status;
    s->kind->close(s);
    s->own = NULL;
    return status;
}

qn_status qn__sink_open(const char *to, const qn__sink_table *table, qn__sink **out,
                        qn_error *err) {
    qn__sink *s = NULL;
    qn_status status = make(to, table, &s, err);
    if (status == QN_OK)
        status = open_sink(s, err);
    if (status != QN_OK) {
        qn__sink_close(s);
        s = NULL;
    }
    *out = s;
    return status;
}

qn_status qn__sink_put(qn__sink *s, const qn__sink_cell *cells, uint64_t rows, qn_error *err) {
    int tries = 0;
    qn_status status;
    do {
        status = open_sink(s, err);
        if (status == QN_OK)
            status = s->kind->put(s, cells, rows, err);
    } while (status != QN_OK && connect_again(s, &tries));
    return status;
}

qn_status qn__sink_holds(qn__sink *s, const qn__sink_cell *key, int *holds, qn_error *err) {
    int tries = 0;
    qn_status status;
    do {
        status = open_sink(s, err);
        if (status == QN_OK)
            status = s->kind->holds(s, key, holds, err);
    } while (status != QN_OK && connect_again(s, &tries));
    return status;
}

qn_status qn__sink_last(qn__sink *s, const qn__sink_cell *first, int64_t *last, qn_error *err) {
    int tries = 0;
    qn_status status;
    do {
        status = open_sink(s, err);
        if (status == QN_OK)
            status = s->kind->last(s, first, last, err);
    } while (status != QN_OK && connect_again(s, &tries));
    return status;
}

int qn__sink_file(const qn__sink *s, struct stat *info) {
    return !s->kind->is_server && stat(s->to.place, info) == 0 && S_ISREG(info->st_mode);
}

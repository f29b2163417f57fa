#include "data/write/sink_database.h"

#include "data/write/sink_names.h"

static qn_status run(qn__sink *s, const char *sql, qn_error *err) {
    return s->kind->database->run(s, sql, err);
}

qn_status qn__database_run(qn__sink *s, qn__text *sql, qn_error *err) {
    const qn_status status =
        sql->failed ? qn__fail_memory(err, sql->size, 1) : run(s, sql->data, err);
    qn__text_release(sql);
    return status;
}

/* Releases the text. */
static qn_status ask(qn__sink *s, qn__text *sql, const qn__sink_cell *cells, uint32_t count,
                     int64_t *number, qn_error *err) {
    *number = -1;
    const qn_status status = sql->failed
                                 ? qn__fail_memory(err, sql->size, 1)
                                 : s->kind->database->ask(s, sql->data, cells, count, number, err);
    qn__text_release(sql);
    return status;
}

static qn_status prepare(qn__sink *s, qn_error *err) {
    return s->kind->database->prepare ? s->kind->database->prepare(s, err) : QN_OK;
}

/* A transaction in which the table is ready. */
static qn_status begin(qn__sink *s, qn_error *err) {
    qn_status status = run(s, s->kind->database->begin, err);
    if (status == QN_OK)
        status = qn__sink_check_names(s, err);
    return status == QN_OK ? s->kind->database->ready(s, err) : status;
}

/* ------------------------------------------------------------------ a whole result */

static qn_status find_run(qn__sink *s, int *there, qn_error *err) {
    const qn__sink_cell name = {QN__SINK_TEXT, {.text = s->run}};
    qn__text sql = {0};
    int64_t found;
    qn__text_add(&sql, "SELECT 1 FROM ");
    qn__sink_add_table(&sql, s);
    qn__text_add(&sql, " WHERE \"run\" = %s1 LIMIT 1", s->kind->database->mark);
    const qn_status status = ask(s, &sql, &name, 1, &found, err);
    *there = found == 1;
    return status;
}

qn_status qn__database_begin(qn__sink *s, int *there, qn_error *err) {
    qn_status status = begin(s, err);
    if (status == QN_OK)
        status = find_run(s, there, err);
    return status == QN_OK && !*there ? prepare(s, err) : status;
}

qn_status qn__database_commit(qn__sink *s, int (*may)(void *user), void *user, qn_error *err) {
    const qn_status status = s->kind->database->finish ? s->kind->database->finish(s, err) : QN_OK;
    if (status != QN_OK)
        return status;
    if (may && !may(user))
        return qn__fail(err, QN_BUSY, "%.400s now belongs to another process", s->to.shown);
    return run(s, "COMMIT", err);
}

/* ------------------------------------------------------------------ a table that grows */

qn_status qn__database_open(qn__sink *s, qn_error *err) {
    qn_status status = begin(s, err);
    if (status == QN_OK)
        status = run(s, "COMMIT", err);
    return status == QN_OK ? prepare(s, err) : status;
}

qn_status qn__database_put(qn__sink *s, const qn__sink_cell *cells, uint64_t rows, qn_error *err) {
    qn_status status = run(s, s->kind->database->begin, err);
    if (status != QN_OK)
        return status;
    status = s->kind->database->put(s, cells, rows, err);
    if (status == QN_OK)
        status = run(s, "COMMIT", err);
    if (status != QN_OK && !s->is_lost)
        (void)run(s, "ROLLBACK", NULL);
    return status;
}

qn_status qn__database_holds(qn__sink *s, const qn__sink_cell *key, int *holds, qn_error *err) {
    qn__text sql = {0};
    int64_t found;
    qn__text_add(&sql, "SELECT 1 FROM ");
    qn__sink_add_table(&sql, s);
    qn__sink_add_where(&sql, s, s->table.keys);
    qn__text_add(&sql, " LIMIT 1");
    const qn_status status = ask(s, &sql, key, s->table.keys, &found, err);
    *holds = found == 1;
    return status;
}

qn_status qn__database_last(qn__sink *s, const qn__sink_cell *first, int64_t *last, qn_error *err) {
    const uint32_t others = s->table.keys - 1;
    qn__text sql = {0};
    qn__text_add(&sql, "SELECT max(");
    qn__sink_add_name(&sql, s->table.column[others].name);
    qn__text_add(&sql, ") FROM ");
    qn__sink_add_table(&sql, s);
    qn__sink_add_where(&sql, s, others);
    return ask(s, &sql, first, others, last, err);
}

#include "data/write/sink_names.h"

#include "data/write/sink_database.h"
#include <string.h>
#include <strings.h>

static qn_status refuse(const qn__sink *s, const char *remedy, qn_error *err) {
    qn__at(err, "%.400s, table %.100s", s->to.shown, s->table.name);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

qn_status qn__sink_check_names(const qn__sink *s, qn_error *err) {
    for (uint32_t k = 0; k < s->table.columns; k++) {
        const char *name = s->table.column[k].name;
        int twice = s->run && strcasecmp(name, "run") == 0;
        for (uint32_t j = 0; j < k; j++)
            twice |= strcasecmp(name, s->table.column[j].name) == 0;
        if (!twice)
            continue;
        qn__fail(err, QN_INPUT, "two columns of the table would have the name \"%.60s\"", name);
        return refuse(s, "write a CSV file", err);
    }
    return QN_OK;
}

static const char other_table[] =
    "name another table at the end of the address, such as ?table=NAME";

qn_status qn__sink_lacks_column(const qn__sink *s, const char *name, const char *type,
                                qn_error *err) {
    qn__fail(err, QN_INPUT, "the table is there, and lacks the column \"%.60s\" (%s)", name, type);
    return refuse(s, other_table, err);
}

qn_status qn__sink_other_type(const qn__sink *s, const char *name, const char *is, const char *type,
                              qn_error *err) {
    qn__fail(err, QN_INPUT, "the column \"%.60s\" of the table is %.40s, and needs to be %s", name,
             is && *is ? is : "of another type", type);
    return refuse(s, other_table, err);
}

void qn__sink_add_table(qn__text *sql, const qn__sink *s) {
    const char *name = s->table.name, *point = strchr(name, '.');
    if (s->kind->is_server && point && point > name && point[1]) {
        qn__text_add(sql, "\"");
        for (; name < point; name++)
            qn__text_add(sql, "%s%c", *name == '"' ? "\"" : "", *name);
        qn__text_add(sql, "\".");
        name = point + 1;
    }
    qn__sink_add_name(sql, name);
}

void qn__sink_add_create(qn__text *sql, const qn__sink *s, const char *const *types) {
    const qn__sink_table *t = &s->table;
    qn__text_add(sql, "CREATE TABLE ");
    qn__sink_add_table(sql, s);
    qn__text_add(sql, " (");
    if (s->run)
        qn__text_add(sql, "\"run\" %s NOT NULL, ", types[QN__SINK_TEXT]);
    for (uint32_t k = 0; k < t->columns; k++) {
        qn__text_add(sql, "%s", k ? ", " : "");
        qn__sink_add_name(sql, t->column[k].name);
        qn__text_add(sql, " %s%s", types[t->column[k].type], k < t->keys ? " NOT NULL" : "");
    }
    for (uint32_t k = 0; k < t->keys; k++) {
        qn__text_add(sql, "%s", k ? ", " : s->run ? ", PRIMARY KEY (\"run\", " : ", PRIMARY KEY (");
        qn__sink_add_name(sql, t->column[k].name);
    }
    if (s->run && t->keys == 0) /* one row a run */
        qn__text_add(sql, ", PRIMARY KEY (\"run\"");
    qn__text_add(sql, "%s", s->run || t->keys ? "))" : ")");
}

void qn__sink_add_where(qn__text *sql, const qn__sink *s, uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        qn__text_add(sql, "%s", k ? " AND " : " WHERE ");
        qn__sink_add_name(sql, s->table.column[k].name);
        qn__text_add(sql, " = %s%u", s->kind->database->mark, k + 1);
    }
}

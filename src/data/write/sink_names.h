/* What the databases have in common: the texts of their SQL, and messages about a table. */
#ifndef QN_DATA_WRITE_SINK_NAMES_H
#define QN_DATA_WRITE_SINK_NAMES_H

#include "data/write/sink_kinds.h"

/* QN_INPUT: two columns would have one name. A database has small and large letters alike. */
qn_status qn__sink_check_names(const qn__sink *sink, qn_error *err);

/* QN_INPUT: the table that is there lacks a column, or has it with another type. */
qn_status qn__sink_lacks_column(const qn__sink *sink, const char *name, const char *type,
                                qn_error *err);
qn_status qn__sink_other_type(const qn__sink *sink, const char *name, const char *is,
                              const char *type, qn_error *err);

/* "CREATE TABLE ...": columns of the key are not NULL, and the primary key. `types`: the name of
 * each qn__sink_type. */
void qn__sink_add_create(qn__text *sql, const qn__sink *sink, const char *const *types);
/* " WHERE "a" = ?1 AND "b" = ?2" with the first `count` columns. */
void qn__sink_add_where(qn__text *sql, const qn__sink *sink, uint32_t count);
/* The name of the table. */
void qn__sink_add_table(qn__text *sql, const qn__sink *sink);

#endif

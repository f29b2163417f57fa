/* Typed columns that grow value by value, and the Arrow C stream of them.
 *
 * Readers of tables with types (data/cells/readers.h) collect their columns here and hand the
 * stream to qn__arrow_fill, which makes the data set. So labels, categories and missing values mean
 * the same in all of them. Columns are numbered from 0 in the order in which they were added. Each
 * grows by itself; qn__build_pad makes them equally long. */
#ifndef QN_DATA_ARROW_ARROW_BUILD_H
#define QN_DATA_ARROW_ARROW_BUILD_H

#include "base/error.h"
#include <quern/arrow.h>
#include <quern/data.h>
#include <stddef.h>

typedef enum qn__build_type {
    QN__BUILD_EMPTY, /* nothing but missing values yet */
    QN__BUILD_BOOL,
    QN__BUILD_INT, /* int64 */
    QN__BUILD_FLOAT,
    QN__BUILD_DOUBLE,
    QN__BUILD_TEXT /* UTF-8 without a NUL; the caller checks it */
} qn__build_type;

typedef struct qn__arrow_build qn__arrow_build;

/* Fails with QN_MEMORY, as all functions here that have `err`. */
qn_status qn__build_create(qn__arrow_build **out, qn_error *err);
void qn__build_destroy(qn__arrow_build *build); /* accepts NULL */

/* Adds a column without values. `name` is copied: `size` bytes without a NUL. */
qn_status qn__build_add(qn__arrow_build *build, const char *name, size_t size, qn__build_type type,
                        qn_error *err);
uint64_t qn__build_columns(const qn__arrow_build *build);
qn__build_type qn__build_type_of(const qn__arrow_build *build, uint64_t column);
/* The number of values of a column, the missing ones included. */
uint64_t qn__build_rows(const qn__arrow_build *build, uint64_t column);
/* Memory that all columns take, in bytes. What memory may not hold is in files. */
uint64_t qn__build_bytes(const qn__arrow_build *build);

/* Changes the type of a column: EMPTY to any, and BOOL or INT to DOUBLE (integers of more than 53
 * bits are rounded). Returns 0, and changes nothing, for any other change; *status is then QN_OK.
 * Also returns 0 after a failure, with *status QN_MEMORY. */
int qn__build_widen(qn__arrow_build *build, uint64_t column, qn__build_type type, qn_status *status,
                    qn_error *err);

/* Append a value. The function and the type of the column have to agree; put_whole serves BOOL (0
 * or 1) and INT, put_number FLOAT (rounded) and DOUBLE. */
qn_status qn__build_put_whole(qn__arrow_build *build, uint64_t column, int64_t value,
                              qn_error *err);
qn_status qn__build_put_number(qn__arrow_build *build, uint64_t column, double value,
                               qn_error *err);
qn_status qn__build_put_text(qn__arrow_build *build, uint64_t column, const char *text, size_t size,
                             qn_error *err);
qn_status qn__build_put_missing(qn__arrow_build *build, uint64_t column, qn_error *err);
/* Appends missing values to the columns that are shorter, until each has `rows`. */
qn_status qn__build_pad(qn__arrow_build *build, uint64_t rows, qn_error *err);

/* Makes *out a stream of one part, the columns. They have to be equally long. The build belongs to
 * the stream from then on, which releases it. What the stream hands out points into the build: it
 * is valid until the stream is released, so the stream must not leave the library. */
void qn__build_stream(qn__arrow_build *build, struct ArrowArrayStream *out);

/* The end of a reader: fills `data` from the columns (qn__arrow_fill). `name` is that of the file,
 * for messages. Takes the build in any case: *build is NULL afterwards. */
qn_status qn__build_fill(qn__arrow_build **build, const char *name, const qn_data_options *options,
                         qn_data *data, qn_error *err);

#endif

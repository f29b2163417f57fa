/* A column of texts as the documents of a corpus (docs/exactness.md 25.67), or as items (25.68). */
#ifndef QN_DATA_OPEN_DOCUMENTS_H
#define QN_DATA_OPEN_DOCUMENTS_H

#include "data/bytes/file_list.h"
#include "data/table/data.h"
#include "data/tokens/corpus_table.h"

/* The documents of a table, to which all of them belong. */
typedef struct qn__documents_of {
    qn__corpus texts;
    uint64_t missing; /* items without a text */
} qn__documents_of;

/* Whether the options ask for them: a column of texts, and a tokenizer, for a network of next
 * tokens; or rows as items. */
int qn__documents_wanted(const qn_data_options *options);

/* Whether lines are items. */
int qn__lines_wanted(const qn_data_options *options);

/* The options of the table: its column alone, and what says how files are read. */
qn_data_options qn__documents_table(const qn_data_options *options);

/* Opens such a table with the texts of its column as a list: qn_data.listed (open.c). */
qn_status qn__documents_open(const char *const *paths, size_t count, const qn_data_options *options,
                             qn_data **out, qn_error *err);

/* The documents of such a table, once; `text` is the column. Items without a text are left out.
 * Fails with QN_INPUT or QN_USAGE. */
qn_status qn__documents_list(const qn_data *table, const char *text, const char *path,
                             qn__documents_of *out, qn_error *err);

/* Fills `data` with their tokens: those of a corpus, or with rows as items those of each row. */
qn_status qn__documents_tokens(const qn_data *table, const qn_data_options *options,
                               const char *path, qn_data *data, qn_error *err);

/* Fills `data` with the tokens of each line of the files. */
qn_status qn__lines_tokens(const qn__file_list *list, const qn_data_options *options, qn_data *data,
                           qn_error *err);

#endif

/* A column of texts as the documents of a corpus (docs/exactness.md 25.67), or as items (25.68). */
#ifndef QN_DATA_OPEN_DOCUMENTS_H
#define QN_DATA_OPEN_DOCUMENTS_H

#include "data/bytes/file_list.h"
#include "data/table/data.h"
#include "data/tokens/corpus_table.h"

/* The documents of a table. Their texts belong to it; qn__free releases the list. */
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

/* Lists the documents of such a table; `text` is the column. Items without a text are left out.
 * Fails with QN_INPUT, QN_USAGE or QN_MEMORY. */
qn_status qn__documents_list(const qn_data *table, const char *text, const char *path,
                             qn__documents_of *out, qn_error *err);

/* Fills `data` with their tokens: those of a corpus, or with rows as items those of each row. */
qn_status qn__documents_tokens(const qn_data *table, const qn_data_options *options,
                               const char *path, qn_data *data, qn_error *err);

/* Fills `data` with the tokens of each line of the files. */
qn_status qn__lines_tokens(const qn__file_list *list, const qn_data_options *options, qn_data *data,
                           qn_error *err);

#endif

/* A search whose runs are divided among processes that do not know each other, such as the tasks of
 * a job array. Each has a folder in that of the search; another process merges their files. */
#ifndef QN_SEARCH_SEARCH_PARTS_H
#define QN_SEARCH_SEARCH_PARTS_H

#include "search/search_state.h"

/* Checks the members of the options. Fails with QN_USAGE. */
qn_status qn__search_parts_check(const qn_search_options *o, qn_error *err);

/* Whether the run at `place` of the table is one of this process. */
int qn__search_has(const qn_search *s, uint64_t place);

/* Makes the folder of this part that of the search, where it computes a part. Fails with QN_IO or
 * QN_MEMORY. */
qn_status qn__search_part_folder(qn_search *s, qn_error *err);

/* Takes the results of the parts, in the order of the runs, into the table and its file, which is
 * open. Fails with QN_INPUT (a run is missing), QN_MISMATCH (two parts have different results of a
 * run), and as qn__search_file_open does. */
qn_status qn__search_merge(qn_search *s, qn_error *err);

#endif

/* What the columns of a CSV file hold, where they are not all numbers: counted first, then decided,
 * then the different texts are collected. Each thread counts and collects for itself. */
#ifndef QN_DATA_TEXT_CSV_SURVEY_H
#define QN_DATA_TEXT_CSV_SURVEY_H

#include "data/cells/text_set.h"
#include "data/table/data.h"
#include "data/text/csv_header.h"

typedef struct qn__csv_survey qn__csv_survey;

/* `header` must outlive it; NULL when memory is short. */
qn__csv_survey *qn__csv_survey_create(const qn__csv_header *header, int threads, qn_error *err);
void qn__csv_survey_free(qn__csv_survey *survey); /* accepts NULL */

/* Counts what the cells of a line hold. Returns where the next line begins; a malformed line is
 * left for the parser to report. */
const char *qn__csv_survey_count(qn__csv_survey *survey, int thread, const char *at,
                                 const char *end);
/* Decides what each column is (docs/exactness.md 2.1.4, 2.1.5), when all lines are counted.
 * `listed` takes the texts of one; NULL: none does. */
qn_status qn__csv_survey_decide(qn__csv_survey *survey, const qn_data_options *options,
                                qn__text_list *listed, qn_error *err);
/* The column whose texts go to the list, of the shape; NULL: none. */
const qn__special *qn__csv_survey_listed(const qn__csv_survey *survey);
/* 1 when there are texts to collect. */
int qn__csv_survey_has_texts(const qn__csv_survey *survey);
/* Collects the texts of a line, as qn__csv_survey_count goes through it. */
const char *qn__csv_survey_collect(qn__csv_survey *survey, int thread, const char *at,
                                   const char *end);
/* Sorts the texts of each column, when all lines are through. Fails with QN_INPUT when a column has
 * too many different ones, or QN_MEMORY. */
qn_status qn__csv_survey_sort(qn__csv_survey *survey, qn_error *err);

/* The shape with which to parse the lines; its special columns belong to the survey. */
const qn__row_shape *qn__csv_survey_shape(const qn__csv_survey *survey);
/* Makes space in `data`, whose items and features are known, for the exact values of columns that
 * have some, and sets their places in the shape. Fails with QN_MEMORY. */
qn_status qn__csv_survey_keep_exact(qn__csv_survey *survey, qn_data *data, qn_error *err);
qn_data_type qn__csv_survey_type(const qn__csv_survey *survey);
/* The rules of reading that changed something. */
uint32_t qn__csv_survey_rules(const qn__csv_survey *survey);
/* 1 when a value of a feature is missing. */
int qn__csv_survey_has_missing(const qn__csv_survey *survey);

#endif

/* What a network gets of a date: a number, or an input for each value, of some of its parts
 * (docs/exactness.md 23.13). Moments are those of data/table/dates.h. */
#ifndef QN_DATA_TABLE_DATE_PARTS_H
#define QN_DATA_TABLE_DATE_PARTS_H

#include "base/error.h"
#include <stdint.h>

/* In the order of the inputs. */
typedef enum qn__date_part {
    QN__PART_YEAR,
    QN__PART_QUARTER, /* one of 4 */
    QN__PART_MONTH,   /* one of 12 */
    QN__PART_DAY,     /* of the month, from 1 */
    QN__PART_WEEKDAY, /* one of 7, Monday first */
    QN__PART_YEARDAY, /* from 1 */
    QN__PART_HOUR,    /* one of 24 */
    QN__PART_MINUTE,
    QN__PART_SECOND,
    QN__PART_DAYS, /* since 1970-01-01 */
    QN__DATE_PARTS
} qn__date_part;

/* Sets of parts are bits, 1 << part. The default set of a column of dates; with `time` the hour is
 * in it too. */
uint32_t qn__date_parts_usual(int time);

/* "year,month": names separated by commas, in any order, once each; blanks around them do not
 * count. Fails with QN_USAGE. */
qn_status qn__date_parts_read(const char *list, uint32_t *set, qn_error *err);

/* The names of a set, in their order, as qn__date_parts_read reads them; "" for an empty one. */
enum { QN__DATE_PARTS_TEXT = 96 };
void qn__date_parts_text(uint32_t set, char text[QN__DATE_PARTS_TEXT]);

const char *qn__date_part_name(qn__date_part part);

/* Inputs of a set of parts. */
uint32_t qn__date_inputs(uint32_t set);
/* Writes the inputs of a moment to `to`, which holds zeros before. */
void qn__date_encode(uint32_t set, int64_t moment, float *to);
/* Writes only those inputs that are numbers, and no choice: for the moment that replaces a missing
 * date. */
void qn__date_encode_numbers(uint32_t set, int64_t moment, float *to);
/* Whether input `at` is one of several values, 1 or 0, and not a number. */
int qn__date_is_choice(uint32_t set, uint32_t at);
/* "month=3" or "year" of input `at` of a set. */
void qn__date_input_name(uint32_t set, uint32_t at, char text[32]);

#endif

/* What the columns of a data set hold, for `quern data info` and `quern data head`. */
#ifndef APP_COLUMNS_H
#define APP_COLUMNS_H

#include <quern/data.h>

/* A column of features. Least and greatest are 0 where every value is missing. */
typedef struct column {
    double least, greatest; /* days of dates */
    uint64_t least_item, greatest_item;
    uint64_t missing;
    int whole; /* every value that is there is a whole number */
} column;

/* Value `k` of an item as a number. */
double columns_value(const qn_data *data, uint64_t item, uint32_t k);

/* The same of an item's values, which qn_data_item gives: for those who look at all of them. */
double columns_number(qn_data_type type, const void *values, uint32_t k);

/* One for each feature, for free(); NULL when memory is short. */
column *columns_find(const qn_data *data);

/* What a column holds: "number", "whole number", "category", "date", "time" (a date and a time),
 * "UTC time" or "empty". */
const char *columns_type(const qn_data *data, const column *columns, uint32_t k);

/* Prints `size` bytes of a name that comes from the data: control characters must not reach a
 * terminal, and are printed as question marks. */
void columns_print_name(const char *text, int size);

/* Long texts in a table are cut. columns_width is the width in characters of what is left,
 * approximately; columns_print_cell prints it, padded with blanks to `width`. */
int columns_width(const char *text);
void columns_print_cell(const char *text, int width);

/* A table of the columns for a person, with the first `most` of them. */
void columns_print(const qn_data *data, const column *columns, uint32_t most);
/* The same as an array of objects, all of them, with the key "table". */
void columns_print_json(const qn_data *data, const column *columns);

#endif

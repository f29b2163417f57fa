/* A table of names and their values, such as the activations. The tables of a recipe are in
 * tables.h. */
#ifndef QN_MODEL_NETWORK_CHOICE_TABLE_H
#define QN_MODEL_NETWORK_CHOICE_TABLE_H

#include "base/error.h"
#include <stddef.h>

typedef struct qn__choice {
    const char *name;  /* as in recipes: lower case */
    int value;         /* of the table's enum */
    const char *about; /* one line for help, without a full stop */
    const char *also;  /* names of it in other tools, for suggestions: words of lower-case letters
                          and digits, separated by blanks; or NULL. Words after a "|" name
                          something that Quern does not have and to which this is nearest */
} qn__choice;

typedef struct qn__table {
    const char *what;  /* "activation" */
    const char *field; /* "`train.loss`"; NULL: only in the model text */
    size_t count;
    const qn__choice *row;
} qn__table;

extern const qn__table qn__activations; /* qn__activation */

/* The row of `word` (case-insensitive; `size` bytes, no NUL needed), or NULL. */
const qn__choice *qn__table_row(const qn__table *table, const char *word, size_t size);

/* The value of `word`. Fails with QN_USAGE, naming the nearest choice and listing all. */
qn_status qn__table_find(const qn__table *table, const char *word, int *value, qn_error *err);

/* The name of a value of the table's enum; "?" for other values. */
const char *qn__table_name(const qn__table *table, int value);

/* The name that `word` most likely means, or NULL: one that differs in case and signs only, one
 * with `word` among its other names, or the nearest by spelling. */
const char *qn__table_near(const qn__table *table, const char *word);

/* Whether `word` is the name of something well-known that the table does not have: then the result
 * of qn__table_near is only the nearest thing. */
int qn__table_lacks(const qn__table *table, const char *word);

/* Writes 'did you mean "tanh"? ' (if one is similar) and then the list "there are: none, relu, ..."
 * to text; for messages. */
void qn__table_advise(const qn__table *table, const char *word, char *text, size_t size);

/* Whether `word` is in `list`, a text of words with blanks between. */
int qn__word_listed(const char *list, const char *word);

#endif

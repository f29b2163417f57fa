/* What can be named in a recipe: activations, losses, optimisers, initialisations, scalings,
 * arithmetics, schedules. One table each; adding one means a row here and its arithmetic. Messages,
 * the help, the manual pages and the completions read the same rows (<quern/choices.h>). */
#ifndef QN_MODEL_TABLES_H
#define QN_MODEL_TABLES_H

#include "base/error.h"
#include "num/program.h"
#include <stddef.h>

typedef struct qn__choice {
    const char *name;  /* as in recipes: lower case */
    int value;         /* of the enum that the table is about */
    const char *about; /* one line for a help text, without a full stop */
    const char *also; /* what other tools call it or something near to it, for suggestions: words of
                         letters and digits in lower case, a blank between two; or NULL */
} qn__choice;

typedef struct qn__table {
    const char *what;  /* "activation" */
    const char *field; /* that names one, "`train.loss`"; NULL: only in the model text */
    size_t count;
    const qn__choice *row;
} qn__table;

extern const qn__table qn__activations;     /* qn__activation */
extern const qn__table qn__losses;          /* qn__loss */
extern const qn__table qn__optimizers;      /* qn__optimizer */
extern const qn__table qn__initialisations; /* qn__init of model/recipe.h */
extern const qn__table qn__scalings;        /* qn__scale */
extern const qn__table qn__arithmetics;     /* qn__arith */
extern const qn__table qn__schedules;       /* qn__schedule of model/recipe.h */
extern const qn__table qn__tasks;           /* qn__task of model/recipe.h */
extern const qn__table qn__missing_rules;   /* qn__missing of model/recipe.h */
extern const qn__table qn__keeps;           /* qn__keep of model/recipe.h */

/* The row of `word` (letters of either case; `size` bytes, no NUL needed), or NULL. */
const qn__choice *qn__table_row(const qn__table *table, const char *word, size_t size);

/* The value of `word`. Fails with QN_USAGE, naming the nearest choice and listing all. */
qn_status qn__table_find(const qn__table *table, const char *word, int *value, qn_error *err);

/* The name of a value of the table's enum; "?" for one that is not in it. */
const char *qn__table_name(const qn__table *table, int value);

/* The name that `word` most likely stands for, or NULL: one that differs by case and signs only,
 * one that has `word` among its other names, or the nearest by spelling. */
const char *qn__table_near(const qn__table *table, const char *word);

/* Writes 'did you mean "tanh"? ' (when one is near) and then the list "there are: none, relu, ..."
 * into text; for messages. */
void qn__table_advise(const qn__table *table, const char *word, char *text, size_t size);

#endif

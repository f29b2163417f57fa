/* The options of a training and the keys of a recipe, a row each (docs/exactness.md 11.1, 17.1,
 * 23.1). An option is added by a row here, and a member of qn_train_options. Read by: defaults,
 * checks, recipes as JSON and their comparison, and what <quern/option.h> serves: the command's
 * parser, help and manual page, the search's grid, the names in messages and those in Python. */
#ifndef QN_MODEL_RECIPE_OPTION_ROWS_H
#define QN_MODEL_RECIPE_OPTION_ROWS_H

#include "model/network/choice_table.h"
#include "model/recipe/recipe.h"
#include <quern/option.h>
#include <quern/train.h>

/* How a recipe holds a value, and how its JSON writes it. */
typedef enum qn__form {
    QN__FORM_COUNT,  /* uint32_t */
    QN__FORM_LONG,   /* uint64_t */
    QN__FORM_FLAG,   /* uint32_t: 0 or 1 */
    QN__FORM_FLOAT,  /* float */
    QN__FORM_NAME,   /* an enum: the name of a row of `table` */
    QN__FORM_TEXT,   /* char *, which the recipe owns; NULL: "" */
    QN__FORM_MAYBE,  /* char *, which the recipe owns; NULL: null */
    QN__FORM_DIGEST, /* char[65]; "" only in a key of a later contract than 1 */
    QN__FORM_NETWORK,
    QN__FORM_TABLE,
    QN__FORM_SHAPE
} qn__form;

/* The valid floats; NaN is in no range. */
typedef struct qn__range {
    float low, high;
    int low_open, high_open; /* whether the end itself is excluded */
} qn__range;

typedef struct qn__option {
    /* The key of a recipe. */
    const char *key;
    uint32_t contract; /* the first that has the key. Up to 5 every recipe from then on has it; from
                          6 on only one in which it differs from its default, 0 or "" */
    qn__form form;
    size_t place;           /* of the member of qn__recipe */
    const qn__table *table; /* of names */

    /* The option; without one `open.field` is NULL. */
    qn_option open;
    double usual;       /* the default in qn_train_options, of a number */
    int first;          /* of a name: 1: the default is the first of `table`; 0: NULL, for which the
                           recipe's maker has a rule */
    int ruled;          /* 1: the recipe's maker has a rule for it: it is not just copied */
    const char *takers; /* the names of kind `open.only` that take it, separated by blanks */
    int dropped; /* where no name takes it: 1: the recipe has 0 (11.3); 0: a set value is refused */
    uint32_t latest; /* of a flag whose rule changed: what new recipes have; older ones may have
                        each value from 1 to it. 0: the rule never changed */

    /* The check of its value. `what` is NULL where there is none: "the learning rate". */
    const char *what, *remedy;
    qn__range range; /* of a float; counts have open.low and open.high */
} qn__option;

/* In the order of the keys; ends with a row without a key. */
extern const qn__option qn__options[];

/* Where the recipe holds it. */
static inline const void *qn__option_in(const qn__option *option, const qn__recipe *recipe) {
    return (const char *)recipe + option->place;
}
static inline void *qn__option_to(const qn__option *option, qn__recipe *recipe) {
    return (char *)recipe + option->place;
}

/* Whether the recipe has another value than 0, "" or a table's first name. */
int qn__option_set(const qn__option *option, const qn__recipe *recipe);

/* Whether the loss, the optimiser or the schedule of the recipe uses it. */
int qn__option_taken(const qn__option *option, const qn__recipe *recipe);

/* Sets the members of qn_train_options to their defaults. */
void qn__options_init(qn_train_options *options);

/* Copies what has no rule of its own: numbers and names. Fails with QN_USAGE (a name). */
qn_status qn__options_take(const qn_train_options *from, qn__recipe *to, qn_error *err);

/* The reverse: all but the network and the shape. Numbers that the recipe does not take become
 * their defaults. Texts are the recipe's. */
void qn__options_give(const qn__recipe *from, qn_train_options *to);

/* Whether the numbers are in their ranges, and what nothing takes is not set. */
qn_status qn__options_check(const qn__recipe *recipe, qn_error *err);

/* Refuses options that lbfgs does not take, which the recipe drops: they cannot be told from
 * defaults there. */
qn_status qn__options_check_steps(const qn_train_options *options, qn_error *err);
/* The message about one of them. */
qn_status qn__options_refuse_steps(const qn__option *option, qn_error *err);

#endif

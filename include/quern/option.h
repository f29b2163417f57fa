/* The options of a training as rows: for a command line, a form or a help text. The library reads
 * the same rows: defaults, checks, recipes and their comparison. Rows and texts are static: nothing
 * here is freed, and no call fails. */
#ifndef QUERN_OPTION_H
#define QUERN_OPTION_H

#include <quern/choices.h>
#include <quern/export.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The type of the member of qn_train_options. */
typedef enum qn_option_type {
    QN_OPTION_FLAG,  /* int: 0 or 1 */
    QN_OPTION_FLOAT, /* float */
    QN_OPTION_COUNT, /* uint32_t */
    QN_OPTION_LONG,  /* uint64_t */
    QN_OPTION_TEXT,  /* const char * */
    QN_OPTION_NAME   /* const char *, one of the names of `from` */
} qn_option_type;

/* What an option is about: a help has a heading for each. */
typedef enum qn_option_group {
    QN_OPTIONS_DATA,
    QN_OPTIONS_NETWORK,
    QN_OPTIONS_TRAINING,
    QN_OPTIONS_ADVANCED
} qn_option_group;

typedef struct qn_option {
    size_t size;          /* sizeof(qn_option) */
    const char *field;    /* as messages name it (<quern/status.h>), without backquotes:
                             "train.learning_rate"; after the point, the member's name */
    size_t offset;        /* of the member in qn_train_options */
    qn_option_type type;  /* of the member */
    const char *name;     /* as a command line has it, without dashes: "lr" */
    const char *value;    /* the name that a help text gives its value: "X"; NULL: a flag */
    const char *help;     /* one line without a full stop; a tab means a non-breaking space */
    const char *fallback; /* the default as a help text shows it, where qn_default_text has none;
                             NULL: none */
    qn_choice_kind from;  /* the names that it takes, or that a text can contain */
    qn_choice_kind only;  /* only names of this kind that take the member use the option
                             (qn_choice_takes) */
    int steps;            /* 1: an optimiser that has no steps does not take it: "lbfgs" */
    uint64_t low, high;   /* limits of a number without a fraction */
    qn_option_group group;
    uint32_t line;    /* its place in the group: a help text sorts by it; options with equal places
                         keep their order */
    const char *also; /* what other programs call it: lower case, without dashes, separated by
                         blanks; NULL: nothing else */
} qn_option;

/* Option number `index`, counted from 0. NULL when `index` is too large. */
QN_API const qn_option *qn_train_option(uint32_t index);

#ifdef __cplusplus
}
#endif
#endif

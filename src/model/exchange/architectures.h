/* Networks of other libraries that are ready models here: what their modules are called. */
#ifndef QN_MODEL_EXCHANGE_ARCHITECTURES_H
#define QN_MODEL_EXCHANGE_ARCHITECTURES_H

#include "model/exchange/state_dict.h"
#include "num/program.h"

typedef struct qn__architecture {
    const char *model;   /* the ready model */
    const char *library; /* whose names they are */
    const char *modules; /* a pattern; see architectures.c */
} qn__architecture;

/* One name for each layer with parameters, in the order of the model text. */
enum { QN__MODULE_NAME = 48 };
typedef struct qn__module_names {
    uint32_t count;
    char name[QN__MAX_LAYERS][QN__MODULE_NAME];
} qn__module_names;

/* Row `index`, NULL after the last. */
const qn__architecture *qn__architecture_row(uint32_t index);

/* The names of an architecture. */
void qn__architecture_names(const qn__architecture *row, qn__module_names *out);

/* How a file's modules compare with an architecture. All its names may have one prefix, such as
 * "module.", which is the longest that ends with a point and that all modules of the file have. */
typedef struct qn__architecture_match {
    const qn__architecture *row;
    uint32_t missing;            /* names without a module */
    size_t more;                 /* modules without a name */
    char lacks[QN__MODULE_NAME]; /* the first name without a module */
} qn__architecture_match;

/* Fills of[0 .. names->count-1] with the modules of these names, NULL where one is missing, and
 * *match without its row. `of` may be NULL. */
void qn__architecture_compare(const qn__state_dict *state, const qn__module_names *names,
                              qn__module **of, qn__architecture_match *match);

/* The architecture with the fewest differences; `names` is overwritten. */
qn__architecture_match qn__architecture_nearest(const qn__state_dict *state,
                                                qn__module_names *names);

/* Whether the names of the file are meant as those of the architecture: most of them are there. */
int qn__architecture_meant(const qn__architecture_match *match, const qn__module_names *names);

#endif

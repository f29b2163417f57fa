/* Weights of classes as a text: "balanced", or "cat=2,dog=0.5" (docs/exactness.md 7.7).
 *
 * A name with a comma or a double quote is written between double quotes, and a quote in it is
 * doubled. Another name ends at the last "=" of its entry. Blanks around names and numbers do not
 * count. Classes that are not named have the weight 1. */
#ifndef QN_MODEL_RECIPE_CLASS_WEIGHT_H
#define QN_MODEL_RECIPE_CLASS_WEIGHT_H

#include "data/table/schema.h"
#include <stdint.h>

/* The classes that a text may name: those of a table, or numbers below `classes`. */
typedef struct qn__class_names {
    const qn__schema *table; /* NULL: it has no names */
    uint32_t classes;
} qn__class_names;

/* 1 for "balanced". */
int qn__class_weight_is_balanced(const char *text);

/* Reads a text that is not "balanced": weight[i] for class i of names->classes. Fails with QN_USAGE
 * (the entry that is wrong, a class that is not there) or QN_MEMORY. */
qn_status qn__class_weight_read(const char *text, const qn__class_names *names, float *weight,
                                qn_error *err);

/* The canonical text of these weights, for qn__free: classes in their order, without those of
 * weight 1. *out is NULL where all are 1, and for NULL. Fails as qn__class_weight_read. */
qn_status qn__class_weight_tidy(const char *text, const qn__class_names *names, char **out,
                                qn_error *err);

#endif

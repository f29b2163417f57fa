/* Conversion of public training options to a recipe and back. */
#ifndef QN_MODEL_FORMATS_RECIPE_OPTIONS_H
#define QN_MODEL_FORMATS_RECIPE_OPTIONS_H

#include "model/recipe/recipe.h"
#include <quern/train.h>

/* The recipe that `options` ask for on the data set `data`, tidied and checked (classes too, when
 * the data has labels). On success *out is the caller's to release; on failure it is untouched.
 * Fails with QN_USAGE, QN_INPUT (labels beyond the last layer). */
qn_status qn__recipe_from_options(const qn_train_options *options, const qn_data *data,
                                  qn__recipe *out, qn_error *err);

/* Sets the recipe's part of `options`, and nothing else. The names point to constants; `model` is
 * set to `model_text`, which must be the network's text and outlive the options. */
void qn__recipe_to_options(const qn__recipe *recipe, const char *model_text,
                           qn_train_options *options);

/* Gives the members of `options` that the optimiser or the data decides on the values of the
 * recipe that was made of them. Names point to constants. */
void qn__recipe_settle(const qn__recipe *recipe, qn_train_options *options);

/* A caller's options in this version of the struct, with defaults for members that the caller's
 * version does not have; `function` and `argument` for messages. QN_USAGE for an invalid size. */
qn_status qn__train_options_take(const char *function, const char *argument,
                                 const qn_train_options *given, qn_train_options *own,
                                 qn_error *err);

#endif

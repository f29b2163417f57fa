/* The defaults of a recipe: docs/exactness.md 11.4. qn_train_options_init sets those that depend on
 * no other option; these are the rest. */
#ifndef QN_MODEL_DEFAULTS_H
#define QN_MODEL_DEFAULTS_H

#include "model/recipe.h"
#include <quern/data.h>

/* "dense 500 tanh; dense 10 softmax" and its NUL, for any number of classes. */
enum { QN__DEFAULT_MODEL_ROOM = 64, QN__DEFAULT_LAST_ROOM = 32 };

/* The network of a task and a loss. `classes`: of the data; not read where the network has one
 * output. `text` has QN__DEFAULT_MODEL_ROOM bytes; empty where there are no classes. */
void qn__default_model(qn__task task, qn__loss loss, uint32_t classes, char *text);

/* Its last layer alone; `text` has QN__DEFAULT_LAST_ROOM bytes. */
void qn__default_last(qn__task task, qn__loss loss, uint32_t classes, char *text);

qn__loss qn__default_loss(qn__task task);
float qn__default_learning_rate(qn__task task, qn__optimizer optimizer);
float qn__default_momentum(qn__optimizer optimizer);

/* The optimiser if none is given. `momentum`: as in the options. */
qn__optimizer qn__default_optimizer(qn__task task, float momentum);

/* `picture`: what qn__is_picture says of the data. */
qn__scale qn__default_scale(int picture, qn__arith arith);

#endif

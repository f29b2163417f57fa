/* The defaults of a recipe: docs/exactness.md 11.4. qn_train_options_init sets those that depend on
 * no other option; these are the rest. */
#ifndef QN_MODEL_RECIPE_DEFAULTS_H
#define QN_MODEL_RECIPE_DEFAULTS_H

#include "model/recipe/recipe.h"
#include <quern/data.h>
#include <quern/train.h>

/* "dense 64 relu; dense 32 relu; dense 10 softmax" and its NUL, for any number of classes. */
enum { QN__DEFAULT_MODEL_CAPACITY = 64, QN__DEFAULT_LAST_CAPACITY = 32 };

/* What the defaults depend on. `table` is 1 where the data are not images and the network has no
 * layers on pixels. */
typedef struct qn__default_case {
    qn__task task;
    int table;
    uint64_t items; /* of the whole data set */
    int text;       /* 1: a table with texts, for a network of one layer */
    int attention;  /* 1: the network has such layers */
} qn__default_case;

/* The network of a task and a loss. `classes`: of the data; not read where the network has one
 * output. `text` has QN__DEFAULT_MODEL_CAPACITY bytes; empty where there are no classes. */
void qn__default_model(const qn__default_case *of, qn__loss loss, uint32_t classes, char *text);

/* Its last layer alone; `text` has QN__DEFAULT_LAST_CAPACITY bytes. */
void qn__default_last(qn__task task, qn__loss loss, uint32_t classes, char *text);

qn__loss qn__default_loss(qn__task task);
float qn__default_momentum(qn__optimizer optimizer);

/* The optimiser if none is given. `momentum`: as in the options. */
qn__optimizer qn__default_optimizer(const qn__default_case *of, float momentum);

/* These depend on whether the optimiser was given too: the default one of a table has values that
 * were measured together. */
float qn__default_learning_rate(const qn__default_case *of, qn__optimizer optimizer, int given);
float qn__default_weight_decay(const qn__default_case *of, int given);
qn__schedule qn__default_schedule(const qn__default_case *of, int given);

/* Items of a step. */
uint32_t qn__default_batch(const qn__default_case *of);

/* Items of a grain, of a network that reads items of so many pixels; 0: it takes features. */
uint32_t qn__default_grain(uint64_t pixels);
/* Of a training that learns which token comes next. */
uint32_t qn__default_grain_of_tokens(uint32_t positions);

/* Passes over the items, with steps of `batch` items. */
uint32_t qn__default_epochs(const qn__default_case *of, qn__optimizer optimizer, uint32_t batch);

/* Gives the members that the optimiser or the data decides on the values for images: for jobs
 * without data of their own. */
void qn__default_of_images(qn__task task, qn_train_options *options);

/* `picture`: what qn__is_picture says of the data. `texts`: all its columns are of texts. */
qn__scale qn__default_scale(int picture, int texts, qn__arith arith);

#endif

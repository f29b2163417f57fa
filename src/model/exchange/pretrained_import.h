/* An import of a checkpoint of transformers on its way. */
#ifndef QN_MODEL_EXCHANGE_PRETRAINED_IMPORT_H
#define QN_MODEL_EXCHANGE_PRETRAINED_IMPORT_H

#include <quern/import.h>
#include <quern/tokenizer.h>
#include "model/exchange/named_tensors.h"
#include "model/exchange/pretrained_config.h"
#include "model/recipe/recipe.h"

typedef struct qn__pretrained_import {
    const char *path;
    const qn_pretrained_options *how;
    qn_import_told told;
    void *user;
    qn_error *err;
    qn__pretrained_config config;
    const qn__pretrained *row; /* of `config` */
    qn__named_tensors tensors;
    qn_tokenizer *tokenizer; /* NULL: there is none */
    uint32_t context;
    qn__recipe recipe;
    qn__layer layer[QN__MAX_LAYERS];
    uint64_t parameters;
    float *parameter;
    qn__pretrained_layer named[QN__MAX_LAYERS];
    uint32_t layers; /* that have parameters */
} qn__pretrained_import;

/* Fills i->parameter, which the caller frees, from the tensors. All else is known. Fails with
 * QN_MISMATCH (a tensor is missing, has another shape, or belongs to no layer), QN_INPUT or
 * QN_MEMORY. */
qn_status qn__pretrained_take(qn__pretrained_import *i);

#endif

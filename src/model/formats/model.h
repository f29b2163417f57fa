/* Networks as models: functions for the rest of the library. */
#ifndef QN_MODEL_FORMATS_MODEL_H
#define QN_MODEL_FORMATS_MODEL_H

#include "data/prepare/inputs.h"
#include "model/formats/model_kind.h"
#include "model/recipe/recipe.h"

/* The numbers of a model beside its recipe. */
typedef struct qn__fitted {
    const float *parameter; /* of all layers, in the flat order of num/program.h */
    float *given;           /* NULL, or these: qn__model_create takes the array instead of a copy */
    const float *mean, *deviation;       /* qn__scale_count each */
    const float *fill;                   /* recipe->features, where qn__recipe_fills */
    const qn__offset *offset;            /* qn__recipe_offsets; NULL if that is 0 */
    const float *idf;                    /* qn__schema_text_inputs; NULL if that is 0 */
    const qn__schema *table;             /* whose wide columns have them; NULL: none */
    float target_mean, target_deviation; /* of real labels */
} qn__fitted;

/* Makes a model from copies of its parts. Fails with QN_NUMERIC when a number is not finite (the
 * layer is named), QN_MEMORY. */
qn_status qn__model_create(const qn__recipe *recipe, const qn__fitted *fitted, qn_model **out,
                           qn_error *err);

extern const qn__model_kind qn__network_kind;

/* Gives a model of adapters alone, just read from the file at `path`, the parameters of `base`,
 * which may be NULL. Fails with QN_MISMATCH unless `base` is the model that they are for. Does
 * nothing to other models. */
qn_status qn__model_complete(qn_model *model, const qn_model *base, const char *path,
                             qn_error *err);

/* This and the following are of networks alone. */
const qn__recipe *qn__model_recipe_of(const qn_model *model);
/* The model text of the recipe. */
const char *qn__model_text(const qn_model *model);
/* How it sees a table; what it points to belongs to the model. */
qn__encoding qn__model_encoding(const qn_model *model);
/* All parameters, in the flat order of num/program.h. */
const float *qn__model_parameters(const qn_model *model);

/* The numbers of the model; they belong to it. */
void qn__model_fitted(const qn_model *model, qn__fitted *out);

/* Fills `program` for inference; what it points to belongs to the model. partial_limit, which
 * concerns training only, becomes 0. */
void qn__model_program(const qn_model *model, qn__program *program);

/* Mean and deviation of real labels (docs/exactness.md 5.3); 0 and 1 for classes. */
void qn__model_target_scale(const qn_model *model, float *mean, float *deviation);

/* 1 / deviation as defined in docs/exactness.md 5.2: 0 for a constant feature. */
float qn__scale_inverse(float deviation);

/* Means and deviations of a model: of each input, of each channel, or 0. */
uint32_t qn__scale_count(const qn__recipe *recipe);

/* How programs of the recipe scale inputs. */
qn__scale qn__scale_of_program(const qn__recipe *recipe);

/* Fills `shift` and `inverse`, of qn__recipe_inputs floats each, from means and deviations of
 * qn__scale_count: what a program has for each input. */
void qn__scale_inputs(const qn__recipe *recipe, const float *mean, const float *deviation,
                      float *shift, float *inverse);

#endif

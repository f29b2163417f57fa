/* Models that are fitted from sums over the items, without training: k-means, principal components,
 * Ridge and Lasso. Like networks they are saved, loaded and applied (quern/model.h,
 * quern/predict.h).
 *
 * Values are float32 and are not scaled. Missing values and columns of categories and dates are
 * refused; weights of items are not used. The bytes of a model depend on its data and parameters
 * alone (docs/exactness.md, section 20). quern/linear.h and quern/structure.h have the same methods
 * for arrays of the caller. */
#ifndef QUERN_FIT_H
#define QUERN_FIT_H

#include <quern/data.h>
#include <quern/device.h>
#include <quern/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Texts are read during the call only. */
typedef struct qn_fit_options {
    size_t size;      /* sizeof(qn_fit_options) */
    const char *kind; /* "kmeans", "pca", "ridge" or "lasso": qn_fit_kind_get */
    const char
        *parameters; /* "clusters=3 seed=7": those that differ from their defaults; NULL: none */
    const qn_compute *compute; /* as in qn_statistics_options; NULL: the defaults */
} qn_fit_options;

/* How a fit ended. Members that do not apply to the kind are 0, except `converged`, which is 1. */
typedef struct qn_fit_report {
    size_t size;         /* sizeof(qn_fit_report), set by the caller */
    uint32_t iterations; /* of k-means and Lasso */
    int converged;       /* 0: `iterations` were too few */
    double gap;          /* Lasso: the duality gap, divided by the number of items */
    double inertia;      /* k-means: as of qn_kmeans_result */
} qn_fit_report;

/* Fits a model. `report` may be NULL. On success *out is owned by the caller, for qn_model_free;
 * after a failure it is NULL. With options->compute->cluster all ranks call this together with the
 * same data and options, and each gets the model. Fails with QN_USAGE (options, data), QN_NUMERIC,
 * QN_MEMORY, or as qn_statistics_make. */
QN_API qn_status qn_fit(const qn_data *data, const qn_fit_options *options, qn_model **out,
                        qn_fit_report *report, qn_error *err);

/* Repeats the fit that the recipe of `model` describes; the result depends on the recipe alone. The
 * data's columns are matched by name. Also fails with QN_MISMATCH (other data) or QN_UNSUPPORTED (a
 * network, which qn_train_options_from_model is for). */
QN_API qn_status qn_fit_again(const qn_model *model, const qn_data *data, const qn_compute *compute,
                              qn_model **out, qn_error *err);

/* A kind of model that qn_fit makes. Texts are constants. */
typedef struct qn_fit_kind {
    size_t size;         /* sizeof(qn_fit_kind) */
    const char *name;    /* "kmeans" */
    const char *help;    /* a line for a person */
    int labelled;        /* 1: the data needs real labels */
    uint32_t parameters; /* how many it has */
} qn_fit_kind;

typedef struct qn_fit_parameter {
    size_t size;       /* sizeof(qn_fit_parameter) */
    const char *name;  /* "clusters" */
    const char *usual; /* its default: "8" */
    const char *help;
} qn_fit_parameter;

/* How many kinds there are, the kind `index` from 0, and its parameter `k`. Fail with QN_USAGE
 * (there is none, an invalid size). */
QN_API uint32_t qn_fit_kind_count(void);
QN_API qn_status qn_fit_kind_get(uint32_t index, qn_fit_kind *out, qn_error *err);
QN_API qn_status qn_fit_parameter_get(uint32_t index, uint32_t k, qn_fit_parameter *out,
                                      qn_error *err);

#ifdef __cplusplus
}
#endif
#endif

/* Models that are fitted from sums over the items. Their kinds share the file, the recipe
 * (docs/exactness.md 20.7) and the passes over the items of a table.
 *
 * A kind is a file with a constant qn__sum_kind: names and shapes of its tensors, how it is fitted,
 * and what it gives for a block of items. */
#ifndef QN_STATISTICS_FIT_SUM_MODEL_H
#define QN_STATISTICS_FIT_SUM_MODEL_H

#include "model/formats/model_kind.h"
#include "statistics/fit/kmeans.h"

enum { QN__SUM_PARAMETERS = 8, QN__SUM_TENSORS = 4, QN__SUM_BLOCK = QN__KMEANS_BLOCK };

typedef struct qn__fit_value {
    uint64_t whole;
    double real;
} qn__fit_value;

typedef struct qn__sum_model {
    qn_model open;
    qn__fit_value value[QN__SUM_PARAMETERS]; /* in the order of the kind's parameters */
    char data[65];                           /* the digest of what it was fitted to */
    uint64_t items;
    char *recipe, *rules, *parameters;
    qn__schema *schema;
    double *number; /* of all tensors, one after the other */
    qn__tensor tensor[QN__SUM_TENSORS];
} qn__sum_model;

typedef struct qn__sum_kind {
    qn__model_kind open;
    /* Sets open.outputs and open.classes, and the tensors without their numbers. `items` and
     * `features` are set. Returns 0 where the parameters do not fit them. */
    int (*shape)(qn__sum_model *m);
    /* Sets parameters that follow from the data. Called before `shape`. NULL: nothing
     * to set. */
    void (*settle)(qn__sum_model *m);
    qn_status (*find)(qn__sum_model *m, const qn_data *data, const qn_compute *compute,
                      qn_fit_report *report, qn_error *err);
    /* Output o of item i is out[o * QN__SUM_BLOCK + i]; value f of it is values[f * QN__SUM_BLOCK +
     * i]. Of clusters the outputs are squares of distances. */
    void (*block)(const qn__sum_model *m, const float *values, double *out);
} qn__sum_kind;

static inline qn__sum_model *qn__sum_model_of(const qn_model *model) {
    return (qn__sum_model *)(uintptr_t)model;
}

static inline const qn__sum_kind *qn__sum_kind_of(const qn__sum_model *m) {
    return (const qn__sum_kind *)(const void *)m->open.kind;
}

/* Adds a tensor of rows x columns doubles; a vector where `columns` is 0. */
void qn__sum_tensor(qn__sum_model *m, const char *name, uint64_t rows, uint64_t columns);

/* The numbers of tensor `index`. */
static inline double *qn__sum_numbers(const qn__sum_model *m, uint32_t index) {
    return (double *)(uintptr_t)m->tensor[index].real;
}

/* The members of qn__model_kind, the same for all of these kinds. */
qn_status qn__sum_fit(const qn__model_kind *kind, const qn_data *data, const char *parameters,
                      const qn_compute *compute, qn_model **out, qn_fit_report *report,
                      qn_error *err);
qn_status qn__sum_read(const qn__model_kind *kind, const qn__tensors *file, const char *path,
                       qn_model **out, qn_error *err);
void qn__sum_release(qn_model *model);
qn__model_apply qn__sum_apply;

/* The parts of qn__sum_apply, for items of several callers: whether the model takes a table; a team
 * for any number of batches, here alone; and a batch, which fails with QN_NUMERIC (the team can be
 * used again) and as qn__team_run. */
qn_status qn__sum_check(const qn_model *model, const qn_data *data, qn_error *err);
qn_status qn__sum_open(const qn_model *model, const qn_compute *compute, uint64_t most, void **team,
                       qn_error *err);
qn_status qn__sum_run(const qn_model *model, void *team, const qn_data *data,
                      const qn__model_results *results, qn_error *err);
void qn__sum_close(void *team);

extern const qn__sum_kind qn__kmeans_kind, qn__pca_kind, qn__ridge_kind, qn__lasso_kind;

#endif

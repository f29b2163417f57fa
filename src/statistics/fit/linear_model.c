/* Ridge and Lasso as kinds of models: coefficients and an intercept. */
#include "statistics/fit/sum_model.h"

#include <quern/linear.h>

enum { ALPHA, INTERCEPT, TOLERANCE, ITERATIONS };
enum { WEIGHTS, START };

#define COMMON                                                                                     \
    {"alpha", 0, 0, 0, "1", "of the penalty"}, {                                                   \
        "intercept", 1, 0, 1, "1", "0: the model has none"                                         \
    }

static const qn__fit_parameter of_ridge[] = {COMMON, {NULL, 0, 0, 0, NULL, NULL}};

static const qn__fit_parameter of_lasso[] = {
    COMMON,
    {"tolerance", 0, 0, 0, "0.0001",
     "it ends when the duality gap is less, in parts of the labels' squares"},
    {"iterations", 1, 1, UINT32_MAX, "1000", "passes over the coefficients"},
    {NULL, 0, 0, 0, NULL, NULL}};

static int shape(qn__sum_model *m) {
    m->open.outputs = 1;
    qn__sum_tensor(m, "coefficients", m->open.features, 0);
    qn__sum_tensor(m, "intercept", 1, 0);
    return 1;
}

static qn_linear_options options_of(const qn__sum_model *m, const qn_compute *compute) {
    qn_linear_options o;
    qn_linear_options_init(&o);
    o.alpha = m->value[ALPHA].real;
    o.intercept = (int)m->value[INTERCEPT].whole;
    o.compute = compute;
    return o;
}

static qn_status find_ridge(qn__sum_model *m, const qn_data *data, const qn_compute *compute,
                            qn_fit_report *report, qn_error *err) {
    const qn_linear_options o = options_of(m, compute);
    qn_linear_result result = {.size = sizeof result};
    const qn_status status = qn_ridge_fit(data, &o, qn__sum_numbers(m, WEIGHTS), &result, err);
    (void)report;
    qn__sum_numbers(m, START)[0] = result.intercept;
    return status;
}

static qn_status find_lasso(qn__sum_model *m, const qn_data *data, const qn_compute *compute,
                            qn_fit_report *report, qn_error *err) {
    qn_linear_options o = options_of(m, compute);
    qn_linear_result result = {.size = sizeof result};
    o.tolerance = m->value[TOLERANCE].real;
    o.iterations = (uint32_t)m->value[ITERATIONS].whole;
    const qn_status status = qn_lasso_fit(data, &o, qn__sum_numbers(m, WEIGHTS), &result, err);
    qn__sum_numbers(m, START)[0] = result.intercept;
    report->iterations = result.iterations;
    report->converged = result.converged;
    report->gap = result.gap;
    return status;
}

/* 20.4 */
static void block(const qn__sum_model *m, const float *values, double *out) {
    const double *weight = qn__sum_numbers(m, WEIGHTS);
    for (uint32_t i = 0; i < QN__SUM_BLOCK; ++i)
        out[i] = qn__sum_numbers(m, START)[0];
    for (uint32_t f = 0; f < m->open.features; ++f)
        for (uint32_t i = 0; i < QN__SUM_BLOCK; ++i)
            out[i] = out[i] + (double)values[(size_t)f * QN__SUM_BLOCK + i] * weight[f];
}

const qn__sum_kind qn__ridge_kind = {.open = {.name = "ridge",
                                              .title = "a linear model (Ridge)",
                                              .format = "quern-ridge-1",
                                              .output = "p",
                                              .predicted = QN_PREDICTS_LABELS,
                                              .read = qn__sum_read,
                                              .fit = qn__sum_fit,
                                              .parameter = of_ridge,
                                              .help = "linear regression with a penalty on the "
                                                      "squares of the coefficients",
                                              .release = qn__sum_release},
                                     .shape = shape,
                                     .find = find_ridge,
                                     .block = block};

const qn__sum_kind qn__lasso_kind = {.open = {.name = "lasso",
                                              .title = "a linear model (Lasso)",
                                              .format = "quern-lasso-1",
                                              .output = "p",
                                              .predicted = QN_PREDICTS_LABELS,
                                              .read = qn__sum_read,
                                              .fit = qn__sum_fit,
                                              .parameter = of_lasso,
                                              .help = "linear regression with a penalty on the "
                                                      "magnitudes of the coefficients",
                                              .release = qn__sum_release},
                                     .shape = shape,
                                     .find = find_lasso,
                                     .block = block};

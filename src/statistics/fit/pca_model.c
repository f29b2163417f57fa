/* Principal components as a kind of model: components, means and variances of all of them. */
#include "statistics/fit/sum_model.h"

#include <quern/structure.h>
#include <string.h>

enum { COMPONENTS };
enum { AXES, MEANS, VARIANCES };

static const qn__fit_parameter parameters[] = {
    {"components", 1, 0, 4096, "0", "how many are kept; 0: as many as columns, or items if fewer"},
    {NULL, 0, 0, 0, NULL, NULL}};

static void settle(qn__sum_model *m) {
    const uint64_t most = m->items < m->open.features ? m->items : m->open.features;
    if (m->value[COMPONENTS].whole == 0)
        m->value[COMPONENTS].whole = most;
}

static int shape(qn__sum_model *m) {
    const uint64_t components = m->value[COMPONENTS].whole;
    m->open.outputs = (uint32_t)components;
    qn__sum_tensor(m, "components", components, m->open.features);
    qn__sum_tensor(m, "mean", m->open.features, 0);
    qn__sum_tensor(m, "variance", m->open.features, 0);
    return components > 0 && components <= m->open.features;
}

static qn_status find(qn__sum_model *m, const qn_data *data, const qn_compute *compute,
                      qn_fit_report *report, qn_error *err) {
    qn_pca_options o;
    (void)report;
    qn_pca_options_init(&o);
    o.components = m->open.outputs;
    o.compute = compute;
    return qn_pca_fit(data, &o, qn__sum_numbers(m, AXES), qn__sum_numbers(m, VARIANCES),
                      qn__sum_numbers(m, MEANS), err);
}

/* 20.5 */
static void block(const qn__sum_model *m, const float *values, double *out) {
    const uint32_t features = m->open.features;
    const double *axis = qn__sum_numbers(m, AXES), *mean = qn__sum_numbers(m, MEANS);
    memset(out, 0, (size_t)m->open.outputs * QN__SUM_BLOCK * sizeof *out);
    for (uint32_t o = 0; o < m->open.outputs; ++o)
        for (uint32_t f = 0; f < features; ++f)
            for (uint32_t i = 0; i < QN__SUM_BLOCK; ++i) {
                double *y = &out[(size_t)o * QN__SUM_BLOCK + i];
                *y = *y + ((double)values[(size_t)f * QN__SUM_BLOCK + i] - mean[f]) *
                              axis[(size_t)o * features + f];
            }
}

const qn__sum_kind qn__pca_kind = {.open = {.name = "pca",
                                            .title = "a PCA model",
                                            .format = "quern-pca-1",
                                            .output = "pca",
                                            .predicted = QN_PREDICTS_COMPONENTS,
                                            .read = qn__sum_read,
                                            .fit = qn__sum_fit,
                                            .parameter = parameters,
                                            .help = "principal components: the directions in "
                                                    "which items differ most",
                                            .release = qn__sum_release},
                                   .settle = settle,
                                   .shape = shape,
                                   .find = find,
                                   .block = block};

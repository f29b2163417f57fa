/* k-means as a kind of model: its tensor is the centres. */
#include "statistics/fit/sum_model.h"

#include "base/memory.h"
#include <quern/structure.h>
#include <string.h>

enum { CLUSTERS, ITERATIONS, TOLERANCE, SEED, STARTS };

static const qn__fit_parameter parameters[] = {
    {"clusters", 1, 1, 65536, "8", "how many there are"},
    {"iterations", 1, 1, UINT32_MAX, "300", "times that the centres may move"},
    {"tolerance", 0, 0, 0, "0.0001",
     "it ends when the centres move less, in parts of the columns' variance"},
    {"seed", 1, 0, UINT64_MAX, "1", "of the first centres"},
    {"starts", 1, 1, 1000000, "1", "with seeds from that one on, of which the best counts"},
    {NULL, 0, 0, 0, NULL, NULL}};

static int shape(qn__sum_model *m) {
    const uint64_t clusters = m->value[CLUSTERS].whole;
    m->open.outputs = m->open.classes = (uint32_t)clusters;
    qn__sum_tensor(m, "centres", clusters, m->open.features);
    return clusters <= m->items;
}

/* One start after the other; `best` keeps the centres with the least inertia, the first of several.
 */
static qn_status start_all(qn__sum_model *m, const qn_data *data, qn_kmeans_options *o,
                           double *centres, uint32_t *cluster, qn_kmeans_result *best,
                           qn_error *err) {
    const size_t size = (size_t)qn__tensor_count(&m->tensor[0]) * sizeof *centres;
    qn_status status = QN_OK;
    for (uint64_t s = 0; s < m->value[STARTS].whole && status == QN_OK; ++s) {
        qn_kmeans_result result = {.size = sizeof result};
        o->seed = m->value[SEED].whole + s;
        status = qn_kmeans_fit(data, o, centres, cluster, &result, err);
        if (status != QN_OK || (s > 0 && !(result.inertia < best->inertia)))
            continue;
        memcpy(qn__sum_numbers(m, 0), centres, size);
        *best = result;
    }
    return status;
}

static qn_status find(qn__sum_model *m, const qn_data *data, const qn_compute *compute,
                      qn_fit_report *report, qn_error *err) {
    qn_kmeans_options o;
    qn_kmeans_result best = {.size = sizeof best};
    qn_kmeans_options_init(&o);
    o.clusters = (uint32_t)m->value[CLUSTERS].whole;
    o.iterations = (uint32_t)m->value[ITERATIONS].whole;
    o.tolerance = m->value[TOLERANCE].real;
    o.compute = compute;
    double *centres = qn__alloc(qn__tensor_count(&m->tensor[0]), sizeof *centres, err);
    uint32_t *cluster = centres ? qn__alloc(data->items, sizeof *cluster, err) : NULL;
    qn_status status = cluster ? start_all(m, data, &o, centres, cluster, &best, err) : QN_MEMORY;
    qn__free(centres);
    qn__free(cluster);
    report->iterations = best.iterations;
    report->converged = best.converged;
    report->inertia = best.inertia;
    return status;
}

static void block(const qn__sum_model *m, const float *values, double *out) {
    const uint32_t features = m->open.features;
    for (uint32_t c = 0; c < m->open.outputs; ++c)
        qn__kmeans_measure(features, values, qn__sum_numbers(m, 0) + (size_t)c * features,
                           out + (size_t)c * QN__SUM_BLOCK);
}

const qn__sum_kind qn__kmeans_kind = {.open = {.name = "kmeans",
                                               .title = "a k-means model",
                                               .format = "quern-kmeans-1",
                                               .output = "kmeans",
                                               .predicted = QN_PREDICTS_CLUSTERS,
                                               .read = qn__sum_read,
                                               .fit = qn__sum_fit,
                                               .parameter = parameters,
                                               .help = "clusters of items around their means",
                                               .release = qn__sum_release},
                                      .shape = shape,
                                      .find = find,
                                      .block = block};

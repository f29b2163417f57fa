/* The public calls of a search, but for its run. */
#include "search/search_parts.h"

#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "cluster/cluster.h"
#include "team/together.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { FOLDS = 5, LONGEST_COMPARED = 1 << 14 };

static const char *const names[QN_SEARCH_METRICS] = {"accuracy", "f1",   "auc", "log_loss",
                                                     "loss",     "rmse", "mae", "r2"};

const char *qn_search_metric_name(qn_search_metric metric) {
    return (unsigned)metric < QN_SEARCH_METRICS ? names[metric] : NULL;
}

void qn_search_options_init(qn_search_options *options) {
    if (options)
        *options = (qn_search_options){
            .size = sizeof *options, .folds = FOLDS, .compute = {.size = sizeof options->compute}};
}

/* -------------------------------------------------------------------------------------- opening */

/* All ranks have the same search, or all fail. */
static qn_status agree(const qn_search *s, const char *first, qn_status status, qn_error *err) {
    static const char same[] = "start all ranks with the same options";
    /* Names of columns can make a recipe long; the search has its digest. */
    const int is_short = first && strlen(first) < LONGEST_COMPARED;
    const qn_agreement items[] = {
        {sizeof *items, "the training data", qn_data_digest(s->data), "give all the same file"},
        {sizeof *items, "the first setting", is_short ? first : "", same},
        {sizeof *items, "the search", s->key ? s->key : "", same},
        {sizeof *items, "the part of the search (`search.part`)",
         s->part_folder ? strrchr(s->part_folder, '/') + 1 : "all", same},
        {sizeof *items, "whether there is a folder of results (`search.folder`)",
         s->options.folder ? "yes" : "no", same}};
    const qn_error own = status == QN_OK ? (qn_error){0} : *err;
    return qn_cluster_agree(s->cluster, &own, items, sizeof items / sizeof *items, err);
}

static qn_status read_folder(qn_search *s, qn_error *err) {
    const qn__owner owner = qn__owner_of(s->cluster);
    if (!s->options.folder)
        return QN_OK;
    const qn_status status =
        qn__search_file_open(&s->file, s->options.folder, &owner, s->key, &s->table, err);
    return status == QN_OK && s->options.merge ? qn__search_merge(s, err) : status;
}

/* The writer reads its folder, and all begin with what it found. If it dies meanwhile, the next
 * rank reads. */
static qn_status read_together(qn_search *s, qn_error *err) {
    const size_t bytes = qn__search_runs(s) * sizeof *s->table.result;
    qn_status status = QN_OK;
    uint64_t looked = 0;
    while (status == QN_OK && !looked) {
        qn_error why = {0};
        const uint64_t looks = (uint64_t)qn_cluster_is_writer(s->cluster);
        if (looks)
            read_folder(s, &why); /* all ranks get its failure */
        status = qn_cluster_agree(s->cluster, &why, NULL, 0, err);
        looked = looks;
        if (status == QN_OK)
            status = qn__cluster_from_first(s->cluster, &looked, sizeof looked, err);
        if (status == QN_OK)
            status = qn__cluster_from_first(s->cluster, s->table.result, bytes, err);
    }
    return status;
}

/* Whether this rank has come to a training that had begun: it is alone then, and not the writer. */
static int came_late(const qn_cluster *cluster) {
    return !qn_cluster_is_writer(cluster) && qn_cluster_alive(cluster) == 1;
}

static qn_status open_on(qn_search *s, qn_error *err) {
    char *first;
    if (s->cluster && came_late(s->cluster)) {
        qn__fail(err, QN_CLUSTER,
                 "the training at this address has begun, and a search cannot join it");
        return qn__remedy(err, QN_CLUSTER, "start all ranks of the search at another address");
    }
    qn_status status = qn__search_settings(s, &first, err);
    const uint64_t runs = (uint64_t)s->options.settings * s->options.folds;
    s->table = (qn__search_table){.settings = s->options.settings, .folds = s->options.folds};
    if (status == QN_OK)
        status = qn__search_part_folder(s, err);
    if (status == QN_OK && !(s->table.result = qn__alloc(runs, sizeof *s->table.result, err)))
        status = QN_MEMORY;
    if (s->cluster)
        status = agree(s, first, status, err);
    qn__free(first);
    if (status == QN_OK)
        status = s->cluster ? read_together(s, err) : read_folder(s, err);
    for (uint64_t i = 0; status == QN_OK && s->table.result && i < runs; ++i)
        s->table.result[i].size = sizeof *s->table.result;
    return status;
}

qn_status qn_search_open(const qn_search_options *options, const qn_data *data, qn_search **out,
                         qn_error *err) {
    QN__OWN_FLOATS;
    qn_error unheard;
    QN__NEED_OUT(out, err);
    QN__NEED(options, err);
    QN__NEED(data, err);
    err = err ? err : &unheard;
    qn_search *s = qn__alloc(1, sizeof *s, err);
    if (!s)
        return QN_MEMORY;
    s->file.file = s->file.lock.file = -1;
    s->data = data;
    qn_search_options_init(&s->options);
    qn_status status =
        qn__sized_take(QN__SIZED("options", qn_search_options), options, &s->options, err);
    if (status == QN_OK && s->options.compute.size != sizeof s->options.compute)
        status = qn__sized_refuse(QN__SIZED("options->compute", qn_compute),
                                  s->options.compute.size, err);
    if (status == QN_OK && !s->options.setting)
        status = qn__fail_null(err, __func__, "options->setting");
    if (status == QN_OK && qn_cluster_ranks(s->options.compute.cluster) > 1)
        s->cluster = s->options.compute.cluster;
    if (status == QN_OK)
        status = open_on(s, err);
    if (status == QN_OK)
        *out = s;
    else
        qn_search_close(s);
    return status;
}

void qn_search_stop(qn_search *search) {
    if (search)
        atomic_store(&search->stopping, 1);
}

void qn_search_close(qn_search *search) {
    if (!search)
        return;
    qn__search_file_close(&search->file);
    for (uint32_t i = 0; search->network && i < search->options.settings; ++i)
        qn__free(search->network[i]);
    qn__free(search->network);
    qn__free(search->setting);
    qn__free(search->table.result);
    qn__free(search->key);
    qn__free(search->part_folder);
    qn__free(search);
}

/* -------------------------------------------------------------------------------------- results */

uint64_t qn_search_done(const qn_search *search) {
    uint64_t done = 0;
    for (uint64_t i = 0; search && i < qn__search_runs(search); ++i)
        done += (uint64_t)search->table.result[i].done;
    return done;
}

static qn_status refuse_setting(uint32_t setting, qn_error *err) {
    return qn__fail(err, QN_USAGE, "setting %" PRIu32 " has no such run", setting);
}

qn_status qn_search_get(const qn_search *search, uint32_t setting, uint32_t fold,
                        qn_search_result *result, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(search, err);
    QN__NEED(result, err);
    const qn__sized *what = QN__SIZED("result", qn_search_result);
    const qn_status status = qn__sized_check(what, result, err);
    if (status != QN_OK)
        return status;
    if (setting >= search->table.settings || fold >= search->table.folds)
        return refuse_setting(setting, err);
    qn__sized_give(what, &search->table.result[(uint64_t)setting * search->table.folds + fold],
                   result, result->size);
    return QN_OK;
}

/* The results of a setting, or NULL after a failure. */
static const qn_search_result *results_of(const qn_search *s, uint32_t setting, qn_error *err) {
    if (setting >= s->table.settings) {
        refuse_setting(setting, err);
        return NULL;
    }
    const qn_search_result *r = &s->table.result[(uint64_t)setting * s->table.folds];
    for (uint32_t k = 0; k < s->table.folds; ++k)
        if (!r[k].done) {
            qn__fail(err, QN_USAGE, "not all runs of setting %" PRIu32 " are done", setting);
            qn__remedy(err, QN_USAGE, "call qn_search_run before");
            return NULL;
        }
    return r;
}

/* In binary64 and in the order of the folds: docs/exactness.md 2.11. */
static void add_up(const qn_search_result *r, uint32_t folds, int metric, qn_search_mean *to) {
    double sum = 0, squares = 0;
    for (uint32_t k = 0; k < folds; ++k)
        sum += r[k].number[metric];
    to->mean[metric] = sum / folds;
    for (uint32_t k = 0; k < folds; ++k) {
        const double d = r[k].number[metric] - to->mean[metric];
        squares += d * d;
    }
    to->deviation[metric] = sqrt(squares / folds);
}

qn_status qn_search_mean_get(const qn_search *search, uint32_t setting, qn_search_mean *mean,
                             qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(search, err);
    QN__NEED(mean, err);
    const qn__sized *what = QN__SIZED("mean", qn_search_mean);
    const qn_status status = qn__sized_check(what, mean, err);
    if (status != QN_OK)
        return status;
    const qn_search_result *r = results_of(search, setting, err);
    qn_search_mean own = {.size = sizeof own};
    if (!r)
        return QN_USAGE;
    for (int m = 0; m < QN_SEARCH_METRICS; ++m)
        add_up(r, search->table.folds, m, &own);
    qn__sized_give(what, &own, mean, mean->size);
    return QN_OK;
}

static int is_more_better(qn_search_metric m) {
    return m == QN_SEARCH_ACCURACY || m == QN_SEARCH_F1 || m == QN_SEARCH_AUC || m == QN_SEARCH_R2;
}

/* Below 0: a is better. */
static int compare(const qn_search_mean *a, const qn_search_mean *b, qn_search_metric m) {
    const double x = a->mean[m], y = b->mean[m];
    if (isnan(x) || isnan(y))
        return (isnan(x) != 0) - (isnan(y) != 0);
    if (x == y)
        return 0;
    return (x > y) == is_more_better(m) ? -1 : 1;
}

static int is_before(const qn_search_mean *a, const qn_search_mean *b, qn_search_metric m) {
    const int order = compare(a, b, m);
    return (order != 0 ? order : compare(a, b, QN_SEARCH_LOSS)) < 0;
}

qn_status qn_search_order(const qn_search *search, qn_search_metric metric, uint32_t *setting,
                          qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(search, err);
    QN__NEED(setting, err);
    const uint32_t count = search->table.settings;
    if (!qn_search_metric_name(metric))
        return qn__fail(err, QN_USAGE, "there is no metric %d", (int)metric);
    qn_search_mean *mean = qn__alloc(count, sizeof *mean, err);
    if (!mean)
        return QN_MEMORY;
    for (uint32_t i = 0; i < count; ++i) {
        mean[i].size = sizeof *mean;
        const qn_status status = qn_search_mean_get(search, i, &mean[i], err);
        if (status != QN_OK) {
            qn__free(mean);
            return status;
        }
        uint32_t at = i; /* equal ones stay in their order */
        for (; at > 0 && is_before(&mean[i], &mean[setting[at - 1]], metric); --at)
            setting[at] = setting[at - 1];
        setting[at] = i;
    }
    qn__free(mean);
    return QN_OK;
}

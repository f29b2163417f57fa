#include "search/lr_range_files.h"

#include "base/files/file.h"
#include "base/files/folder_make.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "num/elementary.h"
#include "report/page/chart.h"
#include "team/together.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const ends[] = {[QN_LR_END_HIGH] = "the highest rate was reached",
                                   [QN_LR_END_DIVERGED] = "the loss diverged",
                                   [QN_LR_END_NOT_FINITE] = "numbers left the range of float32"};

/* The record: numbers with all their digits, after the recipe that gives them again. */
static char *csv_of(const qn__lr_run *run, qn_error *err) {
    const qn_lr_range *r = &run->found;
    qn__text text = {0};
    qn__text_add(&text, "# %s\n# %u of %u steps: %s\nstep,learning_rate,loss,smoothed\n",
                 run->recipe, r->points, run->steps, ends[r->end]);
    for (uint32_t i = 0; i < r->points; ++i)
        qn__text_add(&text, "%u,%.9g,%.17g,%.17g\n", i + 1, (double)r->rate[i], r->loss[i],
                     r->smoothed[i]);
    return qn__text_take(&text, err);
}

/* The logarithm to the base 10. */
static float place_of(float rate) { return qn__log(rate) * 0.4342944819f; }

/* Losses far above the first one would leave no height for the others. */
static float shown(const qn_lr_range *r, double loss) {
    return loss > 1.5 * r->loss[0] ? NAN : (float)loss;
}

static void fill(const qn_lr_range *r, float *x, float *loss, float *smoothed) {
    for (uint32_t i = 0; i < r->points; ++i) {
        x[i] = place_of(r->rate[i]);
        loss[i] = shown(r, r->loss[i]);
        smoothed[i] = shown(r, r->smoothed[i]);
    }
}

static char *svg_of(const qn__lr_run *run, qn_error *err) {
    const qn_lr_range *r = &run->found;
    qn__text text = {0};
    float *x = qn__alloc((size_t)3 * r->points, sizeof *x, err);
    if (!x)
        return NULL;
    float *loss = x + r->points, *smoothed = loss + r->points;
    char name[64];
    fill(r, x, loss, smoothed);
    snprintf(name, sizeof name, "suggested: %.3g", (double)r->suggestion);
    const float at = r->suggestion > 0 ? place_of(r->suggestion) : 0.0f;
    const float mark_x[] = {at, at};
    const float mark_y[] = {shown(r, r->smoothed[r->lowest]), shown(r, r->loss[0])};
    const qn__chart_line line[] = {{"loss of a step", x, loss, 1, r->points},
                                   {"smoothed", x, smoothed, 1, r->points},
                                   {name, mark_x, mark_y, 1, 2}};
    qn__chart_lines(&text, "Range of learning rates", "learning rate, as a power of 10", line,
                    r->suggestion > 0 ? 3 : 2, 1);
    qn__free(x);
    return qn__text_take(&text, err);
}

/* ------------------------------------------------------------------------------------ the files */

static qn_status write_file(const char *folder, const char *name, const char *content,
                            qn_error *err) {
    char *path = NULL;
    qn__writer *w = NULL;
    qn_status status = qn__folder_path(folder, name, &path, err);
    if (status == QN_OK)
        status = qn__writer_create(path, &w, err);
    if (status == QN_OK)
        status = qn__writer_finish(w, NULL, qn__writer_add(w, content, strlen(content), err), err);
    qn__free(path);
    return status;
}

static qn_status refuse_other(const char *path, qn_error *err) {
    qn__fail(err, QN_MISMATCH, "the folder has the record of another range");
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_MISMATCH,
                      "its first line has its recipe; name another folder, or remove the file");
}

/* Compares with the record that is there; *same stays 0 where there is none. */
static qn_status compare(const qn__lr_run *run, int *same, qn_error *err) {
    char *path = NULL;
    qn__bytes old = {0};
    qn_status status = qn__folder_path(run->folder, "lr-range.csv", &path, err);
    const int there = status == QN_OK && access(path, F_OK) == 0;
    if (there)
        status = qn__file_read(path, &old, err);
    if (there && status == QN_OK) {
        *same = old.size == strlen(run->csv) && memcmp(old.data, run->csv, old.size) == 0;
        status = *same ? QN_OK : refuse_other(path, err);
    }
    qn__bytes_release(&old);
    qn__free(path);
    return status;
}

/* On the writer. All ranks get its failure. */
static qn_status write_both(void *context, qn_error *err) {
    qn__lr_run *run = context;
    qn_status status = qn__folder_make(run->folder, err);
    if (status == QN_OK)
        status = compare(run, &run->found.identical, err);
    if (status == QN_OK)
        status = write_file(run->folder, "lr-range.csv", run->csv, err);
    if (status == QN_OK)
        status = write_file(run->folder, "lr-range.svg", run->svg, err);
    if (status != QN_OK && run->cluster)
        qn__cluster_fail(run->cluster, err);
    return status;
}

qn_status qn__lr_range_write(qn__lr_run *run, qn_error *err) {
    run->csv = csv_of(run, err);
    run->svg = svg_of(run, err);
    if (!run->csv || !run->svg)
        return QN_MEMORY;
    run->found.csv = run->csv;
    run->found.svg = run->svg;
    run->found.recipe = run->recipe;
    return run->folder ? qn__by_writer(run->cluster, write_both, run, err) : QN_OK;
}

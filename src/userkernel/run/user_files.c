/* The files of a run get their names together at the end. All are opened before the work, so that
 * a missing folder is known at once. All are complete and synced before the first gets its name,
 * so a full disk leaves none of them. */
#include "userkernel/run/user_files.h"

#include "base/text/text.h"
#include "cluster/cluster.h"
#include "userkernel/execution/user_output.h"
#include "userkernel/run/user_outputs.h"
#include "userkernel/run/user_ranks.h"

/* Opens all files before the work, so that a folder that is missing is known at once. */
static qn_status open_files(qn_kernel *k, const char *recipe, qn__writer *writer[QN__USER_FILES],
                            qn_error *err) {
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK; i++)
        if (qn__user_part_is_written(&k->source.part[i]) && k->part[i].path) {
            status = qn__writer_create(k->part[i].path, &writer[i], err);
            k->part[i].writer = writer[i];
        } else if (k->part[i].wants_series && k->part[i].series_path) {
            status = qn__writer_create(k->part[i].series_path, &writer[i], err);
        }
    if (status == QN_OK && recipe)
        status = qn__writer_create(recipe, &writer[QN__USER_PARTS], err);
    return status;
}

static qn_status fill_files(const qn_kernel *k, qn__writer *writer[QN__USER_FILES], qn_error *err) {
    qn_status status = QN_OK;
    qn__text recipe = {0};
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK; i++)
        if (writer[i])
            status =
                k->part[i].wants_series
                    ? qn__user_array_write(&k->part[i].series, writer[i], err)
                    : qn__user_output_write(&k->part[i].array, k->part[i].path, writer[i], err);
    if (status == QN_OK && writer[QN__USER_PARTS]) {
        qn__user_recipe_write(k, &recipe);
        status = recipe.failed
                     ? qn__fail_memory(err, 1, recipe.size)
                     : qn__writer_add(writer[QN__USER_PARTS], recipe.data, recipe.size, err);
    }
    qn__text_release(&recipe);
    return status;
}

/* A disk that is full may refuse the last bytes of a file only when they are synced: all files are
 * complete before the first is renamed. */
static qn_status commit_files(qn__writer *writer[QN__USER_FILES], qn_error *err) {
    qn__writer_batch batch = {NULL, NULL};
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < QN__USER_FILES && status == QN_OK; i++)
        if (writer[i]) {
            status = qn__writer_finish(writer[i], &batch, QN_OK, err);
            writer[i] = NULL;
        }
    if (status == QN_OK)
        return qn__writer_batch_commit(&batch, err);
    qn__writer_batch_drop(&batch);
    return status;
}

qn_status qn__user_files_open(qn__user_files *f, qn_error *err) {
    f->open = 1;
    return open_files(f->kernel, f->recipe, f->writer, err);
}

static qn_status write_all(void *context, qn_error *err) {
    qn__user_files *f = context;
    qn_cluster *cluster = f->kernel->compute.cluster;
    qn_status status = f->open ? QN_OK : qn__user_files_open(f, err);
    for (uint32_t i = 0; i < QN__USER_FILES && cluster; i++)
        if (f->writer[i])
            qn__writer_ask(f->writer[i], qn__cluster_may_write, cluster);
    if (status == QN_OK)
        status = fill_files(f->kernel, f->writer, err);
    return status == QN_OK ? commit_files(f->writer, err) : status;
}

qn_status qn__user_files_write(qn__user_files *f, qn_error *err) {
    return qn__user_ranks_write(f->kernel->compute.cluster, write_all, f, err);
}

void qn__user_files_close(qn__user_files *f) {
    for (uint32_t i = 0; i < QN__USER_FILES; i++)
        qn__writer_drop(f->writer[i]);
    qn__user_outputs_close(f->kernel);
}

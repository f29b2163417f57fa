/* The files of a run get their names together at the end. All are opened before the work, so that
 * a missing folder is known at once. All are complete and synced before the first gets its name,
 * so a full disk leaves none of them. */
#include "userkernel/run/user_files.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "cluster/cluster.h"
#include "userkernel/execution/user_output.h"
#include "userkernel/run/user_divide_run.h"
#include "userkernel/run/user_outputs.h"
#include "userkernel/run/user_ranks.h"
#include <string.h>

/* The name of the file for the rows of this rank; for qn__free. */
static char *own_name(const qn_kernel *k, uint32_t part, qn_error *err) {
    qn__text name = {0};
    const char *at = k->part[part].path;
    for (const char *mark; (mark = strstr(at, "%r")); at = mark + 2) {
        qn__text_add_bytes(&name, at, (size_t)(mark - at));
        qn__text_add(&name, "%u", (unsigned)k->divided->parts.rank);
    }
    qn__text_add(&name, "%s", at);
    if (name.failed)
        qn__fail_memory(err, 1, name.size);
    char *copy = name.failed ? NULL : qn__copy_text(name.data, err);
    qn__text_release(&name);
    return copy;
}

static int is_own(const qn_kernel *k, uint32_t part) {
    return k->part[part].in_parts && k->part[part].path &&
           k->source.part[part].use == QN__USER_OUTPUT;
}

/* The files for the rows of this rank. */
static qn_status open_own(qn_kernel *k, qn__writer *writer[QN__USER_PARTS], qn_error *err) {
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK; i++) {
        char *name = is_own(k, i) ? own_name(k, i, err) : NULL;
        if (is_own(k, i))
            status = name ? qn__writer_create(name, &writer[i], err) : QN_MEMORY;
        if (is_own(k, i))
            k->part[i].writer = writer[i];
        qn__free(name);
    }
    return status;
}

/* Opens all files before the work, so that a folder that is missing is known at once. */
static qn_status open_files(qn_kernel *k, const char *recipe, qn__writer *writer[QN__USER_FILES],
                            qn_error *err) {
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK; i++)
        if (is_own(k, i)) {
            continue;
        } else if (qn__user_part_is_written(&k->source.part[i]) && k->part[i].path) {
            status = qn__writer_create(k->part[i].path, &writer[i], err);
            k->part[i].writer = writer[i];
        } else if (k->part[i].wants_series && k->part[i].series_path) {
            status = qn__writer_create(k->part[i].series_path, &writer[i], err);
        }
    if (status == QN_OK && recipe)
        status = qn__writer_create(recipe, &writer[QN__USER_PARTS], err);
    return status;
}

static qn_status fill_file(const qn_kernel *k, uint32_t i, qn__writer *writer, qn_error *err) {
    const qn__user_bound *b = &k->part[i];
    if (b->wants_series)
        return qn__user_array_write(&b->series, writer, err);
    if (k->divided && k->source.part[i].use == QN__USER_OUTPUT) {
        const qn_status status = qn__user_divide_gather(k, i, err);
        if (status != QN_OK)
            return status;
    }
    return qn__user_output_write(&b->array, b->path, writer, err);
}

static qn_status fill_files(const qn_kernel *k, qn__writer *writer[QN__USER_FILES], qn_error *err) {
    qn_status status = QN_OK;
    qn__text recipe = {0};
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK; i++)
        if (writer[i])
            status = fill_file(k, i, writer[i], err);
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

/* Each rank writes its rows. All files are complete before the first gets its name. */
static qn_status write_own(qn__user_files *f, qn_error *err) {
    qn_kernel *k = f->kernel;
    const qn_parts *parts = &k->divided->parts;
    qn__writer_batch batch = {NULL, NULL};
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK; i++) {
        if (!is_own(k, i))
            continue;
        const qn__user_array own = qn__user_divide_own(k, i);
        if (own.shape[0] == 0 && qn__user_output_is_picture(k->part[i].path))
            continue;
        status = qn__user_output_write(&own, k->part[i].path, f->own[i], err);
        if (status == QN_OK) {
            status = qn__writer_finish(f->own[i], &batch, QN_OK, err);
            f->own[i] = NULL;
        }
    }
    status = qn__parts_agree(parts, status, err);
    if (status == QN_OK)
        status = qn__parts_agree(parts, qn__writer_batch_commit(&batch, err), err);
    else
        qn__writer_batch_drop(&batch);
    return status;
}

qn_status qn__user_files_open_own(qn__user_files *f, qn_error *err) {
    return f->kernel->divided ? open_own(f->kernel, f->own, err) : QN_OK;
}

qn_status qn__user_files_write(qn__user_files *f, qn_error *err) {
    const qn_status status = f->kernel->divided ? write_own(f, err) : QN_OK;
    if (status != QN_OK)
        return status;
    return qn__user_ranks_write(f->kernel->compute.cluster, write_all, f, err);
}

void qn__user_files_close(qn__user_files *f) {
    for (uint32_t i = 0; i < QN__USER_FILES; i++)
        qn__writer_drop(f->writer[i]);
    for (uint32_t i = 0; i < QN__USER_PARTS; i++)
        qn__writer_drop(f->own[i]);
    qn__user_outputs_close(f->kernel);
}

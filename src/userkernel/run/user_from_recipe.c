/* A kernel from its recipe, and the files that the recipe may open. */
#include "base/argument.h"
#include "base/files/file.h"
#include "base/files/remote.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "userkernel/run/user_iterate.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Both are resolved. */
static int is_below(const char *file, const char *folder) {
    const size_t size = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    return strncmp(file, folder, size) == 0 && (file[size] == '/' || file[size] == '\0');
}

/* Opens the file of an input that the recipe names, if it is below the folder. It is opened by its
 * resolved path, so that links which change meanwhile lead nowhere else. */
static qn_status open_named(qn_kernel *k, uint32_t part, const char *folder, qn_error *err) {
    qn__user_bound *b = &k->part[part];
    char *file = realpath(b->path, NULL);
    /* A missing file is said when it is needed, because another one may be named. */
    if (!file || access(file, R_OK) != 0) {
        free(file);
        return QN_OK;
    }
    qn_status status = QN_OK;
    b->is_refused = !is_below(file, folder);
    if (!b->is_refused)
        status = qn__user_array_open(file, k->source.part[part].name, 0, &b->array, err);
    if (status == QN_OK && !b->is_refused)
        status = qn__user_check_type(k, part, &b->array, b->path, err);
    if (status == QN_OK && !b->is_refused)
        status = qn__user_check_dimensions(k, part, b->array.dimensions, b->path, err);
    free(file);
    return status;
}

static qn_status open_below(qn_kernel *k, const char *folder, qn_error *err) {
    qn_status status = QN_OK;
    for (uint32_t i = 0; status == QN_OK && i < k->source.parts; i++)
        if (k->source.part[i].use < QN__USER_OUTPUT && k->part[i].path && !k->part[i].array.data)
            status = open_named(k, i, folder, err);
    return status;
}

/* The folder of a file, resolved, for free(); NULL with errno. */
static char *folder_of(const char *path, qn_error *err) {
    char *folder = qn__copy_text(path, err), *real;
    if (!folder)
        return NULL;
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    real = realpath(slash ? folder : ".", NULL);
    qn__free(folder);
    if (!real)
        qn__fail_errno(err, "open the folder of", path);
    return real;
}

qn_status qn_kernel_from_recipe(const char *path, qn_kernel **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(path, err);
    qn_error unheard;
    err = err ? err : &unheard;
    if (qn__remote_is(path)) {
        qn__fail(err, QN_UNSUPPORTED, "the recipe of a kernel is not read from an address");
        qn__at(err, "%s", path);
        return qn__remedy(err, QN_UNSUPPORTED,
                          "copy it, and the files that it names, to a folder of this machine");
    }
    qn__bytes bytes;
    qn_status status = qn__file_read(path, &bytes, err);
    if (status != QN_OK)
        return status;
    status = qn__user_recipe_read((const char *)bytes.data, bytes.size, path, out, err);
    qn__bytes_release(&bytes);
    char *folder = status == QN_OK ? folder_of(path, err) : NULL;
    if (status == QN_OK)
        status = folder ? open_below(*out, folder, err) : err->status;
    free(folder);
    if (status != QN_OK) {
        qn_kernel_free(*out);
        *out = NULL;
    }
    return status;
}

qn_status qn_kernel_allow_path(qn_kernel *k, const char *path, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(k, "kernel", err);
    QN__NEED(path, err);
    if (!k->is_recipe) {
        qn__fail(err, QN_USAGE, "the kernel is not of a recipe");
        return qn__remedy(err, QN_USAGE, "leave `kernel.allow_path` out");
    }
    char *folder = realpath(path, NULL);
    if (!folder)
        return qn__fail_errno(err, "open", path);
    const qn_status status = open_below(k, folder, err);
    free(folder);
    return status;
}

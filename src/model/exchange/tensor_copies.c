#include "model/exchange/tensor_copies.h"

#include "base/files/folder_make.h"
#include "base/memory.h"

qn_status qn__tensor_copies_open(size_t most, qn__tensor_copies *c, qn_error *err) {
    c->most = most;
    c->tensor = qn__alloc(most, sizeof *c->tensor, err);
    c->name = c->tensor ? qn__alloc(most, sizeof *c->name, err) : NULL;
    c->copy = c->name ? qn__alloc(most, sizeof *c->copy, err) : NULL;
    return c->copy ? QN_OK : QN_MEMORY;
}

void qn__tensor_copies_release(qn__tensor_copies *c) {
    for (size_t t = 0; c->copy && t < c->tensors; ++t)
        qn__free(c->copy[t]);
    qn__free((void *)c->copy);
    qn__free(c->tensor);
    qn__free(c->name);
    *c = (qn__tensor_copies){.tensors = 0};
}

float *qn__tensor_copies_add(qn__tensor_copies *c, uint64_t rows, uint64_t columns, char **name,
                             qn_error *err) {
    float *copy =
        c->tensors < c->most ? qn__alloc(rows * (columns ? columns : 1), sizeof *copy, err) : NULL;
    if (!copy)
        return NULL;
    *name = c->name[c->tensors];
    c->copy[c->tensors] = copy;
    c->tensor[c->tensors++] =
        (qn__tensor){.name = *name, .rows = rows, .columns = columns, .data = copy};
    return copy;
}

qn_status qn__tensor_copies_write(const qn__tensor_copies *c, const char *folder, const char *file,
                                  const char *digest, qn_error *err) {
    char *path;
    const qn__tensor_note notes[] = {{"format", "pt"}, {"quern_digest", digest}};
    const qn__tensor_list list = {.notes = sizeof notes / sizeof *notes,
                                  .note = notes,
                                  .tensors = c->tensors,
                                  .tensor = c->tensor};
    qn_status status = qn__folder_path(folder, file, &path, err);
    if (status != QN_OK)
        return status;
    status = qn__tensors_write(path, &list, NULL, err);
    qn__free(path);
    return status;
}

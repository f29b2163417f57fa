/* Outputs that fit in a quarter of the free memory are computed there. Larger ones with a file are
 * computed in a mapping of the file that later gets the name. */
#include "userkernel/run/user_outputs.h"

#include "base/memory.h"
#include "base/system/available.h"
#include "userkernel/execution/user_output.h"
#include "userkernel/run/user_divide.h"
#include <string.h>

/* 1: each rank has its rows of the output. */
static int is_divided(const qn_kernel *k, uint32_t part) {
    return k->divided && k->source.part[part].use == QN__USER_OUTPUT;
}

/* Bytes of this process. */
static uint64_t bytes_here(const qn_kernel *k, uint32_t part) {
    const qn__user_array *a = &k->part[part].array;
    const uint64_t bytes = qn__user_array_bytes(a);
    if (!is_divided(k, part))
        return bytes;
    const qn__row_range own = qn__part_own_rows(k->divided);
    return (own.end - own.begin) * (bytes / a->shape[0]);
}

/* Memory is faster than a file, so small outputs are computed there. */
static int is_large(const qn_kernel *k) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < k->source.parts; i++)
        if (qn__user_part_is_written(&k->source.part[i]) && !k->part[i].lent)
            bytes += bytes_here(k, i);
    return bytes > qn__available_memory() / 4;
}

/* Rows of this rank, in their file or in memory. What NEXT carries has rows of neighbours, too. */
static qn_status make_rows(qn_kernel *k, uint32_t part, int large, qn_error *err) {
    qn__user_bound *b = &k->part[part];
    const int carried = k->source.part[part].next && k->iterations > 1;
    qn__user_array own = qn__user_divide_own(k, part);
    int made = 0;
    if (large && b->writer && b->in_parts && !carried && own.shape[0] > 0) {
        const qn_status status = qn__user_output_map(&own, b->path, b->writer, &made, err);
        if (status != QN_OK)
            return status;
    }
    if (!made && bytes_here(k, part) > qn__available_memory())
        return qn__fail_memory(err, 1, bytes_here(k, part));
    if (!made)
        return qn__user_array_reserve(&b->array, err);
    const uint64_t row = qn__user_array_bytes(&own) / own.shape[0];
    b->array.map = own.map;
    b->array.map_bytes = own.map_bytes;
    b->array.data = /* where row 0 of the whole would be */
        (void *)((uintptr_t)own.data - (uintptr_t)(qn__part_own_rows(k->divided).begin * row));
    return QN_OK;
}

static qn_status make(qn_kernel *k, uint32_t part, int large, qn_error *err) {
    qn__user_bound *b = &k->part[part];
    int made = 0;
    qn_status status = QN_OK;
    if (b->path)
        status = qn__user_output_check(&b->array, k->source.part[part].name, b->path, err);
    if (status == QN_OK && is_divided(k, part))
        return make_rows(k, part, large, err);
    if (status == QN_OK && large && b->writer)
        status = qn__user_output_map(&b->array, b->path, b->writer, &made, err);
    return status == QN_OK && !made ? qn__user_array_make(&b->array, err) : status;
}

qn_status qn__user_outputs_make(qn_kernel *k, const uint64_t shape[QN_KERNEL_DIMENSIONS],
                                qn_error *err) {
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < k->source.parts; i++) {
        qn__user_array *a = &k->part[i].array;
        if (!qn__user_part_is_written(&k->source.part[i]) || k->part[i].lent)
            continue;
        qn__user_array_release(a);
        qn__user_array_declare(k, i, shape, a);
    }
    const int large = is_large(k);
    for (uint32_t i = 0; i < k->source.parts && status == QN_OK; i++)
        if (qn__user_part_is_written(&k->source.part[i]) && !k->part[i].lent)
            status = make(k, i, large, err);
    return status;
}

qn_status qn__user_spare_make(const qn_kernel *k, uint32_t part, qn__user_array *spare,
                              qn__mapped_file **file, qn_error *err) {
    const qn__user_bound *output = &k->part[part];
    *spare = output->array;
    spare->map = NULL;
    spare->map_bytes = spare->own_bytes = 0;
    *file = NULL;
    if (k->divided)
        return qn__user_array_reserve(spare, err);
    if (!output->array.map)
        return qn__user_array_make(spare, err);
    char *folder = qn__copy_text(output->path, err);
    if (!folder)
        return QN_MEMORY;
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    const qn_status status =
        qn__mapped_file_create(slash ? folder : ".", qn__user_array_bytes(spare), file, err);
    qn__free(folder);
    spare->data = status == QN_OK ? qn__mapped_file_bytes(*file) : NULL;
    return status;
}

void qn__user_outputs_close(qn_kernel *k) {
    for (uint32_t i = 0; i < k->source.parts; i++) {
        k->part[i].writer = NULL;
        if (qn__user_part_is_written(&k->source.part[i]) && k->part[i].array.map)
            qn__user_array_release(&k->part[i].array);
    }
}

/* The parts of a kernel: found by name, and what their arrays are. */
#include "userkernel/run/user_iterate.h"
#include "base/memory.h"
#include <string.h>

uint32_t qn__user_part_named(const qn_kernel *k, const char *name) {
    for (uint32_t i = 0; i < k->source.parts; i++)
        if (strcmp(k->source.part[i].name, name) == 0)
            return i;
    return QN__USER_PARTS;
}

/* The dimensions of an array. */
uint32_t qn__user_dimensions(const qn_kernel *k, uint32_t part) {
    const qn__user_part *p = &k->source.part[part];
    return p->use == QN__USER_WHOLE ? p->dimensions
           : p->bins > 0            ? 1
                                    : k->source.dimensions + (p->components > 0);
}

void qn__user_array_declare(const qn_kernel *k, uint32_t part,
                            const uint64_t shape[QN_KERNEL_DIMENSIONS], qn__user_array *array) {
    const qn__user_part *p = &k->source.part[part];
    *array =
        (qn__user_array){.type = qn__user_part_type(p), .dimensions = qn__user_dimensions(k, part)};
    if (p->bins > 0)
        array->shape[0] = p->bins;
    else
        memcpy(array->shape, shape, sizeof array->shape);
    if (p->components > 0)
        array->shape[array->dimensions - 1] = p->components;
}

int qn__user_has_series(const qn__user_part *part) {
    return part->use >= QN__USER_SUM && part->bins == 0;
}

void qn__user_series_release(qn__user_bound *b) {
    qn__user_array_release(&b->series);
    qn__free(b->series_path);
    b->series_path = NULL;
    b->wants_series = 0;
}

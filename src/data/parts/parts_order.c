/* Columns that a part has in another order than the first part: they get its order. */
#include "base/files/mapped_file.h"
#include "base/memory.h"
#include "data/parts/parts_heads.h"
#include "data/table/schema.h"
#include "data/table/table_space.h"
#include <stdlib.h>
#include <string.h>

typedef struct named {
    const char *name;
    uint32_t column;
} named;

static int compare(const void *a, const void *b) {
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

/* The columns by their names; NULL: some have none, or *err says that memory is short. */
static named *sorted(const qn__schema *schema, qn_error *err) {
    for (uint32_t k = 0; k < schema->features; k++)
        if (!schema->feature[k].name)
            return NULL;
    named *all = qn__alloc(schema->features, sizeof *all, err);
    for (uint32_t k = 0; all && k < schema->features; k++)
        all[k] = (named){schema->feature[k].name, k};
    if (all)
        qsort(all, schema->features, sizeof *all, compare);
    return all;
}

static int same_order(const qn__schema *a, const qn__schema *b) {
    uint32_t k = 0;
    while (k < a->features && a->feature[k].name && b->feature[k].name &&
           strcmp(a->feature[k].name, b->feature[k].name) == 0)
        k++;
    return k == a->features;
}

/* 0: the names differ, or one of them is there twice. */
static int match(const named *a, const named *b, uint32_t count, uint32_t *order) {
    for (uint32_t k = 0; k < count; k++) {
        if (strcmp(a[k].name, b[k].name) != 0 || (k > 0 && compare(&a[k - 1], &a[k]) == 0))
            return 0;
        order[b[k].column] = a[k].column;
    }
    return 1;
}

/* Which column of `own` has the name of each of `lead`, for qn__free. NULL: they are in the same
 * order, or their names differ. */
static uint32_t *find_order(const qn__schema *own, const qn__schema *lead, qn_error *err) {
    if (own->features != lead->features || same_order(own, lead))
        return NULL;
    named *a = sorted(own, err), *b = a ? sorted(lead, err) : NULL;
    uint32_t *order = b ? qn__alloc(own->features, sizeof *order, err) : NULL;
    if (order && !match(a, b, own->features, order)) {
        qn__free(order);
        order = NULL;
    }
    qn__free(a);
    qn__free(b);
    return order;
}

static void move_columns(qn_data *data, const uint32_t *order, uint8_t *row) {
    const size_t size = qn__element_of(data->type)->size, stride = qn__data_stride(data);
    uint8_t *at = qn__table_space_values(data);
    for (uint64_t i = 0; i < data->items; i++, at += stride) {
        for (uint32_t k = 0; k < data->features; k++)
            memcpy(row + k * size, at + order[k] * size, size);
        memcpy(at, row, stride);
    }
}

static qn_status move_schema(qn_data *data, const uint32_t *order, qn_error *err) {
    qn__feature *from = data->schema->feature;
    qn__feature *to = qn__alloc(data->features, sizeof *to, err);
    const uint32_t comma = data->comma;
    if (!to)
        return QN_MEMORY;
    for (uint32_t k = 0; k < data->features; k++) {
        to[k] = from[order[k]];
        data->comma = comma == order[k] + 1 ? k + 1 : data->comma;
    }
    data->schema->feature = to;
    qn__free(from);
    return QN_OK;
}

static qn_status reorder(qn_parts *parts, const uint32_t *order, const qn_data_options *options,
                         qn_error *err) {
    qn_data *own = parts->own;
    uint8_t *row = qn__alloc(1, qn__data_stride(own), err);
    qn_status status = row ? qn__parts_own_values(parts, options, err) : QN_MEMORY;
    if (status == QN_OK)
        status = move_schema(own, order, err);
    if (status == QN_OK)
        move_columns(own, order, row);
    if (status == QN_OK && own->in_file)
        qn__mapped_file_written(own->memory);
    own->values_digest = NULL;
    qn__free(row);
    return status;
}

qn_status qn__parts_reorder(qn_parts *parts, const qn__part_heads *heads,
                            const qn_data_options *options, qn_error *err) {
    qn_data *own = parts->own;
    const qn_data *lead = heads->part[heads->lead].data;
    qn_error why = {.what = ""};
    if (!own || !own->schema || qn__element_is_token(own->type))
        return QN_OK;
    uint32_t *order = find_order(own->schema, lead->schema, &why);
    if (!order && why.status != QN_OK) {
        *err = why;
        return QN_MEMORY;
    }
    const qn_status status = order ? reorder(parts, order, options, err) : QN_OK;
    qn__free(order);
    return status;
}

int qn__parts_disordered(const qn_parts *parts, const qn__part_heads *heads) {
    const qn__schema *lead = heads->part[heads->lead].data->schema;
    int any = 0;
    for (uint32_t r = heads->lead + 1; r < parts->ranks && !any; r++) {
        const qn_data *data = heads->part[r].data;
        any = data && data->features == lead->features && !same_order(data->schema, lead) &&
              lead->feature[0].name;
    }
    return any;
}

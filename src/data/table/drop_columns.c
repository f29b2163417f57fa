#include "data/table/drop_columns.h"

#include "base/memory.h"
#include "data/table/kept.h"
#include "data/table/missing.h"
#include "data/table/table_space.h"
#include "data/table/wide.h"
#include <string.h>

/* The place of feature k among those that stay. */
static uint32_t place_of(const uint8_t *drop, uint32_t k) {
    uint32_t place = 0;
    for (uint32_t i = 0; i < k; i++)
        place += !drop[i];
    return place;
}

/* Whether the features that stay are bytes. */
static int are_bytes(const qn_data *data, const uint8_t *drop) {
    for (uint32_t k = 0; k < data->features; k++)
        if (!drop[k] && !data->schema->feature[k].bytes)
            return 0;
    return 1;
}

/* The values move to the front of the memory in which they lie. */
static void drop_values(qn_data *data, const uint8_t *drop, qn_data_type type) {
    const size_t size = qn__element_of(data->type)->size;
    const uint8_t *from = data->values;
    uint8_t *to = qn__table_space_values(data);
    for (uint64_t i = 0; i < data->items; i++)
        for (uint32_t k = 0; k < data->features; k++, from += size) {
            if (drop[k])
                continue;
            if (type == data->type) {
                memmove(to, from, size);
                to += size;
            } else { /* from floats to bytes */
                float value;
                memcpy(&value, from, sizeof value);
                *to++ = (uint8_t)value;
            }
        }
    data->values_digest = NULL;
}

static void drop_features(qn__schema *schema, const uint8_t *drop, int bytes) {
    uint32_t stay = 0;
    for (uint32_t k = 0; k < schema->features; k++) {
        if (drop[k])
            qn__feature_release(&schema->feature[k]);
        else
            schema->feature[stay++] = schema->feature[k];
    }
    schema->features = stay;
    for (uint32_t k = 0; k < stay && bytes; k++)
        schema->feature[k].bytes = 0; /* that is said of tables of floats */
}

static void drop_wide(qn__wide *wide, const uint8_t *drop) {
    uint32_t stay = 0;
    for (uint32_t j = 0; wide && j < wide->columns; j++) {
        if (drop[wide->feature[j]])
            continue;
        if (j != stay)
            memmove(qn__wide_of(wide, stay), qn__wide_of(wide, j),
                    (size_t)wide->rows * sizeof *wide->value);
        wide->feature[stay++] = place_of(drop, wide->feature[j]);
    }
    if (wide)
        wide->columns = stay;
}

static void drop_kept(qn__kept *kept, const uint8_t *drop) {
    uint32_t stay = 0;
    for (uint32_t j = 0; kept && j < kept->columns; j++) {
        if (drop[kept->feature[j]]) {
            qn__free(kept->value[j]);
            continue;
        }
        kept->value[stay] = kept->value[j];
        kept->feature[stay++] = place_of(drop, kept->feature[j]);
    }
    if (kept)
        kept->columns = stay;
}

static int has_missing(const qn_data *data) {
    const size_t count = (size_t)data->items * data->features;
    const float *value = (const void *)data->values;
    for (size_t i = 0; data->type == QN_F32 && i < count; i++)
        if (qn__is_missing(value[i]))
            return 1;
    return 0;
}

void qn__data_drop_columns(qn_data *data, const uint8_t *drop) {
    const uint32_t features = place_of(drop, data->features);
    const int bytes = data->type == QN_F32 && are_bytes(data, drop);
    const qn_data_type type = bytes ? QN_U8 : data->type;
    drop_values(data, drop, type);
    if (data->comma)
        data->comma = drop[data->comma - 1] ? 0 : 1 + place_of(drop, data->comma - 1);
    drop_wide(data->wide, drop);
    drop_kept(data->kept, drop);
    drop_features(data->schema, drop, bytes);
    data->features = features;
    data->type = type;
    data->missing = data->missing && has_missing(data);
    if (data->wide && data->wide->columns == 0) {
        qn__wide_free(data->wide);
        data->wide = NULL;
    }
}

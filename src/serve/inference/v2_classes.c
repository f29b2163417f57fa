/* Outputs as texts of the most probable classes, for clients of Triton's "classification". */
#include "serve/inference/v2_message.h"

#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ranked {
    float value;
    uint32_t class;
} ranked;

/* The larger value first. */
static int by_value(const void *one, const void *other) {
    const ranked *a = one, *b = other;
    if (a->value != b->value)
        return a->value < b->value ? 1 : -1;
    return a->class < b->class ? -1 : a->class > b->class;
}

static void rank(ranked *rows, const float *values, uint32_t each) {
    for (uint32_t k = 0; k < each; k++)
        rows[k] = (ranked){isnan(values[k]) ? -INFINITY : values[k], k};
    qsort(rows, each, sizeof *rows, by_value);
}

void qn__v2_add_text(qn__text *to, const char *text, int binary) {
    const size_t size = strlen(text);
    const uint8_t length[4] = {(uint8_t)size, (uint8_t)(size >> 8), (uint8_t)(size >> 16),
                               (uint8_t)(size >> 24)};
    if (!binary) {
        qn__text_add_json(to, text);
        return;
    }
    qn__text_add_bytes(to, length, sizeof length);
    qn__text_add_bytes(to, text, size);
}

static void add_class(qn__text *to, const qn_model *model, const ranked *row, int binary) {
    const char *name = qn_model_class_name(model, row->class);
    qn__text own = {0};
    qn__text_add(&own, "%f:%u%s%s", (double)row->value, row->class, name ? ":" : "",
                 name ? name : "");
    if (own.data)
        qn__v2_add_text(to, own.data, binary);
    to->failed |= own.failed;
    qn__text_release(&own);
}

void qn__v2_add_classes(qn__text *to, const qn_model *model, const qn__batch_answer *a,
                        uint32_t each, uint32_t count, int binary) {
    ranked *rows = qn__alloc(each, sizeof *rows, NULL);
    to->failed |= !rows;
    for (uint64_t i = 0; rows && i < a->items; i++) {
        rank(rows, a->outputs + i * each, each);
        for (uint32_t k = 0; k < count; k++) {
            if (!binary && (i > 0 || k > 0))
                qn__text_add(to, ", ");
            add_class(to, model, &rows[k], binary);
        }
    }
    qn__free(rows);
}

#include "data/table/several.h"

#include "base/memory.h"
#include "data/table/data.h"
#include <string.h>

qn__several *qn__several_create(uint64_t items, uint32_t each, uint32_t height, uint32_t width,
                                qn_error *err) {
    qn__several *several = qn__alloc(1, sizeof *several, err);
    if (!several)
        return NULL;
    *several = (qn__several){.each = each, .height = height, .width = width};
    several->target = qn__alloc(items, each, err);
    if (several->target)
        return several;
    qn__free(several);
    return NULL;
}

void qn__several_free(qn__several *several) {
    if (several && !several->mapped)
        qn__free(several->target);
    qn__free(several);
}

const uint8_t *qn__several_of(const qn_data *data, uint64_t i) {
    const uint64_t row = data->index ? data->index[i] : i;
    return data->several->target + (size_t)row * data->several->each;
}

qn_status qn__several_copy(const qn_data *data, const uint64_t *item, uint64_t count,
                           qn__several **out, qn_error *err) {
    const qn__several *from = data->several;
    *out = NULL;
    if (!from)
        return QN_OK;
    qn__several *to = qn__several_create(count, from->each, from->height, from->width, err);
    if (!to)
        return QN_MEMORY;
    for (uint64_t i = 0; i < count; i++)
        memcpy(to->target + (size_t)i * to->each, qn__several_of(data, item ? item[i] : i),
               to->each);
    *out = to;
    return QN_OK;
}

uint32_t qn__several_classes(const qn__several *several, uint64_t items) {
    const size_t count = several->height ? (size_t)items * several->each : 0;
    uint32_t classes = 0;
    for (size_t i = 0; i < count; i++)
        if (several->target[i] != QN__NO_TARGET && several->target[i] >= classes)
            classes = several->target[i] + 1u;
    return classes;
}

uint64_t qn__several_count(const qn_data *data, uint64_t i) {
    const uint8_t *target = qn__several_of(data, i);
    uint64_t count = 0;
    for (uint32_t k = 0; k < data->several->each; k++)
        count += target[k] != QN__NO_TARGET;
    return count;
}

uint64_t qn__several_count_all(const qn_data *data) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < data->items; i++)
        count += qn__several_count(data, i);
    return count;
}

qn_status qn__several_check(const qn__several *several, uint64_t items, qn_error *err) {
    const size_t count = several->height ? 0 : (size_t)items * several->each;
    for (size_t i = 0; i < count; i++) {
        if (several->target[i] <= 1 || several->target[i] == QN__NO_TARGET)
            continue;
        qn__fail(err, QN_INPUT, "a label is %u, which is neither 0 nor 1", several->target[i]);
        qn__at(err, "item %llu, label %llu", (unsigned long long)(i / several->each),
               (unsigned long long)(i % several->each));
        return qn__remedy(err, QN_INPUT,
                          "1 says that the item has the label, 0 that it has not, and 255 that "
                          "it is unknown");
    }
    return QN_OK;
}

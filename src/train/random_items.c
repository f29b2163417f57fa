#include "train/random_items.h"

#include "base/binary/little_endian.h"
#include "base/memory.h"
#include "model/recipe/defaults.h"
#include "num/philox.h"

/* Enough for several batches, and at most about so many bytes. */
enum { LEAST_ITEMS = 4096, LEAST_BATCHES = 8, MOST_BYTES = 1 << 24 };

qn__labels_like qn__random_labels(void) {
    return (qn__labels_like){QN__TASK_CLASSIFY, qn__default_loss(QN__TASK_CLASSIFY), 10};
}

static uint64_t items_of(uint32_t batch, uint32_t features) {
    uint64_t items = (uint64_t)batch * LEAST_BATCHES;
    if (items < LEAST_ITEMS)
        items = LEAST_ITEMS;
    if (items * features > MOST_BYTES)
        items = MOST_BYTES / features;
    return items < batch ? batch : items;
}

qn_status qn__random_items(uint32_t batch, uint32_t features, uint32_t classes, qn_data **out,
                           qn_error *err) {
    const uint64_t items = items_of(batch, features);
    const size_t size = (size_t)items * features;
    uint8_t *values = qn__alloc(size + 16, 1, err);
    int32_t *labels = values ? qn__alloc(items, sizeof *labels, err) : NULL;
    qn_status status = labels ? QN_OK : QN_MEMORY;
    for (size_t i = 0; status == QN_OK && i < size; i += 16) {
        uint32_t word[4];
        qn__words(1, QN__PURPOSE_ORDER, 0, 0, i, 0, word);
        qn__copy_little(values + i, word, 4);
    }
    for (uint64_t i = 0; status == QN_OK && i < items; ++i)
        labels[i] = (int32_t)(i % classes);
    if (status == QN_OK)
        status = qn_data_from_arrays(QN_U8, items, features, values, labels, out, err);
    qn__free(values);
    qn__free(labels);
    return status;
}

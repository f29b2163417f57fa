#include "train/random_items.h"

#include "base/binary/little_endian.h"
#include "base/memory.h"
#include "data/table/data.h"
#include "data/table/shape.h"
#include "model/recipe/defaults.h"
#include "num/philox.h"
#include <string.h>

/* Enough for several batches, and at most about so many bytes. */
enum { LEAST_ITEMS = 4096, LEAST_BATCHES = 8, MOST_BYTES = 1 << 24 };
enum { DIGIT = 784 }; /* features of a synthetic digit */

qn__labels_like qn__random_labels(void) {
    return (qn__labels_like){QN__TASK_CLASSIFY, qn__default_loss(QN__TASK_CLASSIFY), 10, 0};
}

static uint64_t items_of(uint32_t batch, uint32_t features) {
    uint64_t items = (uint64_t)batch * LEAST_BATCHES;
    if (items < LEAST_ITEMS)
        items = LEAST_ITEMS;
    if (items * features > MOST_BYTES)
        items = MOST_BYTES / features;
    return items < batch ? batch : items;
}

/* The pixels of the answers of a network that ends with a convolution; {0}: an item has one label,
 * or the shape is not that of the features, which is refused later. */
static qn_status find_mask(const qn_train_options *job, const qn__network *network,
                           uint32_t features, qn__shape *mask, qn_error *err) {
    uint32_t shape[3];
    uint64_t parameters;
    *mask = (qn__shape){0};
    if (network->layer[network->layers - 1].kind != QN__LAYER_CONV || !job->shape)
        return QN_OK;
    qn_status status = qn__shape_read(job->shape, "`train.shape`", shape, err);
    const uint64_t pixels = status == QN_OK ? (uint64_t)shape[1] * shape[2] : 0;
    if (status != QN_OK || pixels > features || pixels * shape[0] != features)
        return status;
    qn__layer *layer = qn__alloc(QN__MAX_LAYERS, sizeof *layer, err);
    status =
        layer ? qn__network_program(network, (qn__shape){shape[0], shape[1], shape[2], QN__PICTURE},
                                    layer, &parameters, err)
              : QN_MEMORY;
    if (status == QN_OK)
        *mask = layer[network->layers - 1].to;
    qn__free(layer);
    return status;
}

static qn_status lend(qn_data_arrays *arrays, const qn__shape *mask, const uint8_t *values,
                      qn_data **out, qn_error *err) {
    const size_t size = (size_t)arrays->items * arrays->features;
    uint8_t *own = qn__alloc(size, 1, err);
    if (!own)
        return QN_MEMORY;
    memcpy(own, values, size);
    arrays->values = arrays->owner = own;
    arrays->release = qn__free;
    arrays->mask_rows = mask->height;
    arrays->mask_columns = mask->width;
    arrays->each = mask->height * mask->width;
    const qn_status status = qn_data_lend(arrays, out, err);
    if (status != QN_OK)
        qn__free(own);
    return status;
}

static qn_status mask_items(const qn__shape *mask, uint64_t items, uint32_t features,
                            const uint8_t *values, qn_data **out, qn_error *err) {
    const uint32_t classes = mask->channels > 1 ? mask->channels : 2;
    const uint64_t count = items * mask->height * mask->width;
    uint8_t *targets = qn__alloc(count, 1, err);
    qn_data_arrays arrays;
    if (!targets)
        return QN_MEMORY;
    for (uint64_t i = 0; i < count; ++i)
        targets[i] = (uint8_t)(i % (classes < UINT8_MAX ? classes : UINT8_MAX));
    qn_data_arrays_init(&arrays);
    arrays.type = QN_U8;
    arrays.items = items;
    arrays.features = features;
    arrays.several = targets;
    const qn_status status = lend(&arrays, mask, values, out, err);
    qn__free(targets);
    return status;
}

/* The size of the vocabulary; 0: the network does not begin with an embedding. */
static uint32_t vocabulary_of(const qn__network *network) {
    const qn__layer_text *first = &network->layer[0];
    return first->kind == QN__LAYER_EMBEDDING ? first->vocabulary : 0;
}

/* Numbers of tokens, which have no labels where a token follows at each position. */
static qn_status token_items(const qn__network *network, uint64_t items, uint32_t features,
                             const uint8_t *values, const int32_t *labels, qn_data **out,
                             qn_error *err) {
    const uint32_t tokens = vocabulary_of(network);
    const int next = network->layer[network->layers - 1].kind == QN__LAYER_CONV;
    const size_t size = (size_t)items * features;
    uint8_t *own = qn__alloc(size, 1, err);
    for (size_t i = 0; own && tokens > 0 && i < size; ++i)
        own[i] = (uint8_t)(values[i] % tokens);
    const qn_status status =
        own ? qn_data_from_arrays(QN_U8, items, features, own, next ? NULL : labels, out, err)
            : QN_MEMORY;
    qn__free(own);
    return status;
}

qn_status qn__items_of(const qn_train_options *job, const qn__network *network, uint64_t items,
                       uint32_t features, const uint8_t *values, qn_data **out, qn_error *err) {
    const uint32_t classes = network->layer[network->layers - 1].out;
    qn__shape mask = {0};
    qn_status status =
        vocabulary_of(network) ? QN_OK : find_mask(job, network, features, &mask, err);
    if (status != QN_OK || mask.channels)
        return status != QN_OK ? status : mask_items(&mask, items, features, values, out, err);
    int32_t *labels = qn__alloc(items, sizeof *labels, err);
    for (uint64_t i = 0; labels && i < items; ++i)
        labels[i] = (int32_t)(i % classes);
    if (!labels)
        status = QN_MEMORY;
    else if (vocabulary_of(network))
        status = token_items(network, items, features, values, labels, out, err);
    else
        status = qn_data_from_arrays(QN_U8, items, features, values, labels, out, err);
    qn__free(labels);
    return status;
}

/* Images have zeros, which cost less than other values. */
static qn_status draw_digits(uint64_t items, uint8_t *values, qn_error *err) {
    qn_data *digits;
    const qn_status status = qn_data_synth_digits(1, 0, items, &digits, err);
    if (status != QN_OK)
        return status;
    memcpy(values, digits->values, (size_t)items * DIGIT);
    qn_data_close(digits);
    return QN_OK;
}

static void draw_bytes(size_t size, uint8_t *values) {
    for (size_t i = 0; i < size; i += 16) {
        uint32_t word[4];
        qn__words(1, QN__PURPOSE_ORDER, 0, 0, i, 0, word);
        qn__copy_little(values + i, word, 4);
    }
}

qn_status qn__random_items(const qn_train_options *job, const qn__network *network,
                           uint32_t features, qn_data **out, qn_error *err) {
    const uint64_t items = items_of(job->batch, features);
    const size_t size = (size_t)items * features;
    uint8_t *values = qn__alloc(size + 16, 1, err);
    qn_status status = values ? QN_OK : QN_MEMORY;
    if (status == QN_OK && features == DIGIT && !vocabulary_of(network))
        status = draw_digits(items, values, err);
    else if (status == QN_OK)
        draw_bytes(size, values);
    if (status == QN_OK)
        status = qn__items_of(job, network, items, features, values, out, err);
    qn__free(values);
    return status;
}

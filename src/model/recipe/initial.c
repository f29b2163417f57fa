#include "model/recipe/initial.h"

#include "model/recipe/adapters.h"
#include "num/philox.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether it passes positive sums on and stops negative ones, more or less (6.2, 17.2, 24.10). */
static int is_rectifier(qn__activation activation) {
    return activation == QN__ACT_RELU ||
           (activation >= QN__ACT_LEAKY_RELU && activation != QN__ACT_HARDSIGMOID);
}

/* The bound of a layer's weights. */
static float limit_of(const qn__layer *layer, qn__init init) {
    const qn__layer_ops *ops = qn__layer_ops_of(layer->kind);
    const uint64_t reads = ops->fan_in ? ops->fan_in(layer) : layer->depth;
    const float in = (float)reads;
    if (init == QN__INIT_AUTO)
        init = is_rectifier(layer->activation) ? QN__INIT_HE : QN__INIT_GLOROT;
    switch (init) {
    case QN__INIT_HE:
        return sqrtf(6.0f / in);
    case QN__INIT_LECUN:
        return sqrtf(3.0f / in);
    case QN__INIT_AUTO:
    case QN__INIT_ZERO:
    case QN__INIT_GLOROT:
        break;
    }
    /* The sum of the two counts is a whole number; it becomes a float once. */
    return sqrtf(6.0f / (float)(reads + ops->fan_out(layer)));
}

/* The 24 high bits of a word as an odd multiple of 2^-24 between -1 and 1, times the limit. Both
 * the whole number, which is below 2^24 in magnitude, and its quotient are exact. */
static float weight_of(uint32_t word, float limit) {
    const int32_t odd = (int32_t)(2 * (word >> 8) + 1) - (1 << 24);
    const float m = (float)odd * 0x1p-24f;
    return m * limit;
}

/* The words of a layer. */
typedef struct draw {
    uint64_t seed;
    uint32_t purpose, layer, epoch;
} draw;

/* Words that no earlier layer began with, however many models with one seed start from each other
 * (24.83): the layers of a start were trained for the numbers that its last layer began with.
 * Adapters have such words, too (25.86). */
static draw draw_of(const qn__recipe *r, uint32_t l, uint32_t layers, qn__lora_role role) {
    char first[9];
    const int last = r->new_last == QN__NEW_LAST_BY_START && l + 1 == layers;
    if (!last && role != QN__LORA_DOWN)
        return (draw){r->seed, QN__PURPOSE_INIT, l, 0};
    snprintf(first, sizeof first, "%.8s", r->init_from);
    return (draw){r->seed, QN__PURPOSE_NEW_LAST, l, (uint32_t)strtoul(first, NULL, 16)};
}

/* One output's row of weights: `depth` floats, four from each block of random words. */
static void fill_row(float *row, uint32_t depth, const draw *d, uint32_t o, float limit) {
    for (uint32_t k = 0; k < depth;) {
        uint32_t word[4];
        qn__words(d->seed, d->purpose, d->layer, d->epoch, o, k / 4, word);
        for (uint32_t j = 0; j < 4 && k < depth; ++j, ++k)
            row[k] = weight_of(word[j], limit);
    }
}

/* The arrays of a layer without products; rows of channels are drawn as those of weights. */
static void fill_vectors(const qn__layer *layer, qn__init init, const draw *words, float *first,
                         float *parameter) {
    const qn__layer_ops *ops = qn__layer_ops_of(layer->kind);
    const uint32_t channels = layer->to.channels;
    if (!ops->bound)
        ops->begin(layer, parameter);
    else if (init == QN__INIT_ZERO)
        memset(first, 0, layer->vector * sizeof *first);
    for (uint32_t row = 0; ops->bound && init != QN__INIT_ZERO && row < layer->vector / channels;
         ++row)
        fill_row(first + (size_t)row * channels, channels, words, row, ops->bound(layer));
}

void qn__initial_parameters(const qn__layer *layer, uint32_t layers, const qn__recipe *recipe,
                            float *parameter) {
    const qn__init init = qn__recipe_init(recipe);
    char role[QN__MAX_LAYERS] = {QN__LORA_NONE}; /* benchmarks have a recipe without a network */
    qn__recipe_roles(recipe, role);
    for (uint32_t l = 0; l < layers; ++l) {
        const qn__lora_role own = (qn__lora_role)role[l];
        const draw words = draw_of(recipe, l, layers, own);
        if (layer[l].vectors)
            fill_vectors(&layer[l], init, &words, parameter + layer[l].biases, parameter);
        if (layer[l].depth == 0 || layer[l].tied)
            continue;
        if (own == QN__LORA_UP || (init == QN__INIT_ZERO && own != QN__LORA_DOWN)) {
            memset(parameter + layer[l].weights, 0,
                   (size_t)(qn__layer_end(&layer[l]) - layer[l].weights) * sizeof *parameter);
            continue;
        }
        const float limit =
            own == QN__LORA_DOWN ? 1.0f / sqrtf((float)layer[l].depth) : limit_of(&layer[l], init);
        for (uint32_t o = 0; o < layer[l].to.channels; ++o)
            fill_row(parameter + layer[l].weights + (uint64_t)o * layer[l].depth, layer[l].depth,
                     &words, o, limit);
        memset(parameter + layer[l].biases, 0,
               (size_t)qn__layer_biases(&layer[l]) * sizeof *parameter);
    }
}

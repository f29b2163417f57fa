#include "train/precision.h"

#include "base/memory.h"
#include "layer/layer.h"
#include "layer/reference.h"
#include "num/intgemm_reference.h"
#include "num/permutation.h"
#include "num/philox.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Maximum values examined for small features. */
#define MOST_VALUES (UINT64_C(1) << 21)
/* Fewer items than this prove nothing about a feature. */
#define LEAST_ITEMS 64
/* Rounding to a step moves values by a quarter of it on average; three bits are eight steps. */
#define TOO_MUCH (1.0f / 32)
/* A feature that is non-zero in fewer than this part of the items is ignored. */
#define HARDLY_EVER (1.0f / 200)

/* ------------------------------------------------------------------------------ small features */

typedef struct feature {
    float low, high;
    float moved;    /* by rounding, summed over the items */
    uint32_t there; /* items in which it is not zero */
} feature;

/* `feed`: labels and weights, or NULL. */
static qn__reference_item item_at(const qn__program *p, const qn_data *data, const qn__feed *feed,
                                  uint64_t i) {
    return (qn__reference_item){.type = (qn__element_type)data->type,
                                .values = qn__data_item(data, i),
                                .number = i,
                                .label = feed && feed->labels ? (uint32_t)feed->labels[i] : 0,
                                .weight = feed && feed->weights ? &feed->weights[i] : NULL,
                                .answers =
                                    feed && feed->answers ? qn__feed_answers(feed, p, i) : NULL};
}

static void look_at(feature *f, uint32_t features, int bits, const float *x, int first) {
    const int32_t t = qn__block_exponent(bits, qn__absmax(features, x, 1));
    const float inverse = qn__block_inverse(t), factor = qn__block_factor(t);
    for (uint32_t k = 0; k < features; ++k) {
        const float moved = fabsf(x[k] - (float)qn__quantize(x[k], inverse) * factor);
        f[k].low = first || x[k] < f[k].low ? x[k] : f[k].low;
        f[k].high = first || x[k] > f[k].high ? x[k] : f[k].high;
        f[k].moved += isfinite(moved) ? moved : 0;
        f[k].there += x[k] != 0.0f;
    }
}

static int is_small(const feature *f, uint64_t items) {
    const float spread = f->high - f->low;
    return spread > 0 && (float)f->there > HARDLY_EVER * (float)items &&
           f->moved > TOO_MUCH * spread * (float)f->there;
}

qn_status qn__find_small_features(const qn__program *p, const qn_data *train,
                                  qn__small_features *found, qn_error *err) {
    const uint32_t features = p->layer[0].in;
    const uint64_t fit = MOST_VALUES / features, least = fit > LEAST_ITEMS ? fit : LEAST_ITEMS;
    const uint64_t items = least < train->items ? least : train->items;
    memset(found, 0, sizeof *found);
    const int tokens = qn__layer_ops_of(p->layer[0].kind)->reads_features && !p->layer[0].depth;
    if (p->arith == QN__ARITH_F32 || tokens)
        return QN_OK;
    feature *f = qn__alloc(features, sizeof *f, err);
    float *x = qn__alloc(features, sizeof *x, err);
    for (uint64_t i = 0; f && x && i < items; ++i) {
        const qn__reference_item item = item_at(p, train, NULL, i * (train->items / items));
        qn__reference_input(p, &item, x);
        look_at(f, features, qn__arith_bits(p->arith), x, i == 0);
    }
    for (uint32_t k = 0; f && x && k < features; ++k)
        if (is_small(&f[k], items)) {
            if (found->count < QN__NAMED_FEATURES)
                found->feature[found->count] = k;
            ++found->count;
        }
    const qn_status status = f && x ? QN_OK : QN_MEMORY;
    qn__free(f);
    qn__free(x);
    return status;
}

/* At most so many bytes of a UTF-8 text, without splitting a character. */
static int letters_within(const char *text, int bytes) {
    const int length = (int)strnlen(text, (size_t)bytes + 1);
    while (length > bytes && bytes > 0 && ((unsigned char)text[bytes] & 0xc0) == 0x80)
        --bytes;
    return length < bytes ? length : bytes;
}

/* By name, or by numbers from 1 as --label counts columns, but without the label. */
static void list_features(const qn_data *data, const qn__small_features *found, char *text,
                          size_t size) {
    const uint32_t named = found->count < QN__NAMED_FEATURES ? found->count : QN__NAMED_FEATURES;
    size_t used = 0;
    *text = 0;
    for (uint32_t i = 0; i < named && used < size; ++i, used = strlen(text)) {
        const char *name = qn_data_feature_name(data, found->feature[i]);
        if (name && *name)
            snprintf(text + used, size - used, "%s%.*s", i ? ", " : "", letters_within(name, 40),
                     name);
        else
            snprintf(text + used, size - used, "%sfeature %u", i ? ", " : "",
                     found->feature[i] + 1);
    }
    if (found->count > named && used < size)
        snprintf(text + used, size - used, " and %u more", found->count - named);
}

static const char *remedy_for(const qn__program *p) {
    if (p->scale != QN__SCALE_STANDARD)
        return "`train.scale` standard gives all features a similar size";
    return p->arith == QN__ARITH_I21 ? "`train.arith` f32 has no shared scale"
                                     : "`train.arith` i21 or f32 keeps more bits";
}

qn_status qn__precision_warning(const qn__train_job *job, char *text, size_t size, qn_error *err) {
    qn__small_features found;
    char list[320];
    *text = 0;
    const qn_status status = qn__find_small_features(&job->program, job->items.train, &found, err);
    if (status != QN_OK || found.count == 0)
        return status;
    list_features(job->items.train, &found, list, sizeof list);
    snprintf(text, size,
             "with `train.arith` i%d all features of an item share one scale, in which these keep "
             "fewer than three bits (%u of %u): %s; %s",
             qn__arith_bits(job->program.arith), found.count, job->program.layer[0].in, list,
             remedy_for(&job->program));
    return QN_OK;
}

/* -------------------------------------------------------------------- values that lost all bits */

static double share(const qn__lost *l) {
    return l->values ? (double)l->lost / (double)l->values : (double)NAN;
}

qn_status qn__precision_of(const qn__train_job *job, qn_rounding *rounding, qn_error *err) {
    const uint64_t step = job->step > 0 ? job->step - 1 : 0;
    const uint32_t epoch = (uint32_t)(step / job->steps_per_epoch);
    const uint32_t items = qn__lost_items(&job->program);
    qn__program program = job->program;
    qn__reference *reference;
    qn__permutation order;
    qn__lost_kinds l = {0};
    memset(rounding, 0, sizeof *rounding);
    if (program.arith == QN__ARITH_F32 || items == 0)
        return QN_OK;
    program.grain = items;
    const qn_status status = qn__reference_watch(&program, &reference, err);
    if (status != QN_OK)
        return status;
    qn__permutation_begin(&order, job->feed.items, program.seed, QN__PURPOSE_ORDER, epoch);
    qn__reference_grain_begin(reference);
    for (uint32_t i = 0; i < items; ++i) {
        const uint64_t number = qn__permutation_at(&order, i);
        const qn__reference_item item = item_at(&program, job->items.train, &job->feed, number);
        const uint64_t before = qn__permutation_at(&order, qn__mix_position(i, job->feed.items));
        const qn__reference_item partner = item_at(&program, job->items.train, &job->feed, before);
        qn__reference_grain_pair(reference, job->state.parameters, &item,
                                 program.mix ? &partner : NULL, epoch);
    }
    qn__reference_lost(reference, job->state.parameters, &l);
    qn__reference_destroy(reference);
    *rounding = (qn_rounding){.size = sizeof *rounding,
                              .bits = qn__arith_bits(program.arith),
                              .items = items,
                              .inputs = share(&l.inputs),
                              .activations = share(&l.activations),
                              .weights = share(&l.weights),
                              .errors = share(&l.errors),
                              .grain_inputs = share(&l.grain_inputs),
                              .grain_activations = share(&l.grain_activations),
                              .grain_errors = share(&l.grain_errors)};
    return QN_OK;
}

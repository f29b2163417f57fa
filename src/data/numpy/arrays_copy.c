/* A tile of items and features is copied at a time: it fits the second cache, so that neither the
 * reads nor the writes are far apart, in whichever order the values lie. Where a column's values
 * lie together, a processor needs some hundreds of them to read ahead. */
#include "data/numpy/arrays_copy.h"
#include "base/system/threads.h"
#include <stdatomic.h>
#include <string.h>

enum { ITEMS = 512, FEW_ITEMS = 128, FEATURES = 64 };
/* Values that one thread copies before a second one has started. */
#define WORTH_THREADS ((uint64_t)1 << 18)

typedef struct work {
    const qn_data_arrays *arrays;
    size_t item_step, feature_step; /* elements */
    float *to;
    uint32_t tile;             /* items; fewer where there would be none for some threads */
    atomic_uint_fast64_t next; /* item */
    atomic_int not_finite;     /* 1: a value is not finite */
} work;

int qn__arrays_differ(const qn_data_arrays *a) {
    return a->doubles || a->item_step || a->feature_step;
}

/* Values `step` elements apart become floats, `apart` floats apart. An exponent of ones overflows
 * into the sign; the loops have no branch. */
#define COPY(type)                                                                                 \
    for (size_t i = 0; i < count; i++) {                                                           \
        type value;                                                                                \
        memcpy(&value, from + i * step * sizeof value, sizeof value);                              \
        const float rounded = (float)value;                                                        \
        uint32_t bits;                                                                             \
        memcpy(&bits, &rounded, sizeof bits);                                                      \
        not_finite |= (bits & 0x7fffffffu) + 0x00800000u;                                          \
        to[i * apart] = rounded;                                                                   \
    }

static uint32_t copy_run(int doubles, const char *from, size_t step, float *to, size_t apart,
                         size_t count) {
    uint32_t not_finite = 0;
    if (doubles)
        COPY(double)
    else
        COPY(float)
    return not_finite >> 31;
}

/* Along the values that lie closer together. */
static void copy_tile(work *w, uint64_t item, size_t items, uint32_t feature, size_t features) {
    const qn_data_arrays *a = w->arrays;
    const size_t size = a->doubles ? sizeof(double) : sizeof(float), row = a->features;
    const char *from =
        (const char *)a->values + ((size_t)item * w->item_step + feature * w->feature_step) * size;
    float *to = w->to + (size_t)item * row + feature;
    uint32_t not_finite = 0;
    if (w->item_step < w->feature_step)
        for (size_t k = 0; k < features; k++)
            not_finite |= copy_run(a->doubles, from + k * w->feature_step * size, w->item_step,
                                   to + k, row, items);
    else
        for (size_t i = 0; i < items; i++)
            not_finite |= copy_run(a->doubles, from + i * w->item_step * size, w->feature_step,
                                   to + i * row, 1, features);
    if (not_finite)
        atomic_store(&w->not_finite, 1);
}

static void copy_some(void *context, int thread) {
    work *w = context;
    const uint64_t all = w->arrays->items;
    const uint32_t row = w->arrays->features;
    (void)thread;
    for (uint64_t item; (item = atomic_fetch_add(&w->next, w->tile)) < all;) {
        const size_t items = all - item < w->tile ? (size_t)(all - item) : w->tile;
        for (uint32_t k = 0; k < row; k += FEATURES)
            copy_tile(w, item, items, k, row - k < FEATURES ? row - k : FEATURES);
    }
}

qn_status qn__arrays_copy(const qn_data_arrays *a, float *to, int *finite, qn_error *err) {
    if (a->type != QN_F32)
        return qn__fail(err, QN_USAGE, "doubles and steps are for values of QN_F32");
    if (!a->item_step != !a->feature_step)
        return qn__fail(err, QN_USAGE, "item_step and feature_step are both 0, or none is");
    work w = {.arrays = a,
              .item_step = a->item_step ? (size_t)a->item_step : a->features,
              .feature_step = a->feature_step ? (size_t)a->feature_step : 1,
              .to = to};
    qn__pool *pool;
    const int threads = a->items * a->features < WORTH_THREADS ? 1 : qn__cores();
    w.tile = a->items / ITEMS < 4 * (uint64_t)threads ? FEW_ITEMS : ITEMS;
    const qn_status status = qn__pool_create(threads, 0, &pool, err);
    if (status != QN_OK)
        return status;
    qn__pool_run(pool, copy_some, &w);
    qn__pool_destroy(pool);
    *finite = !atomic_load(&w.not_finite);
    return QN_OK;
}

/* Before a device makes totals of a kernel, it makes them of chosen values, which the host adds as
 * well. A device with one wrong bit is refused. */
#include "userkernel/execution/user_device_trial.h"

#include "base/memory.h"
#include "userkernel/execution/user_device_sums.h"
#include <string.h>

/* ------------------------------------------------------------------ values */

static uint64_t draw(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state ^ *state >> 29;
}

/* Most numbers lie within 64 powers of two around 1, some more than a window of totals.cl; some are
 * zeros, of both signs, or subnormal. None is infinite or NaN. */
static uint64_t real(uint64_t bits, int mantissa, uint64_t one) {
    const uint64_t fraction = ((uint64_t)1 << mantissa) - 1;
    const uint64_t sign = (bits >> 63) << (mantissa == 52 ? 63 : 31), kind = bits >> 58 & 15;
    const uint64_t exponent = kind < 2 ? 0 : one - 40 + (bits >> 52 & 63);
    return sign | exponent << mantissa | (kind == 0 ? 0 : bits & fraction);
}

static uint64_t value_of(const qn__user_part *p, uint64_t bits) {
    return p->use == QN__USER_COUNT  ? bits >> 40 & 1
           : p->type == QN__USER_F64 ? real(bits, 52, 1023)
           : p->type == QN__USER_F32 ? real(bits, 23, 127)
                                     : bits;
}

static void put(void *array, uint64_t i, uint32_t size, uint64_t bits) {
    const uint8_t a = (uint8_t)bits;
    const uint16_t b = (uint16_t)bits;
    const uint32_t c = (uint32_t)bits;
    const void *from = size == 1   ? (const void *)&a
                       : size == 2 ? (const void *)&b
                       : size == 4 ? (const void *)&c
                                   : (const void *)&bits;
    memcpy((char *)array + i * size, from, size);
}

void qn__user_device_trial_sample(const void *part, uint64_t count, void *values, void *marks) {
    const qn__user_part *p = part;
    uint64_t state = 1;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t other = draw(&state) >> 33;
        put(values, i, qn__user_type_size(p->type), value_of(p, draw(&state)));
        if (p->bins > 0)
            put(marks, i, sizeof(int32_t), other % 4 == 0 ? UINT64_MAX : other / 4 % p->bins);
        else if (marks)
            put(marks, i, 1, other % 2);
    }
}

/* ------------------------------------------------------------------ the comparison */

static int equal(const qn__user_part *p, qn__user_total total[2], int64_t *words[2]) {
    for (int k = 0; k < 2; k++)
        qn__user_total_put(&total[k], p, words[k]);
    return memcmp(words[0], words[1], (size_t)qn__user_total_words(p) * sizeof *words[0]) == 0 &&
           total[0].has_value == total[1].has_value && total[0].value == total[1].value &&
           total[0].item == total[1].item;
}

qn_status qn__user_device_trial_check(const void *part, uint64_t count, const void *values,
                                      const void *marks, const int64_t *words, int *right,
                                      qn_error *err) {
    const qn__user_part *p = part;
    qn__user_source *alone = qn__alloc(1, sizeof *alone, err);
    qn__user_total total[2] = {{.count = 0}, {.count = 0}};
    int64_t *added[2] = {NULL, NULL};
    qn_status status = alone ? QN_OK : QN_MEMORY;
    if (alone) {
        alone->parts = 1;
        alone->part[0] = *p;
    }
    for (int k = 0; k < 2 && status == QN_OK; k++) {
        status = qn__user_totals_open(alone, &total[k], err);
        added[k] = qn__alloc(qn__user_total_words(p), sizeof *added[k], err);
        status = added[k] ? status : QN_MEMORY;
    }
    if (status == QN_OK) {
        qn__user_total_add(&total[0], p, values, marks, 0, (int64_t)count);
        qn__user_device_sums_take(alone, words, &total[1]);
        *right = equal(p, total, added);
    }
    for (int k = 0; k < 2; k++) {
        qn__free(total[k].bins);
        qn__free(added[k]);
    }
    qn__free(alone);
    return status;
}

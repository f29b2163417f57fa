#include "userkernel/execution/user_extreme.h"

#include <string.h>

/* The best of all in four chains, without a branch that depends on the values; then its first
 * place. Where items took no part, a loop that asks each. */
enum { CHAINS = 4 };
#define FIND(name, type)                                                                           \
    static type best_##name(const type *x, int64_t count, int greatest) {                          \
        type best[CHAINS] = {x[0], x[0], x[0], x[0]};                                              \
        const int64_t even = count - count % CHAINS;                                               \
        if (greatest)                                                                              \
            for (int64_t i = 0; i < even; i += CHAINS)                                             \
                for (int64_t c = 0; c < CHAINS; c++)                                               \
                    best[c] = x[i + c] > best[c] ? x[i + c] : best[c];                             \
        else                                                                                       \
            for (int64_t i = 0; i < even; i += CHAINS)                                             \
                for (int64_t c = 0; c < CHAINS; c++)                                               \
                    best[c] = x[i + c] < best[c] ? x[i + c] : best[c];                             \
        type value = best[0];                                                                      \
        for (int64_t c = 1; c < CHAINS; c++)                                                       \
            value = (greatest ? best[c] > value : best[c] < value) ? best[c] : value;              \
        for (int64_t i = even; i < count; i++)                                                     \
            value = (greatest ? x[i] > value : x[i] < value) ? x[i] : value;                       \
        return value;                                                                              \
    }                                                                                              \
    static int64_t some_##name(const type *x, const uint8_t *took, int64_t count, int greatest) {  \
        int64_t best = -1;                                                                         \
        for (int64_t i = 0; i < count; i++)                                                        \
            if (took[i] && (best < 0 || (greatest ? x[i] > x[best] : x[i] < x[best])))             \
                best = i;                                                                          \
        return best;                                                                               \
    }                                                                                              \
    static int64_t name(const type *x, const uint8_t *took, int64_t count, uint64_t taken,         \
                        int greatest) {                                                            \
        if (taken != (uint64_t)count || count == 0)                                                \
            return some_##name(x, took, count, greatest);                                          \
        const type value = best_##name(x, count, greatest);                                        \
        int64_t i = 0;                                                                             \
        while (x[i] < value || x[i] > value)                                                       \
            i++;                                                                                   \
        return i;                                                                                  \
    }
FIND(of_i8, int8_t)
FIND(of_i16, int16_t)
FIND(of_i32, int32_t)
FIND(of_i64, int64_t)
FIND(of_u8, uint8_t)
FIND(of_u16, uint16_t)
FIND(of_u32, uint32_t)
FIND(of_u64, uint64_t)
FIND(of_f32, float)
FIND(of_f64, double)

int64_t qn__user_extreme_of(const qn__user_part *part, const void *values, const uint8_t *took,
                            int64_t count, uint64_t *taken) {
    const int greatest = !qn__user_use_is_least(part->use);
    *taken = 0;
    for (int64_t i = 0; i < count; i++)
        *taken += took[i] != 0;
    switch (part->type) {
    case QN__USER_I8:
        return of_i8(values, took, count, *taken, greatest);
    case QN__USER_I16:
        return of_i16(values, took, count, *taken, greatest);
    case QN__USER_I32:
        return of_i32(values, took, count, *taken, greatest);
    case QN__USER_I64:
        return of_i64(values, took, count, *taken, greatest);
    case QN__USER_U8:
        return of_u8(values, took, count, *taken, greatest);
    case QN__USER_U16:
        return of_u16(values, took, count, *taken, greatest);
    case QN__USER_U32:
        return of_u32(values, took, count, *taken, greatest);
    case QN__USER_U64:
        return of_u64(values, took, count, *taken, greatest);
    case QN__USER_F32:
        return of_f32(values, took, count, *taken, greatest);
    default:
        return of_f64(values, took, count, *taken, greatest);
    }
}

#define COMPARE(type)                                                                              \
    do {                                                                                           \
        type x, y;                                                                                 \
        memcpy(&x, a, sizeof x);                                                                   \
        memcpy(&y, b, sizeof y);                                                                   \
        return x < y ? -1 : x > y;                                                                 \
    } while (0)

int qn__user_compare(qn__user_type type, const void *a, const void *b) {
    switch (type) {
    case QN__USER_I8:
        COMPARE(int8_t);
    case QN__USER_I16:
        COMPARE(int16_t);
    case QN__USER_I32:
        COMPARE(int32_t);
    case QN__USER_I64:
        COMPARE(int64_t);
    case QN__USER_U8:
        COMPARE(uint8_t);
    case QN__USER_U16:
        COMPARE(uint16_t);
    case QN__USER_U32:
        COMPARE(uint32_t);
    case QN__USER_U64:
        COMPARE(uint64_t);
    case QN__USER_F32:
        COMPARE(float);
    default:
        COMPARE(double);
    }
}

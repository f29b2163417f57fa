/* The least or greatest number of a piece of items, and its first place. One set of functions is
 * written for each type; the table below has a row a type. */
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
    static int64_t of_##name(const void *values, const uint8_t *took, int64_t count,               \
                             uint64_t taken, int greatest) {                                       \
        const type *x = values;                                                                    \
        if (taken != (uint64_t)count || count == 0)                                                \
            return some_##name(x, took, count, greatest);                                          \
        const type value = best_##name(x, count, greatest);                                        \
        int64_t i = 0;                                                                             \
        while (x[i] < value || x[i] > value)                                                       \
            i++;                                                                                   \
        return i;                                                                                  \
    }                                                                                              \
    static int order_##name(const void *a, const void *b) {                                        \
        type x, y;                                                                                 \
        memcpy(&x, a, sizeof x);                                                                   \
        memcpy(&y, b, sizeof y);                                                                   \
        return x < y ? -1 : x > y;                                                                 \
    }
FIND(i8, int8_t)
FIND(i16, int16_t)
FIND(i32, int32_t)
FIND(i64, int64_t)
FIND(u8, uint8_t)
FIND(u16, uint16_t)
FIND(u32, uint32_t)
FIND(u64, uint64_t)
FIND(f32, float)
FIND(f64, double)

#define ROW(name)                                                                                  \
    { of_##name, order_##name }
static const struct {
    int64_t (*find)(const void *values, const uint8_t *took, int64_t count, uint64_t taken,
                    int greatest);
    int (*compare)(const void *a, const void *b);
} types[QN__USER_TYPES] = {
    [QN__USER_I8] = ROW(i8),   [QN__USER_I16] = ROW(i16), [QN__USER_I32] = ROW(i32),
    [QN__USER_I64] = ROW(i64), [QN__USER_U8] = ROW(u8),   [QN__USER_U16] = ROW(u16),
    [QN__USER_U32] = ROW(u32), [QN__USER_U64] = ROW(u64), [QN__USER_F32] = ROW(f32),
    [QN__USER_F64] = ROW(f64)};

int64_t qn__user_extreme_of(const qn__user_part *part, const void *values, const uint8_t *took,
                            int64_t count, uint64_t *taken) {
    const int greatest = !qn__user_use_is_least(part->use);
    *taken = 0;
    for (int64_t i = 0; i < count; i++)
        *taken += took[i] != 0;
    return types[part->type].find(values, took, count, *taken, greatest);
}

int qn__user_compare(qn__user_type type, const void *a, const void *b) {
    return types[type].compare(a, b);
}

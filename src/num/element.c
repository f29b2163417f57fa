#include "num/element.h"

#include <math.h>
#include <string.h>

/* Floats that are looked at together. */
enum { CHUNK = 4096 };

/* Whether all of `count` floats are finite. An exponent of ones overflows into the sign; the loop
 * has no branch, so it becomes one of vectors. */
static int are_finite(const char *from, size_t count) {
    uint32_t found = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, from + i * sizeof bits, sizeof bits);
        found |= (bits & 0x7fffffffu) + 0x00800000u;
    }
    return !(found >> 31);
}

static size_t no_byte(const void *values, size_t count, uint64_t limit, int *missing) {
    (void)values, (void)limit, (void)missing;
    return count;
}

static size_t wrong_float(const void *values, size_t count, uint64_t limit, int *missing) {
    (void)limit;
    for (size_t i = 0; i < count; i++) {
        const char *at = (const char *)values + i * sizeof(float);
        if (i % CHUNK == 0 && are_finite(at, count - i < CHUNK ? count - i : CHUNK)) {
            i += CHUNK - 1;
            continue;
        }
        float value;
        memcpy(&value, at, sizeof value);
        if (isfinite(value))
            continue;
        if (!missing || !isnan(value))
            return i;
        *missing = 1;
    }
    return count;
}

/* The functions of a type of whole numbers. */
#define WHOLE(NAME, TYPE)                                                                          \
    static double NAME##_number(const void *values, size_t k) {                                    \
        return (double)((const TYPE *)values)[k];                                                  \
    }                                                                                              \
    static void NAME##_floats(const void *values, size_t count, float *to) {                       \
        for (size_t k = 0; k < count; k++)                                                         \
            to[k] = (float)((const TYPE *)values)[k];                                              \
    }
#define TOKEN(NAME, TYPE)                                                                          \
    WHOLE(NAME, TYPE)                                                                              \
    static size_t wrong_##NAME(const void *values, size_t count, uint64_t limit, int *missing) {   \
        (void)missing;                                                                             \
        for (size_t i = 0; i < count; i++) {                                                       \
            TYPE token;                                                                            \
            memcpy(&token, (const char *)values + i * sizeof token, sizeof token);                 \
            if (token >= limit)                                                                    \
                return i;                                                                          \
        }                                                                                          \
        return count;                                                                              \
    }

WHOLE(byte, uint8_t)
TOKEN(token16, uint16_t)
TOKEN(token32, uint32_t)

static double float_number(const void *values, size_t k) {
    return (double)((const float *)values)[k];
}

static void float_floats(const void *values, size_t count, float *to) {
    memcpy(to, values, count * sizeof *to);
}

static size_t no_list(const void *values, size_t count, uint64_t limit, int *missing) {
    (void)values, (void)limit, (void)missing;
    return count;
}

static double list_number(const void *values, size_t k) {
    const qn__list *list = values;
    size_t low = 0, high = list->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (list->pair[middle].at < k)
            low = middle + 1;
        else
            high = middle;
    }
    return low < list->count && list->pair[low].at == k ? (double)list->pair[low].value : 0.0;
}

static void list_floats(const void *values, size_t count, float *to) {
    const qn__list *list = values;
    memset(to, 0, count * sizeof *to);
    for (size_t i = 0; i < list->count; i++)
        to[list->pair[i].at] = list->pair[i].value;
}

#define NOT_BELOW "the number of a token is not below the size of the vocabulary"
#define VOCABULARY "tokenise with the vocabulary of the model"

const qn__element qn__elements[QN__ELEMENT_LIST + 1] = {
    [QN__ELEMENT_U8] =
        {"u8", NULL, {NULL, NULL}, 1, 256, QN__FETCH_BYTES, no_byte, byte_number, byte_floats},
    [QN__ELEMENT_F32] = {"f32",
                         "a value is not a finite number",
                         {"leave out or replace NaN and infinite values",
                          "leave out or replace infinite values"},
                         sizeof(float),
                         0,
                         QN__FETCH_FLOATS,
                         wrong_float,
                         float_number,
                         float_floats},
    [QN__ELEMENT_TOKEN16] = {"t16",
                             NOT_BELOW,
                             {VOCABULARY, VOCABULARY},
                             sizeof(uint16_t),
                             0,
                             QN__FETCH_TOKENS16,
                             wrong_token16,
                             token16_number,
                             token16_floats},
    [QN__ELEMENT_TOKEN32] = {"t32",
                             NOT_BELOW,
                             {VOCABULARY, VOCABULARY},
                             sizeof(uint32_t),
                             0,
                             QN__FETCH_TOKENS32,
                             wrong_token32,
                             token32_number,
                             token32_floats},
    [QN__ELEMENT_LIST] = {"lists",
                          NULL,
                          {NULL, NULL},
                          sizeof(float),
                          0,
                          QN__FETCH_LISTS,
                          no_list,
                          list_number,
                          list_floats},
};

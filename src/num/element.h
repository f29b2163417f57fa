/* The types of an item's values, one row of a table for each. Tables, feeds and the reference have
 * such a type. Code that depends on the type asks its row. */
#ifndef QN_NUM_ELEMENT_H
#define QN_NUM_ELEMENT_H

#include <stddef.h>
#include <stdint.h>

/* Those of qn_data_type (quern/data.h). */
typedef enum qn__element_type {
    QN__ELEMENT_U8 = 1,
    QN__ELEMENT_F32 = 2,
    QN__ELEMENT_TOKEN16 = 3, /* uint16_t: the number of a token in its vocabulary */
    QN__ELEMENT_TOKEN32 = 4, /* uint32_t */
    QN__ELEMENT_LIST = 5     /* an item is a qn__list of its values that are not 0 */
} qn__element_type;

/* A value of an item, and its place among them. */
typedef struct qn__listed {
    uint32_t at;
    float value;
} qn__listed;

/* The values of an item that are not +0, by ascending place; others may be +0, too. */
typedef struct qn__list {
    const qn__listed *pair;
    uint64_t count;
} qn__list;

/* How a worker takes the values: it has a function for each but lists, which it writes out. The
 * first two are scaled (docs/exactness.md 5.1), and so are those of lists, numbers of tokens never.
 */
typedef enum qn__fetch {
    QN__FETCH_BYTES,
    QN__FETCH_FLOATS,
    QN__FETCH_TOKENS16,
    QN__FETCH_TOKENS32,
    QN__FETCHES,
    QN__FETCH_LISTS = QN__FETCHES
} qn__fetch;

typedef struct qn__element {
    const char *name;      /* in JSON and messages */
    const char *refused;   /* what is wrong with a value that `wrong` finds; NULL: none is */
    const char *remedy[2]; /* [1]: where values may be missing */
    uint32_t size;         /* bytes; of lists those of a value that is written out */
    uint32_t values;       /* how many different ones there are, from 0; 0: they are not counted */
    qn__fetch fetch;

    /* The index of the first of `count` values that may not be: a float that is not finite, or the
     * number of a token that is not below `limit`. `count`: there is none. Unless `missing` is
     * NULL, a float may be NaN, and *missing becomes 1 when one is. Values may lie at any address.
     */
    size_t (*wrong)(const void *values, size_t count, uint64_t limit, int *missing);
    /* Value k as a number, which is exact. */
    double (*number)(const void *values, size_t k);
    /* `count` values as floats; numbers of tokens from 2^24 on are rounded. */
    void (*floats)(const void *values, size_t count, float *to);
} qn__element;

extern const qn__element qn__elements[QN__ELEMENT_LIST + 1];

/* `type`: a qn__element_type, or a qn_data_type. */
static inline const qn__element *qn__element_of(unsigned type) { return &qn__elements[type]; }

/* Value k as a number, asked for each value of a table: types of a user's tables need no call. */
static inline double qn__element_number(unsigned type, const void *values, size_t k) {
    return type == QN__ELEMENT_F32  ? (double)((const float *)values)[k]
           : type == QN__ELEMENT_U8 ? (double)((const uint8_t *)values)[k]
                                    : qn__elements[type].number(values, k);
}

/* Whether this is a type; any number may be asked for. */
static inline int qn__element_is_type(unsigned type) {
    return type >= QN__ELEMENT_U8 && type <= QN__ELEMENT_TOKEN32;
}

/* Bytes of an item of `features` values as it lies in memory. */
static inline size_t qn__element_stride(unsigned type, uint32_t features) {
    return type == QN__ELEMENT_LIST ? sizeof(qn__list) : (size_t)features * qn__elements[type].size;
}

/* Whether the values are numbers of tokens. */
static inline int qn__element_is_token(unsigned type) {
    return type == QN__ELEMENT_TOKEN16 || type == QN__ELEMENT_TOKEN32;
}

#endif

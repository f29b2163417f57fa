/* Selection by buckets. The bits of a float32, turned round for negative ones, ascend as the
 * numbers do. Their upper 16 bits are the bucket of a number. Only wanted buckets are collected and
 * sorted. Few numbers are one bucket. */
#include "num/order.h"
#include "base/memory.h"
#include <stdint.h>
#include <string.h>

/* Up to FEW numbers are sorted whole: counting buckets would cost more. */
enum { BUCKETS = 1 << 16, FEW = 1 << 14 };

struct qn__order {
    size_t count;
    int whole;                 /* 1: `pool` has all numbers, sorted */
    size_t start[BUCKETS + 1]; /* numbers in the buckets before */
    size_t place[BUCKETS];     /* of a wanted bucket in the pool */
    size_t counter[BUCKETS];   /* for sorting one */
    uint8_t wanted[BUCKETS];
    uint32_t other[FEW]; /* for sorting few */
    uint32_t *pool;
};

qn__order *qn__order_create(size_t most, qn_error *err) {
    qn__order *order = qn__alloc(1, sizeof *order, err);
    if (order && !(order->pool = qn__alloc(most, sizeof *order->pool, err))) {
        qn__free(order);
        return NULL;
    }
    return order;
}

void qn__order_free(qn__order *order) {
    if (order)
        qn__free(order->pool);
    qn__free(order);
}

void qn__order_take(qn__order *order, const float *values, size_t count) {
    size_t *start = order->start;
    order->count = count;
    order->whole = count <= FEW;
    if (order->whole)
        return;
    memset(order->wanted, 0, sizeof order->wanted);
    memset(start, 0, sizeof order->start);
    for (size_t i = 0; i < count; i++)
        start[(qn__order_key(values[i]) >> 16) + 1]++;
    for (size_t b = 0; b < BUCKETS; b++)
        start[b + 1] += start[b];
}

/* The bucket of a rank: the last one that starts at or before it, and is not empty. */
static size_t bucket_of(const qn__order *order, size_t rank) {
    size_t low = 0, high = BUCKETS; /* start[low] <= rank < start[high] */
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (order->start[middle] <= rank)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void qn__order_want_rank(qn__order *order, size_t rank) {
    if (!order->whole)
        order->wanted[bucket_of(order, rank)] = 1;
}

void qn__order_want_number(qn__order *order, float number) {
    if (!order->whole)
        order->wanted[qn__order_key(number) >> 16] = 1;
}

/* Sorts up to FEW keys by four digits of 8 bits. */
static void sort_few(uint32_t *keys, uint32_t *other, size_t count) {
    for (int shift = 0; shift < 32; shift += 8) {
        size_t start[257] = {0};
        for (size_t i = 0; i < count; i++)
            start[(keys[i] >> shift & 0xFF) + 1]++;
        for (size_t d = 0; d < 256; d++)
            start[d + 1] += start[d];
        for (size_t i = 0; i < count; i++)
            other[start[keys[i] >> shift & 0xFF]++] = keys[i];
        memcpy(keys, other, count * sizeof *keys);
    }
}

/* Sorts the keys of one bucket, which differ in their lower 16 bits. */
static void sort_many(uint32_t *keys, size_t *counter, size_t count) {
    const uint32_t upper = keys[0] & 0xFFFF0000;
    memset(counter, 0, BUCKETS * sizeof *counter);
    for (size_t i = 0; i < count; i++)
        counter[keys[i] & 0xFFFF]++;
    for (uint32_t low = 0; low < BUCKETS; low++)
        for (size_t c = counter[low]; c > 0; c--)
            *keys++ = upper | low;
}

void qn__order_collect(qn__order *order, const float *values) {
    uint32_t *pool = order->pool;
    if (order->whole) {
        for (size_t i = 0; i < order->count; i++)
            pool[i] = qn__order_key(values[i]);
        sort_few(pool, order->other, order->count);
        return;
    }
    size_t used = 0;
    for (size_t b = 0; b < BUCKETS; b++)
        if (order->wanted[b]) {
            order->place[b] = used;
            used += order->start[b + 1] - order->start[b];
        }
    for (size_t i = 0; i < order->count; i++) {
        const uint32_t key = qn__order_key(values[i]);
        if (order->wanted[key >> 16])
            pool[order->place[key >> 16]++] = key;
    }
    for (size_t b = 0; b < BUCKETS; b++) {
        const size_t size = order->start[b + 1] - order->start[b];
        if (!order->wanted[b] || size == 0)
            continue;
        order->place[b] -= size;
        if (size <= FEW)
            sort_few(pool + order->place[b], order->other, size);
        else
            sort_many(pool + order->place[b], order->counter, size);
    }
}

float qn__order_rank(const qn__order *order, size_t rank) {
    if (order->whole)
        return qn__order_value(order->pool[rank]);
    const size_t b = bucket_of(order, rank);
    return qn__order_value(order->pool[order->place[b] + rank - order->start[b]]);
}

/* How many of `count` ascending keys are below a key. */
static size_t keys_below(const uint32_t *keys, size_t count, uint32_t key) {
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (keys[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t qn__order_below(const qn__order *order, float number) {
    const uint32_t key = qn__order_key(number);
    if (order->whole)
        return keys_below(order->pool, order->count, key);
    const size_t b = key >> 16, size = order->start[b + 1] - order->start[b];
    return order->start[b] + keys_below(order->pool + order->place[b], size, key);
}

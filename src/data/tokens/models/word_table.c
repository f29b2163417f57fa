#include "data/tokens/models/word_table.h"

#include <stdlib.h>

static uint32_t hash_of(const char *bytes, size_t size) {
    const uint64_t odd = 0x9E3779B97F4A7C15u;
    uint64_t h = size * odd, part;
    size_t at = 0;
    for (; at + 8 <= size; at += 8) {
        memcpy(&part, bytes + at, 8);
        h = (h ^ part) * odd;
        h ^= h >> 29;
    }
    part = 0;
    if (at < size)
        memcpy(&part, bytes + at, size - at);
    h = (h ^ part) * odd;
    h = (h ^ h >> 32) * odd;
    return (uint32_t)(h >> 32);
}

static int is_same(const qn__word_table *t, const qn__word *w, const char *bytes, size_t size,
                   uint32_t hash) {
    return w->hash == hash && w->size == size && memcmp(t->bytes + w->at, bytes, size) == 0;
}

/* Where a string is, or where it would be put. */
static uint32_t *find_slot(const qn__word_table *t, const char *bytes, size_t size, uint32_t hash) {
    uint32_t at = hash & (t->slots - 1);
    while (t->slot[at] && !is_same(t, &t->word[t->slot[at] - 1], bytes, size, hash))
        at = (at + 1) & (t->slots - 1);
    return &t->slot[at];
}

uint32_t qn__word_find(const qn__word_table *table, const char *bytes, size_t size) {
    if (!table->slots)
        return QN__WORD_NONE;
    return *find_slot(table, bytes, size, hash_of(bytes, size)) - 1;
}

static void fill_slots(qn__word_table *t) {
    memset(t->slot, 0, t->slots * sizeof *t->slot);
    for (uint32_t k = 0; k < t->count; k++) {
        uint32_t at = t->word[k].hash & (t->slots - 1);
        while (t->slot[at])
            at = (at + 1) & (t->slots - 1);
        t->slot[at] = k + 1;
    }
}

static qn_status grow_words(qn__word_table *t, qn_error *err) {
    if (t->capacity >= (uint32_t)1 << 29)
        return qn__fail_memory(err, (uint64_t)t->capacity * 2, sizeof *t->word);
    const uint32_t capacity = t->capacity ? 2 * t->capacity : 1024, slots = 4 * capacity;
    qn__word *word = realloc(t->word, capacity * sizeof *word);
    if (word)
        t->word = word;
    uint32_t *slot = word ? realloc(t->slot, slots * sizeof *slot) : NULL;
    if (!slot)
        return qn__fail_memory(err, capacity, sizeof *word);
    t->slot = slot;
    t->capacity = capacity;
    t->slots = slots;
    fill_slots(t);
    return QN_OK;
}

static qn_status grow_bytes(qn__word_table *t, size_t size, qn_error *err) {
    const size_t capacity = 2 * (t->bytes_used + size) + 4096;
    char *bytes = size < SIZE_MAX / 8 ? realloc(t->bytes, capacity) : NULL;
    if (!bytes)
        return qn__fail_memory(err, capacity, 1);
    t->bytes = bytes;
    t->bytes_capacity = capacity;
    return QN_OK;
}

qn_status qn__word_add(qn__word_table *table, const char *bytes, size_t size, uint64_t times,
                       uint32_t *number, qn_error *err) {
    qn_status status = table->count == table->capacity ? grow_words(table, err) : QN_OK;
    if (status == QN_OK && size > table->bytes_capacity - table->bytes_used)
        status = grow_bytes(table, size, err);
    if (status != QN_OK)
        return status;
    const uint32_t hash = hash_of(bytes, size);
    uint32_t *slot = find_slot(table, bytes, size, hash);
    if (!*slot) {
        table->word[table->count] =
            (qn__word){.at = table->bytes_used, .size = (uint32_t)size, .hash = hash};
        if (size)
            memcpy(table->bytes + table->bytes_used, bytes, size);
        table->bytes_used += size;
        *slot = ++table->count;
    }
    table->word[*slot - 1].count += times;
    if (number)
        *number = *slot - 1;
    return QN_OK;
}

/* A merge sort, since qsort passes no context. */
static void sort(const qn__word_table *t, qn__word *from, qn__word *to, size_t count,
                 int (*before)(const qn__word_table *, const qn__word *, const qn__word *)) {
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t begin = 0; begin < count; begin += 2 * width) {
            const size_t middle = begin + width < count ? begin + width : count;
            const size_t end = middle + width < count ? middle + width : count;
            size_t a = begin, b = middle;
            for (size_t k = begin; k < end; k++)
                to[k] = b == end || (a < middle && before(t, &from[a], &from[b]) < 0) ? from[a++]
                                                                                      : from[b++];
        }
        memcpy(from, to, count * sizeof *from);
    }
}

qn_status qn__word_order(qn__word_table *table,
                         int (*before)(const qn__word_table *table, const qn__word *a,
                                       const qn__word *b),
                         uint32_t most, qn_error *err) {
    if (!table->count)
        return QN_OK;
    qn__word *other = malloc(table->count * sizeof *other);
    if (!other)
        return qn__fail_memory(err, table->count, sizeof *other);
    sort(table, table->word, other, table->count, before);
    free(other);
    if (table->count > most)
        table->count = most;
    fill_slots(table);
    return QN_OK;
}

void qn__word_table_release(qn__word_table *table) {
    free(table->word);
    free(table->bytes);
    free(table->slot);
    *table = (qn__word_table){0};
}

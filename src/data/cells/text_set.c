/* Open addressing over FNV-1a; at most half of the slots are taken. */
#include "data/cells/text_set.h"
#include "base/memory.h"
#include "base/text/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 16 };

/* Bytes of the pieces in which a set takes space from its depot. */
enum { FIRST_PIECE = 256, LAST_PIECE = 1 << 16 };

/* The bytes of a cell's text one by one, a doubled quote as one. */
typedef struct reader {
    const char *at, *end;
    int quoted;
} reader;

static reader read_cell(const qn__cell *cell) {
    return (reader){cell->text, cell->text + cell->size, cell->quoted};
}

/* The next byte, or -1 at the end. */
static int next_byte(reader *r) {
    if (r->at == r->end)
        return -1;
    const char c = *r->at++;
    if (r->quoted && c == '"' && r->at < r->end)
        r->at++;
    return (unsigned char)c;
}

static uint32_t hash_of(const qn__cell *cell) {
    uint64_t hash = 0xCBF29CE484222325u;
    reader r = read_cell(cell);
    for (int c; (c = next_byte(&r)) >= 0;)
        hash = (hash ^ (unsigned)c) * 0x100000001B3u;
    return (uint32_t)(hash ^ hash >> 32);
}

static int is_text(const qn__cell *cell, const char *text) {
    reader r = read_cell(cell);
    int c;
    while ((c = next_byte(&r)) >= 0)
        if ((unsigned char)*text++ != c || c == 0)
            return 0;
    return *text == '\0';
}

/* The slot of a text, or the free one where it belongs; there is a free one. The text is in a cell,
 * or is `text`; with neither it is none of the set. Texts of another hash are not read: they may be
 * on a disk. */
static uint32_t *slot_of(const qn__text_set *set, uint32_t hash, const qn__cell *cell,
                         const char *text) {
    const uint32_t mask = set->slots - 1;
    uint32_t at = hash & mask;
    for (uint32_t number; (number = set->slot[at]) > 0; at = (at + 1) & mask) {
        const char *there = set->text[number - 1];
        if (set->hash[number - 1] == hash &&
            (cell ? is_text(cell, there) : text && strcmp(text, there) == 0))
            break;
    }
    return &set->slot[at];
}

/* A hash table of all texts with `slots` places. */
static qn_status place_all(qn__text_set *set, uint32_t slots, qn_error *err) {
    uint32_t *slot = qn__alloc(slots, sizeof *slot, err);
    if (!slot)
        return QN_MEMORY;
    qn__free(set->slot);
    set->slot = slot;
    set->slots = slots;
    for (uint32_t i = 0; i < set->count; ++i)
        *slot_of(set, set->hash[i], NULL, NULL) = i + 1;
    return QN_OK;
}

/* Space for a text more. */
static qn_status reserve(qn__text_set *set, qn_error *err) {
    if (set->count == set->capacity) {
        const uint32_t capacity = set->capacity ? 2 * set->capacity : FIRST_SLOTS / 2;
        char **text = qn__alloc(capacity, sizeof *text, err);
        uint32_t *hash = text ? qn__alloc(capacity, sizeof *hash, err) : NULL;
        if (!hash) {
            qn__free(text);
            return QN_MEMORY;
        }
        if (set->count) {
            memcpy(text, set->text, set->count * sizeof *text);
            memcpy(hash, set->hash, set->count * sizeof *hash);
        }
        qn__free(set->text);
        qn__free(set->hash);
        set->text = text;
        set->hash = hash;
        set->capacity = capacity;
    }
    if (2 * (set->count + 1) <= set->slots)
        return QN_OK;
    return place_all(set, set->slots ? 2 * set->slots : FIRST_SLOTS, err);
}

/* Space for a text: of the depot where the set has one. */
static char *need_space(qn__text_set *set, size_t size, qn_error *err) {
    if (!set->depot)
        return qn__alloc(size, 1, err);
    if (size > set->left) {
        const size_t next = set->piece ? 2 * set->piece : FIRST_PIECE;
        set->piece = next > LAST_PIECE ? LAST_PIECE : next;
        const size_t bytes = size > set->piece ? size : set->piece;
        set->space = qn__depot_take(set->depot, bytes, err);
        set->left = set->space ? bytes : 0;
    }
    char *text = set->space;
    if (text) {
        set->space += size;
        set->left -= size;
    }
    return text;
}

static char *copy_cell(qn__text_set *set, const qn__cell *cell, qn_error *err) {
    char *copy = need_space(set, cell->size + 1, err), *end = copy;
    reader r = read_cell(cell);
    int c;
    while (copy && (c = next_byte(&r)) >= 0)
        *end++ = (char)c;
    if (copy)
        *end = '\0';
    return copy;
}

/* Adds a text that is none of the set, after `reserve`. */
static void put(qn__text_set *set, char *text, uint32_t hash) {
    *slot_of(set, hash, NULL, NULL) = set->count + 1;
    set->text[set->count] = text;
    set->hash[set->count++] = hash;
}

qn_status qn__text_set_add(qn__text_set *set, const qn__cell *cell, qn_error *err) {
    const uint32_t hash = hash_of(cell);
    if (set->slots && *slot_of(set, hash, cell, NULL))
        return QN_OK;
    char *copy = reserve(set, err) == QN_OK ? copy_cell(set, cell, err) : NULL;
    if (!copy)
        return QN_MEMORY;
    put(set, copy, hash);
    return QN_OK;
}

qn_status qn__text_set_join(qn__text_set *set, const qn__text_set *other, qn_error *err) {
    for (uint32_t i = 0; i < other->count; i++) {
        if (set->slots && *slot_of(set, other->hash[i], NULL, other->text[i]))
            continue;
        if (reserve(set, err) != QN_OK)
            return QN_MEMORY;
        put(set, other->text[i], other->hash[i]);
    }
    return QN_OK;
}

uint32_t qn__text_set_find(const qn__text_set *set, const qn__cell *cell) {
    const uint32_t number = set->slots ? *slot_of(set, hash_of(cell), cell, NULL) : 0;
    return number ? number - 1 : QN__NO_TEXT;
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* 1 when a text is a number; its value is exact: whole numbers are below 2^31. */
static int value_of(const char *text, double *value) {
    float number = 0;
    char *end;
    if (!qn__parse_float(text, strlen(text), &number))
        return 0;
    const long long whole = strtoll(text, &end, 10);
    *value = *end ? (double)number : (double)whole;
    return 1;
}

/* Numbers before texts. Names of equal value ("0" and "-0") go by their bytes, so that their order
 * does not depend on the thread that read one of them first. */
static int by_value(const void *a, const void *b) {
    double x = 0, y = 0;
    const int first = value_of(*(char *const *)a, &x), second = value_of(*(char *const *)b, &y);
    if (first != second)
        return second - first;
    return x != y ? (x > y) - (x < y) : by_bytes(a, b);
}

qn_status qn__text_set_sort(qn__text_set *set, int numbers, qn_error *err) {
    if (set->count == 0)
        return QN_OK;
    qsort(set->text, set->count, sizeof *set->text, numbers ? by_value : by_bytes);
    for (uint32_t i = 0; i < set->count; ++i) {
        const qn__cell cell = qn__cell_of(set->text[i]);
        set->hash[i] = hash_of(&cell);
    }
    return place_all(set, set->slots, err);
}

void qn__text_set_release(qn__text_set *set) {
    for (uint32_t i = 0; i < set->count && !set->depot; ++i)
        qn__free(set->text[i]);
    qn__depot_release(set->depot);
    qn__free(set->text);
    qn__free(set->hash);
    qn__free(set->slot);
    *set = (qn__text_set){0};
}

/* What a number is as a class: whole, a float, or nothing. */
typedef enum number_kind { NO_NUMBER, WHOLE, FLOAT } number_kind;

static number_kind read_number(const qn__cell *cell, int32_t *whole, float *value) {
    qn__decimal decimal;
    if (!qn__cell_number(cell, &decimal))
        return NO_NUMBER;
    const qn__row_fault fault = qn__decimal_to_label(&decimal, whole);
    if (fault == QN__ROW_FINE)
        return WHOLE;
    return fault != QN__ROW_LABEL_RANGE && qn__parse_float(cell->text, cell->size, value)
               ? FLOAT
               : NO_NUMBER;
}

int qn__class_number(const qn__cell *cell, char text[40], qn__cell *out) {
    int32_t whole = 0;
    float value = 0;
    switch (read_number(cell, &whole, &value)) {
    case WHOLE:
        snprintf(text, 40, "%d", (int)whole);
        break;
    case FLOAT:
        qn__float_text(value, text);
        break;
    case NO_NUMBER:
        return 0;
    }
    *out = qn__cell_of(text);
    return 1;
}

int qn__class_value(const qn__cell *cell, double *value) {
    int32_t whole = 0;
    float number = 0;
    const number_kind kind = read_number(cell, &whole, &number);
    *value = kind == WHOLE ? (double)whole : (double)number;
    return kind != NO_NUMBER;
}

#include "data/cells/category_find.h"

#include "base/memory.h"
#include "data/cells/text_set.h"
#include <stdlib.h>
#include <string.h>

/* The index of a text in ascending texts. */
static uint32_t find_category(const qn__feature *feature, const char *text) {
    uint32_t low = 0, high = feature->categories;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = strcmp(feature->category[middle], text);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return QN__NO_CATEGORY;
}

static int by_value(const void *a, const void *b) {
    const double x = ((const qn__category_value *)a)->value,
                 y = ((const qn__category_value *)b)->value;
    return (x > y) - (x < y);
}

static int value_of(const char *text, double *value) {
    const qn__cell cell = {.text = text, .size = strlen(text)};
    return qn__class_value(&cell, value);
}

qn_status qn__category_values(const qn__feature *feature, qn__category_value **out, qn_error *err) {
    *out = NULL;
    qn__category_value *list = qn__alloc(feature->categories, sizeof *list, err);
    if (!list)
        return QN_MEMORY;
    for (uint32_t i = 0; i < feature->categories; ++i) {
        list[i].category = i;
        if (!value_of(feature->category[i], &list[i].value)) {
            qn__free(list);
            return QN_OK;
        }
    }
    qsort(list, feature->categories, sizeof *list, by_value);
    *out = list;
    return QN_OK;
}

/* The one category with the value of a text that is none. */
static uint32_t find_value(const qn__category_value *values, uint32_t count, const char *text) {
    qn__category_value wanted = {.category = 0};
    if (!value_of(text, &wanted.value))
        return QN__NO_CATEGORY;
    const qn__category_value *found = bsearch(&wanted, values, count, sizeof *found, by_value);
    if (!found)
        return QN__NO_CATEGORY;
    const size_t at = (size_t)(found - values);
    const int several = (at > 0 && by_value(found - 1, found) == 0) ||
                        (at + 1 < count && by_value(found + 1, found) == 0);
    return several ? QN__NO_CATEGORY : found->category;
}

uint32_t qn__category_find(const qn__feature *feature, const qn__category_value *values,
                           const char *text) {
    const uint32_t category = find_category(feature, text);
    if (category != QN__NO_CATEGORY || !values)
        return category;
    return find_value(values, feature->categories, text);
}

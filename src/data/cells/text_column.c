#include "data/cells/text_column.h"
#include "base/memory.h"
#include "data/cells/labels.h"
#include "data/cells/prose.h"
#include <string.h>

qn_status qn__text_column_check(const char *text, size_t size, qn_error *err) {
    const qn__cell cell = {.text = text, .size = size};
    char shown[64];
    if (qn__cell_is_utf8(&cell))
        return QN_OK;
    qn__cell_show(&cell, shown);
    return qn__fail(err, QN_INPUT, "the text \"%s\" is not UTF-8, or holds a NUL", shown);
}

qn_status qn__text_column_add(qn__text_set *set, const char *text, size_t size, int classes,
                              uint32_t *number, qn_error *err) {
    char digits[40];
    const qn__cell cell = {.text = text, .size = size};
    qn__cell name = cell;
    const qn_status status = qn__text_column_check(text, size, err);
    if (status != QN_OK)
        return status;
    if (classes && !qn__class_number(&cell, digits, &name))
        name = cell;
    *number = qn__text_set_find(set, &name);
    if (*number != QN__NO_TEXT)
        return QN_OK;
    const uint32_t most = classes ? QN__TEXTS_MAX : QN__PROSE_MAX;
    if (set->count == most)
        return qn__fail(err, QN_INPUT, "there are more than %u different texts", (unsigned)most);
    *number = set->count;
    return qn__text_set_add(set, &name, err);
}

uint32_t *qn__text_column_sort(qn__text_set *set, int classes, qn_error *err) {
    char **before = qn__alloc(set->count, sizeof *before, err);
    uint32_t *order = qn__alloc(set->count, sizeof *order, err);
    if (before && set->count)
        memcpy(before, set->text, set->count * sizeof *before);
    if (!before || !order || qn__text_set_sort(set, classes, err) != QN_OK) {
        qn__free(before);
        qn__free(order);
        return NULL;
    }
    for (uint32_t i = 0; i < set->count; i++) {
        const qn__cell cell = {.text = before[i], .size = strlen(before[i])};
        order[i] = qn__text_set_find(set, &cell);
    }
    qn__free(before);
    return order;
}

void qn__text_column_take(qn__text_set *set, uint32_t *count, char ***texts) {
    *count = set->count;
    *texts = set->text;
    set->text = NULL;
    set->count = 0;
}

void qn__text_column_give(qn__text_set *set, qn__feature *feature) {
    qn__text_column_take(set, &feature->categories, &feature->category);
    feature->texts = set->depot;
    set->depot = NULL;
    set->space = NULL;
    set->left = 0;
}

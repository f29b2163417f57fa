#include "data/table/item_names.h"
#include "base/memory.h"
#include <string.h>

/* Where each name begins; 0 when there are more or fewer than `items`. */
static int find_names(qn__item_names *names, uint64_t items) {
    uint64_t at = 0, found = 0;
    while (found < items && at < names->size) {
        const char *end = memchr(names->text + at, '\0', (size_t)(names->size - at));
        if (!end)
            return 0;
        names->at[found++] = at;
        at = (uint64_t)(end + 1 - names->text);
    }
    return found == items && at == names->size;
}

qn_status qn__item_names_take(const char *text, uint64_t size, uint64_t items, qn__item_names **out,
                              qn_error *err) {
    qn__item_names *names = qn__alloc(1, sizeof *names, err);
    *out = NULL;
    if (!names)
        return QN_MEMORY;
    names->size = size;
    names->text = qn__alloc(size, 1, err);
    names->at = names->text ? qn__alloc(items, sizeof *names->at, err) : NULL;
    qn_status status = names->at ? QN_OK : QN_MEMORY;
    if (status == QN_OK) {
        memcpy(names->text, text, (size_t)size);
        if (!find_names(names, items))
            status = qn__fail(err, QN_FORMAT, "the names of the items are not as many as these");
    }
    if (status != QN_OK)
        qn__item_names_free(names);
    else
        *out = names;
    return status;
}

enum { SIDE = QN__ITEM_SIZE_TEXT / 2 }; /* hexadecimal digits */

void qn__item_sizes_add(const qn__item_names *names, uint64_t items, qn__text *text) {
    for (uint64_t i = 0; names && names->seen && i < items; i++)
        qn__text_add(text, "%08x%08x", (unsigned)names->seen[i].height,
                     (unsigned)names->seen[i].width);
}

/* A side of at least 1; 0 where it is not one. */
static uint32_t read_side(const char *text) {
    uint32_t side = 0;
    for (int k = 0; k < SIDE; k++) {
        const char digit = text[k];
        const int value = digit >= '0' && digit <= '9'   ? digit - '0'
                          : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                                                         : -1;
        if (value < 0)
            return 0;
        side = side << 4 | (uint32_t)value;
    }
    return side;
}

qn_status qn__item_sizes_take(const char *text, uint64_t size, uint64_t items,
                              qn__item_names *names, qn_error *err) {
    if (size % QN__ITEM_SIZE_TEXT != 0 || size / QN__ITEM_SIZE_TEXT != items)
        return qn__fail(err, QN_FORMAT, "the sizes of the items are not as many as these");
    names->seen = qn__alloc(items, sizeof *names->seen, err);
    if (!names->seen)
        return QN_MEMORY;
    for (uint64_t i = 0; i < items; i++, text += QN__ITEM_SIZE_TEXT) {
        names->seen[i] = (qn__item_size){read_side(text), read_side(text + SIDE)};
        if (names->seen[i].height == 0 || names->seen[i].width == 0)
            return qn__fail(err, QN_FORMAT, "the size of an item is not one");
    }
    return QN_OK;
}

void qn__item_names_free(qn__item_names *names) {
    if (!names)
        return;
    qn__free(names->seen);
    qn__free(names->text);
    qn__free(names->at);
    qn__free(names);
}

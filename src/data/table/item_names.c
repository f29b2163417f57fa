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

void qn__item_names_free(qn__item_names *names) {
    if (!names)
        return;
    qn__free(names->text);
    qn__free(names->at);
    qn__free(names);
}

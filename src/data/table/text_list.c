#include "data/table/text_list.h"

#include "base/memory.h"
#include <string.h>

/* Stands for a text whose place is not known yet. */
static const uint8_t there[1];

qn_status qn__text_list_create(qn__text_list **out, qn_error *err) {
    *out = qn__alloc(1, sizeof **out, err);
    return *out ? QN_OK : QN_MEMORY;
}

void qn__text_list_free(qn__text_list *list) {
    if (!list)
        return;
    qn__growing_release(&list->bytes);
    qn__growing_release(&list->span);
    qn__free(list);
}

int qn__text_list_takes(qn__text_list *list, uint32_t feature) {
    if (list && list->feature == 0)
        list->feature = feature + 1;
    return list && list->feature == feature + 1;
}

/* Adds what stands between quotes: of two quotes one. */
static qn_status add_doubled(qn__growing *to, const char *text, size_t size, qn_error *err) {
    const char *const end = text + size;
    qn_status status = QN_OK;
    while (status == QN_OK && text < end) {
        const char *quote = memchr(text, '"', (size_t)(end - text));
        const char *stop = quote ? quote + 1 : end;
        status = qn__growing_add(to, text, (size_t)(stop - text), err);
        text = quote && stop < end ? stop + 1 : stop;
    }
    return status;
}

qn_status qn__text_list_add(qn__text_list *list, const char *text, size_t size, int doubled,
                            qn_error *err) {
    const size_t begin = list->bytes.size;
    qn__span span = {NULL, 0};
    qn_status status = QN_OK;
    list->count++;
    list->missing += !text;
    if (text) {
        status = doubled ? add_doubled(&list->bytes, text, size, err)
                         : qn__growing_add(&list->bytes, text, size, err);
        span = (qn__span){there, list->bytes.size - begin};
    }
    return status == QN_OK ? qn__growing_add(&list->span, &span, sizeof span, err) : status;
}

qn__span *qn__text_list_end(qn__text_list *list) {
    qn__span *span = (qn__span *)(void *)list->span.bytes;
    const uint8_t *at = list->bytes.bytes ? list->bytes.bytes : there;
    for (uint64_t i = 0; i < list->count; i++)
        if (span[i].bytes) {
            span[i].bytes = at;
            at += span[i].size;
        }
    return span;
}

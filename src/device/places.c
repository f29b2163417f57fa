/* See places.h. */
#include "device/places.h"

void qn__place_forget(qn__place *place) {
    *place = (qn__place){.bytes = place->bytes, .at = SIZE_MAX, .first = UINT32_MAX};
}

void qn__place_use(qn__place *place, uint32_t window) {
    place->first = window < place->first ? window : place->first;
    place->last = window > place->last ? window : place->last;
}

void qn__place_again(qn__place *place, uint32_t window) {
    if (!place->bytes || place->again)
        return;
    place->gone = place->last;
    place->again = window;
    qn__place_use(place, window);
}

/* Whether a place is used in one of these windows. */
static int is_used(const qn__place *place, uint32_t first, uint32_t last) {
    const uint32_t gone = place->again ? place->gone : place->last;
    return (place->first <= last && first <= gone) ||
           (place->again && place->again <= last && first <= place->last);
}

/* The larger ones first; where they are as large, those of `a`. */
static qn__place *merge(qn__place *a, qn__place *b) {
    qn__place *first = NULL, **to = &first;
    while (a && b) {
        qn__place **from = b->bytes > a->bytes ? &b : &a;
        *to = *from;
        *from = (*from)->next;
        to = &(*to)->next;
    }
    *to = a ? a : b;
    return first;
}

/* Run i of the sort has 2^i arrays, or none. */
static qn__place *by_bytes(qn__place *list) {
    enum { RUNS = 32 };
    qn__place *run[RUNS] = {NULL}, *all = NULL;
    while (list) {
        qn__place *own = list;
        int i = 0;
        list = list->next;
        own->next = NULL;
        for (; i + 1 < RUNS && run[i]; run[i++] = NULL)
            own = merge(run[i], own);
        run[i] = merge(run[i], own);
    }
    for (int i = 0; i < RUNS; ++i)
        all = merge(run[i], all);
    return all;
}

static size_t end_of(size_t at, size_t bytes) {
    size_t end;
    return __builtin_add_overflow(at, bytes, &end) ? SIZE_MAX : end;
}

/* The lowest place beside those of the list, which are in the order of their places. */
static size_t lowest(const qn__place *own, const qn__place *placed) {
    size_t at = 0;
    for (; placed; placed = placed->next) {
        if (!qn__places_meet(own, placed))
            continue;
        if (placed->at >= end_of(at, own->bytes))
            break;
        const size_t end = end_of(placed->at, placed->bytes);
        at = end > at ? end : at;
    }
    return at;
}

size_t qn__places_pack(qn__place *list, int apart) {
    qn__place *placed = NULL, *next;
    size_t all = 0;
    for (qn__place *own = by_bytes(list); own; own = next) {
        qn__place **after = &placed;
        next = own->next;
        own->at = apart ? all : lowest(own, placed);
        own->at -= own->at == SIZE_MAX; /* placed, where no memory is */
        while (*after && (*after)->at <= own->at)
            after = &(*after)->next;
        own->next = *after;
        *after = own;
        const size_t end = end_of(own->at, own->bytes);
        all = end > all ? end : all;
    }
    return all;
}

int qn__places_meet(const qn__place *a, const qn__place *b) {
    return b->bytes && (is_used(b, a->first, a->again ? a->gone : a->last) ||
                        (a->again && is_used(b, a->again, a->last)));
}

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

int qn__places_meet(const qn__place *a, const qn__place *b) {
    return b->bytes && (is_used(b, a->first, a->again ? a->gone : a->last) ||
                        (a->again && is_used(b, a->again, a->last)));
}

#include "num/shown.h"

#include "num/augment.h"
#include "num/mix.h"
#include <string.h>

static size_t augment_space(const qn__program *p) {
    return p->augment ? (qn__augment_space(p->augment) + 7) / 8 * 8 : 0;
}

/* After that of the words: the classes of a partner. */
size_t qn__shown_space(const qn__program *p) {
    return p->moves_answers ? augment_space(p) + (p->mix ? p->answers : 0) : 0;
}

static void move(const qn__program *p, uint32_t epoch, qn__masked of, uint8_t *to, void *space) {
    if (p->augment)
        qn__augment_mask(p->augment, p->seed, epoch, of.item, of.classes, to, space);
    else
        memcpy(to, of.classes, p->answers);
}

/* The partner's box, as in the picture. */
static void cut(const qn__program *p, uint32_t epoch, uint64_t item, uint8_t *to,
                const uint8_t *other) {
    const qn__mixing mixing = qn__mix_of(p->mix, p->seed, epoch, item);
    qn__mix one = *p->mix;
    one.shape.channels = 1;
    qn__mix_values(&one, &mixing, 1, to, other);
}

uint64_t qn__shown(const qn__program *p, uint32_t epoch, qn__masked own, qn__masked partner,
                   uint8_t *to, void *space) {
    uint64_t count = 0;
    move(p, epoch, own, to, space);
    if (p->mix) {
        uint8_t *other = (uint8_t *)space + augment_space(p);
        move(p, epoch, partner, other, space);
        cut(p, epoch, own.item, to, other);
    }
    for (uint32_t k = 0; k < p->answers; ++k)
        count += to[k] != QN__IGNORED;
    return count;
}

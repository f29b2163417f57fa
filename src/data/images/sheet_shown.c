#include "data/images/sheet_shown.h"

#include "base/memory.h"
#include "image/augment_text.h"
#include "num/permutation.h"
#include "num/philox.h"
#include "num/shown.h"
#include <string.h>

/* The default of trainings. */
enum { SEED = 1 };

static qn_status refuse(qn_error *err, const char *option, const char *remedy, const char *what) {
    qn__fail(err, QN_USAGE, "%s", what);
    qn__at(err, "%s", option);
    return qn__remedy(err, QN_USAGE, "%s", remedy);
}

/* What train says of the same options and data. */
static qn_status check_mix(const qn_data *data, const qn_sheet_options *o, qn_error *err) {
    const char *which = o->mixup != 0.0f ? "`train.mixup`" : "`train.cutmix`";
    const float alpha = o->mixup != 0.0f ? o->mixup : o->cutmix;
    if (o->mixup != 0.0f && o->cutmix != 0.0f)
        return refuse(err, which, "leave one of the two out", "items are mixed in one way only");
    if (alpha == 0.0f)
        return QN_OK;
    if (!(alpha > 0.0f && alpha <= 1.0f))
        return refuse(err, which, "give a number above 0, up to 1, or leave it out",
                      "the parameter of the mixture is out of range");
    if (data->targets || (data->several && !data->several->height))
        return refuse(err, which, "leave it out",
                      "items of one class are mixed, and these have other labels");
    if (data->several && o->mixup != 0.0f)
        return refuse(err, which,
                      "leave it out, or take `train.cutmix`, which copies a part of a picture with "
                      "its mask",
                      "each pixel has a class, so it cannot have a part of two");
    return QN_OK;
}

/* Whether masks differ from those of the files. */
static int moves(const qn__sheet_shown *s) {
    return s->masked && (qn__augment_moves(&s->augment) || s->mix.alpha > 0.0f);
}

/* Pixels of a mask move as those of the picture, and so are as many. */
static qn_status check_masks(const qn__sheet_shown *s, qn_error *err) {
    const qn__several *several = s->data->several;
    if (!moves(s) || (several->height == s->data->rows && several->width == s->data->columns))
        return QN_OK;
    qn__fail(err, QN_USAGE,
             "the masks have %ux%u pixels, and the pictures %ux%u, so they cannot move with them",
             several->height, several->width, s->data->rows, s->data->columns);
    qn__at(err, "%s", s->mix.alpha > 0.0f ? "`train.cutmix`" : "`train.augment`");
    return qn__remedy(err, QN_USAGE, "leave it out, or give masks of the pictures' size");
}

static qn_status reserve(qn__sheet_shown *s, qn_error *err) {
    const uint64_t volume = s->data->features, each = s->masked ? s->data->several->each : 0;
    const uint64_t space = (qn__augment_space(&s->augment) + 7) / 8 * 8;
    s->values = qn__alloc(volume, 1, err);
    s->other = qn__alloc(volume, 1, err);
    s->mask = qn__alloc(each + 1, 1, err);
    s->space = qn__alloc(space + each + 1, 1, err); /* as for qn__shown */
    return s->values && s->other && s->mask && s->space ? QN_OK : QN_MEMORY;
}

qn_status qn__sheet_shown_begin(qn__sheet_shown *s, const qn_data *data,
                                const qn_sheet_options *options, qn_error *err) {
    const qn__shape shape = {data->channels, data->rows, data->columns, QN__PICTURE};
    *s = (qn__sheet_shown){.data = data};
    qn_status status = qn__augment_parse(options->augment, &s->augment, err);
    s->augment.shape = shape;
    if (status == QN_OK)
        status = qn__augment_check(&s->augment, err);
    if (status == QN_OK)
        status = check_mix(data, options, err);
    s->mix = (qn__mix){options->mixup + options->cutmix, options->cutmix > 0.0f, shape};
    s->masked = data->several && data->several->height > 0;
    if (status == QN_OK)
        status = check_masks(s, err);
    return status == QN_OK ? reserve(s, err) : status;
}

void qn__sheet_shown_end(qn__sheet_shown *s) {
    qn__free(s->values);
    qn__free(s->mask);
    qn__free(s->other);
    qn__free(s->space);
}

int qn__sheet_shown_changes(const qn__sheet_shown *s) {
    return s->augment.words > 0 || s->mix.alpha > 0.0f;
}

void qn__sheet_shown_plain(qn__sheet_shown *s, uint64_t item) {
    s->partner = item;
    memcpy(s->values, qn__data_item(s->data, item), s->data->features);
    if (s->masked)
        memcpy(s->mask, qn__several_of(s->data, item), s->data->several->each);
}

static void find_partner(qn__sheet_shown *s, uint64_t item, uint32_t epoch) {
    qn__permutation order;
    uint64_t position;
    qn__permutation_begin(&order, s->data->items, SEED, QN__PURPOSE_ORDER, epoch);
    qn__permutation_find(&order, item, 1, &position);
    s->partner = qn__permutation_at(&order, qn__mix_position(position, s->data->items));
    s->mixing = qn__mix_of(&s->mix, SEED, epoch, item);
}

static void show_values(qn__sheet_shown *s, uint64_t item, uint32_t epoch, uint8_t *to) {
    qn__augment_item(&s->augment, SEED, epoch, item, 1, qn__data_item(s->data, item), to, s->space);
}

static void show_mask(qn__sheet_shown *s, uint64_t item, uint32_t epoch) {
    const qn__program program = {.seed = SEED,
                                 .answers = s->data->several->each,
                                 .moves_answers = 1,
                                 .augment = &s->augment,
                                 .mix = s->mix.alpha > 0.0f ? &s->mix : NULL};
    const qn__masked own = {item, qn__several_of(s->data, item)};
    const qn__masked partner = {s->partner, qn__several_of(s->data, s->partner)};
    if (moves(s))
        qn__shown(&program, epoch, own, partner, s->mask, s->space);
    else
        memcpy(s->mask, own.classes, program.answers);
}

void qn__sheet_shown_at(qn__sheet_shown *s, uint64_t item, uint32_t epoch) {
    s->partner = item;
    show_values(s, item, epoch, s->values);
    if (s->mix.alpha > 0.0f) {
        find_partner(s, item, epoch);
        show_values(s, s->partner, epoch, s->other);
        qn__mix_values(&s->mix, &s->mixing, 1, s->values, s->other);
    }
    if (s->masked)
        show_mask(s, item, epoch);
}

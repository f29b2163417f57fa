#include "data/table/picture.h"
#include "base/memory.h"
#include <string.h>

/* The middle of the range of a byte, and items between two looks at how things stand. */
enum { BRIGHT = 128, LOOK = 256 };

static int has_categories(const qn_data *data) {
    for (uint32_t k = 0; data->schema && k < data->features; ++k)
        if (data->schema->feature[k].categories)
            return 1;
    return 0;
}

static void look(const qn_data *data, uint64_t from, uint64_t to, uint8_t *greatest) {
    for (uint64_t i = from; i < to; ++i) {
        const uint8_t *value = qn__data_item(data, i);
        for (uint32_t k = 0; k < data->features; ++k)
            greatest[k] = value[k] > greatest[k] ? value[k] : greatest[k];
    }
}

int qn__of_image_files(const qn_data *data) {
    return data->format && strncmp(data->format, "images", 6) == 0;
}

int qn__is_picture(const qn_data *data, qn_error *err) {
    uint32_t used = 0, bright = 0;
    if (qn__of_image_files(data)) /* dark ones, too */
        return 1;
    if (data->type != QN_U8 || has_categories(data))
        return 0;
    uint8_t *greatest = qn__alloc(data->features, 1, err);
    if (!greatest)
        return -1;
    /* A column stays bright once it is, so half of all columns decide at once. */
    for (uint64_t i = 0; i < data->items && bright < data->features - bright; i += LOOK) {
        look(data, i, data->items - i < LOOK ? data->items : i + LOOK, greatest);
        used = bright = 0;
        for (uint32_t k = 0; k < data->features; ++k) {
            used += greatest[k] > 0;
            bright += greatest[k] >= BRIGHT;
        }
    }
    qn__free(greatest);
    return bright > 0 && bright >= used - bright;
}

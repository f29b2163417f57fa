#include "image/image_turn.h"

/* A row of the result is a walk through the stored pixels: where it begins, and the pixels from one
 * to the next. Orientations from 5 on walk along a column. */
typedef struct walk {
    int64_t first, across, down;
} walk;

static walk walk_of(const qn__image_head *head) {
    const int64_t w = head->width, h = head->height, last_row = (h - 1) * w, last = h * w - 1;
    switch (head->orientation) {
    case 2:
        return (walk){w - 1, -1, w};
    case 3:
        return (walk){last, -1, -w};
    case 4:
        return (walk){last_row, 1, -w};
    case 5:
        return (walk){0, w, 1};
    case 6:
        return (walk){last_row, -w, 1};
    case 7:
        return (walk){last, -w, -1};
    case 8:
        return (walk){w - 1, w, -1};
    default:
        return (walk){0, 1, w};
    }
}

void qn__image_turn(const uint8_t *pixels, const qn__image_head *head, uint32_t channels,
                    uint8_t *out) {
    const walk step = walk_of(head);
    const uint32_t height = qn__image_height(head), width = qn__image_width(head);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++) {
            const uint8_t *from =
                pixels +
                (step.first + (int64_t)y * step.down + (int64_t)x * step.across) * channels;
            for (uint32_t c = 0; c < channels; c++)
                *out++ = from[c];
        }
}

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

/* Rows that are written at once: orientations from 5 on read a pixel of each from one stored row,
 * so that what was fetched from memory is used. */
enum { ROWS = 16 };

/* Up to ROWS rows of the result, column by column; `at`: the first pixel's place in `pixels`. */
static void turn_rows(const uint8_t *pixels, int64_t at, const walk *step, uint32_t width,
                      uint32_t rows, uint32_t channels, uint8_t *out) {
    const int64_t across = step->across * channels, down = step->down * channels;
    const size_t stride = (size_t)width * channels;
    for (uint32_t x = 0; x < width; x++, at += across)
        for (uint32_t r = 0; r < rows; r++) {
            const uint8_t *pixel = pixels + at + r * down;
            uint8_t *to = out + r * stride + (size_t)x * channels;
            to[0] = pixel[0];
            if (channels == 3)
                to[1] = pixel[1], to[2] = pixel[2];
        }
}

void qn__image_turn(const uint8_t *pixels, const qn__image_head *head, uint32_t channels,
                    uint8_t *out) {
    const walk step = walk_of(head);
    const uint32_t height = qn__image_height(head), width = qn__image_width(head);
    for (uint32_t y = 0; y < height; y += ROWS) {
        const uint32_t rows = height - y < ROWS ? height - y : ROWS;
        const int64_t at = (step.first + (int64_t)y * step.down) * channels;
        turn_rows(pixels, at, &step, width, rows, channels, out + (size_t)y * width * channels);
    }
}

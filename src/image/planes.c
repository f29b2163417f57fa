#include "image/planes.h"
#include <stddef.h>
#include <string.h>

void qn__planes_of(const uint8_t *pixels, uint32_t height, uint32_t width, uint32_t channels,
                   uint8_t *planes) {
    const size_t area = (size_t)height * width;
    if (channels == 1) {
        memcpy(planes, pixels, area);
        return;
    }
    uint8_t *red = planes, *green = planes + area, *blue = planes + 2 * area;
    for (size_t i = 0; i < area; i++, pixels += 3) {
        red[i] = pixels[0];
        green[i] = pixels[1];
        blue[i] = pixels[2];
    }
}

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
    for (size_t i = 0; i < area; i++)
        for (uint32_t c = 0; c < channels; c++)
            planes[c * area + i] = pixels[i * channels + c];
}

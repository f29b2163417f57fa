#include "data/tokens/steps/stretches.h"

#include "base/encoding.h"
#include <string.h>

size_t qn__well_formed_end(const uint8_t *text, size_t size, size_t at) {
    for (size_t length; at < size; at += length) {
        uint64_t eight;
        while (size - at >= 8 && (memcpy(&eight, text + at, 8), !(eight & 0x8080808080808080u)))
            at += 8;
        length = at < size ? qn__utf8_length((const char *)text + at, size - at) : 0;
        if (!length)
            return at;
    }
    return at;
}

size_t qn__broken_end(const uint8_t *text, size_t size, size_t at) {
    while (at < size && !qn__utf8_length((const char *)text + at, size - at))
        at++;
    return at;
}

#include "base/text/character.h"

#include <stddef.h>

size_t qn__character_write(uint32_t character, char bytes[4]) {
    if (character < QN__CHARACTER_BROKEN)
        return qn__utf8_write(character, bytes);
    bytes[0] = (char)(character - QN__CHARACTER_BROKEN);
    return 1;
}

/* Characters that are not of words, first and last of each range, in ascending order: controls,
 * punctuation, symbols, spaces, surrogates, and scripts without spaces. The table of 25.52. */
static const uint32_t alone[][2] = {
    {0x0000, 0x002F}, {0x003A, 0x0040},    {0x005B, 0x005E},     {0x0060, 0x0060}, {0x007B, 0x00A9},
    {0x00AB, 0x00B1}, {0x00B4, 0x00B4},    {0x00B6, 0x00B8},     {0x00BB, 0x00BF}, {0x00D7, 0x00D7},
    {0x00F7, 0x00F7}, {0x02C2, 0x02DF},    {0x037E, 0x037E},     {0x0387, 0x0387}, {0x055A, 0x055F},
    {0x0589, 0x058F}, {0x05BE, 0x05BE},    {0x05C0, 0x05C0},     {0x05C3, 0x05C3}, {0x05F3, 0x05F4},
    {0x0600, 0x060F}, {0x061B, 0x061F},    {0x066A, 0x066D},     {0x06D4, 0x06D4}, {0x0964, 0x0965},
    {0x0E00, 0x0EFF}, {0x1000, 0x109F},    {0x1680, 0x1680},     {0x1780, 0x17FF}, {0x2000, 0x206F},
    {0x20A0, 0x20CF}, {0x2100, 0x2BFF},    {0x2E00, 0x312F},     {0x3190, 0xA4CF}, {0xD800, 0xF8FF},
    {0xF900, 0xFAFF}, {0xFE00, 0xFE6F},    {0xFEFF, 0xFF0F},     {0xFF1A, 0xFF20}, {0xFF3B, 0xFF40},
    {0xFF5B, 0xFFFF}, {0x1F000, 0x10FFFF}, {0x110000, 0x1100FF},
};

int qn__character_is_word(uint32_t character) {
    size_t low = 0, high = sizeof alone / sizeof *alone;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (character > alone[middle][1])
            low = middle + 1;
        else if (character < alone[middle][0])
            high = middle;
        else
            return 0;
    }
    return 1;
}

#include "data/tokens/models/byte_alphabet.h"

#include "base/text/character.h"

/* Ranges of bytes that stand for other characters, and the first of these. */
static const struct hidden {
    uint32_t first, last, letter;
} hidden[] = {{0x00, 0x20, 0x100}, {0x7F, 0xA0, 0x121}, {0xAD, 0xAD, 0x143}};

static uint32_t letter_of(uint32_t byte) {
    for (size_t k = 0; k < sizeof hidden / sizeof *hidden; k++)
        if (byte >= hidden[k].first && byte <= hidden[k].last)
            return hidden[k].letter + byte - hidden[k].first;
    return byte;
}

/* 256: the character stands for no byte. */
static uint32_t byte_of(uint32_t letter) {
    for (size_t k = 0; letter >= 0x100 && k < sizeof hidden / sizeof *hidden; k++)
        if (letter >= hidden[k].letter &&
            letter - hidden[k].letter <= hidden[k].last - hidden[k].first)
            return hidden[k].first + letter - hidden[k].letter;
    return letter < 0x100 && letter_of(letter) == letter ? letter : 256;
}

size_t qn__byte_letters(const uint8_t *bytes, size_t size, char *text) {
    size_t at = 0;
    for (size_t k = 0; k < size; k++)
        at += qn__utf8_write(letter_of(bytes[k]), text + at);
    return at;
}

size_t qn__bytes_of_letters(const char *text, size_t size, uint8_t *bytes) {
    size_t count = 0;
    for (size_t at = 0, length; at < size; at += length) {
        const uint32_t byte =
            byte_of(qn__character((const uint8_t *)text + at, size - at, &length));
        if (byte > 255)
            return SIZE_MAX;
        bytes[count++] = (uint8_t)byte;
    }
    return count;
}

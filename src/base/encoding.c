#include "base/encoding.h"

#include <pthread.h>
#include <string.h>

static pthread_once_t locale_once = PTHREAD_ONCE_INIT;
static locale_t c_locale = (locale_t)0;

/* The "C" locale is part of the C library itself, so this neither reads a file nor fails. */
static void make_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

locale_t qn__c_locale(void) {
    pthread_once(&locale_once, make_locale);
    return c_locale;
}

/* The first byte gives the length. The range of the second one is narrower after E0, ED, F0 and F4,
 * which excludes overlong forms, surrogates and codes above U+10FFFF (Unicode, table 3-7). */
size_t qn__utf8_length(const char *bytes, size_t size) {
    if (size == 0)
        return 0;
    const unsigned char *at = (const unsigned char *)bytes;
    const unsigned char first = at[0];
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;

    const size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (size < length)
        return 0;
    const unsigned char lowest = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned char highest = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (at[1] < lowest || at[1] > highest)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

size_t qn__utf8_prefix(const char *text) {
    const size_t all = strlen(text);
    size_t at = 0, length = 1;
    for (; at < all && length > 0; at += length)
        length = qn__utf8_length(text + at, all - at);
    return at;
}

size_t qn__utf8_write(unsigned code, char out[4]) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    const size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (char)(lead[length] | code);
    return length;
}

/* Text that must not depend on the user's locale, and bytes that must be UTF-8. */
#ifndef QN_BASE_ENCODING_H
#define QN_BASE_ENCODING_H

#include <locale.h>
#include <stddef.h>

/* The "C" locale, made once for the whole process. To print numbers with it, wrap the call:
 *
 *     locale_t before = uselocale(qn__c_locale());
 *     snprintf(...);
 *     uselocale(before);
 *
 * uselocale changes the calling thread only. */
locale_t qn__c_locale(void);

/* The length in bytes (1 to 4) of the well-formed UTF-8 sequence at `bytes`, of which `size` bytes
 * may be read; 0 when there is none: a stray or missing continuation byte, an overlong form, a
 * surrogate, a code above U+10FFFF, or size == 0. */
size_t qn__utf8_length(const char *bytes, size_t size);

/* How many bytes of a text come before the first one that is not UTF-8, or before its end. */
size_t qn__utf8_prefix(const char *text);

/* Writes the UTF-8 form of a code point below 0x110000 into out[0..3], without a NUL. Returns its
 * length in bytes. */
size_t qn__utf8_write(unsigned code, char out[4]);

#endif

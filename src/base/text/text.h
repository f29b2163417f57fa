/* Numbers and words as text, the same in every locale. */
#ifndef QN_BASE_TEXT_TEXT_H
#define QN_BASE_TEXT_TEXT_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* The shortest text of 1.6 in docs/exactness.md, such as "0.001" or "1e-08"; `text` holds at least
 * 32 bytes. */
void qn__float_text(float value, char *text);

/* The shortest text of 15 to 18 digits that reads back as the double, and whose nearest float32 is
 * that of the double. The second condition matters for a double very near the middle of two floats:
 * its text may be on the other side. */
enum { QN__REAL_TEXT = 32 };
void qn__real_text(double value, char text[QN__REAL_TEXT]);

/* The same digits as those of qn__float_text without an exponent where the magnitude is 0.00001 or
 * more and below 10^15: for tables that people read. "350000", not "3.5e+05". */
void qn__float_plain(float value, char text[40]);

/* Converts a whole text to a number; returns 1 on success, 0 when it is not such a number (empty,
 * spaces, trailing bytes, out of range), and `out` is then unchanged. The text need not end in a
 * NUL. Integers are digits only, without a sign. Floats must be decimal (no hexadecimal) and are
 * rounded once; those too small become a zero or a subnormal. Floats that would round to an
 * infinity are refused, and so are "nan" and "inf". */
int qn__parse_float(const char *text, size_t size, float *out);
/* A double, of a text below 64 bytes. */
int qn__parse_real(const char *text, size_t size, double *out);
int qn__parse_u64(const char *text, size_t size, uint64_t *out);

/* The value of a hexadecimal digit; -1: it is not one. */
int qn__hex_digit(char c);

/* A copy in which "%41" is "A", for qn__free; NULL without memory. "%00" stays as it is, since it
 * would end the text. */
char *qn__percent_decode(const char *text, size_t size, qn_error *err);

/* Whether `name`, in lower case, equals the `size` bytes at `word`, whose case does not matter. */
int qn__same_word(const char *name, const char *word, size_t size);

/* The entry of the NULL-terminated list nearest to `word` by edit distance (the first of several).
 * NULL when none is near: when more than max(2, a third of its letters), or all of them, would
 * change. */
const char *qn__nearest(const char *word, const char *const *list);

/* Growing text for JSON and reports. Start with {0}. `data` is NULL until something was added and
 * NUL-terminated from then on. `failed` becomes 1 when memory is short, and later additions do
 * nothing. */
typedef struct qn__text {
    char *data;
    size_t size, capacity;
    int failed;
} qn__text;
void qn__text_add(qn__text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends bytes as they are; zero bytes too. */
void qn__text_add_bytes(qn__text *text, const void *bytes, size_t size);
/* Appends a JSON string with its quotes, or null for NULL. Escapes what must be escaped and nothing
 * else. */
void qn__text_add_json(qn__text *text, const char *utf8);
/* Appends a member of a JSON object, `, "key": ` and a number with so many digits; what is not
 * finite is null. */
void qn__text_add_number(qn__text *text, const char *key, int digits, double value);
void qn__text_release(qn__text *text);
/* The text for qn__free, "" where nothing was added; `text` is released. NULL, with QN_MEMORY in
 * err, where memory is short. */
char *qn__text_take(qn__text *text, qn_error *err);

#endif

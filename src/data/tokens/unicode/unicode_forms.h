/* The forms NFC, NFD, NFKC and NFKD of a text, by the tables of Unicode 9.0. */
#ifndef QN_DATA_TOKENS_UNICODE_UNICODE_FORMS_H
#define QN_DATA_TOKENS_UNICODE_UNICODE_FORMS_H

#include "data/tokens/unicode/byte_buffer.h"
#include "data/tokens/unicode/character_class.h"

/* The rows of each table are in ascending order of their first number. */
extern const uint32_t qn__unicode_pairs[], qn__unicode_alone[], qn__unicode_singles[],
    qn__unicode_classes[], qn__unicode_similar[], qn__unicode_several[];
extern const size_t qn__unicode_pairs_count, qn__unicode_alone_count, qn__unicode_singles_count,
    qn__unicode_classes_count, qn__unicode_similar_count, qn__unicode_several_count;
extern const qn__character_range qn__unicode_marks[];

/* The most parts of a character whose form is NFD. */
enum { QN__UNICODE_PARTS = 4 };

/* Bit 0: characters are not composed; bit 1: similar ones stand for others. */
typedef enum qn__unicode_form { QN__NFC, QN__NFD, QN__NFKC, QN__NFKD } qn__unicode_form;

/* Appends the form of a text; broken bytes stay as they are. Fails with QN_MEMORY. */
qn_status qn__unicode_normalize(qn__unicode_form form, const uint8_t *text, size_t size,
                                qn__byte_buffer *out, qn_error *err);
/* Of what a character is composed at last, its marks included, in the order of the tables. A
 * character that is not composed is its one part. Returns the number of parts. */
size_t qn__unicode_decompose(uint32_t character, uint32_t part[QN__UNICODE_PARTS]);
/* Whether a character is a mark. */
int qn__unicode_is_mark(uint32_t character);

#endif

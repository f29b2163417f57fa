/* Which pieces of the texts of a column a network gets: docs/exactness.md 25.62 and 24.84. */
#ifndef QN_DATA_TABLE_GRAMS_H
#define QN_DATA_TABLE_GRAMS_H

#include "base/error.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include <stdint.h>

typedef enum qn__gram_kind {
    QN__GRAM_WORDS,  /* words that follow one another */
    QN__GRAM_CHARS,  /* characters of a word, with a space on both sides */
    QN__GRAM_ACROSS, /* characters of the text */
    QN__GRAM_KINDS
} qn__gram_kind;

/* Pieces of `least` to `most` words or characters, each in one of 2^bits inputs. */
typedef struct qn__grams {
    uint8_t kind, least, most, bits;
} qn__grams;

/* log2 of the inputs. */
enum { QN__TEXT_LEAST = 10, QN__TEXT_MOST = 18 };

/* "words:1..2,chars:3..5": names separated by commas, each once and with a range or without one.
 * NULL is "words". Sets all but `bits`, and *count. Fails with QN_USAGE. */
qn_status qn__grams_read(const char *list, qn__grams grams[QN__GRAM_KINDS], uint32_t *count,
                         qn_error *err);

/* As qn__grams_read reads them, with all ranges. */
enum { QN__GRAMS_TEXT = 64 };
void qn__grams_text(const qn__grams *grams, uint32_t count, char text[QN__GRAMS_TEXT]);

/* Whether they have the same inputs. */
int qn__grams_equal(const qn__grams *a, uint32_t count, const qn__grams *b, uint32_t others);

uint32_t qn__grams_inputs(const qn__grams *grams, uint32_t count);

/* Their value in the JSON of a schema, written and read. qn__grams_from_json returns 0 for any
 * other text. */
void qn__grams_add_json(const qn__grams *grams, uint32_t count, qn__text *text);
int qn__grams_from_json(const qn__json_node *node, qn__grams grams[QN__GRAM_KINDS],
                        uint32_t *count);

#endif

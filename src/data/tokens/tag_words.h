/* Texts whose words have a tag each (docs/exactness.md 25.47). */
#ifndef QN_DATA_TOKENS_TAG_WORDS_H
#define QN_DATA_TOKENS_TAG_WORDS_H

#include "data/table/data.h"
#include "data/tokens/models/token_kind.h"

/* The next word of *rest, which white space ends, or its end; *rest goes on after it. 0: there is
 * none. */
int qn__word_next(qn__token_text *rest, qn__token_text *word);

/* Tags of the labels of a table, which are texts. */
typedef struct qn__tags {
    uint32_t count;
    char **name; /* ascending bytewise */
} qn__tags;

/* What a label is whose texts say which tag each word has. */
enum { QN__TAG_IGNORED = 255, QN__TAGS_MOST = 255 };

/* Whether the labels of `data` are tags of the words of `text`, of each item: as many as words, and
 * more than one of some item. With `wanted` 1 they must be. Then *out has them, for
 * qn__tags_release; else out->count is 0. `path` is for messages. Fails with QN_INPUT (a text has
 * another number of words than of tags; there are more than 255 tags) or QN_MEMORY. */
qn_status qn__tags_find(const qn_data *data, const qn__token_text *text, int wanted,
                        const char *path, qn__tags *out, qn_error *err);
void qn__tags_release(qn__tags *tags);

/* The number of a tag; QN__TAG_IGNORED for the text -100, which does not count. */
uint8_t qn__tag_number(const qn__tags *tags, const qn__token_text *tag);

/* The text of the tags of an item; empty where it has no label. */
qn__token_text qn__tags_of(const qn_data *data, uint64_t item);

#endif

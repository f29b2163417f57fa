#include "data/table/text_words.h"

#include "base/memory.h"

qn__text_words *qn__text_words_create(uint64_t items, uint32_t positions, qn_error *err) {
    qn__text_words *words = qn__alloc(1, sizeof *words, err);
    if (!words)
        return NULL;
    words->each = positions + 1;
    words->gap = items <= SIZE_MAX / sizeof *words->gap / words->each
                     ? qn__alloc((size_t)items * words->each, sizeof *words->gap, err)
                     : NULL;
    if (words->gap)
        return words;
    qn__free(words);
    return NULL;
}

void qn__text_words_free(qn__text_words *words) {
    if (words && !words->mapped)
        qn__free(words->gap);
    qn__free(words);
}

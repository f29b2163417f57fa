#include "data/tokens/shared_words.h"

/* Of each word: how often it occurs, its size, and its bytes. */
enum { COUNT = sizeof(uint64_t), FRONT = COUNT + sizeof(uint32_t) };

qn_status qn__shared_words_write(const qn__word_table *words, qn__text *to, qn_error *err) {
    for (uint32_t k = 0; k < words->count; k++) {
        const qn__word *w = &words->word[k];
        qn__text_add_bytes(to, &w->count, COUNT);
        qn__text_add_bytes(to, &w->size, sizeof w->size);
        qn__text_add_bytes(to, qn__word_bytes(words, w), w->size);
    }
    return to->failed ? qn__fail_memory(err, to->size + 1, 1) : QN_OK;
}

qn_status qn__shared_words_add(const uint8_t *from, uint64_t bytes, qn__word_table *words,
                               qn_error *err) {
    qn_status status = QN_OK;
    while (status == QN_OK && bytes > 0) {
        uint64_t count;
        uint32_t size = 0;
        if (bytes >= FRONT) {
            memcpy(&count, from, COUNT);
            memcpy(&size, from + COUNT, sizeof size);
        }
        if (bytes < FRONT || size > bytes - FRONT)
            return qn__fail(err, QN_CLUSTER, "a rank sent malformed counts of words");
        status = qn__word_add(words, (const char *)from + FRONT, size, count, NULL, err);
        from += FRONT + size;
        bytes -= FRONT + size;
    }
    return status;
}

#include "data/tokens/unicode/character_class.h"

#include "base/text/character.h"
#include <pthread.h>

static uint8_t classes[QN__CHARACTER_PLACES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void mark(const qn__character_range *range, int class) {
    for (; range->last; range++)
        for (uint32_t c = range->first; c <= range->last; c++)
            classes[qn__character_place(c)] = (uint8_t) class;
}

static void mark_all(void) {
    mark(qn__character_letters, QN__CLASS_LETTER);
    mark(qn__character_numbers, QN__CLASS_NUMBER);
    mark(qn__character_spaces, QN__CLASS_SPACE);
}

const uint8_t *qn__character_classes(void) {
    pthread_once(&once, mark_all);
    return classes;
}

int qn__character_is_in(const qn__character_range *range, uint32_t character) {
    while (range->last && (character < range->first || character > range->last))
        range++;
    return range->last != 0;
}

int qn__character_is_of_word(uint32_t character) {
    if (character >= QN__CHARACTER_BROKEN)
        return 0;
    size_t low = 0, high = qn__word_other_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (qn__word_others[2 * middle + 1] < character)
            low = middle + 1;
        else
            high = middle;
    }
    return (low < qn__word_other_count && character >= qn__word_others[2 * low]) ||
           qn__character_classes()[qn__character_place(character)] == QN__CLASS_LETTER;
}

int qn__character_is_space(uint32_t character) {
    return character < QN__CHARACTER_BROKEN &&
           qn__character_classes()[qn__character_place(character)] == QN__CLASS_SPACE;
}

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

int qn__character_is_space(uint32_t character) {
    return character < QN__CHARACTER_BROKEN &&
           qn__character_classes()[qn__character_place(character)] == QN__CLASS_SPACE;
}

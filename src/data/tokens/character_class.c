#include "data/tokens/character_class.h"

#include <pthread.h>
#include <string.h>

static uint8_t classes[0x110000];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void mark(const qn__character_range *range, int class) {
    for (; range->last; range++)
        memset(classes + range->first, class, range->last - range->first + 1);
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

/* A token that could have been drawn at a place of an answer. */
#ifndef QN_PREDICT_GENERATE_CHOICE_H
#define QN_PREDICT_GENERATE_CHOICE_H

#include <stdint.h>

#define QN__NO_TOKEN UINT32_MAX

typedef struct qn__text_choice {
    uint32_t token; /* QN__NO_TOKEN: the vocabulary has no further one */
    float log_probability;
} qn__text_choice;

#endif

#include "model/ready.h"

#include "model/defaults.h"

/* A model is one row. The last layer is not in it: it is that of the default model. */
static const qn__ready rows[] = {
    {"lenet",
     "two convolutions of 5x5 with pools, one hidden dense layer; for digits",
     {1, 28, 28},
     "conv 32 5x5 relu; maxpool 2; conv 64 5x5 relu; maxpool 2; dense 512 relu"},
    {"vgg8",
     "three times two convolutions of 3x3 and a pool, one hidden dense layer",
     {3, 32, 32},
     "conv 64 3x3 relu; conv 64 3x3 relu; maxpool 2; conv 128 3x3 relu; conv 128 3x3 relu; "
     "maxpool 2; conv 256 3x3 relu; conv 256 3x3 relu; maxpool 2; dense 256 relu"},
};

enum { ROWS = sizeof rows / sizeof *rows };

const qn__ready *qn__ready_row(uint32_t index) { return index < ROWS ? &rows[index] : NULL; }

const qn__ready *qn__ready_find(const char *name, size_t size) {
    for (uint32_t i = 0; i < ROWS; ++i)
        if (qn__same_word(rows[i].name, name, size))
            return &rows[i];
    return NULL;
}

const char *qn__ready_near(const char *word) {
    const char *names[ROWS + 1];
    for (uint32_t i = 0; i < ROWS; ++i)
        names[i] = rows[i].name;
    names[ROWS] = NULL;
    return qn__nearest(word, names);
}

void qn__ready_text(const qn__ready *ready, const qn__labels_like *labels, qn__text *text) {
    char last[QN__DEFAULT_LAST_ROOM];
    qn__default_last(labels->task, labels->loss, labels->classes, last);
    qn__text_add(text, "%s; %s", ready->body, last);
}

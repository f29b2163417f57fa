#include "data/cells/commas.h"

#include <string.h>

/* A cell that is read, and the number that is written. */
typedef struct reading {
    const char *at, *end;
    char *to;
    size_t digits;
} reading;

/* Copies digits; how many. */
static size_t take_digits(reading *r) {
    const char *first = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        *r->to++ = *r->at++;
    r->digits += (size_t)(r->at - first);
    return (size_t)(r->at - first);
}

static int is_at(const reading *r, char c) { return r->at < r->end && *r->at == c; }

/* The digits before the comma. -1: points stand where they do not separate thousands. */
static int take_whole(reading *r, size_t *first) {
    int form = 0;
    *first = take_digits(r);
    while (is_at(r, '.')) {
        r->at++;
        if (*first < 1 || *first > 3 || take_digits(r) != 3)
            return -1;
        form = QN__COMMA_GROUPED;
    }
    return form;
}

static int take_exponent(reading *r) {
    *r->to++ = *r->at++;
    if (is_at(r, '+') || is_at(r, '-'))
        *r->to++ = *r->at++;
    return take_digits(r) > 0;
}

int qn__comma_read(const qn__cell *cell, char number[QN__COMMA_BYTES], size_t *size) {
    reading r = {cell->text, cell->text + cell->size, number, 0};
    size_t first, places = 0;
    if (cell->broken || cell->size > QN__COMMA_BYTES)
        return -1;
    if (is_at(&r, '+') || is_at(&r, '-'))
        *r.to++ = *r.at++;
    const int zero = is_at(&r, '0');
    int form = take_whole(&r, &first);
    if (form >= 0 && is_at(&r, ',')) {
        *r.to++ = '.';
        r.at++;
        places = take_digits(&r);
        form |= QN__COMMA_DECIMAL;
    }
    if (form < 0 || r.digits == 0)
        return -1;
    const int thousands =
        form == QN__COMMA_DECIMAL && !zero && first >= 1 && first <= 3 && places == 3;
    if ((is_at(&r, 'e') || is_at(&r, 'E')) && (form == QN__COMMA_GROUPED || !take_exponent(&r)))
        return -1;
    *size = (size_t)(r.to - number);
    return r.at < r.end ? -1 : form | (thousands ? QN__COMMA_THOUSANDS : 0);
}

const char *qn__comma_example(const qn__feature *feature) {
    const char *example = NULL;
    for (uint32_t i = 0; i < feature->categories; ++i) {
        char number[QN__COMMA_BYTES];
        size_t size;
        const qn__cell cell = {.text = feature->category[i], .size = strlen(feature->category[i])};
        const int form = qn__comma_read(&cell, number, &size);
        if (form >= 0 && form & QN__COMMA_DECIMAL)
            example = feature->category[i];
        else if (form < 0 && qn__cell_content(&cell) == QN__CONTENT_TEXT)
            return NULL;
    }
    return example;
}

uint32_t qn__comma_column(const qn__schema *schema) {
    for (uint32_t k = 0; schema && k < schema->features; ++k)
        if (qn__comma_example(&schema->feature[k]))
            return k + 1;
    return 0;
}

const char *qn__text_remedy(const char *text) {
    const qn__cell cell = {.text = text, .size = strlen(text)};
    char number[QN__COMMA_BYTES];
    size_t size;
    if (qn__cell_is_mark(&cell))
        return "the model was trained on data without this mark of a missing value: make the cell "
               "empty, or write NA";
    const int form = qn__comma_read(&cell, number, &size);
    if (form >= 0 && (form & QN__COMMA_DECIMAL))
        return "write all numbers with a decimal point, and thousands without a mark; leave the "
               "column out with `data.drop`, or name it with `data.category`";
    return NULL;
}

#include "data/commas.h"

#include <string.h>

/* Digits, a comma and digits, behind a sign. */
static int has_decimal_comma(const char *text) {
    text += *text == '-' || *text == '+';
    const size_t before = strspn(text, "0123456789");
    if (before == 0 || text[before] != ',')
        return 0;
    const size_t behind = strspn(text + before + 1, "0123456789");
    return behind > 0 && text[before + 1 + behind] == '\0';
}

const char *qn__comma_example(const qn__feature *feature) {
    const char *example = NULL;
    for (uint32_t i = 0; i < feature->categories; ++i) {
        const char *text = feature->category[i];
        if (has_decimal_comma(text))
            example = text;
        else if (text[strspn(text, "+-0123456789")] != '\0')
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

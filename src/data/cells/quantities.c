#include "data/cells/quantities.h"
#include <string.h>

/* Signs before a number that cannot be a part of another name. */
static const char *const currencies[] = {
    "$",   "\xE2\x82\xAC", "\xC2\xA3", "\xC2\xA5", "\xE2\x82\xB9", "USD", "EUR", "GBP", "CHF",
    "JPY", "US$",          "CA$",      "A$",       "Rs.",          "Rs",  "R$",  "kr"};
enum { CURRENCIES = sizeof currencies / sizeof *currencies };

/* A text around its number: the sign before it, and what stands after. */
typedef struct parts {
    const char *before, *after;
    size_t before_size, after_size;
} parts;

static const char *skip_blanks(const char *at) { return at + strspn(at, " "); }

static const char *skip_sign(const char *at) { return at + (*at == '-' || *at == '+'); }

static const char *take_currency(const char *at, parts *p) {
    p->before = at;
    for (size_t i = 0; i < CURRENCIES; i++) {
        const size_t size = strlen(currencies[i]);
        if (strncmp(at, currencies[i], size) == 0) {
            p->before_size = size;
            return skip_blanks(at + size);
        }
    }
    return at;
}

/* Digits with points, commas, apostrophes and blanks between them. NULL: there are none. */
static const char *take_number(const char *at) {
    const char *end = NULL;
    while (*at) {
        const size_t digits = strspn(at, "0123456789");
        if (digits == 0)
            break;
        end = at += digits;
        if (!strchr(".,' ", *at))
            break;
        at += *at != '\0';
    }
    return end;
}

/* What may follow: a unit of a few letters or signs, without digits. */
static int take_unit(const char *at, parts *p) {
    at = skip_blanks(at);
    p->after = at;
    p->after_size = strlen(at);
    return p->after_size <= 8 && at[strcspn(at, "0123456789-:;,#")] == '\0';
}

static int take(const char *text, parts *p) {
    *p = (parts){0};
    const char *at = skip_sign(take_currency(skip_sign(text), p));
    at = take_number(at);
    return at && take_unit(at, p);
}

static int is_same(const parts *a, const parts *b) {
    return a->before_size == b->before_size && a->after_size == b->after_size &&
           memcmp(a->before, b->before, a->before_size) == 0 &&
           memcmp(a->after, b->after, a->after_size) == 0;
}

const char *qn__quantity_example(char *const *texts, uint32_t count) {
    parts first = {0};
    const char *example = NULL;
    for (uint32_t i = 0; i < count; i++) {
        parts own;
        if (!take(texts[i], &own) || (i > 0 && !is_same(&first, &own)))
            return NULL;
        if (i == 0)
            first = own;
        if (texts[i][strspn(texts[i], "+-0123456789.")] != '\0')
            example = texts[i];
    }
    return count > 1 ? example : NULL;
}

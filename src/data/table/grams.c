#include "data/table/grams.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    uint8_t least, most, limit;
} rows[QN__GRAM_KINDS] = {{"words", 1, 2, 8}, {"chars", 3, 5, 16}, {"chars-across", 3, 5, 16}};

#define REMEDY                                                                                     \
    "`data.text_features` takes words, chars (within words) and chars-across, separated by "       \
    "commas, each with a range such as chars:3..5 or without one"

/* The kind with that name; QN__GRAM_KINDS: none has it. */
static int kind_of(const char *name, size_t size) {
    int kind = 0;
    while (kind < QN__GRAM_KINDS &&
           (strlen(rows[kind].name) != size || memcmp(rows[kind].name, name, size) != 0))
        ++kind;
    return kind;
}

static qn_status refuse(const char *word, int size, const char *what, qn_error *err) {
    qn__fail(err, QN_USAGE, "\"%.*s\" %s", size < 40 ? size : 40, word, what);
    return qn__remedy(err, QN_USAGE, REMEDY);
}

/* A number of one or two digits; returns how many there are, or 0. */
static size_t read_number(const char *text, uint8_t *number) {
    const size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 2)
        return 0;
    *number = (uint8_t)(digits == 1 ? text[0] - '0' : 10 * (text[0] - '0') + text[1] - '0');
    return digits;
}

/* ":3..5", or ":3" for one number alone; `size` bytes of the text are its own. */
static int read_range(const char *text, size_t size, qn__grams *to) {
    const size_t first = size > 1 && *text == ':' ? read_number(text + 1, &to->least) : 0;
    size_t used = 1 + first;
    to->most = to->least;
    if (first > 0 && used + 2 < size && text[used] == '.' && text[used + 1] == '.') {
        const size_t second = read_number(text + used + 2, &to->most);
        used += second ? 2 + second : 0;
    }
    return first > 0 && used == size && to->least > 0 && to->least <= to->most &&
           to->most <= rows[to->kind].limit;
}

static qn_status read_word(const char *word, size_t size, qn__grams *to, qn_error *err) {
    const char *colon = memchr(word, ':', size);
    const size_t name = colon ? (size_t)(colon - word) : size;
    const int kind = kind_of(word, name);
    if (kind == QN__GRAM_KINDS)
        return refuse(word, (int)size, "is not a feature of texts", err);
    *to = (qn__grams){.kind = (uint8_t)kind, .least = rows[kind].least, .most = rows[kind].most};
    if (!colon || read_range(colon, size - name, to))
        return QN_OK;
    qn__fail(err, QN_USAGE, "\"%.*s\" has an impossible range", (int)(size < 40 ? size : 40), word);
    return qn__remedy(err, QN_USAGE, "write %s:A..B with numbers from 1 to %d, such as %s:%d..%d",
                      rows[kind].name, rows[kind].limit, rows[kind].name, rows[kind].least,
                      rows[kind].most);
}

qn_status qn__grams_read(const char *list, qn__grams grams[QN__GRAM_KINDS], uint32_t *count,
                         qn_error *err) {
    uint32_t seen = 0;
    *count = 0;
    for (const char *at = list ? list : rows[QN__GRAM_WORDS].name;; ++at) {
        at += strspn(at, " ");
        const size_t size = strcspn(at, ",");
        size_t used = size;
        while (used > 0 && at[used - 1] == ' ')
            --used;
        qn__grams found;
        if (read_word(at, used, &found, err) != QN_OK)
            return QN_USAGE;
        if (seen >> found.kind & 1)
            return refuse(at, (int)used, "stands twice", err);
        seen |= 1u << found.kind;
        grams[(*count)++] = found;
        at += size;
        if (!*at)
            return QN_OK;
    }
}

void qn__grams_text(const qn__grams *grams, uint32_t count, char text[QN__GRAMS_TEXT]) {
    size_t used = 0;
    *text = '\0';
    for (uint32_t i = 0; i < count; ++i)
        used += (size_t)snprintf(text + used, QN__GRAMS_TEXT - used, "%s%s:%d..%d", i ? "," : "",
                                 rows[grams[i].kind].name, grams[i].least, grams[i].most);
}

int qn__grams_equal(const qn__grams *a, uint32_t count, const qn__grams *b, uint32_t others) {
    int equal = count == others;
    for (uint32_t i = 0; equal && i < count; ++i)
        equal = a[i].kind == b[i].kind && a[i].least == b[i].least && a[i].most == b[i].most &&
                a[i].bits == b[i].bits;
    return equal;
}

uint32_t qn__grams_inputs(const qn__grams *grams, uint32_t count) {
    uint32_t inputs = 0;
    for (uint32_t i = 0; i < count; ++i)
        inputs += UINT32_C(1) << grams[i].bits;
    return inputs;
}

/* Words and pairs are written as models before 24.84 have them. */
static int is_usual(const qn__grams *g, uint32_t count) {
    return count == 1 && g->kind == QN__GRAM_WORDS && g->least == rows[QN__GRAM_WORDS].least &&
           g->most == rows[QN__GRAM_WORDS].most;
}

void qn__grams_add_json(const qn__grams *grams, uint32_t count, qn__text *text) {
    if (is_usual(grams, count)) {
        qn__text_add(text, "%u", (unsigned)grams->bits);
        return;
    }
    for (uint32_t i = 0; i < count; ++i)
        qn__text_add(text, "%s{\"grams\":\"%s\",\"least\":%d,\"most\":%d,\"bits\":%d}",
                     i ? "," : "[", rows[grams[i].kind].name, grams[i].least, grams[i].most,
                     grams[i].bits);
    qn__text_add(text, "]");
}

static int number_from(const qn__json_node *node, uint8_t least, uint8_t most, uint8_t *to) {
    uint64_t number;
    if (!qn__json_u64(node, &number) || number < least || number > most)
        return 0;
    *to = (uint8_t)number;
    return 1;
}

static int part_from(const qn__json_node *node, uint32_t *seen, qn__grams *to) {
    const char *name = qn__json_string(qn__json_get(node, "grams"));
    const int kind =
        name && qn__json_count(node) == 4 ? kind_of(name, strlen(name)) : QN__GRAM_KINDS;
    if (kind == QN__GRAM_KINDS || *seen >> kind & 1)
        return 0;
    *seen |= 1u << kind;
    to->kind = (uint8_t)kind;
    return number_from(qn__json_get(node, "least"), 1, rows[kind].limit, &to->least) &&
           number_from(qn__json_get(node, "most"), to->least, rows[kind].limit, &to->most) &&
           number_from(qn__json_get(node, "bits"), QN__TEXT_LEAST, QN__TEXT_MOST, &to->bits);
}

int qn__grams_from_json(const qn__json_node *node, qn__grams grams[QN__GRAM_KINDS],
                        uint32_t *count) {
    uint32_t seen = 0;
    *count = 1;
    grams[0] =
        (qn__grams){QN__GRAM_WORDS, rows[QN__GRAM_WORDS].least, rows[QN__GRAM_WORDS].most, 0};
    if (!qn__json_is_array(node))
        return number_from(node, QN__TEXT_LEAST, QN__TEXT_MOST, &grams[0].bits);
    *count = (uint32_t)qn__json_count(node);
    int known = qn__json_count(node) > 0 && qn__json_count(node) <= QN__GRAM_KINDS;
    for (uint32_t i = 0; known && i < *count; ++i)
        known = part_from(qn__json_at(node, i), &seen, &grams[i]);
    return known && !is_usual(grams, *count);
}

#include "layer/tokens.h"

#include "base/text/text.h"
#include <stdio.h>
#include <string.h>

static int is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Words of one character, also without blanks around them. */
static int is_mark(char c) { return c == ';' || c == '{' || c == '|' || c == '}'; }

void qn__tokens_next(qn__tokens *w) {
    size_t at = w->at + w->size;
    while (is_space(w->text[at]))
        ++at;
    w->at = at;
    w->size = 0;
    if (is_mark(w->text[at])) {
        w->size = 1;
        return;
    }
    for (char c = w->text[at]; c != '\0' && !is_mark(c) && !is_space(c); c = w->text[at + w->size])
        ++w->size;
}

int qn__tokens_ended(const qn__tokens *w) {
    return w->size == 0 || (is_mark(w->text[w->at]) && w->text[w->at] != '{');
}

int qn__tokens_is(const qn__tokens *w, const char *name) {
    return qn__same_word(name, w->text + w->at, w->size);
}

const char *qn__tokens_quote(const qn__tokens *w, char word[64]) {
    const size_t size = w->size < 60 ? w->size : 60;
    memcpy(word, w->text + w->at, size);
    word[size] = '\0';
    return word;
}

/* Whether a layer ends at `at`. The sum of a residual block is a layer of its own, after the "}".
 * A semicolon before that or before "|" has ended the layer already. */
static int ends_layer(const char *text, size_t at) {
    size_t before = at;
    while (before > 0 && is_space(text[before - 1]))
        --before;
    return text[at] == ';' ||
           ((text[at] == '|' || text[at] == '}') && (before == 0 || text[before - 1] != ';'));
}

/* Layers of what ends there: "gated" stands for three, another word for one; 0: nothing ends. */
static uint32_t layers_ended(const char *text, size_t at) {
    static const char word[] = "gated";
    size_t begin = at;
    if (!ends_layer(text, at))
        return 0;
    while (begin > 0 && !strchr(";{|}", text[begin - 1]))
        --begin;
    while (is_space(text[begin]))
        ++begin;
    return strncasecmp(text + begin, word, sizeof word - 1) == 0 ? 3 : 1;
}

size_t qn__tokens_layer_begin(const char *text, uint32_t layer) {
    size_t begin = 0;
    uint32_t all = 0;
    for (size_t at = 0; text[at] != '\0' && all <= layer; ++at) {
        const uint32_t ended = layers_ended(text, at);
        all += ended;
        begin = ended && all <= layer ? at + 1 : begin;
    }
    while (is_space(text[begin]))
        ++begin;
    return begin;
}

/* The layer's own text is what the message shows: a comment after it would take its place. */
static void point_at_line(qn_error *err, const char *name, const char *text, const char *lines,
                          size_t at) {
    enum { LINE = 256, NAME = 200 };
    char shown[LINE], title[NAME + 64];
    size_t line = 1, layer = 0, begin = 0;
    const int ended = text[at] == '\0';
    while (ended && at > 0 && is_space(text[at - 1]))
        --at; /* the end of the last layer, not an empty line after it */
    for (size_t i = 0; i < at; ++i) {
        layer += layers_ended(text, i);
        line += lines[i] == '\n';
        begin = lines[i] == '\n' ? i + 1 : begin;
    }
    const size_t skipped = at - begin > LINE / 2 ? at - LINE / 2 - begin : 0;
    size_t size = strcspn(lines + begin + skipped, "\n");
    size = size < LINE ? size : LINE - 1;
    memcpy(shown, lines + begin + skipped, size);
    shown[size] = '\0';
    const size_t length = strlen(name), cut = length > NAME ? length - NAME : 0;
    snprintf(title, sizeof title, "%s%s, line %zu, layer %zu", cut ? "..." : "", name + cut, line,
             layer);
    qn__point_at(err, title, shown, at - begin - skipped);
}

void qn__tokens_point(qn_error *err, const char *name, const char *text, const char *lines,
                      size_t at) {
    if (lines)
        point_at_line(err, name, text, lines, at);
    else
        qn__point_at(err, name ? name : "model", text, at);
}

qn_status qn__tokens_fail(const qn__tokens *w, size_t at, const char *what, const char *remedy) {
    qn__fail(w->err, QN_USAGE, "%s", what);
    qn__tokens_point(w->err, w->name, w->text, w->lines, at);
    return qn__remedy(w->err, QN_USAGE, "%s", remedy);
}

qn_status qn__tokens_invalid(const qn__tokens *w, const char *what, const char *remedy) {
    char word[64], text[160], longer[512];
    snprintf(text, sizeof text, "%.80s \"%s\"", what, qn__tokens_quote(w, word));
    /* As the calls of other tools are written, or as lists. */
    snprintf(longer, sizeof longer, "separate words by blanks and layers by \";\"; %s", remedy);
    return qn__tokens_fail(w, w->at, text, strpbrk(word, ",(=") ? longer : remedy);
}

qn_status qn__tokens_count(qn__tokens *w, const char *name, uint32_t most, const char *remedy,
                           uint32_t *out) {
    uint64_t value;
    char what[64];
    snprintf(what, sizeof what, "the layer's %s is missing", name);
    if (qn__tokens_ended(w))
        return qn__tokens_fail(w, w->at, what, remedy);
    snprintf(what, sizeof what, "invalid %s", name);
    if (!qn__parse_u64(w->text + w->at, w->size, &value))
        return qn__tokens_invalid(w, what, remedy);
    snprintf(what, sizeof what, "the layer's %s is 0", name);
    if (value > most)
        snprintf(what, sizeof what, "the layer's %s is above %u", name, most);
    if (value == 0 || value > most)
        return qn__tokens_fail(w, w->at, what, remedy);
    *out = (uint32_t)value;
    qn__tokens_next(w);
    return QN_OK;
}

qn_status qn__tokens_pair(qn__tokens *w, const char *name, uint32_t least, uint32_t most,
                          const char *remedy, uint32_t out[2]) {
    const char *text = w->text + w->at, *end = text + w->size;
    const size_t first = strcspn(text, "xX") < w->size ? strcspn(text, "xX") : w->size;
    const char *by = first < w->size ? text + first : NULL;
    uint64_t height, width;
    char what[64];
    snprintf(what, sizeof what, "the layer's %s is missing", name);
    if (qn__tokens_ended(w))
        return qn__tokens_fail(w, w->at, what, remedy);
    snprintf(what, sizeof what, "invalid %s", name);
    if (!qn__parse_u64(text, first, &height))
        return qn__tokens_invalid(w, what, remedy);
    width = height;
    if (by && !qn__parse_u64(by + 1, (size_t)(end - by - 1), &width))
        return qn__tokens_invalid(w, what, remedy);
    if (height < least || height > most || width < least || width > most)
        return qn__tokens_invalid(w, what, remedy);
    out[0] = (uint32_t)height;
    out[1] = (uint32_t)width;
    qn__tokens_next(w);
    return QN_OK;
}

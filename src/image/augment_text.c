#include "image/augment_text.h"

#include "base/text/text.h"
#include "layer/tokens.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* By qn__augment_kind; `size`: what its number is, NULL for none. */
static const struct {
    const char *name, *size;
} words[QN__AUGMENT_KINDS] = {
    [QN__AUGMENT_PAD] = {"pad", "number of pixels"},
    [QN__AUGMENT_CROP] = {"crop", NULL},
    [QN__AUGMENT_FLIP] = {"flip", NULL},
    [QN__AUGMENT_CUTOUT] = {"cutout", "side of the square"},
};

static const char EXAMPLE[] = "an augmentation is one or more of pad N, crop, flip and cutout N, "
                              "as \"pad 4; crop; flip; cutout 8\"";

static int has(const qn__augment *a, qn__augment_kind kind) {
    for (uint32_t i = 0; i < a->words; ++i)
        if (a->word[i].kind == kind)
            return 1;
    return 0;
}

static qn_status read_size(qn__tokens *t, qn__augment_kind kind, uint32_t *out) {
    uint64_t value = 0;
    char what[160], remedy[128], quote[64];
    if (qn__tokens_ended(t))
        snprintf(what, sizeof what, "the %s is missing after \"%s\"", words[kind].size,
                 words[kind].name);
    else
        snprintf(what, sizeof what, "invalid %s \"%s\"", words[kind].size,
                 qn__tokens_quote(t, quote));
    snprintf(remedy, sizeof remedy,
             "write a whole number from 1 to %d, as \"%s 4\", and \";\" before the next word",
             QN__AUGMENT_MAX, words[kind].name);
    if (qn__tokens_ended(t) || !qn__parse_u64(t->text + t->at, t->size, &value) || value == 0 ||
        value > QN__AUGMENT_MAX)
        return qn__tokens_fail(t, t->at, what, remedy);
    *out = (uint32_t)value;
    qn__tokens_next(t);
    return QN_OK;
}

/* "hflip", "fliip", "pad=4" */
static const char *find_near(const char *word) {
    const char *names[QN__AUGMENT_KINDS + 1] = {NULL};
    for (int kind = 0; kind < QN__AUGMENT_KINDS; ++kind) {
        names[kind] = words[kind].name;
        if (strstr(word, names[kind]))
            return names[kind];
    }
    return qn__nearest(word, names);
}

static qn_status refuse_word(const qn__tokens *t) {
    char what[96], remedy[256], word[64];
    const char *near = find_near(qn__tokens_quote(t, word));
    if (qn__tokens_ended(t))
        return qn__tokens_invalid(t, "there is no word before", EXAMPLE);
    if (qn__tokens_is(t, "none"))
        return qn__tokens_invalid(t, "unknown word",
                                  "without augmentation, leave `train.augment` out");
    snprintf(what, sizeof what, "unknown word \"%s\"", word);
    snprintf(remedy, sizeof remedy, "%s%s%s%s", near ? "did you mean \"" : "", near ? near : "",
             near ? "\"? " : "", EXAMPLE);
    return qn__tokens_fail(t, t->at, what, remedy);
}

static qn_status read_word(qn__tokens *t, qn__augment *out) {
    char what[96];
    const size_t at = t->at;
    int kind = 0;
    while (kind < QN__AUGMENT_KINDS && !qn__tokens_is(t, words[kind].name))
        ++kind;
    if (kind == QN__AUGMENT_KINDS)
        return refuse_word(t);
    snprintf(what, sizeof what, "\"%s\" stands here twice", words[kind].name);
    if (has(out, (qn__augment_kind)kind))
        return qn__tokens_fail(t, at, what, "write each word once");
    if (kind == QN__AUGMENT_CROP && !has(out, QN__AUGMENT_PAD))
        return qn__tokens_fail(t, at, "\"crop\" has only one place to take its window from",
                               "write pad before it, as \"pad 4; crop\"");
    qn__augment_word *word = &out->word[out->words++];
    *word = (qn__augment_word){(qn__augment_kind)kind, 0};
    qn__tokens_next(t);
    const qn_status status =
        words[kind].size ? read_size(t, (qn__augment_kind)kind, &word->size) : QN_OK;
    snprintf(what, sizeof what, "\"%s\" takes no number", words[kind].name);
    if (status == QN_OK && !words[kind].size && t->size > 0 &&
        isdigit((unsigned char)t->text[t->at]))
        return qn__tokens_fail(t, t->at, what, "leave the number out; images keep their size");
    if (status == QN_OK && !qn__tokens_ended(t))
        return qn__tokens_fail(t, t->at, "words are separated by semicolons", EXAMPLE);
    return status;
}

qn_status qn__augment_parse(const char *text, qn__augment *out, qn_error *err) {
    qn__tokens t = {text, 0, 0, err, "augmentation", NULL};
    size_t pad = 0;
    *out = (qn__augment){.words = 0};
    if (!text)
        return QN_OK;
    qn__tokens_next(&t);
    while (t.size > 0) {
        pad = qn__tokens_is(&t, "pad") ? t.at : pad;
        const qn_status status = read_word(&t, out);
        if (status != QN_OK)
            return status;
        if (t.size > 0)
            qn__tokens_next(&t);
    }
    if (has(out, QN__AUGMENT_PAD) && !has(out, QN__AUGMENT_CROP))
        return qn__tokens_fail(&t, pad, "\"pad\" alone would make the images larger",
                               "write crop after it, as \"pad 4; crop\"");
    return QN_OK;
}

qn_status qn__augment_check(const qn__augment *a, qn_error *err) {
    const uint32_t height = a->shape.height, width = a->shape.width;
    const uint32_t side = height < width ? height : width;
    for (uint32_t i = 0; i < a->words; ++i) {
        const qn__augment_word word = a->word[i];
        /* A window beside the image would have nothing of it. */
        const uint32_t most = word.kind == QN__AUGMENT_PAD ? side - 1 : side;
        if (word.size <= most)
            continue;
        qn__fail(err, QN_USAGE, "\"%s %u\" is too much for images of %ux%u", words[word.kind].name,
                 word.size, height, width);
        qn__at(err, "`train.augment`");
        return qn__remedy(err, QN_USAGE, most ? "use %u at most" : "leave it out", most);
    }
    return QN_OK;
}

void qn__augment_add_text(const qn__augment *a, qn__text *text) {
    for (uint32_t i = 0; i < a->words; ++i) {
        const qn__augment_word word = a->word[i];
        qn__text_add(text, "%s%s", i ? "; " : "", words[word.kind].name);
        if (word.size)
            qn__text_add(text, " %u", word.size);
    }
}

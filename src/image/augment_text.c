#include "image/augment_text.h"

#include "base/text/text.h"
#include "layer/tokens.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* By qn__augment_kind; `size`: what its whole number is, NULL for none. */
static const struct {
    const char *name, *size;
    uint32_t least, most, step; /* of the number */
} words[QN__AUGMENT_KINDS] = {
    [QN__AUGMENT_PAD] = {"pad", "number of pixels", 1, QN__AUGMENT_MAX, 1},
    [QN__AUGMENT_CROP] = {"crop", NULL, 0, 0, 0},
    [QN__AUGMENT_FLIP] = {"flip", NULL, 0, 0, 0},
    [QN__AUGMENT_CUTOUT] = {"cutout", "side of the square", 1, QN__AUGMENT_MAX, 1},
    [QN__AUGMENT_RESIZED_CROP] = {"resizedcrop", NULL, 0, 0, 0},
    [QN__AUGMENT_JITTER] = {"jitter", NULL, 0, 0, 0},
    [QN__AUGMENT_ROTATE] = {"rotate", NULL, 0, 0, 0},
    [QN__AUGMENT_BLUR] = {"blur", "number of taps", 3, 63, 2},
};

/* Numbers after a word; without a name they come first, and must be there. */
typedef struct parameter {
    qn__augment_kind kind;
    uint32_t place, count; /* in qn__augment_word.number; count 0: the name alone sets a 1 */
    const char *name;
    float usual[2], least, most;
    const char *remedy;
} parameter;

#define RANGE "the smaller first: "
#define STRENGTH(NAME, PLACE, MOST)                                                                \
    {                                                                                              \
        QN__AUGMENT_JITTER, PLACE, 1, NAME, {0.0f, 0.0f}, 0.0f, MOST,                              \
            "give a number from 0 to " #MOST ": \"jitter " NAME " 0.1\""                           \
    }

static const parameter parameters[] = {
    {QN__AUGMENT_RESIZED_CROP,
     QN__CROP_SCALE,
     2,
     "scale",
     {0.08f, 1.0f},
     1e-6f,
     1.0f,
     "give two numbers from 0.000001 to 1, " RANGE "\"resizedcrop scale 0.08 1\""},
    {QN__AUGMENT_RESIZED_CROP,
     QN__CROP_RATIO,
     2,
     "ratio",
     {0.75f, 4.0f / 3.0f},
     0.01f,
     100.0f,
     "give two numbers from 0.01 to 100, " RANGE "\"resizedcrop ratio 0.75 1.333\""},
    STRENGTH("brightness", QN__JITTER_BRIGHTNESS, 1),
    STRENGTH("contrast", QN__JITTER_CONTRAST, 1),
    STRENGTH("saturation", QN__JITTER_SATURATION, 1),
    STRENGTH("hue", QN__JITTER_HUE, 0.5),
    {QN__AUGMENT_ROTATE,
     QN__ROTATE_DEGREES,
     1,
     NULL,
     {0.0f, 0.0f},
     0.01f,
     180.0f,
     "give the largest angle in degrees, from 0.01 to 180: \"rotate 15\""},
    {QN__AUGMENT_ROTATE, QN__ROTATE_BILINEAR, 0, "bilinear", {0.0f, 0.0f}, 0.0f, 1.0f, NULL},
    {QN__AUGMENT_ROTATE,
     QN__ROTATE_FILL,
     1,
     "fill",
     {0.0f, 0.0f},
     0.0f,
     255.0f,
     "give a whole number from 0 to 255: \"rotate 15 fill 128\""},
    {QN__AUGMENT_BLUR,
     QN__BLUR_SIGMA,
     2,
     "sigma",
     {0.1f, 2.0f},
     0.01f,
     100.0f,
     "give two numbers from 0.01 to 100, " RANGE "\"blur 5 sigma 0.1 2\""},
};
enum { PARAMETERS = sizeof parameters / sizeof *parameters };

static const char EXAMPLE[] =
    "an augmentation is one or more of pad N, crop, flip, cutout N, resizedcrop, jitter, rotate N "
    "and blur N, as \"pad 4; crop; flip; cutout 8\"";

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
             "write %s number from %u to %u, as \"%s %u\", and \";\" before the next word",
             words[kind].step == 2 ? "an odd" : "a whole", words[kind].least, words[kind].most,
             words[kind].name, words[kind].step == 2 ? 5 : 4);
    if (qn__tokens_ended(t) || !qn__parse_u64(t->text + t->at, t->size, &value) ||
        value < words[kind].least || value > words[kind].most ||
        (value - words[kind].least) % words[kind].step > 0)
        return qn__tokens_fail(t, t->at, what, remedy);
    *out = (uint32_t)value;
    qn__tokens_next(t);
    return QN_OK;
}

/* "hflip", "fliip", "pad=4"; of "randomresizedcrop" the longest name in it. */
static const char *find_near(const char *word) {
    const char *names[QN__AUGMENT_KINDS + 1] = {NULL}, *inside = NULL;
    for (int kind = 0; kind < QN__AUGMENT_KINDS; ++kind) {
        names[kind] = words[kind].name;
        if (strstr(word, names[kind]) && (!inside || strlen(names[kind]) > strlen(inside)))
            inside = names[kind];
    }
    return inside ? inside : qn__nearest(word, names);
}

static qn_status refuse_word(const qn__tokens *t) {
    char what[96], remedy[320], word[64];
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

/* The numbers of a parameter, in ascending order. */
static qn_status read_numbers(qn__tokens *t, const parameter *p, float *number) {
    char what[96];
    const char *name = p->name ? p->name : words[p->kind].name;
    for (uint32_t i = 0; i < p->count; ++i) {
        const float least = i > 0 ? number[0] : p->least;
        snprintf(what, sizeof what, "a number is missing after \"%s\"", name);
        if (qn__tokens_ended(t))
            return qn__tokens_fail(t, t->at, what, p->remedy);
        if (!qn__parse_float(t->text + t->at, t->size, &number[i]) || !(number[i] >= least) ||
            !(number[i] <= p->most) ||
            (p->place == QN__ROTATE_FILL && p->kind == QN__AUGMENT_ROTATE &&
             number[i] != (float)(int)number[i]))
            return qn__tokens_invalid(t, "invalid number", p->remedy);
        number[i] += 0.0f; /* -0 is 0 */
        qn__tokens_next(t);
    }
    return QN_OK;
}

static qn_status refuse_parameter(const qn__tokens *t, qn__augment_kind kind) {
    char what[96], remedy[160];
    const int digit = isdigit((unsigned char)t->text[t->at]);
    int at = snprintf(remedy, sizeof remedy, "after \"%s\"", words[kind].name);
    for (int i = 0, found = 0; i < PARAMETERS; ++i)
        if (parameters[i].kind == kind && parameters[i].name)
            at += snprintf(remedy + at, sizeof remedy - (size_t)at, "%s %s",
                           found++ ? "," : " may stand", parameters[i].name);
    snprintf(remedy + at, sizeof remedy - (size_t)at, "; before the next word \";\"");
    snprintf(what, sizeof what, digit ? "a number without a name" : "unknown parameter");
    return qn__tokens_invalid(t, what, remedy);
}

/* The parameters of a word, in any order, each once. */
static qn_status read_parameters(qn__tokens *t, qn__augment_word *word) {
    int seen[PARAMETERS] = {0};
    for (int i = 0; i < PARAMETERS; ++i) {
        const parameter *p = &parameters[i];
        for (uint32_t n = 0; p->kind == word->kind && n < p->count; ++n)
            word->number[p->place + n] = p->usual[n];
    }
    for (int i = 0; i < PARAMETERS; ++i) {
        const parameter *p = &parameters[i];
        if (p->kind == word->kind && !p->name && read_numbers(t, p, &word->number[p->place]))
            return QN_USAGE;
    }
    while (!qn__tokens_ended(t)) {
        int i = 0;
        while (i < PARAMETERS && (parameters[i].kind != word->kind || !parameters[i].name ||
                                  !qn__tokens_is(t, parameters[i].name)))
            ++i;
        if (i == PARAMETERS)
            return refuse_parameter(t, word->kind);
        if (seen[i]++)
            return qn__tokens_invalid(t, "it stands twice after one word:", "write it once");
        qn__tokens_next(t);
        word->number[parameters[i].place] = 1.0f;
        if (read_numbers(t, &parameters[i], &word->number[parameters[i].place]))
            return QN_USAGE;
    }
    return QN_OK;
}

/* What a word may not be, whatever stands after it. */
static qn_status check_place(const qn__tokens *t, const qn__augment *out, qn__augment_kind kind) {
    char what[96];
    snprintf(what, sizeof what, "\"%s\" stands here twice", words[kind].name);
    if (has(out, kind))
        return qn__tokens_fail(t, t->at, what, "write each word once");
    if (kind == QN__AUGMENT_CROP && !has(out, QN__AUGMENT_PAD))
        return qn__tokens_fail(t, t->at, "\"crop\" has only one place to take its window from",
                               "write pad before it, as \"pad 4; crop\"; \"resizedcrop\" takes "
                               "a window of random size");
    snprintf(what, sizeof what, "\"%s\" stands between pad and crop", words[kind].name);
    if (kind >= QN__AUGMENT_VIEWS && has(out, QN__AUGMENT_PAD) && !has(out, QN__AUGMENT_CROP))
        return qn__tokens_fail(t, t->at, what, "write it before pad, or after crop");
    return QN_OK;
}

/* What stands after a word without parameters of its own. */
static qn_status check_end(const qn__tokens *t, qn__augment_kind kind) {
    char what[96];
    snprintf(what, sizeof what, "\"%s\" takes no number", words[kind].name);
    if (!words[kind].size && t->size > 0 && isdigit((unsigned char)t->text[t->at]))
        return qn__tokens_fail(t, t->at, what, "leave the number out; images keep their size");
    if (!qn__tokens_ended(t))
        return qn__tokens_fail(t, t->at, "words are separated by semicolons", EXAMPLE);
    return QN_OK;
}

static qn_status check_jitter(const qn__tokens *t, size_t at, const qn__augment_word *word) {
    for (int i = 0; i < QN__AUGMENT_NUMBERS; ++i)
        if (word->kind != QN__AUGMENT_JITTER || word->number[i] > 0.0f)
            return QN_OK;
    return qn__tokens_fail(t, at, "\"jitter\" changes nothing",
                           "say what and how much, as \"jitter brightness 0.4 contrast 0.4 "
                           "saturation 0.4 hue 0.1\"");
}

static qn_status read_word(qn__tokens *t, qn__augment *out) {
    const size_t at = t->at;
    int kind = 0;
    while (kind < QN__AUGMENT_KINDS && !qn__tokens_is(t, words[kind].name))
        ++kind;
    if (kind == QN__AUGMENT_KINDS)
        return refuse_word(t);
    qn_status status = check_place(t, out, (qn__augment_kind)kind);
    qn__augment_word *word = &out->word[out->words];
    *word = (qn__augment_word){.kind = (qn__augment_kind)kind};
    qn__tokens_next(t);
    if (status == QN_OK && words[kind].size)
        status = read_size(t, (qn__augment_kind)kind, &word->size);
    if (status == QN_OK)
        status = kind < QN__AUGMENT_VIEWS ? check_end(t, (qn__augment_kind)kind)
                                          : read_parameters(t, word);
    if (status == QN_OK)
        status = check_jitter(t, at, word);
    out->words += status == QN_OK;
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

/* A reach or a window beside the image would have nothing of it. */
static uint32_t most_of(qn__augment_kind kind, uint32_t side) {
    return kind == QN__AUGMENT_PAD ? side - 1 : kind == QN__AUGMENT_BLUR ? 2 * side - 1 : side;
}

static qn_status check_colours(const qn__augment *a, const qn__augment_word *word, qn_error *err) {
    const int hue = word->number[QN__JITTER_HUE] > 0.0f;
    if (word->kind != QN__AUGMENT_JITTER || a->shape.channels == 3 ||
        (!hue && word->number[QN__JITTER_SATURATION] == 0.0f))
        return QN_OK;
    qn__fail(err, QN_USAGE,
             "\"jitter %s\" is for red, green and blue; the images have %u channel%s",
             hue ? "hue" : "saturation", a->shape.channels, a->shape.channels == 1 ? "" : "s");
    qn__at(err, "`train.augment`");
    return qn__remedy(err, QN_USAGE, "use brightness and contrast alone");
}

qn_status qn__augment_check(const qn__augment *a, qn_error *err) {
    const uint32_t height = a->shape.height, width = a->shape.width;
    const uint32_t side = height < width ? height : width;
    for (uint32_t i = 0; i < a->words; ++i) {
        const qn__augment_word *word = &a->word[i];
        const uint32_t most = most_of(word->kind, side);
        if (word->size <= most && check_colours(a, word, err) != QN_OK)
            return QN_USAGE;
        if (word->size <= most)
            continue;
        qn__fail(err, QN_USAGE, "\"%s %u\" is too much for images of %ux%u", words[word->kind].name,
                 word->size, height, width);
        qn__at(err, "`train.augment`");
        const int none = most < words[word->kind].least;
        return qn__remedy(err, QN_USAGE, none ? "leave it out" : "use %u at most", most);
    }
    return QN_OK;
}

/* Whether the values of a parameter differ from those that a text leaves out. */
static int is_said(const parameter *p, const float *number) {
    for (uint32_t i = 0; i < p->count; ++i)
        if (number[i] != p->usual[i])
            return 1;
    return p->count == 0 && number[0] != 0.0f;
}

static void add_parameter(const parameter *p, const float *number, qn__text *text) {
    char digits[32];
    if (p->name)
        qn__text_add(text, " %s", p->name);
    for (uint32_t i = 0; i < p->count; ++i) {
        qn__float_text(number[i], digits);
        qn__text_add(text, " %s", digits);
    }
}

void qn__augment_add_text(const qn__augment *a, qn__text *text) {
    for (uint32_t i = 0; i < a->words; ++i) {
        const qn__augment_word *word = &a->word[i];
        qn__text_add(text, "%s%s", i ? "; " : "", words[word->kind].name);
        if (word->size)
            qn__text_add(text, " %u", word->size);
        for (int j = 0; j < PARAMETERS; ++j) {
            const parameter *p = &parameters[j];
            if (p->kind == word->kind && is_said(p, word->number + p->place))
                add_parameter(p, word->number + p->place, text);
        }
    }
}

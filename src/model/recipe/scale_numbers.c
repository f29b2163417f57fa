#include "model/recipe/scale_numbers.h"

#include "base/text/text.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Those of most networks of torchvision. */
static const char IMAGENET[] = "0.485,0.456,0.406/0.229,0.224,0.225";

static int is_imagenet(const char *text) { return qn__same_word("imagenet", text, strlen(text)); }

int qn__scale_numbers_meant(const char *text) { return is_imagenet(text) || strchr(text, '/'); }

/* Numbers with commas between them, up to `end`; returns how many, 0 where they are none. */
static uint32_t read_list(const char *at, const char *end, float *out) {
    for (uint32_t count = 0; count < QN__SCALE_CHANNELS; ++count) {
        const char *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end;
        while (at < stop && isspace((unsigned char)*at))
            ++at;
        while (stop > at && isspace((unsigned char)stop[-1]))
            --stop;
        if (!qn__parse_float(at, (size_t)(stop - at), &out[count]))
            return 0;
        out[count] += 0.0f; /* of -0 */
        if (!comma)
            return count + 1;
        at = comma + 1;
    }
    return 0;
}

/* Multiplied by 255 they are finite, and a deviation is a normal number. */
static int are_usable(const qn__scale_numbers *n) {
    for (uint32_t c = 0; c < n->channels; ++c)
        if (!(n->mean[c] >= -1e6f && n->mean[c] <= 1e6f) ||
            !(n->deviation[c] >= 1e-6f && n->deviation[c] <= 1e6f))
            return 0;
    return 1;
}

qn_status qn__scale_numbers_parse(const char *text, qn__scale_numbers *out, qn_error *err) {
    const char *numbers = is_imagenet(text) ? IMAGENET : text, *slash = strchr(numbers, '/');
    *out = (qn__scale_numbers){0};
    if (slash)
        out->channels = read_list(numbers, slash, out->mean);
    if (out->channels &&
        out->channels != read_list(slash + 1, strchr(numbers, '\0'), out->deviation))
        out->channels = 0;
    if (out->channels && are_usable(out))
        return QN_OK;
    qn__fail(err, QN_USAGE, "\"%.100s\" does not say means and deviations of channels", text);
    qn__at(err, "`train.scale`");
    return qn__remedy(err, QN_USAGE,
                      "write a mean for each channel, a slash and a deviation for each, of values "
                      "from 0 to 1, as \"0.5,0.5,0.5/0.25,0.25,0.25\"; or imagenet; there are at "
                      "most %d channels, and deviations are from 0.000001 to 1000000",
                      QN__SCALE_CHANNELS);
}

static void add_list(const float *value, uint32_t count, char *text) {
    char number[32];
    for (uint32_t c = 0; c < count; ++c) {
        qn__float_text(value[c], number);
        strcat(text, c ? "," : "");
        strcat(text, number);
    }
}

void qn__scale_numbers_text(const qn__scale_numbers *numbers, char text[QN__SCALE_NUMBERS_TEXT]) {
    text[0] = '\0';
    add_list(numbers->mean, numbers->channels, text);
    strcat(text, "/");
    add_list(numbers->deviation, numbers->channels, text);
}

void qn__scale_numbers_of_items(const qn__scale_numbers *numbers, int bytes, float *mean,
                                float *deviation) {
    const float whole = bytes ? 255.0f : 1.0f;
    for (uint32_t c = 0; c < numbers->channels; ++c) {
        mean[c] = whole * numbers->mean[c];
        deviation[c] = whole * numbers->deviation[c];
    }
}

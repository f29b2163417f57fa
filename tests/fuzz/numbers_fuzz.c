/* Numbers as texts, against the C library, which rounds a decimal number once and rightly. */
#include "fuzz/fuzz.h"

#include "base/text/text.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <math.h>

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* A sign or none, digits with a point or none, an exponent or none. */
static int is_decimal(const char *text) {
    int digits = 0;
    text += *text == '+' || *text == '-';
    for (; isdigit((unsigned char)*text); text++)
        digits = 1;
    if (*text == '.')
        for (text++; isdigit((unsigned char)*text); text++)
            digits = 1;
    if (!digits)
        return 0;
    if (*text == 'e' || *text == 'E') {
        text++;
        text += *text == '+' || *text == '-';
        if (!isdigit((unsigned char)*text))
            return 0;
        while (isdigit((unsigned char)*text))
            text++;
    }
    return *text == '\0';
}

static void check_float(const char *text, size_t size) {
    float value = 42.0f;
    const int taken = qn__parse_float(text, size, &value);
    if (strlen(text) != size || !is_decimal(text)) {
        FUZZ_MUST(!taken && value == 42.0f);
        return;
    }
    const float wanted = strtof(text, NULL);
    FUZZ_MUST(taken == (fabsf(wanted) <= FLT_MAX));
    FUZZ_MUST(!taken || bits_of(value) == bits_of(wanted));
}

static void check_count(const char *text, size_t size) {
    uint64_t value = 42;
    const int taken = qn__parse_u64(text, size, &value);
    int digits = size > 0;
    for (size_t i = 0; i < size; i++)
        digits &= isdigit((unsigned char)text[i]) != 0;
    errno = 0;
    const unsigned long long wanted = digits ? strtoull(text, NULL, 10) : 0;
    FUZZ_MUST(taken == (digits && errno == 0));
    FUZZ_MUST(value == (taken ? wanted : 42));
}

/* Its shortest text is read as the same number. */
static void check_text(const uint8_t bytes[4]) {
    float value, again;
    char text[32];
    memcpy(&value, bytes, sizeof value);
    if (!isfinite(value))
        return;
    qn__float_text(value, text);
    FUZZ_MUST(strlen(text) < sizeof text);
    FUZZ_MUST(qn__parse_float(text, strlen(text), &again) && bits_of(again) == bits_of(value));
    FUZZ_MUST(bits_of(strtof(text, NULL)) == bits_of(value));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    char *text = fuzz_text(bytes, size);
    check_float(text, size);
    check_count(text, size);
    free(text);
    if (size >= 4)
        check_text(bytes);
    return 0;
}

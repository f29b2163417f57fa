#include "data/tokens/models/token_score.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGEST_POWER = 308, FAR = 100000 };

static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* The nearest to 10^power, from 0 to LARGEST_POWER. */
static double power_of_ten(int power) {
    char text[16];
    snprintf(text, sizeof text, "1e%d", power);
    return strtod(text, NULL);
}

static double scaled(uint64_t digits, int exponent) {
    double value = (double)digits;
    while (exponent < -LARGEST_POWER && value != 0) {
        value /= power_of_ten(LARGEST_POWER);
        exponent += LARGEST_POWER;
    }
    if (exponent < -LARGEST_POWER)
        return value;
    if (exponent > LARGEST_POWER)
        return value == 0 ? 0 : (double)INFINITY;
    return exponent < 0 ? value / power_of_ten(-exponent) : value * power_of_ten(exponent);
}

double qn__token_score(const char *digits) {
    const int negative = *digits == '-';
    uint64_t whole = 0;
    int exponent = 0, full = 0, after = 0;
    for (digits += negative; is_digit(*digits) || *digits == '.'; digits++) {
        const uint64_t digit = (uint64_t)(*digits - '0');
        if (*digits == '.') {
            after = 1;
            continue;
        }
        full |= whole > (UINT64_MAX - digit) / 10;
        if (!full)
            whole = whole * 10 + digit;
        if (exponent > -FAR && exponent < FAR)
            exponent += full ? !after : -after;
    }
    if (*digits == 'e' || *digits == 'E') {
        const long more = strtol(digits + 1, NULL, 10);
        exponent += more > FAR ? FAR : more < -FAR ? -FAR : (int)more;
    }
    const double value = scaled(whole, exponent);
    return negative ? -value : value;
}

#include "num/turn.h"

#include <math.h>

enum { LOG_TERMS = 12, EXP_TERMS = 14, SINE_TERMS = 18 };

#define LN2_HIGH 0x1.62e42feep-1
#define LN2_LOW 0x1.a39ef35793c76p-33
#define LN2 0x1.62e42fefa39efp-1
#define HALF_PI_HIGH 0x1.921fb544p+0
#define HALF_PI_MIDDLE 0x1.0b4611a4p-34
#define HALF_PI_LOW 0x1.13198a2e03707p-65
#define TWO_PI 0x1.921fb54442d18p+2
#define TWO_OVER_PI 0x1.45f306dc9c883p-1

/* The natural logarithm of x, from 1 to the largest float. */
static double logarithm(double x) {
    int k = 0;
    double p = 0.0;
    for (; x > 0x1.6a09e667f3bcdp+0; ++k)
        x = x * 0.5;
    const double f = (x - 1.0) / (x + 1.0), z = f * f;
    for (int i = LOG_TERMS; i >= 0; --i)
        p = p * z + 1.0 / (2 * i + 1);
    return k * LN2 + 2.0 * f * p;
}

/* e^y, for y from 0 to the logarithm of the largest float. */
static double power(double y) {
    const double n = rint(y / LN2), r = (y - n * LN2_HIGH) - n * LN2_LOW;
    double p = 1.0;
    for (int i = EXP_TERMS; i > 0; --i)
        p = p * r / i + 1.0;
    return ldexp(p, (int)n);
}

/* The parts of n * pi / 2 but the last are exact. */
void qn__turn(float angle, float *cosine, float *sine) {
    const double a = angle, n = rint(a * TWO_OVER_PI);
    const double r = ((a - n * HALF_PI_HIGH) - n * HALF_PI_MIDDLE) - n * HALF_PI_LOW, z = r * r;
    const uint32_t quadrant = (uint32_t)n % 4;
    double c = 1.0, s = 1.0;
    for (int i = SINE_TERMS; i > 0; i -= 2) {
        c = 1.0 - c * z / (i * (i - 1));
        s = 1.0 - s * z / (i * (i + 1));
    }
    s = s * r;
    const double x = quadrant % 2 ? s : c, y = quadrant % 2 ? c : s;
    *cosine = (float)(quadrant == 1 || quadrant == 2 ? -x : x);
    *sine = (float)(quadrant >= 2 ? -y : y);
}

/* The rule of Llama 3: turns in `context` positions decide. */
static float slowed(const qn__turns *turns, float frequency) {
    if (turns->factor == 1.0f)
        return frequency;
    const double slow = (double)frequency / turns->factor;
    if (!turns->context)
        return (float)slow;
    const double count = (double)turns->context * frequency / TWO_PI;
    const double share = (count - turns->low) / ((double)turns->high - turns->low);
    if (share <= 0.0)
        return (float)slow;
    return share >= 1.0 ? frequency : (float)((1.0 - share) * slow + share * frequency);
}

float qn__turn_frequency(const qn__turns *turns, uint32_t pairs, uint32_t pair) {
    const float share = (float)(2 * pair) / (float)(2 * pairs);
    const float own = (float)power(share * logarithm(turns->base));
    return slowed(turns, 1.0f / own);
}

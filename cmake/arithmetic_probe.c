/* Whether a compiler with the flags of a build computes as docs/exactness.md wants it. Each
 * function is what the library does in many places; its result is compared with one that was
 * computed by single operations on volatile numbers, or is known. Prints what is wrong, one line,
 * and ends with 1.
 *
 * Where the program cannot be run, the build looks for the names of the markers in the object file:
 * a marker is called after a comparison that fails for some numbers. A compiler that may reorder
 * or reduce arithmetic decides that it never fails, and the call is gone. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define APART __attribute__((noinline))

#ifdef PROBE_MARKERS

void quern_keeps_the_order_of_sums(void);
void quern_keeps_the_sign_of_zero(void);
void quern_keeps_nan(void);
void quern_keeps_double_constants(void);
void quern_keeps_float(void);

int probe(float x, float y) {
    if ((x + y) - y != x)
        quern_keeps_the_order_of_sums();
    if (__builtin_signbit(x + 0.0f) != __builtin_signbit(x))
        quern_keeps_the_sign_of_zero();
    if (x != x)
        quern_keeps_nan();
    if (0.1 != (double)0.1f)
        quern_keeps_double_constants();
#if __FLT_EVAL_METHOD__ == 0
    quern_keeps_float();
#endif
    return 0;
}

#else

enum { TERMS = 64 };

static APART float add_all(const float *x, int n) {
    float sum = 0;
    for (int i = 0; i < n; ++i)
        sum = sum + x[i];
    return sum;
}

static APART float there_and_back(float x, float y) { return (x + y) - y; }

static APART float multiply_and_add(float x, float y, float z) { return x * y + z; }

#if defined(__x86_64__)
__attribute__((target("fma"))) static APART float multiply_and_add_fma(float x, float y, float z) {
    return x * y + z;
}
#endif

static APART void divide_all(float *x, int n, float by) {
    for (int i = 0; i < n; ++i)
        x[i] = x[i] / by;
}

static APART float add_zero(float x) { return x + 0.0f; }

static APART int is_nan(float x) { return x != x; }

static APART float differ(float x, float y) { return x - y; }

static APART float triple(float x) { return x * 3.0f / 3.0f; }

static APART double add_doubles(double x, double y, double z) { return x + y + z; }

static APART double tenth(double x) { return x * 0.1; }

static APART float rounded(double x) { return (float)x; }

static int reorders(void) {
    volatile float term[TERMS], sum = 0;
    float copy[TERMS];
    for (int i = 0; i < TERMS; ++i) {
        term[i] = (float)((i * 37 % 64 - 31) * (1 << (i % 20))) / 7;
        copy[i] = term[i];
        sum = sum + term[i];
    }
    volatile float one = 1, big = 0x1p25f;
    return add_all(copy, TERMS) != sum || there_and_back(one, big) != 0;
}

static int contracts(void) {
    volatile float x = 1 + 0x1p-12f, z = -(1 + 0x1p-11f);
    int wrong = multiply_and_add(x, x, z) != 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("fma"))
        wrong |= multiply_and_add_fma(x, x, z) != 0;
#endif
    return wrong;
}

static int divides_wrongly(void) {
    volatile float by = 7;
    float quotient[TERMS];
    int wrong = 0;
    for (int i = 0; i < TERMS; ++i)
        quotient[i] = (float)(i + 1);
    divide_all(quotient, TERMS, by);
    for (int i = 0; i < TERMS; ++i) {
        volatile float x = (float)(i + 1), want = x / by;
        wrong |= quotient[i] != want;
    }
    return wrong;
}

static int flushes(void) {
    volatile float smallest = 0x1p-149f, normal = 0x1p-126f, half = 0.5f, big = 0x1p100f;
    volatile float less = normal * half, more = smallest * big;
    return less != 0x1p-127f || more != 0x1p-49f;
}

static int rounds_wrongly(void) {
    volatile float one = 1, even = 0x1p-24f, above = 0x1.000002p-24f;
    volatile double tie = 1 + 0x1p-24, odd = 1 + 0x3p-24;
    volatile float down = one + even, up = one + above, minus = -one - above;
    return down != 1 || up != 1 + 0x1p-23f || minus != -1 - 0x1p-23f || rounded(tie) != 1 ||
           rounded(odd) != 1 + 0x1p-22f;
}

static int keeps_excess(void) {
    volatile float x = 0x1.fffffep127f, third = 0x1.555556p0f;
    volatile float product = third * 3.0f;
    volatile double one = 1, half = 0x1p-53, less = 0x1p-64;
    /* In binary64 the sum is 1 after each step; a wider unit keeps both terms and rounds up. */
    return triple(x) <= 0x1.fffffep127f || triple(third) != product / 3.0f ||
           add_doubles(one, half, less) != 1;
}

/* By the bits: where signs of zeros do not count, signbit() is a comparison. */
static uint32_t bits(float x) {
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    return word;
}

static int loses_special_values(void) {
    volatile float zero = 0, minus = -0.0f, infinity = 1 / zero, nan = infinity - infinity;
    return bits(add_zero(minus)) != 0 || !is_nan(nan) ||
           (bits(differ(infinity, infinity)) & 0x7fffffffu) <= 0x7f800000u;
}

static int constants_are_floats(void) {
    volatile double one = 1;
    return tenth(one) == (double)0.1f;
}

int main(void) {
    static const struct {
        int (*fails)(void);
        const char *what;
    } probes[] = {
        {flushes, "subnormal numbers become zero"},
        {rounds_wrongly, "results are not rounded to nearest, ties to even"},
        {constants_are_floats, "constants of type double are held as float"},
        {reorders, "sums are reordered"},
        {divides_wrongly, "divisions become multiplications by a reciprocal"},
        {contracts, "a product and a sum are contracted to one operation"},
        {keeps_excess, "float or double is computed in a wider format"},
        {loses_special_values, "signs of zeros, NaN and infinities are not kept"},
    };
    for (size_t i = 0; i < sizeof probes / sizeof *probes; ++i)
        if (probes[i].fails()) {
            puts(probes[i].what);
            return 1;
        }
    return 0;
}

#endif

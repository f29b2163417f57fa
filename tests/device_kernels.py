"""Kernels of users of each kind, for tests on devices and for scripts/gpu_check.py."""

# Every declaration and kind of function. The index that a table needs, and the length of a loop,
# differ between items.
MANY = """#include <quern/kernel_file.h>
INDEX(y, x);
EXTENT(height, width);
HALO(double, x0, 2, nearest);
INPUT(double, x1); INPUT(float, f); INPUT(int8_t, b); INPUT(int32_t, n); INPUT(uint16_t, m);
WHOLE(double, w, 2);
SCALAR(float, half, 0.5); SCALAR(int64_t, far, -5000000000); SCALAR(uint8_t, small, 200);
OUTPUT(double, d); OUTPUT(float, g); OUTPUT(int64_t, i); OUTPUT(uint8_t, c); OUTPUT(int16_t, s);
SUM(double, all); SUM(float, narrow); SUM(int64_t, whole); SUM(uint64_t, bits);
MIN(float, least); MAX(int32_t, most); COUNT(some);
RANDOM;
static const int W[3] = {1, -2, 3};
static const double E = 0.1;
static float mix(float a, int k) { float t[4] = {a, a * a}; t[k & 3] = a / 3; return t[0] + t[1] * t[3]; }
static int collatz(uint32_t k) { int steps = 0; while (k != 1 && steps < 300) { k = k % 2 ? 3 * k + 1 : k / 2; steps++; } return steps; }
KERNEL {
    const double near = x0(0, 1) - x0(-1, 0) * 1e-3 + x0(2, -2) / 7;
    const double safe = fabs(x1) < 1e9 ? x1 : 1;
    const float part = f / (fabs(f) + 1), more = expm1(part) + log1p(part) + asin(part) - acos(part) + sinh(part);
    const double rest = exp2(part - 1.0) + log2(fabs(safe) + 0.5) * cosh(part + 0.0) + log10(fabs(safe) + 3) + hypot(safe, f);
    d = rest + sin(safe) + erfc(f * 9) * normcdf(f - 30.0) + exp(-fabs(safe)) * w(y % 5, x % 7) + pow(fabs(safe) + 1, E) + (fabs(near) < 1e15 ? near : 0);
    g = more + mix(f, x) + sqrt(fabs(f)) + (float)rint(f * 3) + half + cbrt(f) + tanh(f) + erfc(f) + normcdf(w(0, 0) < 0 ? f : -f);
    i = (int64_t)x1 + far * (n >> (m & 31)) - (int64_t)collatz(m) + W[x % 3] * (y - height / 2);
    c = (uint8_t)x1;
    s = (int16_t)(b * 300 + (f ? small : !f));
    all = safe * 1e-7 + normal(x); narrow = f * uniformf(0) + normalf(1); whole = n * m; bits = (uint64_t)(n & 65535) << 20;
    if (f > 0) { least = f; most = n % (int)m - (n << b); }
    some = uniform(1) < 0.25 || random32(7) == 3u;
    if (y == 1 && x > 40) return;
}
"""

FLOATS = """#include <quern/kernel_file.h>
INDEX(%s);
%s
HALO(float, u, 1, %s); INPUT(float, q);
OUTPUT(float, v); OUTPUT(float, r);
SUM(float, heat); MAX(float, top); COUNT(warm);
ITERATION(t);
NEXT(v, u); NEXT(r, q);
KERNEL { v = u(%s) + 0.1f * (u(%s) - u(%s)) + (float)(t %% 3); r = q * 0.5f + u(%s); heat = v0(q); top = v0(q); warm = q > 0; }
"""


def heat(indices, border, taps):
    function = "static float v0(float a) { return a < 0 ? -a : a; }"
    middle = ", ".join("0" for _ in taps[0])
    tap = [", ".join(map(str, t)) for t in taps]
    return FLOATS % (indices, function, border, middle, tap[0], tap[1], middle)


FAULTS = """#include <quern/kernel_file.h>
INDEX(i);
INPUT(double, x); HALO(float, h, 1, zero); WHOLE(float, w, 1);
SCALAR(int, mode);
OUTPUT(double, o); SUM(double, s); MAX(float, m);
KERNEL {
    int a[4] = {0};
    const int bad = i >= 700 && i % 3 == 1;
    a[mode == 0 && bad ? 4 : 0] = 1;
    o = a[0] + (mode == 1 && bad ? 1 / (int)(i - i) : 0) + w(mode == 2 && bad ? -1 : 0)
        + h(mode == 3 && bad ? 2 : 0) + (mode == 4 && bad ? 0.0 / (x - x) : 0);
    s = mode == 5 && bad ? 1 / (x - x) : x;
    m = mode == 6 && bad ? (float)(0.0 / (x - x)) : (float)x;
}
"""

BINS = """#include <quern/kernel_file.h>
INDEX(i);
INPUT(int32_t, n); INPUT(float, f);
SUM(double, wide, 9); COUNT(often, 5); SCAN(int64_t, running); MIN(float, low, 9); ARGMAX(int32_t, place, 9);
SCAN(float, before, exclusive); OUTPUT(int16_t, three, 3);
KERNEL {
    if (n % 3 == 0) wide[n & 7] = f;
    often[i % 5] = f > 0;
    running = n; before = f; three[2] = 7; if (n > 0) three[n % 3] = (int16_t)n;
    if (i % 4) { low[n & 7] = f; place[n & 7] = n; }
}
"""

SMALL = """INDEX(i);
WHOLE(float, w, 1);
OUTPUT(float, o); SUM(double, all);
KERNEL { float a = w(i); for (int k = 0; k < 500; k++) a = a * 0.5f + 1; o = a; all = w(i); }
"""

STREAMED = """INDEX(i);
INPUT(double, x); INPUT(float, f); INPUT(int8_t, b); WHOLE(float, w, 1);
OUTPUT(double, o); OUTPUT(int16_t, p, 3); SUM(double, all); MAX(float, most); COUNT(some); SCAN(int64_t, running);
KERNEL { o = x * 0.5 + f; p[b & 1] = b; p[2] = (int16_t)i; all = x; most = f + w(i % 7); some = b > 0; running = b; }
"""

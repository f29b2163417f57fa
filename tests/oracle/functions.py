"""Section 21 of the contract: the functions of user kernels.

Everything works on arrays of one format; the branches of the text become numpy.where, both sides
being computed. A Format has the constants of 21.3 and the lists of 21.4. `fma` of binary64 goes
through fractions, one element at a time, so arrays should be short.
"""

import functools
import re
from fractions import Fraction
from pathlib import Path

import numpy as np

import binary32
import elementary

SOURCES = Path(__file__).resolve().parents[2] / "src" / "kernels" / "runtime"


def fma64(a, b, c):
    """1.2 in binary64, exactly: Python rounds the quotient of two integers once."""
    a, b, c = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (a, b, c)))
    plain = np.asarray(a * b + c)  # where no number is finite, or the exact sum is zero
    result = plain.copy()
    for i in np.ndindex(a.shape):
        if np.isfinite([a[i], b[i], c[i]]).all():
            exact = Fraction(float(a[i])) * Fraction(float(b[i])) + Fraction(float(c[i]))
            if exact:
                try:
                    result[i] = exact.numerator / exact.denominator
                except OverflowError:
                    result[i] = np.inf if exact > 0 else -np.inf
    return result[()]


@functools.cache
def pi_digits(bits):
    """floor(pi * 2^bits), by the formula of Machin with 64 bits to spare."""
    one = 1 << (bits + 64)

    def arctangent(n):
        power, total, k = one // n, 0, 0
        while power:
            total += (-power if k % 2 else power) // (2 * k + 1)
            power //= n * n
            k += 1
        return total

    return (16 * arctangent(5) - 4 * arctangent(239)) >> 64


class Format:
    """A format of 21.3; `width` is 32 or 64."""

    def __init__(self, width, real, word, numbers):
        self.width, self.real, self.word = width, real, word
        self.M, self.B, self.TOP, self.LEAST, self.W, self.w, self.ROOT = numbers[:7]
        self.E2MIN, self.E2MAX, self.ERFMAX = numbers[7:10]
        self.LARGE, self.LOWER, self.SMALL, self.RAISE, self.QMIN, self.THIRDS = numbers[10:16]
        self.ROUND = 1.5 * self.TOP + 2 * self.B
        (self.PI4, self.LN2, self.LG2, self.CA, self.CB, self.CC, self.ERF0, self.ERFC0,
         self.ROOT2) = ((self.hex(h), self.hex(low)) for h, low in numbers[16:25])
        self.L2E = self.hex(numbers[25])
        self.GROWMAX, self.ERFCMAX, self.CDFMAX = map(int, numbers[26:29])
        self.nan = self.of(np.array(0x7FC00000 if width == 32 else 0x7FF << 52 | 1 << 51))
        self.infinity = int(self.bits(real(np.inf)))
        self.lists = dict(re.findall(r"#define QN_(\w+)\(TOP, NEXT\)((?:\s|\\|\w+\(\S+\))+)",
                                     (SOURCES / f"math_coefficients_f{width}.inc").read_text()))

    def hex(self, text):
        value = self.real(float.fromhex(text))
        assert float(value) == float.fromhex(text)
        return value

    def bits(self, a):
        return np.asarray(a, dtype=self.real).view(self.word)

    def of(self, i):
        """`float(i)` of the text."""
        return np.asarray(i).astype(self.word).view(self.real)

    def fma(self, a, b, c):
        if self.width == 64:
            return fma64(a, b, c)
        return binary32.fma(*(np.asarray(x, dtype=np.float32) for x in (a, b, c)))

    def number(self, x):
        return np.asarray(x, dtype=self.real)

    def polynomial(self, name, z):
        """21.4."""
        first, *rest = re.findall(r"\((\S+)\)", self.lists[name])
        p = self.hex(first)
        for c in rest:
            p = self.fma(p, z, self.hex(c))
        return p

    def in_pairs(self, name, z):
        """21.4, for some polynomials."""
        a = [self.hex(c) for c in reversed(re.findall(r"\((\S+)\)", self.lists[name]))]
        while len(a) > 1:
            a = [self.fma(a[i + 1], z, a[i]) if i + 1 < len(a) else a[i] for i in range(0, len(a), 2)]
            z = z * z
        return a[0]

    def sign(self, x):
        return (self.bits(x) >> self.word(self.width - 1)) != 0

    def settle(self, y):
        """21.1: one NaN."""
        return np.where(np.isnan(y), self.nan, y).astype(self.real)

    # 21.5

    def turns(self, a):
        """(p, q) of 21.5 by integers: the signed product, and the quadrant."""
        half, bias = (32, 150) if self.width == 32 else (64, 1075)
        zeros, kept = (32, 224) if self.width == 32 else (64, 1216)
        field = int(self.bits(a)) >> self.M
        m = (int(self.bits(a)) & ((1 << self.M) - 1)) | 1 << self.M
        table = (2 << kept + 2000) // pi_digits(2000)
        first = field - (120 if self.width == 32 else 1013)
        assert field >= bias - 32 and zeros + kept >= first + 3 * half
        words = [table >> (zeros + kept - first - (k + 1) * half) & ((1 << half) - 1)
                 for k in range(3)]
        p = ((m * words[0] << half) + m * words[1] + (m * words[2] >> half)) % (1 << 2 * half)
        q = (p + (1 << 2 * half - 3)) >> 2 * half - 2
        return p - (q << 2 * half - 2), q % 4

    def parts(self, p):
        """Steps 3 to 6 of 21.5."""
        first, second = (40, 16) if self.width == 32 else (73, 20)
        p0, rest = p >> first, p & ((1 << first) - 1)
        p1, p2 = rest >> second, rest & ((1 << second) - 1)
        last = -62 if self.width == 32 else -126
        a0, a1, a2 = (self.number(float(Fraction(n) * Fraction(2) ** e)) for n, e in
                      ((p0, first + last), (p1, second + last), (p2, last)))
        g = a0 + a1
        r = (a1 - (g - a0)) + a2
        high, low = self.number(2) * self.PI4[0], self.number(2) * self.PI4[1]
        h = g * high
        return h, self.fma(g, high, -h) + self.fma(g, low, r * high)

    def near(self, a):
        """Below 2^20 in binary64."""
        x = self.hex
        z = self.fma(a, x("0x1.45f306dc9c883p-1"), x("0x1.8p52"))
        n = z - x("0x1.8p52")
        d = self.fma(-n, x("0x1.921fb54442d18p+0"), a)
        p = n * x("0x1.1a62633145c07p-54")
        pl = self.fma(n, x("0x1.1a62633145c07p-54"), -p)
        h = d - p
        b = d - h
        s = (d - (h + b)) - (p - b)
        return h, s - self.fma(n, x("-0x1.f1976b7ed8fbcp-110"), pl), int(self.bits(z)) % 4

    def reduce(self, a):
        """21.5 for an array of finite numbers: (h, l, q)."""
        h, low, q = np.zeros_like(a), np.zeros_like(a), np.zeros(a.shape, dtype=int)
        for i in np.ndindex(a.shape):
            if self.width == 32 and a[i] < self.PI4[0]:
                h[i] = a[i]
            elif self.width == 64 and a[i] < 2**20:
                h[i], low[i], q[i] = self.near(a[i])
            else:
                p, q[i] = self.turns(a[i])
                h[i], low[i] = self.parts(p)
        return h, low, q

    # 21.6, 21.7

    def sine_cosine(self, h, low):
        """(S, C) of a reduced argument."""
        half, one = self.number(0.5), self.number(1)
        z = h * h
        s = h + self.fma(h, z * self.polynomial("SIN", z), low * self.fma(z, -half, one))
        zl = self.fma(h, h, -z)
        v = half * z
        w = one - v
        wl = (one - w) - v
        c = self.fma(z * z, self.polynomial("COS", z), wl)
        return s, w + (c - self.fma(h, low, half * zl))

    def wave(self, x, quarter):
        h, low, q = self.reduce(np.where(np.isfinite(x), abs(x), 0).astype(self.real))
        s, c = self.sine_cosine(h, low)
        return np.choose((q + quarter) % 4, [s, c, -s, -c])

    def sin(self, x):
        y = self.wave(x, 0)
        y = np.where(self.sign(x), -y, y)
        return self.settle(np.where(np.isfinite(x), y, np.nan))

    def cos(self, x):
        return self.settle(np.where(np.isfinite(x), self.wave(x, 1), np.nan))

    def tan(self, x):
        h, low, q = self.reduce(np.where(np.isfinite(x), abs(x), 0).astype(self.real))
        one = self.number(1)
        z = h * h
        zl = self.fma(h, h, -z)
        p = self.polynomial("TAN", z)
        w = z * p
        wl = self.fma(z, p, -w) + zl * p
        s = h * w
        sl = self.fma(h, w, -s) + h * wl
        t = h + s
        tl = (s - (t - h)) + self.fma(low, self.fma(t, t, one), sl)
        r = -one / t
        e = self.fma(r, t, one) + r * tl
        y = np.where(q % 2, self.fma(r, e, r), t + tl)
        y = np.where(self.sign(x), -y, y)
        return self.settle(np.where(np.isfinite(x), y, np.nan))

    # 21.8

    def turned(self, n, d):
        """Step 3: (near, u, v, ul, vl)."""
        near = n > self.hex("0x1.a8279ap-2") * d
        u, v = np.where(near, n - d, n), np.where(near, n + d, d)
        zero = self.number(0)
        return near, u, v, np.where(near, n - (u + d), zero), np.where(near, n - (v - d), zero)

    def angle(self, near, u, v, ul, vl, steep, left):
        """Steps 4 to 8, without the sign."""
        q = u / v
        e = self.fma(-q, v, u) + self.fma(-q, vl, ul)
        z = q * q
        ql = np.where(abs(q) < self.number(self.QMIN), self.number(0), e / v)
        ql = self.fma(q * z, self.polynomial("ATAN", z), self.fma(-z, ql, ql))
        k = np.where(near, np.where(left, 3, 1), np.where(steep, 2, np.where(left, 4, 0)))
        k = self.number(k)
        b = k * self.PI4[0]
        bl = self.fma(k, self.PI4[1], self.fma(k, self.PI4[0], -b))
        q, ql = np.where(steep != left, -q, q), np.where(steep != left, -ql, ql)
        h = b + q
        return h + ((q - (h - b)) + (bl + ql))

    def atan2(self, y, x):
        one, zero = self.number(1), self.number(0)
        steep, left = abs(y) > abs(x), self.sign(x)
        d, n = np.where(steep, abs(y), abs(x)), np.where(steep, abs(x), abs(y))
        n = np.where(np.isinf(d), np.where(np.isinf(n), one, zero), n)
        d = np.where(np.isinf(d) | (d == 0), one, d)
        f = np.where(d > self.LARGE, self.number(self.LOWER),
                     np.where(d < self.SMALL, self.number(self.RAISE), one))
        result = np.copysign(self.angle(*self.turned(n * f, d * f), steep, left), y)
        return self.settle(np.where(np.isnan(x) | np.isnan(y), np.nan, result))

    def atan(self, x):
        return self.atan2(x, np.ones_like(x))

    # 21.9

    def binary_log(self, x):
        """(h, l) for positive finite numbers; anything for others."""
        one = self.number(1)
        tiny = x < self.LEAST
        i = self.bits(np.where(tiny, x * self.number(self.W), x))
        j = i - self.word(self.ROOT) + self.bits(one)
        lift = self.number(self.TOP) + np.where(tiny, self.number(self.B + self.w),
                                                self.number(self.B))
        k = self.of((j >> self.word(self.M)) | self.bits(self.number(self.TOP))) - lift
        m = self.of(i - ((j & self.word(self.infinity)) - self.bits(one)))
        f, d = m - one, m + one
        r = one / d
        s = f * r
        sl = self.fma(-s, m - (d - one), self.fma(-s, d, f)) * r
        z = s * s
        zl = self.fma(s, s, -z) + (s + s) * sl
        g, gl = z * self.polynomial("LOG2", z), self.number(0)
        for constant in (self.CC, self.CB, self.CA):
            t = constant[0] + g
            tl = (g - (t - constant[0])) + (gl + constant[1])
            if constant is not self.CA:
                g = z * t
                gl = self.fma(z, t, -g) + self.fma(z, tl, zl * t)
        g = s * t
        gl = self.fma(s, t, -g) + self.fma(s, tl, sl * t)
        h = k + g
        return h, (g - (h - k)) + gl

    def logarithm(self, x, y):
        """`y`, the logarithm of a positive finite `x`; annex F for others."""
        y = np.where(x == np.inf, x, np.where(x == 0, -np.inf, np.where(x < 0, np.nan, y)))
        return self.settle(np.where(np.isnan(x), np.nan, y))

    def log(self, x):
        if self.width == 32:
            return self.settle(elementary.log(x))
        tiny = x < self.LEAST
        j = self.bits(np.where(tiny, x * self.W, x)) - self.word(self.ROOT) + self.bits(1.0)
        k = self.of((j >> self.word(self.M)) | self.bits(self.TOP)) - (
            self.TOP + np.where(tiny, float(self.B + self.w), float(self.B)))
        f = self.of(j % self.word(2**self.M) + self.word(self.ROOT)) - 1.0
        s = f / (f + 2.0)
        z = s * s
        v = 0.5 * f * f
        q = self.fma(z, self.in_pairs("LOG", z), v)
        high, low = self.hex("0x1.62e42feep-1"), self.hex("0x1.a39ef35793c76p-33")
        t = self.fma(k, high, f)
        u = self.fma(k, low, f - self.fma(-k, high, t))
        return self.logarithm(x, t + (self.fma(s, q, u) - v))

    # 21.10

    def power_of_two(self, h, low):
        """(m, ml, s1, s2)."""
        one, rounding = self.number(1), self.number(self.ROUND)
        z = h + rounding
        f = h - (z - rounding)
        r = f + low
        rl = low - (r - f)
        a = r * self.LN2[0]
        b = self.fma(r, self.LN2[1], self.fma(r, self.LN2[0], -a))
        b = self.fma(rl * self.LN2[0], one + a, b)
        b = self.fma(r * r, self.polynomial("EXP2", r), b)
        m = one + a
        ml = (a - (m - one)) + b
        return m, ml, *self.factors(z)

    def factors(self, z):
        """Step 4: (s1, s2)."""
        n, shift = self.bits(z) >> self.word(1), self.word(self.M)
        return self.of(n << shift), self.of((self.bits(z) - n) << shift)

    def product(self, h, low):
        m, ml, s1, s2 = self.power_of_two(h, low)
        y = ((m + ml) * s1) * s2
        y = np.where(h < self.E2MIN, self.number(0), y)
        return np.where(h > self.E2MAX, self.number(np.inf), y)

    def limited(self, x, least, most):
        """NaN becomes a limit; the callers put it back."""
        return np.fmin(np.fmax(x, self.number(least)), self.number(most))

    def exp(self, x):
        if self.width == 32:
            return self.settle(elementary.exp(x))
        c = self.limited(x, -746, 710)
        z = self.fma(c, self.L2E, self.ROUND)
        n = z - self.ROUND
        r = self.fma(-n, self.LN2[1], self.fma(-n, self.LN2[0], c))
        m = 1.0 + self.fma(r * r, self.in_pairs("EXP", r), r)
        s1, s2 = self.factors(z)
        return self.settle(np.where(np.isnan(x), np.nan, m * s1 * s2))

    def in_parts(self, x, low):
        """(r, p, s) of e^(x + low)."""
        rounding = self.number(1.5 * self.TOP + self.B)
        z = self.fma(x, self.L2E, rounding)
        n = z - rounding
        r = self.fma(-n, self.LN2[0], x)
        p = self.fma(r * r, self.in_pairs("EXP", r), self.fma(-n, self.LN2[1], low))
        return r, p, self.of(self.bits(z) << self.word(self.M))

    # 21.11

    def pow(self, x, y):
        h, low = self.binary_log(abs(x))
        p = y * h
        pl = self.fma(y, low, self.fma(y, h, -p))
        r = self.product(p, pl)
        whole = np.isinf(y) | (np.floor(y) == y)
        odd = np.isfinite(y) & whole & (np.fmod(y, self.number(2)) != 0)
        r = np.where(x == 0, np.where(y < 0, np.inf, 0), r)
        r = np.where(np.isinf(x), np.where(y < 0, 0, np.inf), r)
        r = np.where(np.isinf(y), np.where((abs(x) > 1) == (y > 0), np.inf, 0), r)
        r = np.where(np.isinf(y) & (abs(x) == 1), 1, r)
        r = np.where(self.sign(x) & odd, -r, r)
        r = np.where((x < 0) & np.isfinite(x) & ~whole | np.isnan(x) | np.isnan(y), np.nan, r)
        return self.settle(np.where((x == 1) | (y == 0), 1, r))

    # 21.12 to 21.15

    def erf(self, x):
        a = self.limited(abs(x), 0, self.ERFMAX)
        t = a * self.fma(a, self.in_pairs("ERF", a), self.ERF0[1])
        q = self.fma(a, self.ERF0[0], t)
        low = self.fma(a, self.ERF0[0], -q) + t
        r, p, s = self.in_parts(-q, -low)
        y = self.fma(-s, r + p, self.number(1) - s)
        return self.settle(np.where(np.isnan(x), np.nan, np.copysign(y, x)))

    # 21.16

    def tail(self, a, al, h, low, part):
        four, one = self.number(4), self.number(1)
        steep = self.number(1.5)
        g = steep * a
        n, d, e = a - four, a + four, g + one
        nl, dl = (a - (n + four)) + al, (a - (d - four)) + al
        el = (g - (e - one)) + self.fma(steep, al, self.fma(steep, a, -g))
        b = one / (d * e)
        i, j = b * e, b * d
        q = n * i
        ql = (self.fma(-q, d, n) + self.fma(-q, dl, nl)) * i
        k = self.fma(q, q - self.number(0.34375), self.number(-0.328125))
        k = self.fma(q, self.fma(q, k, self.number(0.15625)), self.number(-0.1484375))
        p = self.in_pairs("ERFC", q)
        w = q * p
        wl = self.fma(q, p, -w)
        f = self.ERFC0[0] + w
        fl = (w - (f - self.ERFC0[0])) + (self.fma(ql, k, wl) + self.ERFC0[1])
        y = f * j
        yl = (self.fma(-y, e, f) + self.fma(-y, el, fl)) * j
        rounding = self.number(self.ROUND)
        z = self.fma(-h, self.L2E, rounding)
        m = z - rounding
        r, o = self.fma(-m, self.LN2[0], -h), self.fma(-m, self.LN2[1], -low)
        c = (r * r) * self.in_pairs("EXP", r)
        t = r + c
        s = self.fma(o, t, o) + c
        v = y + self.fma(y, r, self.fma(y, s, self.fma(yl, t, yl)))
        s1, s2 = self.factors(z)
        return ((v * self.number(part)) * s1) * s2

    def erfc(self, x):
        a = self.limited(abs(x), 0, self.ERFCMAX)
        h = a * a
        y = self.tail(a, np.zeros_like(a), h, self.fma(a, a, -h), 1)
        y = np.where(x < 0, self.number(2) - y, y)
        return self.settle(np.where(np.isnan(x), np.nan, y))

    def normcdf(self, x):
        t, half = self.limited(abs(x), 0, self.CDFMAX), self.number(0.5)
        a = t * self.ROOT2[0]
        al = self.fma(t, self.ROOT2[0], -a) + t * self.ROOT2[1]
        u = t * t
        y = self.tail(a, al, u * half, self.fma(t, t, -u) * half, 0.5)
        y = np.where(x > 0, self.number(1) - y, y)
        return self.settle(np.where(np.isnan(x), np.nan, y))

    def cbrt(self, x):
        a = abs(x)
        tiny = a < self.LEAST
        i = self.bits(np.where(tiny, a * self.number(self.W), a))
        c = (i >> self.word(self.M)).astype(np.int64) + self.THIRDS
        n, j = c // 3, c % 3
        one = self.number(1)
        m = self.of((i & self.word((1 << self.M) - 1)) | self.bits(one))
        v = self.number(2) ** self.number(j) * m
        shrink = np.choose(j, [one, self.hex("0x1.965feap-1"), self.hex("0x1.428a3p-1")])
        r = self.polynomial("CBRT", m) * shrink
        e = self.fma(-(v * r), r * r, one)
        third = self.hex("0x1.555556p-2")
        r = self.fma(r * e, self.fma(e, self.hex("0x1.c71c72p-3"), third), r)
        s = r * r
        y = v * s
        y2 = y * y
        yl = self.fma(y, y, -y2)
        e = self.fma(-yl, y, self.fma(-y2, y, v))
        y = self.fma(e, s * third, y)
        k = n - (self.B + self.THIRDS) // 3 - np.where(tiny, self.w // 3, 0)
        y = y * self.number(2.0 ** k.astype(float))
        y = np.where((a == 0) | np.isinf(a), a, y)
        return self.settle(np.where(np.isnan(x), np.nan, np.copysign(y, x)))

    def tanh(self, x):
        if self.width == 32:
            return self.settle(elementary.tanh(x))
        a = self.limited(abs(x), 0, 20)
        r, p, s = self.in_parts(a + a, np.zeros_like(a))
        g = self.fma(s, r, s - 1.0)
        t = self.fma(s, p, g)
        tl = self.fma(s, p, g - t)
        d = t + 2.0
        dl = (t - (d - 2.0)) + tl
        e = 1.0 / d
        q = t * e
        y = self.fma(self.fma(-q, d, t) + self.fma(-q, dl, tl), e, q)
        return self.settle(np.where(np.isnan(x), np.nan, np.copysign(y, x)))

    def sqrt(self, x):
        return self.settle(np.sqrt(x))

    # 21.17

    def with_error(self, x):
        """(r, p, s) of e^x with the error of its argument."""
        rounding = self.number(1.5 * self.TOP + self.B)
        z = self.fma(x, self.L2E, rounding)
        n = z - rounding
        r, o = self.fma(-n, self.LN2[0], x), -n * self.LN2[1]
        c = (r * r) * self.in_pairs("EXP", r)
        return r, self.fma(o, r + c, o) + c, self.of(self.bits(z) << self.word(self.M))

    def moved(self, r, p, s, b):
        """(t, tl) of e^x + b."""
        b = self.number(b)
        g = self.fma(s, r, s + b)
        u = self.fma(s, p, self.fma(s, r, (s + b) - g))
        t = g + u
        return t, u - (t - g)

    def divided(self, r, p, s, k):
        """e^x / 2^k."""
        one, shift = self.number(1), self.word(self.M)
        v = (self.bits(s) >> shift) + self.word(self.B - k)
        i = v >> self.word(1)
        return ((one + (r + p)) * self.of(i << shift)) * self.of((v - i) << shift)

    def expm1(self, x):
        c = self.limited(x, -40, self.GROWMAX)
        parts = self.with_error(c)
        y = np.where(c > 40, self.divided(*parts, 0), self.moved(*parts, -1)[0])
        return self.settle(np.where((x == 0) | np.isnan(x), x, y))

    def sinh(self, x):
        a, one = self.limited(abs(x), 0, self.GROWMAX), self.number(1)
        parts = self.with_error(a)
        t, tl = self.moved(*parts, -1)
        d = t + one
        dl = (t - (d - one)) + tl
        e = one / d
        q = t * e
        v = self.fma(-q, d, t) + self.fma(-q, dl, tl)
        y = (t + (q + self.fma(v, e, tl))) * self.number(0.5)
        y = np.where(a > 40, self.divided(*parts, 1), y)
        return self.settle(np.where(np.isnan(x), np.nan, np.copysign(y, x)))

    def cosh(self, x):
        a = self.limited(abs(x), 0, self.GROWMAX)
        parts = self.with_error(a)
        t, tl = self.moved(*parts, 0)
        y = (t + (self.number(1) / t + tl)) * self.number(0.5)
        y = np.where(a > 40, self.divided(*parts, 1), y)
        return self.settle(np.where(np.isnan(x), np.nan, y))

    # 21.18

    def exp2(self, x):
        return self.settle(self.product(x, np.zeros_like(x)))

    def to_base(self, x, constant, small):
        """The logarithm of a positive finite `x` to the base of a constant."""
        h, low = self.binary_log(x)
        p = h * constant[0]
        pl = self.fma(h, constant[0], -p) + self.fma(h, constant[1], low * constant[0])
        return p + (pl + small)

    def log2(self, x):
        return self.logarithm(x, np.add(*self.binary_log(x)))

    def log10(self, x):
        return self.logarithm(x, self.to_base(x, self.LG2, self.number(0)))

    def log1p(self, x):
        one = self.number(1)
        u = one + x
        b = u - one
        ul = (one - (u - b)) + (x - b)
        return np.where(x == 0, x, self.logarithm(u, self.to_base(u, self.LN2, ul / u)))

    # 21.19

    def arc(self, x):
        """Steps 1 to 4: `over`, and the arguments of `angle` before `steep`."""
        one, zero = self.number(1), self.number(0)
        a = self.limited(abs(x), 0, 1)
        p = a * a
        pl = self.fma(a, a, -p)
        w = one - p
        wl = ((one - w) - p) - pl
        root = np.sqrt(w)
        low = (self.fma(-root, root, w) + wl) / np.where(root == 0, one, root + root)
        over = a > root
        n, nl = np.where(over, root, a), np.where(over, low, zero)
        d, dl = np.where(over, a, root), np.where(over, zero, low)
        near, u, v, ul, vl = self.turned(n, d)
        ul, vl = np.where(near, ul + (nl - dl), nl), np.where(near, vl + (nl + dl), dl)
        return over, (near, u, v, ul, vl)

    def asin(self, x):
        over, parts = self.arc(x)
        y = np.copysign(self.angle(*parts, over, False), x)
        return self.settle(np.where(abs(x) <= 1, y, np.nan))

    def acos(self, x):
        over, parts = self.arc(x)
        return self.settle(np.where(abs(x) <= 1, self.angle(*parts, ~over, self.sign(x)), np.nan))

    # 21.20

    def hypot(self, x, y):
        one = self.number(1)
        d, n = np.fmax(abs(x), abs(y)), np.fmin(abs(x), abs(y))
        tiny = d < self.SMALL
        f = np.where(tiny, self.number(self.RAISE), one)
        i = self.bits(d * f) & self.word(self.infinity)
        c = self.of(self.word((2 * self.B + 1) << self.M) - i)
        a, b = (d * f) * c, (n * f) * c
        p, q = a * a, b * b
        w = p + q
        wl = (q - (w - p)) + (self.fma(a, a, -p) + self.fma(b, b, -q))
        root = np.sqrt(w)
        e = root + (self.fma(-root, root, w) + wl) / (root + root)
        lower = np.where(tiny, self.number(1 / self.RAISE), one)
        r = e * self.of(i - self.word(1 << self.M)) * lower
        r = np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(d == 0, self.number(0), r))
        return self.settle(np.where(np.isinf(x) | np.isinf(y), np.inf, r))

    # 21.15

    def arguments(self, first, step, count):
        i = np.array([first + step * k for k in range(count)], dtype=self.word)
        multiplier, near = (0x9E3779B1, 119) if self.width == 32 else (0x9E3779B97F4A7C15, 1015)
        bits = i * self.word(multiplier)
        field = (bits >> self.word(self.M)) % self.word(16) + self.word(near)
        middle = (bits & self.word(~self.infinity % (1 << self.width))) | field << self.word(self.M)
        return self.of(np.where(i % self.word(2) == 1, middle, bits))

    def chain(self, name, count):
        x, y = self.arguments(0, 1, count), self.arguments(1, 3, count)
        two = name in ("pow", "atan2", "hypot")
        h = 0xCBF29CE484222325
        for v in self.bits(getattr(self, name)(x, y) if two else getattr(self, name)(x)):
            h = (h ^ int(v)) * 0x100000001B3 % (1 << 64)
            h ^= h >> 29
        return h


def constants(text):
    """The columns of the table of 21.3, for binary32 and binary64: the pairs, and single numbers."""
    table = text[text.index("21.3 **"):text.index("21.4 **")]
    names = ["PI4", "LN2", "LG2", "CA", "CB", "CC", "ERF0", "ERFC0", "ROOT2", "L2E",
             "GROWMAX", "ERFCMAX", "CDFMAX"]
    rows = {name: (left, right) for name, left, right in
            re.findall(rf"^\| `({'|'.join(names)})`.*? \| (.*?) \| (.*?) \|$", table, re.M)}
    columns = [[rows[name][k].split(", ") for name in names] for k in (0, 1)]
    return [[*column[:9], *(number for number, in column[9:])] for column in columns]


def formats(text):
    """Both formats, with the parts of constants as the contract's text gives them."""
    one, two = constants(text)
    binary = Format(32, np.float32, np.uint32, [
        23, 127, 2.0**23, 2.0**-126, 2.0**24, 24, 0x3F3504F3, -160, 136, 4,
        2.0**100, 2.0**-32, 2.0**-80, 2.0**80, 2.0**-20, 2, *one])
    double = Format(64, np.float64, np.uint64, [
        52, 1023, 2.0**52, 2.0**-1022, 2.0**54, 54, 0x3FE6A09E667F3BCD, -1088, 1032, 6,
        2.0**1000, 2.0**-64, 2.0**-900, 2.0**200, 2.0**-60, 0, *two])
    return binary, double

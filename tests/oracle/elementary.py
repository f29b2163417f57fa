"""Section 13 of the contract: elementary functions; and those of 17.2.

The numbers beside the lines are those of the operations in the text. Everything works on arrays
of float32; the branches of the text become numpy.where, both sides being computed.
"""

import functools

import numpy as np

from binary32 import F, ONE, ZERO, fma


@functools.cache
def hexadecimal(text):
    """A constant as the text writes it, in the form of C's %a; all are floats exactly."""
    value = float.fromhex(text)
    assert float(F(value)) == value
    return F(value)


X = hexadecimal


# 13.2


def fnma(a, b, c):
    return fma(-a, b, c)


def lesser(a, b):
    """`min` of the text: b when either is NaN."""
    return np.where(a < b, a, b)


def greater(a, b):
    """`max` of the text: b when either is NaN."""
    return np.where(a > b, a, b)


def bits(a):
    return np.asarray(a, dtype=np.float32).view(np.uint32)


def from_bits(i):
    """`float(i)` of the text."""
    return np.asarray(i, dtype=np.uint32).view(np.float32)


def half(i):
    """`i >> 1` of the text, `i` read as a signed integer."""
    return (i.view(np.int32) >> 1).view(np.uint32)


def reduce(x):
    """13.5: (r, p, m, s1, s2)."""
    z = fma(x, X("0x1.715476p+0"), X("0x1.8001fcp+23"))  # 1
    n = z - X("0x1.8001fcp+23")  # 2
    r0 = fnma(n, X("0x1.62e43p-1"), x)  # 3
    r = fma(n, X("0x1.05c61p-29"), r0)  # 4
    r2 = r * r  # 5
    low = fma(X("0x1.555554p-3"), r, X("0x1p-1"))  # 6
    mid = fma(X("0x1.111306p-7"), r, X("0x1.5554fp-5"))  # 7
    high = fma(X("0x1.9e0c28p-13"), r, X("0x1.6d4372p-10"))  # 8
    high2 = fma(high, r2, mid)  # 9
    q = fma(high2, r2, low)  # 10
    p = fma(q, r2, r)  # 11
    m = p + ONE  # 12
    n1 = half(bits(z))  # 13
    s1 = from_bits(n1 << np.uint32(23))  # 14
    s2 = from_bits((bits(z) - n1) << np.uint32(23))  # 15
    return r, p, m, s1, s2


def recip(d):
    """13.6."""
    g = from_bits(np.uint32(0x7EB504F3) - bits(d))  # 1
    w = d * g  # 2
    a = fma(X("0x1.5a1ce4p+1"), w, X("-0x1.74ace2p+2"))  # 3
    b = fma(a, w, X("0x1.0b80acp+2"))  # 4
    return b * g  # 5


def exp(x):
    """13.7."""
    x1 = lesser(X("0x1.64p+6"), x)  # 1
    x2 = greater(X("-0x1.ap+6"), x1)  # 2
    _, _, m, s1, s2 = reduce(x2)  # 3
    y = m * s1  # 4
    return y * s2  # 5


def log(x):
    """13.8."""
    x = np.asarray(x, dtype=np.float32)
    small = x < X("0x1p-126")
    k0 = np.where(small, X("-0x1.7p+4"), ZERO)  # 1
    x1 = np.where(small, x * X("0x1p+23"), x)
    e = (bits(x1) - np.uint32(0x3F2AAAAB)) & np.uint32(0xFF800000)  # 2
    f = from_bits(bits(x1) - e) - ONE  # 3
    k = fma(e.view(np.int32).astype(np.float32), X("0x1p-23"), k0)  # 4
    f2 = f * f  # 5
    a1 = fma(X("0x1.1e77d6p-3"), f, X("-0x1.f30d5ep-4"))  # 6
    q1 = fma(X("-0x1.080f4ep-3"), f2, a1)  # 7
    a2 = fma(X("0x1.1ed37ep-3"), f, X("-0x1.559de8p-3"))  # 8
    q2 = fma(q1, f2, a2)  # 9
    a3 = fma(X("0x1.99d064p-3"), f, X("-0x1.fffefp-3"))  # 10
    q3 = fma(q2, f2, a3)  # 11
    a4 = fma(X("0x1.555506p-2"), f, X("-0x1p-1"))  # 12
    q4 = fma(q3, f2, a4)  # 13
    t = fma(k, X("0x1.62e43p-1"), f)  # 14
    v = fnma(k, X("0x1.62e43p-1"), t)  # 15
    l0 = f - v  # 16
    l = fma(k, X("-0x1.05c61p-29"), l0)  # 17
    c = fma(q4, f2, l)  # 18
    y = t + c  # 19
    y = np.where(x == 0, F(-np.inf), y)  # 20
    y = np.where(x < 0, F(np.nan), y)
    return np.where((x == np.inf) | np.isnan(x), x, y)


def tanh(x):
    """13.9."""
    a = lesser(X("0x1.3p+3"), from_bits(bits(x) & np.uint32(0x7FFFFFFF)))  # 1
    a1 = a - X("0x1.333334p-3")  # 2
    z = fma(a1, X("0x1.715476p+1"), X("0x1.8000fep+23"))  # 3
    n = z - X("0x1.8000fep+23")  # 4
    r0 = fnma(n, X("0x1.62e43p-2"), a)  # 5
    r = fma(n, X("0x1.05c61p-30"), r0)  # 6
    r2 = r * r  # 7
    low = fma(X("0x1.55556ap-1"), r, X("0x1p+0"))  # 8
    mid = fma(X("0x1.119fbp-3"), r, X("0x1.554f88p-2"))  # 9
    high = fma(X("0x1.0d18dep-6"), r, X("0x1.5fd6e2p-5"))  # 10
    high2 = fma(high, r2, mid)  # 11
    q = fma(high2, r2, low)  # 12
    s = from_bits(bits(z) << np.uint32(23))  # 13
    s2 = s * r2  # 14
    s3 = fma(s, X("0x1p-1"), X("-0x1p-1"))  # 15
    g = fma(s, r, s3)  # 16
    t = fma(q, s2, g)  # 17
    d = t + ONE  # 18
    d1 = d - ONE  # 19
    l0 = g - d1  # 20
    l = fma(q, s2, l0)  # 21
    rc = recip(d)  # 22
    y0 = t * rc  # 23
    e0 = fnma(y0, d, g)  # 24
    e1 = fma(q, s2, e0)  # 25
    e2 = fnma(y0, l, e1)  # 26
    y = fma(e2, rc, y0)  # 27
    return from_bits(bits(y) | (bits(x) & np.uint32(0x80000000)))  # 28


def sigmoid(x):
    """13.10."""
    x1 = lesser(X("0x1.4p+4"), x)  # 1
    x2 = greater(X("-0x1.ap+6"), x1)  # 2
    _, p, m, s1, s2 = reduce(x2)  # 3
    s = s1 * s2  # 4
    d = fma(s, m, ONE)  # 5
    d1 = d - ONE  # 6
    l0 = s - d1  # 7
    l = fma(s, p, l0)  # 8
    rc = recip(d)  # 9
    y0 = m * rc  # 10
    e0 = fnma(y0, d, ONE)  # 11
    e1 = e0 + p  # 12
    e2 = fnma(y0, l, e1)  # 13
    y = fma(e2, rc, y0)  # 14
    y1 = y * s1  # 15
    return y1 * s2  # 16


def cospi(t):
    """13.11, for 0 <= t <= 1."""
    u = X("0x1p-1") - t  # 1
    u2 = u * u  # 2
    b1 = fma(X("0x1.3efdf2p-4"), u2, X("-0x1.329df2p-1"))
    b2 = fma(b1, u2, X("0x1.466b62p+1"))
    b3 = fma(b2, u2, X("-0x1.4abbcep+2"))
    b4 = fma(b3, u2, X("-0x1.777a5cp-24"))
    b5 = u * b4
    middle = fma(u, X("0x1.921fb6p+1"), b5)
    v = lesser(t, ONE - t)  # 3
    v2 = v * v
    c1 = fma(X("0x1.d0976ap-3"), v2, X("-0x1.55a5b6p+0"))
    c2 = fma(c1, v2, X("0x1.03c19ep+2"))
    c3 = fma(c2, v2, X("-0x1.3bd3ccp+2"))
    c4 = fma(c3, v2, ONE)
    outer = np.where(t < X("0x1p-1"), c4, ZERO - c4)
    return np.where(abs(u) < X("0x1p-2"), middle, outer)[()]


def magnitude(z):
    """`a` of 17.2."""
    return lesser(X("0x1.dp+3"), from_bits(bits(z) & np.uint32(0x7FFFFFFF)))


def bell(z):
    """17.2."""
    a = magnitude(z)
    h = a * a  # 1
    l = X("0x1p-1") * fnma(a, a, h)  # 2
    g = exp(X("-0x1p-1") * h)  # 3
    return fma(l, g, g)  # 4


def normal(z):
    """17.2."""
    a = magnitude(z)
    d = fma(X("0x1p-2"), a, ONE)  # 1
    r = recip(d)  # 2
    t = fma(fnma(r, d, ONE), r, r)  # 3
    t2 = t * t  # 4
    p4 = fma(X("0x1.14c402p-6"), t, X("-0x1.08584cp-4"))  # 5
    p3 = fma(p4, t2, fma(X("0x1.c9c49p-5"), t, X("0x1.7272d2p-6")))  # 6
    p2 = fma(p3, t2, fma(X("0x1.229296p-6"), t, X("0x1.577424p-4")))  # 7
    p1 = fma(p2, t2, fma(X("0x1.2b0f9p-4"), t, X("0x1.864c8ap-4")))  # 8
    p0 = fma(p1, t2, fma(X("0x1.97a3d2p-4"), t, X("0x1.988f9cp-4")))  # 9
    q = bell(z) * (t * p0)  # 10
    return np.where(z < 0, q, ONE - q)  # 11


def gelu(z):
    """17.2."""
    return z * normal(z)


def gelu_slope(z):
    """17.2."""
    return fma(z, bell(z) * X("0x1.988454p-2"), normal(z))


def silu(z):
    """17.2."""
    return z * sigmoid(z)


def silu_slope(z):
    """17.2."""
    s = sigmoid(z)
    return fma(z * s, ONE - s, s)


def gelu_tanh(z):
    """25.80."""
    return z * gelu_tanh_gate(z)


def gelu_tanh_gate(z):
    """25.80: s."""
    return sigmoid(z * fma(X("0x1.2444f2p-4"), gelu_tanh_square(z), X("0x1.988454p+0")))


def gelu_tanh_square(z):
    """25.80: h."""
    a = magnitude(z)
    return a * a


def gelu_tanh_slope(z):
    """25.80."""
    s = gelu_tanh_gate(z)
    return fma((z * s) * (ONE - s), fma(X("0x1.b6676cp-3"), gelu_tanh_square(z), X("0x1.988454p+0")), s)

"""Section 1 of the contract: numbers.

A `float` of the text is a numpy.float32 here, alone or in an array. NumPy's float32 `+ - * /` and
`sqrt` round once, to nearest even, and keep subnormal numbers, so they are the operations of 1.2
as they stand. NumPy has no fused multiply-add; `fma` below builds one out of float64 arithmetic,
and says why it is exact. The remaining functions round one real number, a Fraction, to `float`.
"""

from fractions import Fraction
from math import isqrt

import numpy as np

F = np.float32
ZERO = F(0)
ONE = F(1)

# Infinities and NaNs are ordinary results in the text; warnings about them would only be noise.
np.seterr(all="ignore")


# Of the 53 bits of a float64, a float keeps 24: half way between two of them, the last 29 are these. Results
# below 2^-126 keep fewer; without its sign, the pattern of 2^-126 in float64 is this. It is one less here,
# because 1 is taken from each pattern before.
LAST = np.uint64(64 - 29), np.uint64(1 << 63)
SUBNORMAL = np.uint64(((1023 - 126) << 53) - 1)
BIT = np.uint64(1)


def fma(a, b, c):
    """1.2: RN(a*b + c) for arrays or scalars of float32, broadcast as NumPy does.

    The product of two 24-bit significands has at most 48 bits, and its exponent lies well inside
    the range of float64: `p` is exact. `s` is `p + c`, rounded to 53 bits, and the result is `s` rounded
    again, to 24 bits. That can go wrong only where `s` is half way between two floats: all such points
    are float64, and rounding keeps the order of numbers, so anywhere else the exact sum lies on the same side
    of them as `s`. Those that may be half way are rounded to odd first.
    """
    p = np.multiply(a, b, dtype=np.float64)
    s = np.add(p, c, dtype=np.float64)
    bits = s.view(np.uint64)
    shift, half = LAST
    # Zero, whose pattern is 0, becomes the largest number.
    near = (bits << shift == half) | ((bits << BIT) - BIT < SUBNORMAL)
    if np.count_nonzero(near):
        p, c = (np.broadcast_to(v, s.shape)[near] for v in (p, np.asarray(c, dtype=np.float64)))
        s = np.asarray(s)
        s[near] = to_odd(p, c, s[near])
        s = s[()]
    return s.astype(np.float32)


def to_odd(p, c, s):
    """The exact p + c, of which `s` is the rounded sum, rounded to odd: when it is not a float64, the one of its
    two neighbours whose last bit is 1.

    Such a number is never a float32 and never half way between two (both end in many zeros), and it lies
    on the same side of all of those as the exact sum does. This holds for subnormal results, which keep
    even fewer bits, and at the limit of overflow, itself a half way point. An exact sum is left alone,
    with the sign that float64 addition gives to a zero.
    """
    back = s - p
    # The exact remainder of the rounding (Knuth's TwoSum; nothing can underflow, since all terms are
    # multiples of 2^-298). It is NaN where the sum is not finite; there the sum stays as it is.
    error = (p - (s - back)) + (c - back)
    bits = s.view(np.int64)
    inexact = np.isfinite(s) & (error != 0)
    even = (bits & 1) == 0
    # One step of the bit pattern is one step in magnitude: up where the remainder points away
    # from zero, down where it points towards it. `s` is not zero here, a zero sum being exact.
    away = (error > 0) == (s > 0)
    return (bits + np.where(inexact & even, np.where(away, 1, -1), 0)).view(np.float64)


def nearest(real):
    """RN of a Fraction (or an integer), exactly."""
    real = Fraction(real)
    if real == 0:
        return ZERO
    size = abs(real)
    # The exponent k with 2^k <= size < 2^(k+1), from the lengths of the two integers.
    k = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** k:
        k -= 1
    quantum = Fraction(2) ** (max(k, -126) - 23)
    units = round(size / quantum)  # Python rounds a Fraction to the nearest integer, ties to even
    rounded = units * quantum
    value = F(np.inf) if rounded >= Fraction(2) ** 128 else F(float(rounded))
    return -value if real < 0 else value


def nearest_root(real):
    """RN(sqrt(real)) of a Fraction that is not negative, rounded once.

    The integer root of real * 4^shift has 64 bits or more; one more bit, set when anything was cut
    off, makes the rational number behave under rounding as the irrational one does.
    """
    if real == 0:
        return ZERO
    shift = 64 + max(0, real.denominator.bit_length() - real.numerator.bit_length())
    scaled = real * 4**shift
    root = isqrt(scaled.numerator // scaled.denominator)
    sticky = 0 if root * root == scaled else 1
    return nearest(Fraction(2 * root + sticky, 2 ** (shift + 1)))


def integer(value):
    """RN of an integer, a Python one or an array of int64."""
    if isinstance(value, np.ndarray):
        return value.astype(np.float32)
    return nearest(value)


def from_text(text):
    """1.6: the float nearest to a decimal number, rounded once from the decimal."""
    text = text.strip()
    value = nearest(Fraction(text.lstrip("+-")))
    return -value if text.startswith("-") else value


def to_text(value):
    """1.6: the shortest %.Ng that reads back as the same float."""
    for digits in range(1, 10):
        text = "%.*g" % (digits, float(value))
        if from_text(text) == value:
            break
    return text

"""Writes src/num/host_vectors.h: known answers of a processor's arithmetic, in exact rational arithmetic.

Operands are chosen where wrong arithmetic shows: ties, subnormal numbers, products that cancel, zeros of
either sign; some are drawn. No result is a NaN or an infinity.

    python3 tests/host_vectors.py > src/num/host_vectors.h
"""
import random
from fractions import Fraction
from math import isqrt

FLOAT, DOUBLE = (24, -126, 127, 32), (53, -1022, 1023, 64)  # digits, exponents, bits


def value(bits, kind):
    """(exact value, whether the sign is minus) of a finite number by its bits."""
    digits, least, _, width = kind
    mantissa, exponent = bits % 2**(digits - 1), bits >> (digits - 1) & (2**(width - digits) - 1)
    mantissa += 2**(digits - 1) if exponent else 0
    negative = bits >> (width - 1) == 1
    magnitude = Fraction(mantissa) * Fraction(2)**(max(exponent, 1) - 1 + least - digits + 1)
    return (-magnitude if negative else magnitude), negative


def nearest(x):
    low = x.numerator // x.denominator
    rest = x - low
    return low + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2 == 1))


def rounded(x, kind, negative_zero=False):
    """The bits of the number nearest to a fraction, ties to even."""
    digits, least, most, width = kind
    sign = (x < 0 or (x == 0 and negative_zero)) << (width - 1)
    x = abs(x)
    if x == 0:
        return sign
    e = x.numerator.bit_length() - x.denominator.bit_length()
    e = max(e if Fraction(2)**e <= x else e - 1, least)
    units = nearest(x / Fraction(2)**(e - digits + 1))
    bits = units if e == least else units + ((e - least) << (digits - 1))
    assert bits >> (digits - 1) <= most - least + 1, "no infinity is wanted here"
    return sign | bits


def root(x, kind):
    """Two bits more than are kept, and one that stands for all the rest, decide every rounding."""
    shift = 2 * (kind[0] + 160)
    scaled = x * 2**shift
    low = isqrt(int(scaled))
    return rounded(Fraction(2 * low + (low * low != scaled), 2 * 2**(shift // 2)), kind)


def add(a, b, kind):
    (x, m), (y, n) = value(a, kind), value(b, kind)
    return rounded(x + y, kind, m and n)


def multiply(a, b, kind):
    (x, m), (y, n) = value(a, kind), value(b, kind)
    return rounded(x * y, kind, m != n)


def divide(a, b, kind):
    (x, m), (y, n) = value(a, kind), value(b, kind)
    return rounded(x / y, kind, m != n)


def fma(a, b, c):
    (x, m), (y, n), (z, o) = (value(i, FLOAT) for i in (a, b, c))
    return rounded(x * y + z, FLOAT, (m != n) and o)


def whole(bits):
    return nearest(value(bits, FLOAT)[0]) % 2**64


def signed(bits):
    return bits - 2**64 if bits >> 63 else bits


def of(x, kind=FLOAT):
    return rounded(Fraction(x), kind)


ONE, MINUS, TINY, LEAST = of(1), of(-1), 1, of(Fraction(2)**-126)
HALF_UNIT = of(Fraction(2)**-24)
PLUS_0, MINUS_0 = 0, 1 << 31


def power(n, extra=0):
    return of(Fraction(2)**n * (1 + extra * Fraction(2)**-23))


def cases():
    draw = random.Random(14)

    def drawn(low, high):
        return draw.getrandbits(1) << 31 | (draw.randint(low, high) + 127) << 23 | draw.getrandbits(23)

    some = [(drawn(-3, 3), drawn(-3, 3)) for _ in range(6)]
    small = [(drawn(-120, -110), drawn(-30, -10)) for _ in range(6)]
    pairs = [(ONE, HALF_UNIT), (power(0, 1), HALF_UNIT), (ONE, HALF_UNIT + 1), (MINUS, HALF_UNIT),
             (LEAST, 0x807fffff), (TINY, TINY), (PLUS_0, MINUS_0), (MINUS_0, MINUS_0), (ONE, MINUS),
             (0x7f7fffff, 0x72ffffff), *some]
    for a, b in pairs:
        yield "ADD", a, b, 0, add(a, b, FLOAT)
    for a, b in [(LEAST, of(0.5)), (TINY, power(100)), (TINY, of(0.5)), (3, of(0.5)), (LEAST + 1, of(0.5)),
                 (power(0, 1), power(0, 1)), (MINUS_0, ONE), (TINY, TINY), *some, *small]:
        yield "MULTIPLY", a, b, 0, multiply(a, b, FLOAT)
    for a, b in [(ONE, of(3)), (of(10), of(7)), (LEAST, of(3)), (TINY, of(2)), (3, of(2)), (ONE, of(255)),
                 (MINUS_0, of(7)), (ONE, 0x7e800001), (power(-100), power(30, 3)), *some]:
        yield "DIVIDE", a, b, 0, divide(a, b, FLOAT)
    for a in [of(2), of(3), TINY, 0x007fffff, LEAST, 0x3f7fffff, 0x7f7fffff, *(x & 2**31 - 1 for x, _ in some)]:
        yield "ROOT", a, 0, 0, root(value(a, FLOAT)[0], FLOAT)
    yield "ROOT", MINUS_0, 0, 0, MINUS_0
    eps = power(0, 1)
    triples = [
        (eps, eps, power(0, 2) | 1 << 31),           # what the rounding of the product leaves
        (power(0, 1 << 11), power(0, 1 << 11), of(Fraction(2)**-80)),  # a tie, and a little more
        (power(0, 1 << 11), power(0, 1 << 11), of(-Fraction(2)**-80)),  # a tie, and a little less
        (ONE, HALF_UNIT, ONE), (ONE, HALF_UNIT, power(0, 1)),  # ties, to even
        (power(0, 1), power(-24, 0), ONE), (0x3f7fffff, HALF_UNIT, ONE),
        (power(-75), power(-75), ONE), (power(-75, 5), power(-75, 3), TINY),  # the product is subnormal
        (LEAST, of(0.5), TINY), (power(-70), power(-70), LEAST), (power(-74), power(-75), 0x80000001),
        (0x7f000000, of(2), 0xff7fffff),             # the product alone is beyond the greatest number
        (MINUS_0, ONE, MINUS_0), (MINUS_0, ONE, PLUS_0), (ONE, ONE, MINUS),
        *((a, b, multiply(a, b, FLOAT) ^ 1 << 31) for a, b in some),
        *((a, b, drawn(-40, 40)) for a, b in some), *((a, b, drawn(-126, -120)) for a, b in small)]
    for a, b, c in triples:
        yield "FMA", a, b, c, fma(a, b, c)
        yield "MULTIPLY_ADD", a, b, c, None if c == 0xff7fffff else add(multiply(a, b, FLOAT), c, FLOAT)
    for a in [of(0.5), of(1.5), of(2.5), of(-0.5), of(-1.5), of(-2.5), 0x4affffff, of(2**40), of(-2**61),
              of(Fraction(1, 3)), MINUS_0, TINY]:
        yield "TO_INTEGER", a, 0, 0, whole(a)
    for a in [0, 1, 2**24 + 1, 2**24 + 3, 2**53 + 2**29, 2**53 + 2**29 + 1, 2**62 + 2**38, 2**63 - 1,
              2**64 - 2**24 - 1, 2**64 - 2**24 - 3, 2**40 + 2**16 + 1, 2**40 + 2**16 - 1]:
        yield "FROM_INTEGER", a, 0, 0, rounded(Fraction(signed(a)), FLOAT)
    for x in [1 + Fraction(2)**-24, 1 + 3 * Fraction(2)**-24, 1 + Fraction(2)**-24 + Fraction(2)**-50,
              Fraction(2)**-149, Fraction(2)**-150, 3 * Fraction(2)**-150, -Fraction(2)**-200,
              Fraction(2)**-126 - Fraction(2)**-151, Fraction(1, 10), Fraction(10)**20]:
        a = of(x, DOUBLE)
        yield "NARROW", a, 0, 0, rounded(value(a, DOUBLE)[0], FLOAT, a >> 63 == 1)
    for a in [TINY, 0x80000001, 0x007fffff, of(Fraction(1, 3)), MINUS_0, 0x7f7fffff]:
        yield "WIDEN", a, 0, 0, rounded(value(a, FLOAT)[0], DOUBLE, a >> 31 == 1)
    tenth, third, big = of(Fraction(1, 10), DOUBLE), of(Fraction(1, 3), DOUBLE), of(2**53 - 1, DOUBLE)
    one, ulp, ten = of(1, DOUBLE), of(Fraction(2)**-53, DOUBLE), of(10**22, DOUBLE)
    for a, b in [(one, ulp), (one, ulp + 1), (one + 1, ulp), (tenth, third), (big, one), (1, 1), (2**52, 1 << 63 | 1)]:
        yield "DOUBLE_ADD", a, b, 0, add(a, b, DOUBLE)
        yield "DOUBLE_MULTIPLY", a, b, 0, multiply(a, b, DOUBLE)
    for a, b in [(big, ten), (one, of(3, DOUBLE)), (tenth, third), (of(10**15 + 1, DOUBLE), ten), (2**52, of(3, DOUBLE))]:
        yield "DOUBLE_DIVIDE", a, b, 0, divide(a, b, DOUBLE)
    for a, b in [(PLUS_0, TINY), (TINY, PLUS_0), (MINUS_0, PLUS_0), (0x80000001, PLUS_0), (TINY, 2), (MINUS, ONE)]:
        yield "LESS", a, b, 0, int(value(a, FLOAT)[0] < value(b, FLOAT)[0])


print("""/* clang-format off */
/* Known answers of arithmetic, made by tests/host_vectors.py in exact rational arithmetic. Numbers are
 * given by their bits. */
#ifndef QN_NUM_HOST_VECTORS_H
#define QN_NUM_HOST_VECTORS_H

#include "num/host.h"

typedef struct host_vector {
    qn__host_operation operation;
    uint64_t a, b, c, want;
} host_vector;

static const host_vector host_vectors[] = {""")
for name, a, b, c, want in cases():
    if want is not None:
        print(f"    {{QN__HOST_{name}, 0x{a:x}, 0x{b:x}, 0x{c:x}, 0x{want:x}}},")
print("};\n\n#endif")

"""Writes src/num/intgemm_vectors.h: blocks, products and roundings of docs/exactness.md section 15 in exact rational arithmetic.

A block's exponent is not computed but searched for: it is the smallest that keeps all integers of the block below
2^(B-1), and not below the least.

    python3 tests/intgemm_vectors.py > src/num/intgemm_vectors.h
"""
import random
from fractions import Fraction

from optimise_vectors import F, TINY, fma, mul, nearest, number, rn

BITS = (7, 14, 21)
LARGEST = (2 - Fraction(1, 2**23)) * 2**127


def power(exponent):
    return Fraction(2) ** exponent


def fix(value, t):
    return nearest(abs(value) / power(t)) * (-1 if value < 0 else 1)


def exponent_of(bits, values):
    greatest, t = max(map(abs, values)), -93 - bits
    while abs(fix(greatest, t)) >= 2 ** (bits - 1):
        t += 1
    return t


def block(bits, numbers):
    values = [x.value for x in numbers]
    t = exponent_of(bits, values)
    return t, [fix(v, t) for v in values]


# ---- Vectors ----

def greatest_magnitudes(bits):
    """Where the exponent changes and one step to either side, at both ends of the range, and anywhere."""
    step = Fraction(1, 2**23)
    border = 2 - power(1 - bits)
    for e in (-149, -127, -126, -96, -95, -94, -1, 0, 1, 77, 126, 127):
        for f in (Fraction(1), 1 + step, border - step, border, border + step, 2 - step):
            value = f * power(e)
            if value % TINY == 0 and value <= LARGEST:
                yield value
    yield Fraction(0)
    yield TINY * (2**23 - 1)


def some_integers(rng):
    """Numbers with ties when they are shifted right, and such that come close to a power of two."""
    n = rng.randrange(2 ** rng.randint(1, 62))
    if rng.random() < 0.4:
        n = (2 * rng.randrange(2 ** rng.randint(1, 30)) + 1) << rng.randint(0, 30)
    if rng.random() < 0.3:
        n = 2 ** rng.randint(0, 62) + rng.choice([-1, 0, 1])
    return n * rng.choice([-1, 1])


def units(n, shift, limit):
    """The integer, or None where the magnitude is not below 2^limit."""
    value = n * power(shift)
    return None if abs(value) >= power(limit) else nearest(abs(value)) * (-1 if value < 0 else 1)


def layer(rng, bits, low, high):
    """A small layer with its inputs and errors: forward, backward and gradient."""
    inputs, outputs, items = rng.randint(1, 6), rng.randint(1, 4), rng.randint(1, 3)
    def many(count, down, up):
        return [F(0, rng.random() < 0.5) if rng.random() < 0.1 else number(rng, down, up) for _ in range(count)]
    w = [many(inputs, rng.randint(-9, 0), 2) for _ in range(outputs)]
    if rng.random() < 0.3:
        w[rng.randrange(outputs)] = [F(0)] * inputs
    b = many(outputs, -3, 1)
    a = [many(inputs, low, high) for _ in range(items)]
    d = [many(outputs, low + 20, high + 20) for _ in range(items)]
    weights = [block(bits, row) for row in w]

    z, e = [], []
    for x, delta in zip(a, d):
        ta, qa = block(bits, x)
        for (tw, qw), bias in zip(weights, b):
            total = rn(Fraction(sum(p * q for p, q in zip(qa, qw))))
            z.append(fma(total, rn(power(ta + tw)), bias))
        tc, qc = block(bits, [mul(y, F(power(tw))) for y, (tw, _) in zip(delta, weights)])
        for k in range(inputs):
            e.append(mul(rn(Fraction(sum(q * qw[k] for q, (_, qw) in zip(qc, weights)))), F(power(tc))))

    ta, qa = block(bits, sum(a, []))
    td, qd = block(bits, sum(d, []))
    total = {(o, k): sum(qd[i * outputs + o] * qa[i * inputs + k] for i in range(items))
             for o in range(outputs) for k in range(inputs)}
    gradient = [units(n, ta + td, 61) for n in total.values()]
    assert None not in gradient
    return inputs, outputs, items, sum(w, []) + b, sum(a, []), sum(d, []), z, e, gradient


def hexes(numbers):
    return ", ".join(f"0x{x.bits():08x}" for x in numbers)


def main():
    rng = random.Random(1506)
    print("/* clang-format off */\n/* Block fixed point in exact rational arithmetic, made by tests/intgemm_vectors.py. Floats are "
          "given by their bits. */")
    print("#ifndef QN_NUM_INTGEMM_VECTORS_H\n#define QN_NUM_INTGEMM_VECTORS_H\n\n#include <stdint.h>\n")

    print("static const struct {\n    int bits;\n    uint32_t absmax;\n    int32_t t, q; /* q: the greatest as integer */"
          "\n} exponent_vectors[] = {")
    for bits in BITS:
        for value in greatest_magnitudes(bits):
            t = exponent_of(bits, [value])
            print(f"    {{{bits}, 0x{F(value).bits():08x}, {t}, {fix(value, t)}}},")

    print("};\n\nstatic const struct {\n    int64_t n, s;\n    int limit; /* 2^limit */\n    int fits;\n    int64_t units;"
          "\n} units_vectors[] = {")
    for _ in range(160):
        n, s, limit = some_integers(rng), rng.randint(-70, 70), rng.randint(0, 61)
        if rng.random() < 0.5:  # about as large as the limit
            s = max(-70, min(70, limit - abs(n).bit_length() + rng.choice([-1, 0, 0, 1])))
        got = units(n, s, limit)
        print(f"    {{INT64_C({n}), {s}, {limit}, {int(got is not None)}, INT64_C({got or 0})}},")

    print("};\n\nenum { MOST_IN = 6, MOST_OUT = 4, MOST_ITEMS = 3 };\n\nstatic const struct {\n    int bits;"
          "\n    uint32_t in, out, items;\n    uint32_t parameters[MOST_IN * MOST_OUT + MOST_OUT];"
          "\n    uint32_t a[MOST_IN * MOST_ITEMS], d[MOST_OUT * MOST_ITEMS];"
          "\n    uint32_t z[MOST_OUT * MOST_ITEMS], e[MOST_IN * MOST_ITEMS];"
          "\n    int64_t units[MOST_IN * MOST_OUT];\n} layer_vectors[] = {")
    for bits in BITS:
        for low, high in ((-3, 3), (-3, 3), (-12, 6), (-140, -100), (-149, -120), (-40, 0)):
            inputs, outputs, items, *arrays, gradient = layer(rng, bits, low, high)
            print(f"    {{{bits}, {inputs}, {outputs}, {items},")
            for array in arrays:
                print(f"     {{{hexes(array)}}},")
            print("     {" + ", ".join(map(str, gradient)) + "}},")
    print("};\n\n#endif")


if __name__ == "__main__":
    main()

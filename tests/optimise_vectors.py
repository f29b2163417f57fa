"""Writes src/num/optimise_vectors.h: the updates of docs/exactness.md section 9 in exact rational arithmetic.

Every operation is carried out on fractions and rounded once to binary32, so nothing of the C code, of NumPy or
of this machine's floating point is used.

    python3 tests/optimise_vectors.py > src/num/optimise_vectors.h
"""
import random
from fractions import Fraction
from math import isqrt

OPTIMIZERS = ["SGD", "MOMENTUM", "ADAM", "ADAMW", "NESTEROV"]
CASES = 24
TINY = Fraction(1, 2**149)


class F:
    """A finite binary32 number; a zero has a sign."""

    def __init__(self, value, negative=None):
        self.value = Fraction(value)
        self.negative = self.value < 0 if negative is None else negative

    def bits(self):
        sign = 0x80000000 if self.negative else 0
        magnitude = abs(self.value)
        if magnitude == 0:
            return sign
        exponent = max(floor_log2(magnitude), -126)
        mantissa = magnitude / Fraction(2) ** (exponent - 23)
        assert mantissa.denominator == 1 and mantissa < 2**24
        if mantissa < 2**23:
            return sign | int(mantissa)
        return sign | (exponent + 127) << 23 | (int(mantissa) - 2**23)


def floor_log2(x):
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


def nearest(x):
    """The whole number nearest to a fraction, ties to even."""
    low = x.numerator // x.denominator
    rest = x - low
    return low + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2 == 1))


def rn(x, negative_zero=False):
    if x == 0:
        return F(0, negative_zero)
    grid = Fraction(2) ** (max(floor_log2(abs(x)), -126) - 23)
    rounded = nearest(abs(x) / grid) * grid
    assert rounded < 2**128, "overflow is not wanted here"
    return F(-rounded if x < 0 else rounded, x < 0)


def neg(a):
    return F(-a.value, not a.negative)


def mul(a, b):
    return rn(a.value * b.value, a.negative != b.negative)


def add(a, b):
    return rn(a.value + b.value, a.negative and b.negative)


def sub(a, b):
    return add(a, neg(b))


def div(a, b):
    return rn(a.value / b.value, a.negative != b.negative)


def fma(a, b, c):
    product, sign = a.value * b.value, a.negative != b.negative
    return rn(product + c.value, product == 0 and sign and c.negative)


def sqrt(a):
    """Rounded once: compares squares, so that no digit of the root is needed beyond the two candidates."""
    if a.value == 0:
        return a
    exponent = floor_log2(a.value)
    shift = 2 * (30 - exponent // 2)
    scaled = a.value * Fraction(2) ** shift
    low = isqrt(scaled.numerator // scaled.denominator)  # 31 bits of the root
    root = Fraction(low)
    if root * root != scaled:
        root += Fraction(1, 2)  # not on any tie of 24 bits, and on the right side of all of them
    return rn(root / Fraction(2) ** (shift // 2))


ONE = F(1)


def update(name, p, u, is_weight, total, w, m, v):
    g = mul(rn(Fraction(total)), u["gradient"])
    decays = is_weight and p["decay"].value != 0
    if decays and name != "ADAMW":
        g = fma(p["decay"], w, g)
    if name == "SGD":
        return fma(neg(u["rate"]), g, w), m, v
    if name == "MOMENTUM":
        m = fma(p["momentum"], m, g)
        return fma(neg(u["rate"]), m, w), m, v
    if name == "NESTEROV":
        m = fma(p["momentum"], m, g)
        return fma(neg(u["rate"]), fma(p["momentum"], m, g), w), m, v
    if decays and name == "ADAMW":
        w = fma(neg(mul(u["rate"], p["decay"])), w, w)
    m = fma(p["beta1"], m, mul(sub(ONE, p["beta1"]), g))
    v = fma(p["beta2"], v, mul(mul(sub(ONE, p["beta2"]), g), g))
    d = add(sqrt(mul(v, u["r"])), p["epsilon"])
    return sub(w, div(mul(u["a"], m), d)), m, v


def begin(p, rate, items, unit, p1, p2):
    p1, p2 = mul(p1, p["beta1"]), mul(p2, p["beta2"])
    gradient = mul(div(ONE, rn(Fraction(items))), F(Fraction(1, 2**unit)))
    return {"p1": p1, "p2": p2, "rate": rate, "gradient": gradient,
            "a": div(rate, sub(ONE, p1)), "r": div(ONE, sub(ONE, p2))}


def number(rng, low, high):
    return rn(Fraction(rng.choice([-1, 1]) * rng.randrange(2**23, 2**24)) * Fraction(2) ** (
        rng.randint(low, high) - 23))


def some_number(rng, low, high):
    luck = rng.random()
    if luck < 0.05:
        return F(0, rng.random() < 0.5)
    if luck < 0.15:
        return F(TINY * rng.choice([-1, 1]) * rng.randrange(1, 2**23))
    return number(rng, low, high)


def positive(x):
    return F(abs(x.value), False)


def program(rng):
    return {"momentum": rn(Fraction(rng.choice(["0.9", "0.5", "0.1"]))),
            "beta1": rn(Fraction(rng.choice(["0.9", "0.5", "0"]))),
            "beta2": rn(Fraction(rng.choice(["0.999", "0.99", "0"]))),
            "epsilon": rn(Fraction(rng.choice(["1e-8", "1e-3", "1e-30"]))),
            "decay": rn(Fraction(rng.choice(["0", "0.01", "1e-4"])))}


def some_sum(rng):
    """Sums that a float holds and sums that it does not, ties of the rounding among them."""
    total = rng.randrange(2 ** rng.randint(1, 62))
    if total >= 2**25 and rng.random() < 0.4:
        half = 2 ** (total.bit_length() - 25)
        total = total // (2 * half) * 2 * half + half + rng.choice([-1, 0, 0, 1])
    return rng.choice([-1, 1, 1, 0][:3]) * total


def hexes(*numbers):
    return ", ".join(f"0x{x.bits():08x}" for x in numbers)


def main():
    rng = random.Random(2026)
    print("/* clang-format off */\n/* Updates in exact rational arithmetic, made by tests/optimise_vectors.py. Floats are given by "
          "their bits. */")
    print("#ifndef QN_NUM_OPTIMISE_VECTORS_H\n#define QN_NUM_OPTIMISE_VECTORS_H\n")
    print('#include "num/program.h"\n')
    print("typedef struct update_vector {\n    qn__optimizer optimizer;\n    int is_weight;\n    int64_t sum;"
          "\n    uint32_t momentum, beta1, beta2, epsilon, decay;\n    uint32_t rate, gradient, a, r;"
          "\n    uint32_t before[3], after[3]; /* w, m, v */\n} update_vector;\n")
    print("static const update_vector update_vectors[] = {")
    for name in OPTIMIZERS:
        for _ in range(CASES):
            p, unit = program(rng), rng.randint(0, 60)
            rate = positive(number(rng, -12, 1))
            powers = [rn(Fraction(rng.randrange(1, 1000), 1000)) for _ in range(2)]
            u = begin(p, rate, rng.randrange(1, 2000), unit, *powers)
            before = [some_number(rng, -10, 3), some_number(rng, -30, 0),
                      positive(some_number(rng, -40, 0))]
            total, is_weight = some_sum(rng), rng.randrange(2)
            after = update(name, p, u, is_weight, total, *before)
            print(f"    {{QN__OPT_{name}, {is_weight}, INT64_C({total}),\n     "
                  + hexes(*(p[k] for k in ("momentum", "beta1", "beta2", "epsilon", "decay"))) + ",\n     "
                  + hexes(u["rate"], u["gradient"], u["a"], u["r"])
                  + f",\n     {{{hexes(*before)}}},\n     {{{hexes(*after)}}}}},")
    print("};\n\ntypedef struct begin_vector {\n    uint32_t beta1, beta2, rate, unit;\n    uint64_t items;"
          "\n    uint32_t before[2]; /* P1, P2 */\n    uint32_t after[2], gradient, a, r;\n} begin_vector;\n")
    print("static const begin_vector begin_vectors[] = {")
    for _ in range(CASES):
        p, unit, items = program(rng), rng.randint(0, 60), rng.randrange(1, 2 ** rng.randint(1, 31))
        rate = positive(number(rng, -12, 1))
        powers = [rn(Fraction(rng.randrange(1, 1001), 1000)) for _ in range(2)]
        u = begin(p, rate, items, unit, *powers)
        print(f"    {{{hexes(p['beta1'], p['beta2'], rate)}, {unit}, {items},\n     {{{hexes(*powers)}}},"
              f"\n     {{{hexes(u['p1'], u['p2'])}}}, {hexes(u['gradient'], u['a'], u['r'])}}},")
    print("};\n\n#endif")


if __name__ == "__main__":
    main()

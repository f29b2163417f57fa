"""Vectors for the C tests of the data engine, computed with Python's own fractions and hashlib.

    python tests/data_vectors.py exact_sum > src/num/exact_sum_vectors.h
    python tests/data_vectors.py digest    > src/data/table/digest_vectors.h

test_data.py checks that the committed files are what this script writes.
"""

import hashlib
import random
import struct
import sys
from fractions import Fraction
from math import isqrt


def bits(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def number(pattern):
    return struct.unpack("<f", struct.pack("<I", pattern))[0]


def round_ratio(x):
    """The bits of the float32 nearest to a Fraction that is not negative, ties to even."""
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    if x < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, -126) - 23) if x else Fraction(2) ** -149
    return bits(float(round(x / unit) * unit))  # round() takes ties to even


def round_root(x):
    """The bits of the float32 nearest to the root of a Fraction: 200 more bits decide."""
    scaled = x * 4 ** 400
    root = isqrt(scaled.numerator // scaled.denominator)
    exact = Fraction(root) ** 2 == scaled
    return round_ratio(Fraction(2 * root + (not exact), 2 ** 401))


def statistics(values):
    n = len(values)
    exact = [Fraction(v) for v in values]
    total, squares = sum(exact), sum(v * v for v in exact)
    mean = round_ratio(abs(total) / n)
    if total < 0 and mean:
        mean |= 0x80000000
    return mean, round_root((n * squares - total * total) / (n * n))


def weighted(values, weights):
    """The bits of the weighted mean, of the deviation, and of each weight's share."""
    own = [Fraction(w) for w in weights]
    exact = [Fraction(v) for v in values]
    together = sum(own)
    total = sum(w * v for w, v in zip(own, exact))
    squares = sum(w * v * v for w, v in zip(own, exact))
    mean = round_ratio(abs(total) / together)
    if total < 0 and mean:
        mean |= 0x80000000
    deviation = round_root((together * squares - total * total) / (together * together))
    return mean, deviation, [round_ratio(w * len(own) / together) for w in own]


def weighted_cases():
    """(values, weights), as bits."""
    draw = random.Random(20261123)

    def finite(top):
        return next(p for p in iter(lambda: draw.getrandbits(32) & top, None)
                    if (p >> 23) & 255 != 255)

    yield [0x3F800000, 0x40000000], [0x3F800000, 0x3F800000]
    yield [0x3F800000], [0x00000001]                      # the least weight of all
    yield [0x3F800000, 0x40400000], [0x7F7FFFFF, 0x00000001]
    yield [0x7F7FFFFF, 0xFF7FFFFF], [0x7F7FFFFF, 0x7F7FFFFE]
    yield [0x00000001, 0x80000001], [0x00000001, 0x00000002]
    yield [0x3F800000, 0x3F800001, 0x3F800002], [0x3DCCCCCD] * 3
    for _ in range(24):                                   # any numbers
        n = draw.randint(2, 8)
        yield [finite(0xFFFFFFFF) for _ in range(n)], [finite(0x7FFFFFFF) or 1 for _ in range(n)]
    for _ in range(24):                                   # like data; some weights are 0
        n = draw.randint(2, 8)
        yield ([bits(draw.gauss(3, 0.5)) for _ in range(n)],
               [bits(draw.random() * draw.choice([0, 1, 1])) for _ in range(n - 1)] + [0x3F000000])
    for _ in range(24):                                   # whole weights: shares that are ties
        n = draw.choice([3, 5, 6, 7, 8])
        yield ([bits(float(draw.randint(-3, 3))) for _ in range(n)],
               [bits(float(draw.randint(1, 1 << draw.randint(1, 24)))) for _ in range(n)])


def nearly_ties(draw, count):
    """Numbers whose deviation lies a little above the middle of two floats, the lower one even:
    of four integers, so that only the root itself is not exact."""
    while count > 0:
        case = [float(draw.randint(0, 4000)) for _ in range(4)]
        total, squares = sum(case), sum(v * v for v in case)
        x = Fraction(4 * squares - total * total) / 16
        if not x:
            continue
        low = Fraction(number(round_root(x)))
        unit = Fraction(2) ** (low.numerator.bit_length() - low.denominator.bit_length() - 23)
        root = Fraction(isqrt(int(x * 4 ** 80)), 2 ** 80) / unit
        if root % 2 > Fraction(1, 2) and root % 2 < Fraction(129, 256):
            count -= 1
            yield [bits(v) for v in case]


def exact_cases():
    draw = random.Random(20261121)
    yield [0x00000000] * 3
    yield [0x3F800000, 0x40000000, 0x40400000, 0x40800000]
    yield [0x00000001]
    yield [0x00000001, 0x00000000]                    # half a subnormal unit: to even, to zero
    yield [0x00000001, 0x00000002]                    # one and a half: to even, to two
    yield [0x80000001, 0x00000000, 0x00000000]        # a mean that vanishes is +0
    yield [0x7F7FFFFF, 0x7F7FFFFF, 0x7F7FFFFF]
    yield [0x7F7FFFFF, 0xFF7FFFFF]
    yield [0x7F7FFFFF, 0x00000001, 0xFF7FFFFF]
    yield [0x3F800000, 0x3F800001]                    # a tie
    yield [0x3F800001, 0x3F800002]
    yield [0x4B7FFFFF, 0x4B800000, 0x4B7FFFFF]
    yield [0x40000000, 0x40000001, 0x00000001, 0]     # a tie but for the last bit of all
    yield [0x40000000, 0x40000001, 0x80000001, 0]
    yield from nearly_ties(draw, 8)
    for _ in range(24):                               # any finite number
        yield [p for p in (draw.getrandbits(32) for _ in range(draw.randint(2, 20)))
               if (p >> 23) & 255 != 255] or [0]
    for _ in range(24):                               # like data: near each other
        yield [bits(draw.gauss(3, 0.5)) for _ in range(draw.randint(2, 24))]
    for _ in range(12):                               # nearly constant: all bits cancel
        base = 0x42280000
        yield [base + draw.randint(0, 2) for _ in range(draw.randint(2, 24))]
    for _ in range(12):                               # small integers: exact roots and ties
        yield [bits(float(draw.randint(-3, 3))) for _ in range(draw.choice([2, 4, 8, 16]))]
    for _ in range(12):                               # subnormal
        yield [draw.getrandbits(23) | draw.getrandbits(1) << 31
               for _ in range(draw.randint(2, 12))]


def exact_sum():
    print("/* clang-format off */")
    print("/* Written by tests/data_vectors.py: numbers, and the float32 nearest to their mean and")
    print(" * to their deviation, as bits. */")
    print("static const struct {\n    uint32_t mean, deviation;\n    int count;\n"
          "    uint32_t values[24];\n} exact_vectors[] = {")
    for case in exact_cases():
        mean, deviation = statistics([number(p) for p in case])
        words = [f"0x{p:08x}" for p in case]
        print(f"    {{0x{mean:08x}, 0x{deviation:08x}, {len(case)},")
        for i in range(0, len(words), 7):
            lead = "     {" if i == 0 else "      "
            end = "}}," if i + 7 >= len(words) else ","
            print(lead + ", ".join(words[i:i + 7]) + end)
    print("};")
    print_weighted()


def row(words):
    return "{" + ", ".join(f"0x{p:08x}" for p in words) + "}"


def print_weighted():
    print("\n/* The same with weights, and the float32 nearest to w * n / W of each weight w. */")
    print("static const struct {\n    uint32_t mean, deviation;\n    int count;\n"
          "    uint32_t values[8], weights[8], shares[8];\n} weighted_vectors[] = {")
    for values, weights in weighted_cases():
        mean, deviation, shares = weighted([number(p) for p in values],
                                           [number(p) for p in weights])
        print(f"    {{0x{mean:08x}, 0x{deviation:08x}, {len(values)},")
        print("     " + ",\n     ".join(map(row, (values, weights, shares))) + "},")
    print("};")


def blocks(data):
    step = 1 << 20
    inner = b"".join(hashlib.sha256(data[i:i + step]).digest() for i in range(0, len(data), step))
    return hashlib.sha256(inner).digest()


def wide_of(table):
    """docs/exactness.md 23.4: {column: int64 values} of the columns of integers that float32 does not hold."""
    import numpy as np

    found = {}
    for k in range(table.shape[1]) if table.dtype.kind in "iu" else ():
        column = [int(value) for value in table[:, k]]
        if max(map(abs, column)) < 2**63 and any(int(np.float32(value)) != value for value in column):
            found[k] = np.array(column, "<i8")
    return found


def digest_of(kind, items, features, values, labels, real=False, wide=None):
    """docs/exactness.md 2.2, 23.5; `values` and `labels` are bytes, `labels` may be None, and are targets where
    `real`. `wide` as of wide_of."""
    head = ((b"quern data 2\n" if wide else b"quern data 1\n") + bytes([kind]) + struct.pack("<QQ", items, features)
            + bytes([2 if real else labels is not None]))
    end = struct.pack("<Q", len(wide)) if wide else b""
    for k, column in sorted((wide or {}).items()):
        end += struct.pack("<QB", k, 1) + blocks(column.tobytes())
    return hashlib.sha256(head + blocks(values) + (blocks(labels) if labels is not None else b"") + end
                          ).hexdigest()


DIGEST_CASES = [(1, 1, 1, False), (1, 3, 5, True), (1, 1024, 1024, False), (1, 2049, 1024, True),
                (1, 300000, 4, True), (2, 3, 5, True), (2, 1000, 300, False), (2, 7, 1, True)]


def pattern(i):
    """What element i of a test table is, as a byte; a float is (byte - 100) / 8."""
    return (i * 2654435761 & 0xFFFFFFFF) >> 13 & 255


def digest():
    print("/* clang-format off */")
    print("/* Written by tests/data_vectors.py: tables of a pattern and their digests. */")
    print("static const struct {\n    int type;\n    uint64_t items;\n    uint32_t features;\n"
          "    int labelled;\n    const char *digest;\n} digest_vectors[] = {")
    for kind, items, features, labelled in DIGEST_CASES:
        plain = [pattern(i) for i in range(items * features)]
        values = bytes(plain) if kind == 1 else struct.pack(
            f"<{len(plain)}f", *[(v - 100) / 8 for v in plain])
        labels = struct.pack(f"<{items}i", *[pattern(i) % 10 for i in range(items)])
        text = digest_of(kind, items, features, values, labels if labelled else None)
        print(f"    {{{kind}, {items}, {features}, {int(labelled)},\n     \"{text}\"}},")
    print("};")


if __name__ == "__main__":
    {"exact_sum": exact_sum, "digest": digest}[sys.argv[1]]()

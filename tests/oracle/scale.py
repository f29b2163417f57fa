"""Section 5 of the contract: inputs."""

from fractions import Fraction

import numpy as np

from binary32 import F, ONE, ZERO, nearest, nearest_root

SMALLEST_NORMAL = F(2.0**-126)


def statistics(table):
    """5.2: (mean, deviation, inverse), arrays (F), of the training items.

    Every float is an integer times 2^-149, so the sums are sums of Python's integers, exact.
    """
    n = len(table)
    mean, deviation, inverse = [], [], []
    for column in table.T:
        units = [int(float(value) * 2.0**149) for value in column]
        total = sum(units)
        squares = sum(unit * unit for unit in units)
        # Adding +0 turns a mean that was rounded to -0 into +0 and changes no other.
        mean.append(nearest(Fraction(total, n << 149)) + ZERO)
        spread = nearest_root(Fraction(n * squares - total * total, (n * n) << 298))
        constant = not spread >= SMALLEST_NORMAL
        deviation.append(ZERO if constant else spread)
        inverse.append(ZERO if constant else ONE / spread)
    return tuple(np.array(a, dtype=np.float32) for a in (mean, deviation, inverse))


def inputs(table, scaling, stats):
    """5.1: the array (n, F) of inputs."""
    x = table.astype(np.float32)
    if scaling in ("unit", "fraction"):
        if table.dtype != np.uint8:
            raise SystemExit(f"oracle: the scaling {scaling} is for data of bytes only")
        return x / F(255 if scaling == "unit" else 256)
    if scaling == "standard":
        mean, _, inverse = stats
        return (x - mean) * inverse
    return x


def targets(labels, chosen):
    """5.3: the scaled labels of all items, and (mean, deviation) of the training items."""
    mean, deviation, inverse = statistics(labels[chosen][:, None])
    return (labels - mean) * inverse, (mean, deviation)

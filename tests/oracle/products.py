"""6.3, 8.4 and 8.6 of the contract, and section 15 in their place: the three products of a layer.
Those of a convolution are in pixels.py.

`Chains` computes them as chains of `float`, `Integers` as exact sums of integers; network.py takes
either. Arrays are (items, in), (items, out) and (out, in). Both give the partial gradient of a
grain as 8.7 wants it, in integers, and end the job where 8.7 does.
"""

from fractions import Fraction

import numpy as np

from binary32 import F, ONE, fma, integer

BITS = {"i7": 7, "i14": 14, "i21": 21}


def of(arith):
    """15.1: the products for a recipe's `arith`."""
    return Integers(BITS[arith]) if arith in BITS else Chains()


def units_of(partial, limit):
    """8.7: the integers nearest to partials of `float`."""
    if not (abs(partial) < limit).all():
        raise SystemExit("oracle: a partial gradient is out of range")
    return np.rint(partial).astype(np.int64)


class Chains:
    """Arithmetic `f32`."""

    bits = 0

    def forward(self, a, weight, bias):
        """6.3: z (items, out)."""
        z = np.broadcast_to(bias, (len(a), len(weight)))
        for k in range(weight.shape[1]):
            z = fma(a[:, k, None], weight[None, :, k], z)
        return z

    def backward(self, delta, weight):
        """8.4: e (items, in), before dropout."""
        e = np.zeros((len(delta), weight.shape[1]), dtype=np.float32)
        for o in range(len(weight)):
            e = fma(delta[:, o, None], weight[None, o, :], e)
        return e

    def gradient(self, delta, a, limit):
        """8.6, 8.7: the partials of the weights of one grain, its items in order, as integers."""
        partial = np.zeros((delta.shape[1], a.shape[1]), dtype=np.float32)
        for i in range(len(delta)):
            partial = fma(delta[i, :, None], a[i, None, :], partial)
        return units_of(partial, limit)


class Integers:
    """Arithmetic `i7`, `i14`, `i21`: `bits` is the B of the text."""

    def __init__(self, bits):
        self.bits = bits

    def block(self, values, axis):
        """15.2, 15.3: (q, t, 2^t) of the blocks along `axis`; None: of one block, the whole.

        The axis stays with length 1 in t and 2^t. Doubles hold v * 2^-t exactly, whatever t is.
        """
        patterns = values.view(np.uint32) & np.uint32(0x7FFFFFFF)
        top = patterns.max(axis=axis, keepdims=True).astype(np.int64)
        exponent = np.maximum(32, (top + 2 ** (24 - self.bits)) // 2**23)
        t = exponent - 125 - self.bits
        factor = np.where(top < 0x7F800000, np.ldexp(ONE, t), F(np.nan))
        values = np.where(top < 0x7F800000, values, F(0))
        return np.rint(np.ldexp(values.astype(np.float64), -t)).astype(np.int64), t, factor

    def forward(self, a, weight, bias):
        """15.4: z (items, out). |N| is at most 2^22 * 2^40, so 64 bits hold it."""
        qa, _, factor_a = self.block(a, 1)
        qw, _, factor_w = self.block(weight, 1)
        return fma(integer(qa @ qw.T), factor_a * factor_w.T, bias)

    def backward(self, delta, weight):
        """15.5: e (items, in), before dropout."""
        qw, _, factor_w = self.block(weight, 1)
        qc, _, factor_c = self.block(delta * factor_w.T, 1)
        return integer(qc @ qw) * factor_c

    def gradient(self, delta, a, limit):
        """15.6, 8.7: the partials of the weights of one grain as integers."""
        qa, ta, factor_a = self.block(a, None)
        qd, td, factor_d = self.block(delta, None)
        return self.units(qd.T @ qa, ta, factor_a, td, factor_d, limit)

    def units(self, n, ta, factor_a, td, factor_d, limit):
        """15.6, 8.7: the partials N * 2^(ta+td) as integers."""
        shift = int(ta.item() + td.item())
        largest = Fraction(2) ** shift * int(abs(n).max())
        if np.isnan(factor_a * factor_d).any() or not largest < Fraction(float(limit)):
            raise SystemExit("oracle: a partial gradient is out of range")
        if not n.any():
            return n
        if shift >= 0:
            return n << shift  # fits: it is below the limit
        return nearest_quotients(n, -shift)


def nearest_quotients(n, shift):
    """The integers nearest to n / 2^shift, ties to even, for |n| below 2^62."""
    if shift > 62:
        return np.zeros_like(n)  # less than a half
    below = n >> shift
    twice = (n - (below << shift)) * 2  # what was cut off, in halves of 2^shift: below 2^63
    up = (twice > 2**shift) | ((twice == 2**shift) & (below % 2 == 1))
    return below + up

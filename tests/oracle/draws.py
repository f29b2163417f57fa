"""Section 22.10 of the contract: random numbers of user kernels."""

import numpy as np

import functions
import philox

KERNEL = 10


def pair(form, u, q, f, k):
    """A normal number: the k-th, of a pair that is drawn by u, q and f."""
    h = f * (form.hex("0x1.921fb54442d18p+0") if form.width == 64 else form.hex("0x1.921fb6p+0"))
    z = h * h
    s = form.fma(h * z, form.in_pairs("SIN", z), h)
    c = form.fma(z * z, form.in_pairs("COS", z), form.fma(z, form.number(-0.5), form.number(1)))
    t = np.where(k % 2 == 0, np.choose(q, [c, -s, -c, s]), np.choose(q, [s, c, -s, -c]))
    return np.sqrt(form.number(-2) * form.log(u)) * t


class Draws:
    """The numbers of items, an array; k is an array of integers from 0, broadcast against it."""

    def __init__(self, formats, seed, item, iteration=0):
        self.f32, self.f64 = formats
        self.seed, self.item, self.iteration = seed, np.asarray(item), iteration

    def word(self, kind, element):
        return philox.word(self.seed, KERNEL, kind, self.iteration, self.item, element)

    def random32(self, k):
        return self.word(0, k).astype(np.uint32)

    def uniformf(self, k):
        return (self.word(2, k) >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)

    def uniform(self, k):
        a, b = (self.word(1, 2 * k + i).astype(np.uint64) for i in (0, 1))
        return ((a >> np.uint64(5) << np.uint64(26)) + (b >> np.uint64(6))).astype(np.float64) * 2.0**-53

    def parts(self, k):
        """(u, q, f) of `normal`."""
        a, b, c, d = (self.word(3, 4 * (k // 2) + i).astype(np.int64) for i in range(4))
        u = (a // 2**6 * 2**27 + 2 * (b // 2**6) + 1).astype(np.float64) * 2.0**-53
        f = (c % 2**30 * 2**23 + 2 * (d // 2**10) + 1 - 2**52).astype(np.float64) * 2.0**-53
        return u, c // 2**30, f

    def partsf(self, k):
        a, b = (self.word(4, 2 * (k // 2) + i).astype(np.int64) for i in (0, 1))
        u = (2 * (a // 2**9) + 1).astype(np.float32) * np.float32(2.0**-24)
        f = (2 * (b // 2**7 % 2**23) + 1 - 2**23).astype(np.float32) * np.float32(2.0**-24)
        return u, b // 2**30, f

    def normal(self, k):
        return pair(self.f64, *self.parts(k), k)

    def normalf(self, k):
        return pair(self.f32, *self.partsf(k), k)


def of(section, seed, item, iteration=0):
    """`section` is the text of section 21."""
    return Draws(functions.formats(section), seed, item, iteration)

"""17.8 of the contract: normalisation over a grain.

Values of a grain are arrays (items, H, W, C); `for` walks pixels and items, whose chains are
ordered, and arrays stand for the channels.
"""

import re

import numpy as np

from binary32 import F, ONE, ZERO, fma, integer
from order import grains
from products import units_of

EPSILON, RATE, UNIT = F(1e-5), F(0.1), F(2.0**32)


def inverse(variance):
    """r"""
    return ONE / np.sqrt(variance + EPSILON)


class BatchNorm:
    kind = "batchnorm"

    def __init__(self, shape):
        self.shape = self.out = shape

    def text(self):
        return self.kind

    def initial(self):
        """weight, bias, running_mean, running_var"""
        one, zero = np.ones(self.shape[0], np.float32), np.zeros(self.shape[0], np.float32)
        return [one, zero, zero.copy(), one.copy()]

    def walk(self, a):
        """The values of all pixels, each (items, C), row after row."""
        return (a[:, y, x] for y in range(self.shape[1]) for x in range(self.shape[2]))

    def measure(self, a):
        """(m, mean, w, r) of a grain."""
        n, m = integer(len(a)), integer(len(a) * self.shape[1] * self.shape[2])
        f, total, squares = (np.zeros(self.shape[0], np.float32) for _ in range(3))
        for x in a[:, 0, 0]:
            f = f + x
        s = f / n
        for pixel in self.walk(a):
            t, q = np.zeros_like(f), np.zeros_like(f)
            for x in pixel:
                d = x - s
                t, q = t + d, fma(d, d, q)
            total, squares = total + t, squares + q
        u = total / m
        w = fma(-u, total, squares)
        w = np.where(w <= 0, ZERO, w)
        return m, s + u, w, inverse(w / m)

    def slopes(self, a, delta, mean):
        """B and G of a grain."""
        total, products = (np.zeros(self.shape[0], np.float32) for _ in range(2))
        for pixel, errors in zip(self.walk(a), self.walk(delta)):
            b, g = np.zeros_like(total), np.zeros_like(total)
            for x, e in zip(pixel, errors):
                b, g = b + e, fma(e, x - mean, g)
            total, products = total + b, products + g
        return total, products

    def forward(self, a, layer, grain):
        """z; `grain` is None outside training."""
        if grain is None:
            mean, variance = layer.running
            factor = layer.weight * inverse(variance)
            return fma(a, factor, fma(-mean, factor, layer.bias)) + ZERO
        parts = []
        for begin, end in grains(len(a), grain):
            _, mean, _, r = self.measure(a[begin:end])
            parts.append(fma(a[begin:end] - mean, layer.weight * r, layer.bias) + ZERO)
        return np.concatenate(parts)

    def backward(self, a, layer, delta, grain):
        parts = []
        for begin, end in grains(len(a), grain):
            x, errors = a[begin:end], delta[begin:end]
            m, mean, _, r = self.measure(x)
            total, products = self.slopes(x, errors, mean)
            k = (products * r) * r / m
            parts.append((layer.weight * r) * fma(-(x - mean), k, errors - total / m) + ZERO)
        return np.concatenate(parts)

    def gradient(self, delta, a, limit):
        """Units of the four arrays from one grain."""
        m, mean, w, r = self.measure(a)
        total, products = self.slopes(a, delta, mean)
        n, others = integer(len(a)), int(m) - 1
        variance = w / integer(others) if others else np.zeros_like(w)
        partials = [products * r, total, (n * mean) * UNIT, (n * variance) * UNIT]
        return [units_of(partial, limit) for partial in partials]


def running(average, total, count):
    """The new running average."""
    value = integer(total) * (ONE / integer(count) * F(2.0**-32))
    return fma(RATE, value - average, average)


def parse(text, shape):
    """A normalisation of the text's beginning, and the rest of the text; None for other layers."""
    found = re.match(r"\s*batchnorm\b\s*", text)
    return (BatchNorm(shape), text[found.end():]) if found else (None, text)

"""17.8 and 17.9 of the contract: normalisation over a grain, and over groups of an item's channels.

Values of a grain are arrays (items, H, W, C); `for` walks what a chain has in order, pixels or items,
and arrays stand for the chains.
"""

import re

import numpy as np

from binary32 import F, ONE, ZERO, fma, from_text, integer, to_text
from order import grains
from products import units_of

EPSILON, RATE, UNIT = F(1e-5), F(0.1), F(2.0**32)  # of 17.8; 24.11 has others


def inverse(variance, eps):
    """r"""
    return ONE / np.sqrt(variance + eps)


def words(eps, rate=RATE):
    """24.11: those that a canonical text has."""
    return (f" eps {to_text(eps)}" if eps != EPSILON else "") + (f" momentum {to_text(rate)}" if rate != RATE else "")


class BatchNorm:
    kind = "batchnorm"

    def __init__(self, shape, eps, rate):
        self.shape = self.out = shape
        self.eps, self.rate = eps, rate

    def text(self):
        return self.kind + words(self.eps, self.rate)

    def initial(self):
        """weight, bias, running_mean, running_var"""
        one, zero = np.ones(self.shape[0], np.float32), np.zeros(self.shape[0], np.float32)
        return [one, zero, zero.copy(), one.copy()]

    def measure(self, a):
        """(m, mean, w, r) of a grain."""
        n, m = integer(len(a)), integer(len(a) * self.shape[1] * self.shape[2])
        f, total, squares = (np.zeros(self.shape[0], np.float32) for _ in range(3))
        for x in a[:, 0, 0]:
            f = f + x
        s = f / n
        # A pixel's chains over the items have nothing to do with those of another.
        t, q = np.zeros_like(a[0]), np.zeros_like(a[0])
        for x in a:
            d = x - s
            t, q = t + d, fma(d, d, q)
        for pixel in np.ndindex(*self.shape[1:]):
            total, squares = total + t[pixel], squares + q[pixel]
        u = total / m
        w = fma(-u, total, squares)
        w = np.where(w <= 0, ZERO, w)
        return m, s + u, w, inverse(w / m, self.eps)

    def slopes(self, a, delta, mean):
        """B and G of a grain."""
        total, products = (np.zeros(self.shape[0], np.float32) for _ in range(2))
        b, g = np.zeros_like(a[0]), np.zeros_like(a[0])
        for x, e in zip(a, delta):
            b, g = b + e, fma(e, x - mean, g)
        for pixel in np.ndindex(*self.shape[1:]):
            total, products = total + b[pixel], products + g[pixel]
        return total, products

    def forward(self, a, layer, grain):
        """z; `grain` is None outside training."""
        if grain is None:
            mean, variance = layer.running
            factor = layer.weight * inverse(variance, self.eps)
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


def running(average, total, count, rate):
    """The new running average."""
    value = integer(total) * (ONE / integer(count) * F(2.0**-32))
    return fma(rate, value - average, average)


class GroupNorm:
    """`groups` is None for layernorm."""

    def __init__(self, shape, groups, eps):
        self.eps = eps
        self.shape = self.out = shape
        self.kind = "groupnorm" if groups else "layernorm"
        self.groups = groups or 1
        self.each = shape[0] // self.groups
        self.count = integer(self.each * shape[1] * shape[2])

    def text(self):
        return (f"groupnorm {self.groups}" if self.kind == "groupnorm" else self.kind) + words(self.eps)

    def initial(self):
        return [np.ones(self.shape[0], np.float32), np.zeros(self.shape[0], np.float32)]

    def total(self, values):
        """S: (items, C), the sum of each group at each of its channels."""
        lanes = np.zeros((len(values), self.groups, 16), np.float32)
        for c in range(self.shape[0]):
            lanes[:, c // self.each, c % 16] += values[:, c]
        result = np.zeros(lanes.shape[:2], np.float32)
        for k in range(16):
            result = result + lanes[:, :, k]
        return np.repeat(result, self.each, axis=1)

    def pixels(self, a):
        return (a[:, y, x] for y in range(self.shape[1]) for x in range(self.shape[2]))

    def measure(self, a):
        """mean and r, each (items, C)"""
        s = self.total(a[:, 0, 0]) / integer(self.each)
        t, q = np.zeros_like(s), np.zeros_like(s)
        for x in self.pixels(a):
            d = x - s
            t, q = t + d, fma(d, d, q)
        total = self.total(t)
        u = total / self.count
        w = fma(-u, total, self.total(q))
        w = np.where(w <= 0, ZERO, w)
        return s + u, inverse(w / self.count, self.eps)

    def slopes(self, a, delta, mean):
        """b and g, each (items, C)"""
        b, g = np.zeros_like(mean), np.zeros_like(mean)
        for x, e in zip(self.pixels(a), self.pixels(delta)):
            b, g = b + e, fma(e, x - mean, g)
        return b, g

    def forward(self, a, layer, _):
        mean, r = (v[:, None, None] for v in self.measure(a))
        return fma(a - mean, layer.weight * r, layer.bias) + ZERO

    def backward(self, a, layer, delta, _):
        mean, r = self.measure(a)
        b, g = self.slopes(a, delta, mean)
        h = self.total(layer.weight * b) / self.count
        k = (self.total(layer.weight * g) * r) * r / self.count
        mean, r, h, k = (v[:, None, None] for v in (mean, r, h, k))
        return r * fma(-(a - mean), k, fma(layer.weight, delta, -h)) + ZERO

    def gradient(self, delta, a, limit):
        mean, r = self.measure(a)
        b, g = self.slopes(a, delta, mean)
        partials = [np.zeros_like(b[0]), np.zeros_like(b[0])]
        for own in zip(g * r, b):
            partials = [total + x for total, x in zip(partials, own)]
        return [units_of(partial, limit) for partial in partials]


class ChannelNorm:
    """24.13: the channels of each pixel, which stands for an item of 17.9."""

    kind = "layernorm"

    def __init__(self, shape, eps):
        self.shape = self.out = shape
        self.own = GroupNorm((shape[0], 1, 1), None, eps)

    def text(self):
        return "layernorm channels" + words(self.own.eps)

    def initial(self):
        return self.own.initial()

    def each(self, a):
        """The pixels, those of an item one after the other."""
        return a.reshape(-1, 1, 1, self.shape[0])

    def ordered(self, a):
        """The pixels row after row, the items of each one after the other."""
        return self.each(a.transpose(1, 2, 0, 3))

    def forward(self, a, layer, grain):
        return self.own.forward(self.each(a), layer, grain).reshape(a.shape)

    def backward(self, a, layer, delta, grain):
        return self.own.backward(self.each(a), layer, self.each(delta), grain).reshape(a.shape)

    def gradient(self, delta, a, limit):
        return self.own.gradient(self.ordered(delta), self.ordered(a), limit)


class RmsNorm:
    """25.30: the channels of each pixel, by the root of the mean of their squares."""

    kind = "rmsnorm"

    def __init__(self, shape, eps):
        self.shape = self.out = shape
        self.eps = eps
        self.count = integer(shape[0])

    def text(self):
        return "rmsnorm" + words(self.eps)

    def initial(self):
        return [np.ones(self.shape[0], np.float32)]

    def total(self, factors, values):
        """S, as an array with one channel."""
        lanes = np.zeros((*values.shape[:-1], 16), np.float32)
        for c in range(self.shape[0]):
            lanes[..., c % 16] = fma(factors[..., c], values[..., c], lanes[..., c % 16])
        result = np.zeros(lanes.shape[:-1], np.float32)
        for k in range(16):
            result = result + lanes[..., k]
        return result[..., None]

    def r(self, a):
        return inverse(self.total(a, a) / self.count, self.eps)

    def forward(self, a, layer, _):
        return (a * self.r(a)) * layer.weight + ZERO

    def backward(self, a, layer, delta, _):
        r, weighted = self.r(a), layer.weight * delta
        k = (self.total(weighted, a) * r) * r / self.count
        return r * fma(-a, k, weighted) + ZERO

    def gradient(self, delta, a, limit):
        partial, standard = np.zeros(self.shape[0], np.float32), a * self.r(a)
        for y, x in np.ndindex(*self.shape[1:]):
            for e, own in zip(delta[:, y, x], standard[:, y, x]):
                partial = fma(e, own, partial)
        return [units_of(partial, limit)]


class LayerScale:
    """24.14: a factor for each channel."""

    kind = "layerscale"

    def __init__(self, shape, factor):
        self.shape = self.out = shape
        self.factor = factor

    def text(self):
        return f"layerscale {to_text(self.factor)}"

    def initial(self):
        return [np.full(self.shape[0], self.factor, np.float32)]

    def forward(self, a, layer, _):
        return a * layer.weight + ZERO

    def backward(self, a, layer, delta, _):
        return delta * layer.weight + ZERO

    def gradient(self, delta, a, limit):
        total, g = np.zeros(self.shape[0], np.float32), np.zeros(a.shape[1:], np.float32)
        for x, e in zip(a, delta):
            g = fma(e, x, g)
        for pixel in np.ndindex(*self.shape[1:]):
            total = total + g[pixel]
        return [units_of(total, limit)]


KINDS = ("batchnorm", "groupnorm", "layernorm", "layerscale", "rmsnorm")


def parse(text, shape):
    """A normalisation of the text's beginning, and the rest of the text; None for other layers."""
    if found := re.match(r"\s*layerscale\b\s*([\d.][\d.e+-]*)?\s*", text):
        return LayerScale(shape, from_text(found[1] or "1e-6")), text[found.end():]
    found = re.match(r"\s*(batchnorm|layernorm|rmsnorm|groupnorm\s+(\d+))\b\s*", text)
    if not found:
        return None, text
    groups = int(found[2]) if found[2] else None
    rest, given = text[found.end():], {}
    channels = re.match(r"channels\b\s*", rest) if found[1] == "layernorm" else None
    rest = rest[channels.end():] if channels else rest
    while more := re.match(r"(eps|momentum)\s+(\S+)\s*", rest):
        given[more[1]] = from_text(more[2])
        rest = rest[more.end():]
    eps, rate = given.get("eps", EPSILON), given.get("momentum", RATE)
    if found[1] == "rmsnorm":
        return RmsNorm(shape, eps), rest
    if channels:
        return ChannelNorm(shape, eps), rest
    return BatchNorm(shape, eps, rate) if found[1] == "batchnorm" else GroupNorm(shape, groups, eps), rest

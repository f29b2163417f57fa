"""25.20 to 25.26 of the contract: attention. An item is an array (positions, channels); arrays stand for
what the text leaves without an order, and `for` walks the index of a chain."""

import re

import numpy as np

import elementary
import products
from binary32 import F, ONE, ZERO, fma, integer

UNIT = F(2.0**-40)
HALF = F(2.0**-41)


def chains(a, b):
    """The chain of fma(a[..., c], b[..., c]) over c from +0."""
    acc = np.zeros(np.broadcast_shapes(a.shape, b.shape)[:-1], np.float32)
    for c in range(a.shape[-1]):
        acc = fma(a[..., c], b[..., c], acc)
    return acc


class Attention:
    kind = "attention"
    multiplies = False
    groups = 1
    lengths = None  # 25.37
    integers = None  # 25.25: products.Integers

    def __init__(self, shape, heads, causal, pairs, window):
        self.shape = shape
        self.heads, self.causal, self.pairs, self.window = heads, causal, pairs or heads, window
        if shape[0] % (heads + 2 * self.pairs) or heads % self.pairs:
            raise SystemExit("oracle: the heads of attention do not divide its channels")
        self.width = shape[0] // (heads + 2 * self.pairs)
        self.out = (heads * self.width, *shape[1:])
        t = np.arange(shape[1] * shape[2])
        self.sees = np.ones((len(t), len(t)), bool)  # [t][u]
        if causal:
            self.sees &= t[None, :] <= t[:, None]
        if window:
            self.sees &= t[None, :] > t[:, None] - window
        self.scale = ONE / np.sqrt(integer(np.array(self.width)))

    def text(self):
        return (f"attention {self.heads}" + " causal" * self.causal
                + f" kv {self.pairs}" * (self.pairs != self.heads) + (f" window {self.window}" if self.window else ""))

    def heads_of(self, a):
        """(items, positions, channels) as (items, heads, positions, d)"""
        return a.reshape(*a.shape[:2], -1, self.width).transpose(0, 2, 1, 3)

    def parts(self, a):
        """Queries, and for each head its keys and values."""
        heads = self.heads_of(a)
        h, g = self.heads, self.pairs
        own = np.arange(h) // (h // g)
        return heads[:, :h], heads[:, h:h + g][:, own], heads[:, h + g:][:, own]

    def weights(self, q, k):
        """p and r of 25.22: (items, heads, t, u) and (items, heads, t)."""
        s = self.products(q, k) * self.scale
        m = np.where(self.sees, s, -np.inf).max(axis=3)
        p = elementary.exp(s - m[..., None])
        p = np.where(self.sees & (p > HALF), p, ZERO)
        n = np.rint(p.astype(np.float64) * 2.0**40).astype(np.int64).sum(axis=3)
        return p, ONE / (integer(n) * UNIT)

    def products(self, a, b):
        """The chains over the channels, of each row of a and each of b: of 25.22, or N of 25.25."""
        if not self.integers:
            return chains(a[:, :, :, None], b[:, :, None, :])
        qa, _, fa = self.integers.block(a, 3)
        qb, _, fb = self.integers.block(b, 3)
        n = qa @ qb.transpose(0, 1, 3, 2)
        return fma(integer(n), fa * fb.transpose(0, 1, 3, 2), ZERO)

    def block_sums(self, x, b):
        """25.25, 25.26: sums over the last index of x, with blocks of its rows; b has blocks of positions."""
        qb, _, fb = self.integers.block(b, 3)
        qx, _, fx = self.integers.block(x * fb.transpose(0, 1, 3, 2), 3)
        return integer(qx @ qb) * fx

    def mixed(self, p, v):
        """The chains of fma(p[t][u], v[u][c]) over the u that t sees."""
        if self.integers:
            return self.block_sums(np.where(self.sees, p, ZERO), v)
        acc = np.zeros(v.shape, np.float32)
        for u in range(v.shape[2]):
            t = np.flatnonzero(self.sees[:, u])
            acc[:, :, t] = fma(p[:, :, t, u][..., None], v[:, :, u, None], acc[:, :, t])
        return acc

    def added(self, p, v):
        """Those of fma(p[t][u], v[t][c]) over the heads of a group, and for each over the t that see u."""
        acc = np.zeros((len(v), self.pairs, *v.shape[2:]), np.float32)
        if self.integers:
            sums = self.block_sums(np.where(self.sees, p, ZERO).transpose(0, 1, 3, 2), v)
        for h in range(self.heads):
            own = acc[:, h // (self.heads // self.pairs)]
            if self.integers:
                own += sums[:, h]
                continue
            for t in range(v.shape[2]):
                u = np.flatnonzero(self.sees[t])
                own[:, u] = fma(p[:, h, t, u][..., None], v[:, h, t, None], own[:, u])
        return acc

    def joined(self, heads):
        return heads.transpose(0, 2, 1, 3).reshape(len(heads), heads.shape[2], -1)

    def outputs(self, a):
        q, k, v = self.parts(a)
        p, r = self.weights(q, k)
        return p, r, self.mixed(p, v) * r[..., None] + ZERO

    def of(self, length):
        """25.21: the same of an item that has these positions alone."""
        own = Attention((self.shape[0], 1, length), self.heads, self.causal, self.pairs, self.window)
        own.integers = self.integers
        return own

    def lines(self, image):
        return image.reshape(len(image), -1, image.shape[-1])

    def forward(self, a, weight, bias):
        if self.lengths is not None:
            z = np.zeros((len(a), *self.out[1:], self.out[0]), np.float32)
            for i, length in enumerate(self.lengths):
                if length:
                    z[i:i + 1, :, :length] = self.of(length).forward(a[i:i + 1, :, :length], weight, bias)
            return z
        return self.joined(self.outputs(self.lines(a))[2]).reshape(len(a), *self.out[1:], self.out[0])

    def backward(self, a, weight, delta):
        if self.lengths is not None:
            e = np.zeros(a.shape, np.float32)
            for i, length in enumerate(self.lengths):
                own = slice(i, i + 1), slice(None), slice(length)
                if length:
                    e[own] = self.of(length).backward(a[own], weight, delta[own])
            return e
        a, shape = self.lines(a), a.shape
        q, k, v = self.parts(a)
        p, r, z = self.outputs(a)
        g = self.heads_of(self.lines(delta)) * r[..., None]
        x = p * (self.products(g, v) - chains(g, z)[..., None])
        errors = self.mixed(x, k) * self.scale, self.added(x, q) * self.scale, self.added(p, g)
        return self.joined(np.concatenate(errors, axis=1) + ZERO).reshape(shape)


def parse(text, shape):
    """25.20: attention at the text's beginning, and the rest of the text; None for other layers."""
    found = re.match(r"\s*attention\s+(\d+)\s*", text)
    if not found:
        return None, text
    rest, words = text[found.end():], {}
    while more := re.match(r"(causal\b|(kv|window)\s+(\d+))\s*", rest):
        words[more[2] or "causal"] = int(more[3] or 1)
        rest = rest[more.end():]
    return Attention(shape, int(found[1]), "causal" in words, words.get("kv"), words.get("window")), rest


def choose(layers, arith, width):
    """25.25: whether attention has integers; `width` is the recipe's `arith`."""
    for layer in layers:
        if getattr(layer.window, "kind", "") == "attention" and arith == "integers":
            layer.window.integers = products.of(width)

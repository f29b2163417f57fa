"""Section 25 of the contract: layers of sequences. Images are (items, 1, positions, channels)."""

import re

import numpy as np

from binary32 import F, ZERO, fma
from philox import WEIGHTS, word
from products import units_of

BOUND = F(float.fromhex("0x1.1bc77ap-5"))  # 25.11


def drawn(seed, l, rows, channels):
    """25.11"""
    words = word(seed, WEIGHTS, l, 0, np.arange(rows)[:, None], np.arange(channels)[None, :])
    m = (2 * (words >> np.uint64(8)).astype(np.int64) + 1 - 2**24).astype(np.float32) / F(2**24)
    return m * BOUND


class Embedding:
    """25.10: a row of weights for each token."""

    kind = "embedding"

    def __init__(self, shape, tokens, channels, has_next):
        self.shape = (int(np.prod(shape)), 1, 1)
        self.out = (channels, 1, self.shape[0] - has_next)
        self.tokens = tokens

    def text(self):
        return f"embedding {self.tokens} {self.out[0]}"

    def initial(self, seed, l):
        """25.11"""
        return [drawn(seed, l, self.tokens, self.out[0])]

    def forward(self, a, layer, _):
        return layer.weight[self.rows(a)]

    def rows(self, a):
        """What is not a token counts as token 0."""
        tokens = a.reshape(len(a), -1)[:, :self.out[2]].astype(np.int64)
        return np.where(tokens < self.tokens, tokens, 0)

    def gradient(self, delta, a, limit):
        partial = np.zeros((self.tokens, self.out[0]), np.float32)
        for tokens, errors in zip(self.rows(a), delta.reshape(len(a), -1, self.out[0])):
            for token, error in zip(tokens, errors):
                partial[token] = partial[token] + error
        return [units_of(partial, limit)]


class Position:
    """25.12: a parameter of each channel at each position."""

    kind = "position"

    def __init__(self, shape):
        self.shape = self.out = shape

    def text(self):
        return "position learned"

    def initial(self, seed, l):
        """25.11"""
        return [drawn(seed, l, self.shape[1] * self.shape[2], self.shape[0])]

    def forward(self, a, layer, _):
        return a + layer.weight.reshape(a.shape[1:])

    def backward(self, a, layer, delta, _):
        return delta

    def gradient(self, delta, a, limit):
        partial = np.zeros(delta.shape[1:], np.float32)
        for own in delta:
            partial = partial + own
        return [units_of(partial.reshape(-1, self.shape[0]), limit)]


class Tied:
    """25.15: the last layer, with the weights of the embedding, the layer `table`."""

    kind = "tied"
    multiplies = False

    def __init__(self, shape, tokens, table):
        self.shape = shape
        self.out = (tokens, *shape[1:])
        self.table = table

    def text(self):
        return f"conv {self.out[0]} 1x1 tied"

    def forward(self, a, *_):
        z = np.zeros((*a.shape[:3], self.out[0]), np.float32)
        for c in range(self.shape[0]):
            z = fma(a[..., c, None], self.table.weight[:, c], z)
        return z + ZERO

    def backward(self, a, _, delta):
        e = np.zeros_like(a)
        for o in range(self.out[0]):
            e = fma(delta[..., o, None], self.table.weight[o], e)
        return e + ZERO

    def gradient(self, delta, a, limit):
        """The second partial of the table."""
        partial = np.zeros(self.table.weight.shape, np.float32)
        for p in range(self.shape[2]):
            for own, error in zip(a[:, 0, p], delta[:, 0, p]):
                partial = fma(error[:, None], own[None, :], partial)
        return [units_of(partial, limit)]


KINDS = ("embedding", "position",)


def parse(text, shape, has_next, layers):
    """A layer of sequences of the text's beginning, and the rest of the text; None for others."""
    if found := re.match(r"\s*embedding\s+(\d+)\s+(\d+)\b\s*", text):
        return Embedding(shape, int(found[1]), int(found[2]), has_next), text[found.end():]
    if found := re.match(r"\s*position\s+learned\b\s*", text):
        return Position(shape), text[found.end():]
    if found := re.match(r"\s*conv\s+(\d+)\s+1x1\s+tied\b\s*", text):
        return Tied(shape, int(found[1]), layers[0]), text[found.end():]
    return None, text

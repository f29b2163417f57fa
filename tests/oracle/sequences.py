"""Section 25 of the contract: layers of sequences. Images are (items, 1, positions, channels)."""

import re

import numpy as np

from binary32 import F, ONE, ZERO, fma, from_text, integer, to_text
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
        rows = self.rows(a)
        return np.where((rows < 0)[..., None], F(0), layer.weight[rows])

    def rows(self, a):
        """-1: not a token."""
        tokens = a.reshape(len(a), -1)[:, :self.out[2]].astype(np.int64)
        return np.where(tokens < self.tokens, tokens, -1)

    def lengths(self, a):
        """25.37"""
        return ((self.rows(a) >= 0) * np.arange(1, self.out[2] + 1)).max(axis=1)

    def gradient(self, delta, a, limit):
        partial = np.zeros((self.tokens, self.out[0]), np.float32)
        for tokens, errors in zip(self.rows(a), delta.reshape(len(a), -1, self.out[0])):
            for token, error in zip(tokens[tokens >= 0], errors[tokens >= 0]):
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

    def forward_integers(self, a, integers):
        """25.28"""
        qa, _, factor_a = integers.block(a, 3)
        qw, _, factor_w = integers.block(self.table.weight, 1)
        return fma(integer(qa @ qw.T), factor_a * factor_w.reshape(-1), ZERO) + ZERO

    def backward_integers(self, delta, integers):
        qw, _, factor_w = integers.block(self.table.weight, 1)
        qc, _, factor_c = integers.block(delta * factor_w.reshape(-1), 3)
        return integer(qc @ qw) * factor_c + ZERO

    def gradient_integers(self, delta, a, limit, integers):
        return [integers.gradient(delta.reshape(-1, self.out[0]), a.reshape(-1, self.shape[0]), limit)]

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


def logarithm(x):
    """25.32, in binary64."""
    k, p = 0, 0.0
    while x > float.fromhex("0x1.6a09e667f3bcdp+0"):
        x, k = x * 0.5, k + 1
    f = (x - 1) / (x + 1)
    for i in range(12, -1, -1):
        p = p * (f * f) + 1 / (2 * i + 1)
    return k * float.fromhex("0x1.62e42fefa39efp-1") + (2 * f) * p


def exponential(y):
    n = round(y / float.fromhex("0x1.62e42fefa39efp-1"))
    r = (y - n * float.fromhex("0x1.62e42feep-1")) - n * float.fromhex("0x1.a39ef35793c76p-33")
    p = 1.0
    for j in range(14, 0, -1):
        p = (p * r) / j + 1
    return p * 2.0**n


def frequency(pair, pairs, base, scale, rule):
    y = float(F(2 * pair) / F(2 * pairs)) * logarithm(float(base))
    own = ONE / F(exponential(y))
    f, slow = float(own), float(own) / float(scale)
    if not rule:
        return own if scale == 1 else F(slow)
    low, high, positions = float(rule[0]), float(rule[1]), float(rule[2])
    s = ((positions * f) / float.fromhex("0x1.921fb54442d18p+2") - low) / (high - low)
    return F(slow) if s <= 0 else own if s >= 1 else F((1 - s) * slow + s * f)


def cosine_and_sine(angle):
    a = float(angle)
    n = round(a * float.fromhex("0x1.45f306dc9c883p-1"))
    r = a - n * float.fromhex("0x1.921fb544p+0")
    r = (r - n * float.fromhex("0x1.0b4611a4p-34")) - n * float.fromhex("0x1.13198a2e03707p-65")
    z, c, s = r * r, 1.0, 1.0
    for j in range(18, 0, -2):
        c, s = 1 - (c * z) / (j * (j - 1)), 1 - (s * z) / (j * (j + 1))
    s = s * r
    return ((F(c), F(s)), (F(-s), F(c)), (F(-c), F(-s)), (F(s), F(-c)))[n % 4]


def angles(positions, pairs, base=F(10000), scale=ONE, rule=None):
    """(cos, sin), each (positions, pairs)."""
    own = [frequency(i, pairs, base, scale, rule) for i in range(pairs)]
    table = [[cosine_and_sine(F(t) * f) for f in own] for t in range(positions)]
    return np.array(table, np.float32).reshape(positions, pairs, 2).transpose(2, 0, 1)


class Fixed:
    """A layer without parameters, as the Windows of pixels.py are."""

    multiplies, groups = False, 1

    def backward(self, a, weight, delta):
        return self.errors(delta)


class Sinusoid(Fixed):
    """25.13"""

    kind, activates = "sinusoid", True

    def __init__(self, shape):
        self.shape = self.out = shape
        cos, sin = angles(shape[1] * shape[2], shape[0] // 2)
        self.table = np.stack([sin, cos], axis=-1).reshape(*shape[1:], shape[0])

    def text(self):
        return "position sinusoid"

    def forward(self, a, weight, bias):
        return a + self.table

    def errors(self, delta):
        return delta


class Rotary(Fixed):
    """25.31"""

    kind = "rotary"

    def __init__(self, shape, heads, pairs, base, scale, rule):
        self.shape = self.out = shape
        self.heads, self.kv = heads, pairs or heads
        self.width = shape[0] // (heads + 2 * self.kv)
        self.base, self.scale, self.rule = base, scale, rule if scale != 1 else None
        self.cos, self.sin = (v[None, :, None] for v in
                              angles(shape[1] * shape[2], self.width // 2, base, scale, self.rule))

    def text(self):
        rule = self.rule and f" llama3 {to_text(self.rule[0])} {to_text(self.rule[1])} {int(self.rule[2])}"
        return (f"position rotary {self.heads}" + f" kv {self.kv}" * (self.kv != self.heads)
                + (f" base {to_text(self.base)}" if self.base != 10000 else "")
                + (f" scale {to_text(self.scale)}" if self.scale != 1 else "") + (rule or ""))

    def turned(self, a, sin):
        heads = a.reshape(len(a), -1, self.shape[0] // self.width, self.width)
        own, values = heads[:, :, :self.heads + self.kv], heads[:, :, self.heads + self.kv:]
        x, y = own[..., :self.width // 2], own[..., self.width // 2:]
        first, second = fma(y, -sin, x * self.cos) + ZERO, fma(x, sin, y * self.cos) + ZERO
        return np.concatenate([np.concatenate([first, second], axis=-1), values + ZERO], axis=2).reshape(a.shape)

    def forward(self, a, weight, bias):
        return self.turned(a, self.sin)

    def errors(self, delta):
        return self.turned(delta, -self.sin)


def rotary(text, shape):
    """What follows "position rotary"."""
    given, at = {}, 0
    words = text.split()
    heads, at = int(words[0]), 1
    while at < len(words) and words[at] in ("kv", "base", "scale", "llama3"):
        count = 3 if words[at] == "llama3" else 1
        given[words[at]] = words[at + 1:at + 1 + count]
        at += 1 + count
    one = lambda name, usual: from_text(given[name][0]) if name in given else usual
    rule = [from_text(word) for word in given["llama3"]] if "llama3" in given else None
    layer = Rotary(shape, heads, int(given["kv"][0]) if "kv" in given else 0, one("base", F(10000)), one("scale", ONE), rule)
    return layer, " ".join(words[at:])


class Pool:
    """25.38: items are lines of positions."""

    kind = "pool"
    multiplies = False
    groups = 1
    lengths = None

    def __init__(self, shape, word):
        self.shape, self.word = shape, word
        self.out = (shape[0], 1, 1)

    def text(self):
        return f"pool {self.word}"

    def taken(self, a):
        """For each item the positions that count, of them those that are read, and which these are."""
        lines = a.reshape(len(a), -1, a.shape[-1])
        lengths = self.lengths if self.lengths is not None else [lines.shape[1]] * len(a)
        for line, length in zip(lines, lengths, strict=True):
            begin, end = {"first": (0, min(length, 1)), "last": (max(length - 1, 0), length)}.get(self.word, (0, length))
            yield line[begin:end], begin

    def forward(self, a, weight, bias):
        z = np.zeros((len(a), 1, 1, self.shape[0]), np.float32)
        for own, (line, _) in zip(z[:, 0, 0], self.taken(a)):
            if not len(line):
                continue
            if self.word == "max":
                own += line.max(axis=0)
                continue
            for values in line:
                own += values
            own[:] = own * (F(1) / F(len(line))) + F(0)
        return z

    def backward(self, a, weight, delta):
        e = np.zeros((len(a), self.shape[1] * self.shape[2], self.shape[0]), np.float32)
        for own, d, (line, begin) in zip(e, delta.reshape(len(a), -1), self.taken(a)):
            if not len(line):
                continue
            if self.word == "max":
                own[line.argmax(axis=0), np.arange(len(d))] = d + F(0)
            else:
                own[begin:begin + len(line)] = d * (F(1) / F(len(line))) + F(0)
        return e.reshape(len(a), *self.shape[1:], self.shape[0])


def note_lengths(windows, x):
    """25.37: the lengths of these items for the layers that read the positions of the tokens."""
    if getattr(windows[0], "kind", "") != "embedding":
        return
    for window in windows[1:]:
        if getattr(window, "kind", "") in ("attention", "pool", "recurrent") and window.shape[1:] == windows[0].out[1:]:
            window.lengths = windows[0].lengths(x)


def parse_pool(text, shape):
    found = re.match(r"\s*pool\s+(mean|max|first|last)\b\s*", text)
    return (Pool(shape, found[1]), text[found.end():]) if found else (None, text)


KINDS = ("embedding", "position",)


def parse(text, shape, has_next, layers):
    """A layer of sequences of the text's beginning, and the rest of the text; None for others."""
    if found := re.match(r"\s*embedding\s+(\d+)\s+(\d+)\b\s*", text):
        return Embedding(shape, int(found[1]), int(found[2]), has_next), text[found.end():]
    if found := re.match(r"\s*position\s+learned\b\s*", text):
        return Position(shape), text[found.end():]
    if found := re.match(r"\s*conv\s+(\d+)\s+1x1\s+tied\b\s*", text):
        return Tied(shape, int(found[1]), layers[0]), text[found.end():]
    if found := re.match(r"\s*position\s+sinusoid\b\s*", text):
        return Sinusoid(shape), text[found.end():]
    if found := re.match(r"\s*position\s+rotary\s+", text):
        return rotary(text[found.end():], shape)
    return None, text

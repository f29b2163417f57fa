"""Sections 16 and 17.12 of the contract: convolutions and pools.

An image is an array (items, H, W, C). The text orders the operations of a chain, and chains have
nothing to do with each other: `for` walks taps and channels, arrays stand for items, pixels and
outputs.
"""

import re

import numpy as np

from binary32 import F, ONE, ZERO, fma, integer
from products import units_of

ODD_WORDS = re.compile(r"(stride|pad|outpad|dilation|groups)\s+(\S+)\s*")


def pair(text):
    """16.7: `3` or `3x5`."""
    first, _, second = text.partition("x")
    return int(first), int(second or first)


def plain(pair_of):
    return str(pair_of[0]) if pair_of[0] == pair_of[1] else f"{pair_of[0]}x{pair_of[1]}"


class Window:
    """16.3: a window over an input (C, H, W)."""

    def __init__(self, kind, shape, size, stride=(1, 1), pad=(0, 0), dilation=(1, 1), channels=None,
                 groups=1, depthwise=False, ceil=False, uncounted=False, to=None, outpad=(0, 0), factor=None):
        self.kind, self.shape, self.size, self.stride = kind, shape, size, stride
        self.pad, self.dilation = pad, dilation
        self.ceil, self.uncounted = ceil, uncounted
        self.groups, self.depthwise = shape[0] if depthwise else groups, depthwise
        self.reads = shape[0] // self.groups if kind == "conv" else shape[0]
        self.to, self.outpad = to, outpad
        self.factor = factor  # 24.43: of a bilinear enlargement
        self.positions = False  # 25.24: whether it reads a sequence
        if kind == "convtranspose":  # 24.42
            to = tuple((shape[1 + d] - 1) * stride[d] + dilation[d] * (size[d] - 1) + 1 - 2 * pad[d] + outpad[d]
                       for d in (0, 1))
        self.out = (channels or shape[0], *to) if to else (channels or shape[0],) + tuple(
            self.pixels(shape[1 + d], size[d], stride[d], pad[d], dilation[d]) for d in (0, 1))
        if min(self.out) < 1:
            raise SystemExit("oracle: a window is larger than its input")

    @property
    def multiplies(self):
        return self.kind in ("conv", "convtranspose")

    def pixels(self, n, size, stride, pad, dilation):
        """16.3, 24.20: pixels of the output in a direction with n of the input."""
        m = (n + 2 * pad - (dilation * (size - 1) + 1)) // stride + 1
        return m + (self.ceil and m > 0 and (m - 1) * stride + size < n + 2 * pad and m * stride < n + pad)

    def channels(self, c):
        """17.6: the input's channel that each output multiplies as its c-th."""
        return np.arange(self.out[0]) // (self.out[0] // self.groups) * self.reads + c

    def taps(self):
        return [(i, j) for i in range(self.size[0]) for j in range(self.size[1])]

    def at(self, d, tap):
        """The input's rows (d = 0) or columns (1) at a tap of all output pixels."""
        if self.to:
            n, m, y = self.shape[1 + d], self.to[d], np.arange(self.to[d])
            first, end = y * n // m, -(-(y + 1) * n // m)  # 24.40
            return np.where(first + tap < end, first + tap, -1)
        if self.kind == "convtranspose":  # 24.42
            p = np.arange(self.out[1 + d]) - (self.dilation[d] * (self.size[d] - 1) - self.pad[d]) + tap * self.dilation[d]
            return np.where(p % self.stride[d] == 0, p // self.stride[d], -1)
        return np.arange(self.out[1 + d]) * self.stride[d] - self.pad[d] + tap * self.dilation[d]

    def read(self, a, i, j):
        """The values (items, H', W', C) at a tap, and where (H', W') it lies inside."""
        y, x = self.at(0, i), self.at(1, j)
        inside = ((y >= 0) & (y < self.shape[1]))[:, None] & ((x >= 0) & (x < self.shape[2]))
        y, x = y.clip(0, self.shape[1] - 1), x.clip(0, self.shape[2] - 1)
        return a[:, y][:, :, x], inside[:, :, None]

    def text(self):
        """16.7, without activation and dropout."""
        if self.kind == "globalpool":
            return self.kind
        if self.kind == "upsample":
            return f"upsample {plain(tuple(self.to[d] // self.shape[1 + d] for d in (0, 1)))}" + " bilinear" * bool(self.factor)
        if self.to:
            return f"{self.kind} to {self.to[0]}x{self.to[1]}"
        words = [self.kind, *([str(self.out[0])] if self.multiplies else []),
                 f"{self.size[0]}x{self.size[1]}"]
        if self.stride != ((1, 1) if self.multiplies else self.size):
            words.append(f"stride {plain(self.stride)}")
        if self.kind == "convtranspose":
            if (self.pad, self.outpad) != usual_transposed(self.size, self.stride, self.dilation):
                words.append("pad none" if self.pad == (0, 0) else f"pad {plain(self.pad)}")
                words += [f"outpad {plain(self.outpad)}"] * (self.outpad != (0, 0))
        elif self.pad != (usual(self.size, self.dilation) if self.kind == "conv" else (0, 0)):
            words.append("pad none" if self.pad == (0, 0) else f"pad {plain(self.pad)}")
        words += ["ceil"] * self.ceil + ["uncounted"] * (self.uncounted and self.pad != (0, 0))
        if self.dilation != (1, 1):
            words.append(f"dilation {plain(self.dilation)}")
        if self.depthwise or self.groups > 1:
            words.append("depthwise" if self.depthwise else f"groups {self.groups}")
        return " ".join(words)

    # ---- 16.4 to 16.6; a and delta are images

    def forward(self, a, weight, bias):
        """z of every item."""
        if self.kind == "maxpool":
            return self.greatest(a)[0] + ZERO
        if self.factor:
            z = np.zeros((len(a), *self.out[1:], self.out[0]), dtype=np.float32)
            for own, at, w in self.blends():
                z[:, *own] = z[:, *own] + a[:, *at] * w
            return z
        if not self.multiplies:
            s = np.zeros((len(a), *self.out[1:], self.out[0]), dtype=np.float32)
            for i, j in self.taps():
                value, inside = self.read(a, i, j)
                s = np.where(inside, s + value, s)
            return s * self.share() + ZERO
        acc = np.broadcast_to(bias, (len(a), *self.out[1:], self.out[0])).astype(np.float32)
        for i, j in self.taps():
            value, inside = self.read(a, i, j)
            for c in range(self.reads):
                acc = np.where(inside, fma(value[..., self.channels(c)], weight[:, i, j, c], acc), acc)
        return acc + ZERO

    def inside(self):
        """Each tap (i, j) with the output's rows and columns where it lies inside, as arrays, and the
        input's rows and columns there."""
        for i, j in self.taps():
            y, x = self.at(0, i), self.at(1, j)
            rows = np.flatnonzero((y >= 0) & (y < self.shape[1]))
            columns = np.flatnonzero((x >= 0) & (x < self.shape[2]))
            yield i, j, rows[:, None], columns, y[rows][:, None], x[columns]

    # ---- 17.12; a and delta are images, `integers` is of products.py

    def reads_itself(self):
        """25.24: whether each position reads itself alone."""
        return self.size == (1, 1) and self.out[1:] == self.shape[1:]

    def of_a_block(self):
        """17.12: the axes of an image that a block has; 25.24: of a position."""
        return 3 if self.positions else (1, 2, 3)

    def windows_forward(self, a, weight, bias, integers):
        """25.27: what an output reads is copied side by side, and is then a block."""
        qw, _, factor_w = integers.block(weight, (1, 2, 3))
        read = np.zeros((len(a), *self.out[1:], len(self.taps()), self.shape[0]), np.float32)
        for k, (i, j) in enumerate(self.taps()):
            value, inside = self.read(a, i, j)
            read[..., k, :] = np.where(inside, value, F(0))
        q, _, factor = integers.block(read, (3, 4))
        n = q.reshape(-1, q.shape[3] * q.shape[4]) @ qw.reshape(len(qw), -1).T
        n = n.reshape(len(a), *self.out[1:], self.out[0])
        return fma(integer(n), factor[..., 0] * factor_w.reshape(-1), bias) + ZERO

    def windows_backward(self, a, weight, delta, integers):
        """25.27: each input has the errors of those that read it side by side."""
        qw, _, factor_w = integers.block(weight, (1, 2, 3))
        c = np.zeros((len(a), *self.shape[1:], len(self.taps()), self.out[0]), np.float32)
        for k, (_, _, rows, columns, y, x) in enumerate(self.inside()):
            c[:, y, x, k] = delta[:, rows, columns] * factor_w.reshape(-1)
        q, _, factor = integers.block(c, (3, 4))
        n = np.zeros(a.shape, np.int64)
        for k, (i, j) in enumerate(self.taps()):
            n += q[..., k, :] @ qw[:, i, j]
        return integer(n) * factor[..., 0] + ZERO

    def forward_integers(self, a, weight, bias, integers):
        """z of every item."""
        if self.positions and not self.reads_itself():
            return self.windows_forward(a, weight, bias, integers)
        qa, _, factor_a = integers.block(a, self.of_a_block())
        qw, _, factor_w = integers.block(weight, (1, 2, 3))
        n = np.zeros((len(a), *self.out[1:], self.out[0]), dtype=np.int64)
        for i, j, rows, columns, y, x in self.inside():
            n[:, rows, columns] += qa[:, y, x] @ qw[:, i, j].T
        return fma(integer(n), factor_a * factor_w.reshape(-1), bias) + ZERO

    def backward_integers(self, a, weight, delta, integers):
        """e of every item, an image like a."""
        if self.positions and not self.reads_itself():
            return self.windows_backward(a, weight, delta, integers)
        qw, _, factor_w = integers.block(weight, (1, 2, 3))
        qc, _, factor_c = integers.block(delta * factor_w.reshape(-1), self.of_a_block())
        n = np.zeros(a.shape, dtype=np.int64)
        for i, j, rows, columns, y, x in self.inside():
            n[:, y, x] += qc[:, rows, columns] @ qw[:, i, j]
        return integer(n) * factor_c + ZERO

    def gradient_integers(self, delta, a, limit, integers):
        """Units (O, K, L, C) of the weights from one grain."""
        qa, ta, factor_a = integers.block(a, None)
        qd, td, factor_d = integers.block(delta, None)
        n = np.zeros((self.out[0], *self.size, self.shape[0]), dtype=np.int64)
        for i, j, rows, columns, y, x in self.inside():
            d = qd[:, rows, columns].reshape(-1, self.out[0])
            n[:, i, j] = d.T @ qa[:, y, x].reshape(-1, self.shape[0])
        return integers.units(n, ta, factor_a, td, factor_d, limit)

    # ---- 16.6

    def blends(self):
        """24.43: each output pixel, a tap of it and the tap's factor, row after row."""
        def read(d, y):
            a, last = self.factor[d], self.shape[1 + d] - 1
            i, f = divmod(max(2 * y + 1 - a, 0), 2 * a)
            return [(i, 2 * a)] if f == 0 or i == last else [(i, 2 * a - f), (i + 1, f)]
        unit = ONE / integer(np.array(4 * self.factor[0] * self.factor[1]))
        for y, x in np.ndindex(*self.out[1:]):
            for i, down in read(0, y):
                for j, along in read(1, x):
                    yield (y, x), (i, j), integer(np.array(down * along)) * unit

    def share(self):
        """16.6, 24.21: r of each output pixel."""
        if not (self.ceil or self.uncounted or self.to):
            return ONE / integer(np.array(self.size[0] * self.size[1]))
        n = [sum((self.at(d, k) >= 0) & (self.at(d, k) < self.shape[1 + d]) for k in range(self.size[d]))
             for d in (0, 1)]
        return (ONE / integer(n[0][:, None] * n[1]))[:, :, None]

    def greatest(self, a):
        """16.5, 24.20: m, and the number of the tap that gave it."""
        m, tap = None, -1
        for number, (i, j) in enumerate(self.taps()):
            value, inside = self.read(a, i, j)
            if m is None:
                m, tap = value, np.full(value.shape, -1)
            taken = inside & ((tap < 0) | (value > m))
            m, tap = np.where(taken, value, m), np.where(taken, number, tap)
        return m, tap

    def backward(self, a, weight, delta):
        """e of every item, an image like a. For one input pixel, output pixels row after row are its
        taps from the last to the first."""
        if self.factor:
            e = np.zeros(a.shape, dtype=np.float32)
            for own, at, w in self.blends():
                e[:, *at] = e[:, *at] + delta[:, *own] * w
            return e
        if self.to:
            return self.backward_to(a, delta)
        e = np.zeros(a.shape, dtype=np.float32)
        tap = self.greatest(a)[1] if self.kind == "maxpool" else None
        for number, (i, j) in reversed(list(enumerate(self.taps()))):
            y, x = self.at(0, i), self.at(1, j)
            rows = np.flatnonzero((y >= 0) & (y < self.shape[1]))
            columns = np.flatnonzero((x >= 0) & (x < self.shape[2]))
            here = np.ix_(np.arange(len(a)), y[rows], x[columns])
            there = np.ix_(np.arange(len(a)), rows, columns)
            old, d = e[here], delta[there]
            if self.multiplies:
                each = self.out[0] // self.groups
                own = np.arange(self.shape[0]) // self.reads * each  # of each input, 17.6
                for o in range(each):
                    w = weight[own + o, i, j, np.arange(self.shape[0]) % self.reads]
                    old = fma(d[..., own + o], w, old)
            elif self.kind == "maxpool":
                old = np.where(tap[there] == number, old + d, old)
            else:
                old = old + d * np.broadcast_to(self.share(), (*self.out[1:], 1))[rows[:, None], columns]
            e[here] = old
        return e + ZERO

    def backward_to(self, a, delta):
        """24.40: the same, where output pixels have windows of different sizes: row after row."""
        e = np.zeros(a.shape, dtype=np.float32)
        tap = self.greatest(a)[1] if self.kind == "maxpool" else None
        share = np.broadcast_to(self.share(), (*self.out[1:], 1))
        ys, xs = ([self.at(d, k) for k in range(self.size[d])] for d in (0, 1))
        for y, x in np.ndindex(*self.out[1:]):
            for number, (i, j) in enumerate(self.taps()):
                if ys[i][y] < 0 or xs[j][x] < 0:
                    continue
                at, d = (slice(None), ys[i][y], xs[j][x]), delta[:, y, x]
                if tap is None:
                    e[at] = e[at] + d * share[y, x]
                else:
                    e[at] = np.where(tap[:, y, x] == number, e[at] + d, e[at])
        return e + ZERO

    def gradient(self, delta, a, limit):
        """16.4 and 8.7: units (O, K, L, C) and (O) from one grain, of `conv`."""
        weight = np.zeros((self.out[0], *self.size, self.reads), dtype=np.float32)
        own = np.stack([self.channels(c) for c in range(self.reads)], axis=1)
        bias = np.zeros(self.out[0], dtype=np.float32)
        # (items, H', W', taps, C), and which taps are inside there; what one item adds to the taps at a pixel
        # belongs to different chains.
        reads = [self.read(a, i, j) for i, j in self.taps()]
        values = np.stack([value for value, _ in reads], axis=3)
        chains = weight.reshape(self.out[0], len(reads), self.reads)
        for y in range(self.out[1]):
            for x in range(self.out[2]):
                here = np.flatnonzero([inside[y, x, 0] for _, inside in reads])
                for item in range(len(a)):
                    d = delta[item, y, x]
                    bias = bias + d
                    value = values[item, y, x][here[:, None], own[:, None]]
                    chains[:, here] = fma(d[:, None, None], value, chains[:, here])
        return units_of(weight, limit), units_of(bias, limit)


class Join:
    """17.7, 24.31, 24.32: the end of a block."""

    def __init__(self, kind, first, second):
        self.kind, self.shape, self.second = kind, first, second
        self.out = first
        if kind == "product":
            fits = first[0] == second[0] and (first[1:] == second[1:] or (1, 1) in (first[1:], second[1:]))
            self.out = second if first[1:] == (1, 1) else first
        elif kind == "concat":
            fits = first[1:] == second[1:]
            self.out = (first[0] + second[0], *first[1:])
        else:
            fits = first == second
        if not fits:
            raise SystemExit(f"oracle: a {kind} block joins different shapes")

    def text(self):
        return " }"

    def forward(self, a, b):
        """z (items, out) from both paths' outputs."""
        if self.kind == "residual":
            return a + b + ZERO
        a, b = image(a, self.shape), image(b, self.second)
        z = a * b if self.kind == "product" else np.concatenate([a, b], axis=3)
        return (z + ZERO).reshape(len(a), -1)

    def backward(self, a, b, delta):
        """Both paths' e (items, values)."""
        if self.kind == "residual":
            return delta + ZERO, delta + ZERO
        delta = image(delta, self.out)
        if self.kind == "concat":
            both = delta[..., :self.shape[0]], delta[..., self.shape[0]:]
        else:
            both = (self.factor(image(b, self.second), delta, self.shape),
                    self.factor(image(a, self.shape), delta, self.second))
        return tuple((e + ZERO).reshape(len(e), -1) for e in both)

    def factor(self, other, delta, own):
        """24.31: the e of a factor; one that was spread has a chain over the pixels."""
        if own[1:] == self.out[1:]:
            return delta * other
        e = np.zeros((len(delta), own[0]), dtype=np.float32)
        for y in range(self.out[1]):
            for x in range(self.out[2]):
                e = fma(delta[:, y, x], other[:, y, x], e)
        return e[:, None, None]


def usual(size, dilation):
    """16.7: the padding without a word about it."""
    odd = size[0] % 2 and size[1] % 2
    return tuple(dilation[d] * (size[d] - 1) // 2 if odd else 0 for d in (0, 1))


def usual_transposed(size, stride, dilation):
    """24.42: padding and outpad with which the output has `stride` times the pixels."""
    pads = []
    for k, s, d in zip(size, stride, dilation):
        more = d * (k - 1) + 1 - s
        half = max(0, (more + 1) // 2)
        rest = 2 * half - more
        pads.append((half, rest) if rest < s or rest < d else (0, 0))
    return tuple(zip(*pads))


def parse(text, shape):
    """16.7: a Window of the text's beginning, and the rest of the text; None for other layers."""
    found = re.match(r"\s*(conv|maxpool|avgpool|globalpool|upsample|convtranspose)\b\s*(to\b)?\s*", text)
    if not found:
        return None, text
    kind, text = found[1], text[found.end():]
    if kind == "globalpool":
        return Window(kind, shape, shape[1:]), text
    if found[2] or kind == "upsample":
        numbers = re.match(r"(\S+)\s*", text)
        to, rest, factor = pair(numbers[1]), text[numbers.end():], None
        if kind == "upsample":
            factor, to = to, (to[0] * shape[1], to[1] * shape[2])
            if (smooth := re.match(r"bilinear\b\s*", rest)):
                return Window(kind, shape, (1, 1), to=to, factor=factor), rest[smooth.end():]
        size = tuple(max(-(-(y + 1) * n // m) - y * n // m for y in range(m)) for n, m in zip(shape[1:], to))
        return Window(kind, shape, size, to=to), text[numbers.end():]
    numbers = re.match(r"(\d+)\s+(\S+)\s*" if kind.startswith("conv") else r"()(\S+)\s*", text)
    text, size, words = text[numbers.end():], pair(numbers[2]), {}
    while (more := ODD_WORDS.match(text) or re.match(r"(depthwise|ceil|uncounted)\b()\s*", text)):
        words[more[1]], text = more[2], text[more.end():]
    stride = pair(words["stride"]) if "stride" in words else (1, 1) if kind.startswith("conv") else size
    dilation = pair(words.get("dilation", "1"))
    if kind == "convtranspose":
        pad, outpad = usual_transposed(size, stride, dilation)
        if words.get("pad", "same") != "same":
            pad, outpad = pair(words["pad"].replace("none", "0")), (0, 0)
        outpad = pair(words["outpad"]) if "outpad" in words else outpad
        return Window(kind, shape, size, stride, pad, dilation, int(numbers[1]), outpad=outpad), text
    if kind != "conv":
        return Window(kind, shape, size, stride, pair(words.get("pad", "0")), ceil="ceil" in words,
                      uncounted="uncounted" in words), text
    pad = words.get("pad", "same")
    pad = ((0, 0) if pad == "none" else usual(size, dilation) if pad == "same" else pair(pad))
    return Window(kind, shape, size, stride, pad, dilation, int(numbers[1]), int(words.get("groups", 1)),
                  "depthwise" in words), text


def image(flat, shape):
    """Rows of values (items, C*H*W) in the order of 16.2 as images (items, H, W, C)."""
    return flat.reshape(len(flat), shape[1], shape[2], shape[0])


def from_data(x, shape):
    """16.2: rows of values as in the data, channel after channel, in the order of the network."""
    return x.reshape(len(x), *shape).transpose(0, 2, 3, 1).reshape(len(x), -1)

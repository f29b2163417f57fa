"""25.34 to 25.36 of the contract: states of positions that follow one another. Items of the same length are
one array (items, positions, channels); `for` walks positions and the index of a chain."""

import re

import numpy as np

import elementary
from binary32 import F, ONE, ZERO, fma
from products import units_of

GATES = {"lstm": 4, "gru": 3}


def slope(y):
    return y * (ONE - y)


class Recurrent:
    kind = "recurrent"
    multiplies, groups, size = False, 1, (1, 1)
    lengths = None  # 25.37

    def __init__(self, shape, cell, reverse):
        self.shape, self.cell, self.reverse = shape, cell, reverse
        self.gates = GATES[cell]
        if shape[0] % self.gates:
            raise SystemExit("oracle: the gates do not divide the channels")
        self.width = shape[0] // self.gates
        self.reads, self.out = shape[0], (self.width, *shape[1:])

    def text(self):
        return f"recurrent {self.cell}" + " reverse" * self.reverse

    def products(self, weight, gates, state, acc):
        """For each of these gates the chain over the channels of the state before; None: there is none."""
        acc = np.broadcast_to(acc, (len(gates), *acc.shape))
        for k in range(0 if state is None else self.width):
            acc = fma(state[:, k, None], np.stack([weight[:, g * self.width + k] for g in gates])[:, None], acc)
        return acc

    def returned(self, weight, errors):
        """The chain over gates and channels of what goes back to each channel of the state before."""
        acc = np.zeros_like(errors[0])
        for g, part in enumerate(errors):
            for n in range(self.width):
                acc = fma(part[:, n, None], weight[n, g * self.width:(g + 1) * self.width], acc)
        return acc

    def steps(self, x, weight, bias):
        """For the positions of items in their order: gates, what is kept, and the state."""
        state, kept, zero, result = None, None, np.zeros((len(x), self.width), np.float32), []
        for own in x.reshape(len(x), -1, self.gates, self.width).transpose(1, 2, 0, 3):
            if self.cell == "lstm":
                z = own + self.products(weight, range(4), state, zero)
                i, f, o = elementary.sigmoid(z[[0, 1, 3]])
                g = elementary.tanh(z[2])
                kept = fma(f, zero if kept is None else kept, i * g)
                state = o * elementary.tanh(kept) + ZERO
                result.append(((i, f, g, o), kept, state))
                continue
            r, z = elementary.sigmoid(own[:2] + self.products(weight, range(2), state, zero))
            kept = self.products(weight, [2], state, np.broadcast_to(bias, zero.shape))[0]
            n = elementary.tanh(fma(r, kept, own[2]))
            state = fma(z, (zero if state is None else state) - n, n) + ZERO
            result.append(((r, z, n), kept, state))
        return result

    def errors(self, x, weight, bias, delta):
        """Of the positions in their order: errors of the input, and of the products."""
        steps, zero = self.steps(x, weight, bias), np.zeros((len(x), self.width), np.float32)
        carry, after, result = zero, None, []
        for t in range(x.shape[1] - 1, -1, -1):
            gates, kept, _ = steps[t]
            error = delta[:, t] + (zero if after is None else self.returned(weight, after))
            if self.cell == "lstm":
                i, f, g, o = gates
                before = steps[t - 1][1] if t else zero
                y = elementary.tanh(kept)
                inner = fma(error * o, fma(-y, y, ONE), carry)
                own = after = [v + ZERO for v in ((inner * g) * slope(i), (inner * before) * slope(f),
                                                  (inner * i) * fma(-g, g, ONE), (error * y) * slope(o))]
                carry = inner * f
            else:
                r, z, n = gates
                before = steps[t - 1][2] if t else zero
                error = error + carry
                inner = (error * (ONE - z)) * fma(-n, n, ONE)
                own = [v + ZERO for v in ((inner * kept) * slope(r), (error * (before - n)) * slope(z), inner)]
                after = [*own[:2], inner * r + ZERO]
                carry = error * z
            result.insert(0, (np.concatenate(own, 1), np.concatenate(after, 1)))
        return result

    def order(self, length):
        """The positions of an item of this length in their order."""
        return range(length - 1, -1, -1) if self.reverse else range(length)

    def items(self, a):
        """[(which items have a length, the order of their positions)], of the lengths above 0."""
        positions = self.shape[1] * self.shape[2]
        lengths = np.array(self.lengths if self.lengths is not None else [positions] * len(a))
        return [(np.flatnonzero(lengths == length), list(self.order(length))) for length in sorted(set(lengths) - {0})]

    def forward(self, a, weight, bias):
        self.bias = bias
        weight, lines = weight.reshape(self.width, -1), a.reshape(len(a), -1, a.shape[-1])
        z = np.zeros((*lines.shape[:2], self.width), np.float32)
        for which, order in self.items(a):
            steps = self.steps(lines[np.ix_(which, order)], weight, bias)
            z[np.ix_(which, order)] = np.stack([state for *_, state in steps], 1)
        return z.reshape(len(a), *self.out[1:], self.out[0])

    def backward(self, a, weight, delta):
        """Keeps what the gradient reads: for each item errors of products and states, by position."""
        states = self.forward(a, weight, self.bias).reshape(len(a), -1, self.width)
        weight, lines, delta = weight.reshape(self.width, -1), a.reshape(len(a), -1, a.shape[-1]), delta.reshape(states.shape)
        e, products = np.zeros_like(lines), np.zeros_like(lines)
        for which, order in self.items(a):
            own = np.ix_(which, order)
            both = self.errors(lines[own], weight, self.bias, delta[own])
            e[own], products[own] = (np.stack(part, 1) for part in zip(*both))
        self.kept = list(zip(products, states))
        return e.reshape(a.shape)

    def gradient(self, delta, a, limit):
        """Of the next items that `backward` kept."""
        own, self.kept = self.kept[:len(a)], self.kept[len(a):]
        weight, bias = np.zeros((self.width, self.gates, self.width), np.float32), np.zeros(self.width, np.float32)
        positions = self.shape[1] * self.shape[2]
        for t in range(positions):
            before = t + 1 if self.reverse else t - 1
            for products, state in own:
                d = products[t].reshape(self.gates, self.width)
                if 0 <= before < positions:
                    weight = fma(d.T[:, :, None], state[before], weight)
                bias = bias + d[-1]
        return units_of(weight.reshape(self.width, 1, 1, -1), limit), units_of(bias, limit)


def parse(text, shape):
    found = re.match(r"\s*recurrent\s+(lstm|gru)\b(\s+reverse\b)?\s*", text)
    return (Recurrent(shape, found[1], bool(found[2])), text[found.end():]) if found else (None, text)


def spelled(text):
    """25.34: the layers of "lstm N" and "gru N"."""
    return re.sub(r"\b(lstm|gru)\s+(\d+)",
                  lambda found: f"conv {GATES[found[1]] * int(found[2])} 1x1; recurrent {found[1]}", text)

"""Sections 6, 7 and 8 of the contract: the network, the loss, errors and gradients. What sections 16
and 17.12 have instead is in pixels.py.

Everything here works on the items of one batch together. The text orders the operations within a
chain only, so arrays stand for the items and outputs that have nothing to do with each other, and
Python's `for` walks the index of the chain.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from math import floor, prod

import numpy as np

import attention
import elementary
import norms
import recurrent
import sequences
import several
from binary32 import F, ONE, ZERO, fma, from_text, integer, to_text
from order import grains
from philox import DROPOUT, NEW_LAST, WEIGHTS, word
from pixels import Join, image, parse
from products import Chains, units_of

CHAINS = Chains()
PARTS = re.compile(r"\s*(?:residual|product|concat)\s*{|[|]|}[^;|}]*|[^;{|}]*[^;{|}\s][^;{|}]*")
ACTIVATIONS = ("none", "relu", "tanh", "sigmoid", "softmax", "leaky_relu", "gelu", "silu", "relu6", "hardswish",
               "hardsigmoid", "gelu-tanh")
SLOPE = F(0.01)  # 17.2
THREE, SIX, SIXTH, THIRD = F(3), F(6), F(float.fromhex("0x1.555556p-3")), F(float.fromhex("0x1.555556p-2"))  # 24.10


@dataclass
class Layer:
    """6.1, 16.1: a layer; `dropout` is 0 where there is none. W is (out, in), b is (out) of a dense
    layer, whose `window` is None. W of a convolution is (out, K, L, C); pools have None."""

    shape: tuple  # of the input, (C, H, W)
    outputs: int
    activation: str
    dropout: np.float32
    window: object = None
    source: int = -1  # the layer whose output it reads; -1: the network's input
    other: int = None  # 17.7: of the end of a block, the end of its shortcut
    opens: tuple = ()  # 24.30: the words of the blocks that begin with the layer, the outermost first
    beside: bool = False  # whether a shortcut begins with it
    weight: np.ndarray = None
    bias: np.ndarray = None
    running: tuple = ()  # 17.8: the running averages
    drops_path: bool = False  # 24.33: whether one word decides for all outputs of an item
    biased: bool = True  # 24.12: whether the bias is a parameter

    @property
    def inputs(self):
        return prod(self.shape)

    @property
    def out(self):
        """The shape of the output."""
        return self.window.out if self.window else (self.outputs, 1, 1)

    @property
    def has_parameters(self):
        return not self.window or self.normalises or self.window.kind in ("conv", "convtranspose", "recurrent")

    @property
    def is_tied(self):
        return self.window is not None and self.window.kind == "tied"

    @property
    def normalises(self):
        return self.window is not None and self.window.kind in (*norms.KINDS, *sequences.KINDS)

    @property
    def arrays(self):
        """The parameters, in the order of 12.2."""
        if not self.has_parameters:
            return []
        return [self.weight, self.bias, *self.running] if self.biased else [self.weight]

    @arrays.setter
    def arrays(self, new):
        if self.biased:
            self.weight, self.bias, *self.running = new
        else:
            self.weight, = new

    @property
    def rules(self):
        """How section 9 treats each of them."""
        if not self.biased:
            return ["table" if self.normalises and self.window.kind in sequences.KINDS else "bias" if self.normalises else "weight"]
        return ["bias" if self.normalises else "weight", "bias", *(self.window.rate for _ in self.running)]

    @property
    def has_pixels(self):
        """16.4: whether a dense layer stands after more than one pixel."""
        return not self.window and self.shape[1:] != (1, 1)

    def multiplies_integers(self, product):
        """17.12: a convolution in integer arithmetic, without groups."""
        return not self.normalises and self.window.multiplies and self.window.groups == 1 and product.bits > 0

    def forward(self, a, product, grain):
        """z (items, out) from a (items, in); `grain` is None outside training."""
        if self.normalises:
            return self.window.forward(image(a, self.shape), self, grain).reshape(len(a), -1)
        if self.window:
            a = image(a, self.shape)
            if self.is_tied and product.bits:
                z = self.window.forward_integers(a, product)
            elif self.multiplies_integers(product):
                z = self.window.forward_integers(a, self.weight, self.bias, product)
            else:
                z = self.window.forward(a, self.weight, self.bias)
            return z.reshape(len(a), -1)
        z = product.forward(a, self.weight, self.bias)
        return z + ZERO if self.has_pixels else z

    def backward(self, a, delta, product, grain):
        """e (items, in) from delta (items, out)."""
        if self.normalises:
            e = self.window.backward(image(a, self.shape), self, image(delta, self.out), grain)
            return e.reshape(len(a), -1)
        if self.window:
            a, delta = image(a, self.shape), image(delta, self.out)
            if self.is_tied and product.bits:
                e = self.window.backward_integers(delta, product)
            elif self.multiplies_integers(product):
                e = self.window.backward_integers(a, self.weight, delta, product)
            else:
                e = self.window.backward(a, self.weight, delta)
            return e.reshape(len(a), -1)
        e = product.backward(delta, self.weight)
        return e + ZERO if self.has_pixels else e

    def gradient(self, delta, a, limit, product):
        """8.6, 8.7: units of weights and biases from one grain."""
        if self.window:
            a, delta = image(a, self.shape), image(delta, self.out)
            if self.is_tied and product.bits:
                return self.window.gradient_integers(delta, a, limit, product)
            if self.multiplies_integers(product):
                return (self.window.gradient_integers(delta, a, limit, product),
                        units_of(bias_partials(delta.transpose(1, 2, 0, 3).reshape(-1, self.out[0])),
                                 limit))
            return self.window.gradient(delta, a, limit)
        return product.gradient(delta, a, limit), units_of(bias_partials(delta), limit)


@dataclass
class Pass:
    """What the forward pass of a layer leaves for the backward pass, item by item."""

    a: np.ndarray  # (items, in), the layer's input
    z: np.ndarray  # (items, out)
    y: np.ndarray  # (items, out), before dropout
    dropped: np.ndarray = None  # (items, out), true where dropped
    after: np.ndarray = None  # (items, out), y after dropout


def parse_model(text, shape, has_next=False):
    """11.2, 16.7, read liberally: layers without parameters. `shape` is that of the input (16.2); a
    dense layer takes it without pixels. A number stands for so many features."""
    shape = shape if isinstance(shape, tuple) else (shape, 1, 1)
    layers, blocks, at, opens, beside = [], [], -1, (), False
    for part in PARTS.findall(recurrent.spelled(text.lower().strip())):
        source, other = at, None
        if word := re.fullmatch(r"\s*(residual|product|concat)\s*{\s*", part):
            blocks.append((at, None, word[1]))
            opens += (word[1],)
            continue
        if part == "|":
            blocks[-1] = (blocks[-1][0], at, blocks[-1][2])
            at, beside = blocks[-1][0], True
            continue
        if part.startswith("}"):
            begin, main, kind = blocks.pop()
            source, other = (at, begin) if main is None else (main, at)
            second = layers[other].out if other >= 0 else first
            window, rest = Join(kind, layers[source].out, second), part[1:]
        else:
            shape = layers[source].out if source >= 0 else shape if not layers else first
            window, rest = sequences.parse(part, shape, has_next, layers)
            if not window:
                window, rest = parse(part, shape)
            if not window:
                window, rest = norms.parse(part, shape)
            if not window:
                window, rest = attention.parse(part, shape)
            if not window:
                window, rest = sequences.parse_pool(part, shape)
            if not window:
                window, rest = recurrent.parse(part, shape)
        found = re.fullmatch(
            ("" if window else r"\s*dense\s+(?P<outputs>\d+)")
            + r"(?P<bare>\s*nobias\b)?"
            + rf"\s*(?P<activation>{'|'.join(ACTIVATIONS)})?(?:\s*(?P<drop>dropout|droppath)\s+(?P<p>\S+))?\s*",
            rest,
        )
        if not found:
            raise SystemExit(f"oracle: no layer: {part!r}")
        found = found.groupdict()
        if not layers:
            shape = first = shape if window else (prod(shape), 1, 1)
        shape = window.shape if window else shape
        if window and layers and getattr(layers[0].window, "kind", "") == "embedding":
            window.positions = True  # 25.24
        outputs = prod(window.out) if window else int(found["outputs"])
        dropout = from_text(found["p"]) if found["p"] else ZERO
        layers.append(Layer(shape, outputs, found["activation"] or "none", dropout, window, source, other,
                            opens, beside,
                            drops_path=found["drop"] == "droppath",
                            biased=not found["bare"] and getattr(window, "kind", "") not in ("layerscale", "rmsnorm", "embedding", "position")
                            and getattr(window, "cell", "") != "lstm"))
        at, opens, beside = len(layers) - 1, (), False
    return layers


def model_text(layers):
    """11.2, 16.7 and 17.7, as it is written in a recipe."""
    text = ""
    for l, layer in enumerate(layers):
        ends = layer.other is not None
        text += "" if l == 0 or ends else " | " if layer.beside else "; "
        text += ("".join(f"{word} {{ " for word in layer.opens)
                 + (layer.window.text() if layer.window else f"dense {layer.outputs}")
                 + ("" if layer.biased or layer.normalises or layer.is_tied or getattr(layer.window, "cell", "") else " nobias")
                 + (f" {layer.activation}" if layer.has_parameters or layer.is_tied or ends or getattr(layer.window, "activates", False) else "")
                 + (f" {'droppath' if layer.drops_path else 'dropout'} {to_text(layer.dropout)}" if layer.dropout else ""))
    return text


def initialise(layers, seed, rule, start=None):
    """6.2 and 16.7: weights and biases before the first step; with `start`, the `d` of 24.83, by those words."""
    purpose, epoch = (WEIGHTS, 0) if start is None else (NEW_LAST, start)
    for l, layer in enumerate(layers):
        if layer.normalises:
            layer.arrays = layer.window.initial(seed, l) if layer.window.kind in sequences.KINDS else layer.window.initial()
        if not layer.has_parameters or layer.normalises:
            continue
        rows, depth, reached, fan_in = layer.outputs, layer.inputs, layer.outputs, None
        if layer.window:
            taps = prod(layer.window.size)
            rows, depth = layer.out[0], taps * layer.window.reads
            reached = taps * rows // layer.window.groups
            if layer.window.kind == "convtranspose":  # 24.42
                fan_in = max(depth // prod(layer.window.stride), 1)
            if layer.window.kind == "recurrent":
                fan_in = rows
        kind, fan_in = rule, fan_in or depth
        if rule == "auto":
            rectifies = layer.activation in ("relu", "leaky_relu", "gelu", "silu", "relu6", "hardswish", "gelu-tanh")
            kind = "he" if rectifies else "glorot"
        if kind == "glorot":
            limit = np.sqrt(F(6) / integer(fan_in + reached))
        elif kind == "he":
            limit = np.sqrt(F(6) / integer(fan_in))
        else:
            limit = np.sqrt(F(3) / integer(fan_in))
        o = np.arange(rows)[:, None]
        k = np.arange(depth)[None, :]
        top = (word(seed, purpose, l, epoch, o, k) >> np.uint64(8)).astype(np.int64)
        m = (2 * top + 1 - 2**24).astype(np.float32) / F(2**24)  # both exact
        layer.weight = m * limit
        if layer.window:
            layer.weight = layer.weight.reshape(rows, *layer.window.size, -1)
        layer.bias = np.zeros(rows, dtype=np.float32)


def softmax(z):
    """6.4: (m, s, y) of rows z; m and s as columns (items, 1)."""
    m = z[:, 0]
    for j in range(1, z.shape[1]):
        m = np.where(z[:, j] > m, z[:, j], m)
    m = m[:, None]
    q = elementary.exp(z - m)
    s = q[:, 0]
    for j in range(1, z.shape[1]):
        s = s + q[:, j]
    s = s[:, None]
    return m, s, q / s


def hardsigmoid(z):
    """24.10."""
    c = z + THREE
    return np.where(c < 0, ZERO, np.where(c > SIX, SIX, c)) * SIXTH


def activate(activation, z):
    """6.4: y from z."""
    if activation == "relu":
        return np.where(z <= 0, ZERO, z)
    if activation == "tanh":
        return elementary.tanh(z)
    if activation == "sigmoid":
        return elementary.sigmoid(z)
    if activation == "leaky_relu":
        return np.where(z > 0, z, z * SLOPE)
    if activation == "gelu":
        return elementary.gelu(z)
    if activation == "silu":
        return elementary.silu(z)
    if activation == "gelu-tanh":
        return elementary.gelu_tanh(z)
    if activation == "relu6":
        return np.where(z <= 0, ZERO, np.where(z > SIX, SIX, z))
    if activation == "hardswish":
        return z * hardsigmoid(z)
    if activation == "hardsigmoid":
        return hardsigmoid(z)
    if activation == "softmax":
        return softmax(z)[2]
    return z


def keep_factor(layer):
    """6.5."""
    return ONE / (ONE - layer.dropout)


def forward(layers, x, seed=None, epoch=None, items=None, product=CHAINS, grain=None, still=None):
    """6.3 to 6.5: one Pass for each layer, for inputs x (items, F).

    `items` are the indices of the items in training, which dropout asks for; None outside training.
    `product` is the arithmetic, of products.py. `grain`: its items, in training. Layers that are
    `still` compute as outside training (24.61).
    """
    still = still or [False] * len(layers)
    passes, outputs = [], {-1: x}
    sequences.note_lengths([layer.window for layer in layers], x)
    for l, layer in enumerate(layers):
        a = outputs[layer.source]
        if layer.other is None:
            z = layer.forward(a, product, None if still[l] else grain)
        else:
            z = layer.window.forward(a, outputs[layer.other])
        y = activate(layer.activation, z)
        if layer.activation == "softmax" and layer.window:  # 24.70
            y = softmax(z.reshape(-1, layer.out[0]))[2].reshape(z.shape)
        passes.append(Pass(a, z, y))
        outputs[l] = y
        if layer.dropout and items is not None and not still[l]:
            threshold = floor(Fraction(float(layer.dropout)) * 2**32 + Fraction(1, 2))
            elements = np.arange(layer.outputs) * (not layer.drops_path)
            words = word(seed, DROPOUT, l, epoch, items[:, None], elements)
            passes[-1].dropped = words < np.uint64(threshold)
            outputs[l] = np.where(passes[-1].dropped, ZERO, y * keep_factor(layer))
        passes[-1].after = outputs[l]
    return passes


def classes(passes, loss):
    """6.6: the smallest index of the greatest of the last outputs; 0 or 1 with one output."""
    if loss == "binary":
        return (passes[-1].y[:, 0] > F(0.5)).astype(np.int64)
    return passes[-1].y.argmax(axis=1)


def targets(loss, labels, outputs):
    """7.1: real labels, as floats, are their own targets."""
    if labels.dtype == np.float32 or loss == "binary":
        return labels.astype(np.float32)[:, None]
    return (labels[:, None] == np.arange(outputs)).astype(np.float32)


def losses(loss, passes, labels, delta=ZERO):
    """7.2, 7.3, 7.6: the loss of each item; `delta` is that of huber."""
    last = passes[-1]
    if several.is_several(labels):
        return several.losses(loss, last.z, labels)
    if loss == "cross-entropy":
        m, s, _ = softmax(last.z)
        chosen = np.take_along_axis(last.z, labels[:, None].astype(np.int64), axis=1)
        return (elementary.log(s) - (chosen - m))[:, 0]
    if loss == "binary":
        v = np.where(labels == 1, -last.z[:, 0], last.z[:, 0])
        w = np.where(v > 0, v, ZERO)
        return w + elementary.log(ONE + elementary.exp(-np.abs(v)))
    d = last.y - targets(loss, labels, last.y.shape[1])
    sums = np.zeros(len(d), dtype=np.float32)
    for j in range(d.shape[1]):
        a = np.abs(d[:, j])
        if loss == "mae":
            sums = sums + a
        elif loss == "huber":
            m = np.where(a < delta, a, delta)
            sums = sums + m * (a - F(0.5) * m)
        else:
            sums = fma(d[:, j], d[:, j], sums)
    return sums


def slope(loss, d, delta):
    """8.3: s."""
    if loss == "mae":
        return np.where(d > 0, ONE, np.where(d < 0, -ONE, ZERO))
    if loss == "huber":
        return np.where(np.abs(d) < delta, d, np.where(d > 0, delta, -delta))
    return F(2) * d


def loss_units(values, grain):
    """7.4 and 8.7: the loss of a batch in units of 2^-32, from those of its items."""
    total = 0
    for begin, end in grains(len(values), grain):
        acc = ZERO
        for value in values[begin:end]:
            acc = acc + value
        if not abs(acc) < 2.0**29:
            raise SystemExit("oracle: the loss of a grain is out of range")
        total += round(Fraction(float(acc)) * 2**32)
    return total


def through(activation, e, y, z):
    """8.5, 17.2: delta from e, the output y of the activation and its argument z."""
    if activation == "relu":
        return np.where(y > 0, e, ZERO)
    if activation == "tanh":
        return e * fma(-y, y, ONE)
    if activation == "sigmoid":
        return e * (y * (ONE - y))
    if activation == "leaky_relu":
        return np.where(y > 0, e, e * SLOPE)
    if activation == "gelu":
        return e * elementary.gelu_slope(z)
    if activation == "silu":
        return e * elementary.silu_slope(z)
    if activation == "gelu-tanh":
        return e * elementary.gelu_tanh_slope(z)
    if activation == "relu6":
        return np.where((y > 0) & (y < SIX), e, ZERO)
    if activation == "hardswish":
        return e * np.where(z <= -THREE, ZERO, np.where(z >= THREE, ONE, z * THIRD + F(0.5)))
    if activation == "hardsigmoid":
        return np.where((y > 0) & (y < ONE), e * SIXTH, ZERO)
    return e


def smoothed(labels, outputs, smoothing):
    """17.3"""
    off = smoothing / integer(outputs)
    return np.where(labels[:, None] == np.arange(outputs), (ONE - smoothing) + off, off)


def last_delta(loss, layer, y, z, labels, unit, delta=ZERO, shares=None, smoothing=ZERO, mixed=None):
    """8.2, 8.3, 17.3: delta of the last layer, in units of 2^-unit."""
    factor = F(2.0**unit) if shares is None else (shares * F(2.0**unit))[:, None]
    if several.is_several(labels):
        return several.deltas(loss, y, labels, factor, smoothing)
    d = y - targets(loss, labels, layer.outputs)
    if loss == "cross-entropy":
        target = smoothed(labels, layer.outputs, smoothing)
        if mixed:  # 24.57: labels of the partners, shares of both labels
            other, first, second = mixed
            target = first[:, None] * target + second[:, None] * smoothed(other, layer.outputs, smoothing)
        return (y - target) * factor
    if loss == "binary":
        return d * factor
    g = slope(loss, d, delta) * factor
    if layer.activation != "softmax":
        return through(layer.activation, g, y, z)
    c = np.zeros(len(y), dtype=np.float32)
    for j in range(layer.outputs):
        c = fma(g[:, j], y[:, j], c)
    return y * (g - c[:, None])


def deltas(loss, layers, passes, labels, unit, product=CHAINS, delta=ZERO, shares=None,
           smoothing=ZERO, grain=None, mixed=None):
    """8.2 to 8.5: delta (items, out) of every layer; `delta` is that of huber, `shares` are the
    weights of 7.7."""
    errors = {}  # 17.7, 24.30: e of each output, once all layers that read it are done

    def give(output, e):
        errors[output] = e + errors[output] if output in errors else e

    result = []
    for l in range(len(layers) - 1, -1, -1):
        layer, own = layers[l], passes[l]
        if l == len(layers) - 1:
            d = last_delta(loss, layer, own.y, own.z, labels, unit, delta, shares, smoothing, mixed)
        else:
            e = errors[l]
            if own.dropped is not None:
                e = np.where(own.dropped, ZERO, e * keep_factor(layer))
            d = through(layer.activation, e, own.y, own.z)
        result.insert(0, d)
        if layer.other is not None:
            second = passes[layer.other].after if layer.other >= 0 else passes[0].a
            for output, e in zip((layer.source, layer.other), layer.window.backward(own.a, second, d)):
                give(output, e)
        elif layer.source >= 0:
            give(layer.source, layer.backward(own.a, d, product, grain))
    return result


def bias_partials(delta):
    """8.6: the partial gradient of the biases from one grain, its items in order."""
    bias = np.zeros(delta.shape[1], dtype=np.float32)
    for one in delta:
        bias = bias + one
    return bias


def sums(layers, passes, layer_deltas, grain, limit, product=CHAINS):
    """8.7: for every layer with parameters the sums S of a batch, arrays of int64 like W and b."""
    result = []
    for layer, one, delta in zip(layers, passes, layer_deltas):
        if not layer.has_parameters:
            continue
        pair = [np.zeros(array.shape, dtype=np.int64) for array in layer.arrays]
        for begin, end in grains(len(delta), grain):
            units = layer.gradient(delta[begin:end], one.a[begin:end], limit, product)
            pair = [total + own for total, own in zip(pair, units)]
        result.append(pair)
    if layers[-1].is_tied:  # 25.15: both partials of the table
        for begin, end in grains(len(delta), grain):
            result[0][0] = result[0][0] + layers[-1].gradient(delta[begin:end], one.a[begin:end], limit, product)[0]
    return result

"""25.70 to 25.76: generation. There is no cache here: each token is a pass over the whole text."""

import hashlib
import json
import struct

import numpy as np

import attention
from binary32 import F, ONE
from elementary import exp, log
from network import forward, parse_model
from philox import word
from products import of

TOKENS = 12  # the purpose


class Network:
    """The layers of a model file (12) with their weights."""

    def __init__(self, path):
        whole = path.read_bytes()
        size, = struct.unpack("<Q", whole[:8])
        header = json.loads(whole[8:8 + size])
        self.notes = header.pop("__metadata__")
        self.recipe = json.loads(self.notes["recipe"])
        shape = (self.recipe["features"], 1, 1)
        self.layers = parse_model(self.recipe["model"], shape, has_next=True)
        for name, entry in header.items():
            l, what = name.removeprefix("layer").split(".")
            begin, end = (8 + size + at for at in entry["data_offsets"])
            values = np.frombuffer(whole[begin:end], "<f4").reshape(entry["shape"])
            self.put(self.layers[int(l)], what, values)
        attention.choose(self.layers, self.recipe.get("attention_arith", "float32"), self.recipe["arith"])
        self.positions = self.layers[0].out[2]

    @staticmethod
    def put(layer, what, values):
        kind = getattr(layer.window, "kind", None)
        if kind == "conv":  # 16.9: the file has [channel][input channel][row][column]
            values = values if values.ndim == 1 else values.transpose(0, 2, 3, 1)
        setattr(layer, what, values)

    def logits(self, tokens):
        """25.70. What follows the last position does not matter."""
        n, t = len(tokens), self.positions
        half = (t + 1) // 2
        base = 0 if n <= t else half * -((t - n) // half)
        read = np.zeros((1, t + 1), np.float32)
        read[0, :n - base] = tokens[base:]
        z = forward(self.layers, read, product=of(self.recipe["arith"]))[-1].z  # 25.77
        return z.reshape(t, -1)[n - base - 1]


def units(z, h):
    """25.73"""
    difference = (z - z.max()) / F(h)
    nearest = np.rint(exp(difference).astype(np.float64) * 2.0**38)
    return [0 if d < -28 else int(u) for d, u in zip(difference, nearest)]


def choose(z, text, prompt, answer, seed, temperature, top_k, top_p, repetition):
    """25.72 to 25.74"""
    z = z.copy()
    if F(repetition) != ONE:
        for v in set(text):
            z[v] = z[v] / F(repetition) if z[v] > 0 else z[v] * F(repetition)
    if temperature == 0:
        return int(np.argmax(z))
    u = units(z, temperature)
    remain = sorted(range(len(z)), key=lambda v: (-z[v], v))
    if top_k:
        remain = remain[:top_k]
    if F(top_p) < 1:
        least = sum(u[v] for v in remain) * int(np.rint(np.float64(F(top_p)) * 2**32)) >> 32
        count, total = 1, u[remain[0]]
        while total < least:
            total += u[remain[count]]
            count += 1
        remain = remain[:count]
    digest = hashlib.sha256(np.array(prompt, "<u4").tobytes()).digest()
    number, n = int.from_bytes(digest[:6], "little"), len(text)
    high, low = (int(word(seed, TOKENS, 0, answer, number, 2 * n + i)) for i in (0, 1))
    x = (high << 32 | low) * sum(u[v] for v in remain) >> 64
    for v in sorted(remain):
        x -= u[v]
        if x < 0:
            return v
    raise AssertionError("25.74 finds a token")


def log_probability(z, v):
    """25.75"""
    return (z[v] - z.max()) - log(F(sum(units(z, ONE))) * F(2.0**-38))


def generate(network, prompt, tokens, drawn, answer=0, ends=(), **options):
    """An answer's tokens and their log-probabilities; the first `drawn` logits have a text."""
    text, scores = list(prompt), []
    while len(scores) < tokens:
        z = network.logits(text)[:drawn]
        token = choose(z, text, prompt, answer, **options)
        scores.append(log_probability(z, token))
        text.append(token)
        if token in ends:
            break
    return text[len(prompt):], scores

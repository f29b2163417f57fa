"""What the peers of train_cnn.py share: Quern's model text as a list of layers.

A text such as "conv 32 5x5 relu; maxpool 2; dense 10 softmax" becomes dictionaries with `kind`,
numbers and `activation`; "residual { A; B | C } relu" becomes one with `main` and `shortcut`. Only
what the networks of train_cnn.py and photographs.py use is understood; anything else stops the benchmark.
"""

import sys

import numpy as np
import peerlib

ACTIVATIONS = ("relu", "relu6", "tanh", "sigmoid", "none", "softmax")


def split(text, mark):
    """Parts of a text between marks that stand outside of braces."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if letter == mark and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in [*parts, text[start:]]]


def pair(word):
    numbers = [int(n) for n in word.split("x")]
    return (numbers * 2)[:2]


def plain(text):
    """One layer that is not a block."""
    words = text.split()
    layer = {"kind": words.pop(0), "activation": "none"}
    if words and words[-1] in ACTIVATIONS:
        layer["activation"] = words.pop()
    if layer["kind"] in ("dense", "conv"):
        layer["out"] = int(words.pop(0))
    if layer["kind"] in ("conv", "maxpool"):
        layer["kernel"] = pair(words.pop(0))
        layer["stride"] = [1, 1] if layer["kind"] == "conv" else layer["kernel"]
        if words[:1] == ["stride"]:
            layer["stride"] = pair(words[1])
            del words[:2]
        odd = layer["kind"] == "conv" and all(n % 2 for n in layer["kernel"])
        layer["pad"] = [n // 2 if odd else 0 for n in layer["kernel"]]
    if words[:1] == ["pad"]:
        layer["pad"] = pair(words[1])
        del words[:2]
    for word in ("depthwise", "nobias"):
        layer[word] = layer["kind"] == "conv" and word in words
        words = [w for w in words if w != word or not layer[word]]
    if words or layer["kind"] not in ("dense", "conv", "maxpool", "globalpool", "batchnorm"):
        sys.exit(f"the peers of this benchmark do not know the layer '{text}'")
    return layer


def parse(text):
    layers = []
    for part in split(text, ";"):
        if part.startswith("residual"):
            inner, _, activation = part.partition("{")[2].rpartition("}")
            main, *shortcut = split(inner, "|")
            layers.append({"kind": "residual", "main": parse(main),
                           "shortcut": parse(shortcut[0]) if shortcut else [],
                           "activation": activation.strip() or "none"})
        else:
            layers.append(plain(part))
    return layers


def after(layer, image):
    """The shape (channels, height, width) after a layer."""
    if layer["kind"] == "dense":
        return (layer["out"], 1, 1)
    if layer["kind"] == "globalpool":
        return (image[0], 1, 1)
    if layer["kind"] == "residual":
        for inner in layer["main"]:
            image = after(inner, image)
        return image
    if layer["kind"] == "batchnorm":
        return image
    sides = [(size + 2 * pad - kernel) // stride + 1
             for size, pad, kernel, stride in zip(image[1:], layer["pad"], layer["kernel"], layer["stride"])]
    return (layer.get("out", image[0]), *sides)


def augmented(images, random):
    """Padded by 4 zeros at each side, cut at a random place, and half of them mirrored."""
    count, channels, height, width = images.shape
    padded = np.pad(images, ((0, 0), (0, 0), (4, 4), (4, 4)))
    top, left = random.integers(0, 9, (2, count, 1, 1, 1))
    column = np.broadcast_to(np.arange(width), (count, 1, 1, width))
    column = np.where(random.random((count, 1, 1, 1)) < 0.5, column[..., ::-1], column) + left
    row = np.arange(height).reshape(1, 1, height, 1) + top
    return padded[np.arange(count).reshape(-1, 1, 1, 1), np.arange(channels).reshape(1, -1, 1, 1), row, column]


class Cnn(peerlib.Peer):
    """A peer that takes --network TEXT and --shape CxHxW."""

    def network_of(self):
        return parse(self.text), tuple(int(n) for n in self.shape.split("x"))

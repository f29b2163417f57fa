"""25.86, 25.87 of the contract: low-rank adapters."""

import re

import numpy as np

from binary32 import F, ONE, integer
from philox import NEW_LAST, word


def roles(text, lora):
    """25.86: {number of a layer: what it is in an adapter}, from the model text."""
    found = {}
    if lora:
        rank = lora.split()[0]
        for m in re.finditer(rf"residual {{ (conv|dense) (\d+)((?: 1x1)?)(?: nobias)? none \| \1 {rank}\3 nobias none; "
                             r"(layerscale \S+ none; )?\1 \2\3 nobias none }", text):
            names = ["main", "down", *["scale"] * bool(m[4]), "up", "end"]
            first = len(re.findall("[;|}]", text[: m.start()]))
            found |= {first + k: name for k, name in enumerate(names)}
    return found


def of_start(layers, roles):
    """The layers that the model of `init_from` has, in its order."""
    return [layer for l, layer in enumerate(layers) if roles.get(l) not in ("down", "scale", "up", "end")]


def initialise(layers, roles, seed, start):
    """25.86: `start` is the `d` of 24.83."""
    for l, role in roles.items():
        shape = layers[l].weight.shape if role in ("down", "up") else None
        if role == "down":
            rows, depth = shape[0], int(np.prod(shape[1:]))
            words = word(seed, NEW_LAST, l, start, np.arange(rows)[:, None], np.arange(depth)[None, :])
            m = (2 * (words >> np.uint64(8)).astype(np.int64) + 1 - 2**24).astype(np.float32) / F(2**24)
            layers[l].weight = (m * (ONE / np.sqrt(integer(depth)))).reshape(shape)
        elif role == "up":
            layers[l].weight = np.zeros(shape, np.float32)

"""Section 7.7 of the contract: weights of items and of classes."""

import csv
from fractions import Fraction

import numpy as np

from binary32 import ONE, ZERO, from_text, nearest, to_text


def names_of(table, outputs):
    """The names of the classes: those of the table, else numbers."""
    named = table is not None and table["target"] == "class"
    return table["classes"] if named else [str(k) for k in range(outputs)]


def read(text, classes):
    """The weights that a text gives to the classes."""
    weights = dict.fromkeys(classes, ONE)
    quoted = False
    entries = [""]
    for c in text:
        quoted ^= c == '"'
        if c == "," and not quoted:
            entries.append("")
        else:
            entries[-1] += c
    for entry in entries:
        name, number = (part.strip(" \t") for part in entry.rsplit("=", 1))
        if name[:1] == '"':
            name = next(csv.reader([name]))[0]
        assert name in weights, f"oracle: no class {name}"
        weights[name] = from_text(number) + ZERO
    return [weights[name] for name in classes]


def quote(name):
    plain = name and not set(name) & set(',"') and name == name.strip(" \t")
    return name if plain else '"' + name.replace('"', '""') + '"'


def canonical(text, classes):
    """11.8: how a recipe writes them."""
    if text == "balanced":
        return text
    return ",".join(f"{quote(name)}={to_text(weight)}"
                    for name, weight in zip(classes, read(text, classes)) if weight != 1)


def balanced(labels, classes):
    """RN(n / (k * count)) of the training items."""
    counts = [int((labels == c).sum()) for c in range(classes)]
    present = sum(count > 0 for count in counts)
    return [nearest(Fraction(len(labels), present * count)) if count else ONE for count in counts]


def shares(weights):
    """RN(w * n / W)."""
    exact = [Fraction(float(w)) for w in weights]
    together = sum(exact)
    return np.array([nearest(w * len(exact) / together) for w in exact], np.float32)


def of_items(own, text, classes, labels, chosen, others):
    """(weights of the training items, shares of all items); both None where all count alike."""
    if own is None and not text:
        return None, None
    weights = np.ones(len(labels), np.float32) if own is None else own
    if text:
        each = balanced(labels[chosen], len(classes)) if text == "balanced" else read(text, classes)
        weights = weights * np.array(each, np.float32)[labels]
    result = np.zeros(len(labels), np.float32)
    result[chosen] = shares(weights[chosen])
    if len(others):
        result[others] = shares(weights[others])
    return weights[chosen], result

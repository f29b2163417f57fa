"""Evaluation by long fractions, from docs/exactness.md 19 alone."""

import math
from fractions import Fraction

import numpy as np

import elementary
from column_statistics import root

NAN = math.nan
BINS = 15


def counts_of(weights):
    """19.1: the integers by which items count."""
    w = [Fraction(float(x)) for x in weights]
    top = math.frexp(float(sum(w)))[1]
    lowest = min(_lowest(x) for x in w if x)
    unit = Fraction(2) ** max(lowest, top - 61)
    return [round(x / unit) for x in w]


def _lowest(x):
    """The power of two of the lowest bit."""
    return (x.numerator & -x.numerator).bit_length() - x.denominator.bit_length()


def part(a, b):
    return float(Fraction(a, b)) if b else 0.0


def mean(numbers, weights):
    known = [(Fraction(x), w) for x, w in zip(numbers, weights) if x == x]
    whole = sum(w for _, w in known)
    return float(sum(x * w for x, w in known) / whole) if whole else NAN


def predicted(outputs):
    """19.2: classes and confidences."""
    if outputs.shape[1] == 1:
        one = outputs[:, 0]
        classes = (one > np.float32(0.5)).astype(int)
        return classes, np.where(classes == 1, one, np.float32(1) - one)
    classes = outputs.argmax(1)
    return classes, outputs[np.arange(len(outputs)), classes]


def area(scores, member, counts):
    """19.4, pair by pair of groups of equal scores."""
    groups = {}
    for score, is_member, count in zip(scores, member, counts):
        groups.setdefault(float(score) + 0.0, [0, 0])[bool(is_member)] += count
    below = members = pairs = 0
    for score in sorted(groups):
        others, own = groups[score]
        pairs += own * (2 * below + others)
        below, members = below + others, members + own
    return float(Fraction(pairs, 2 * below * members)) if below and members else NAN


def classes(labels, outputs, classes, counts=None, probabilities=True):
    counts = [1] * len(labels) if counts is None else counts
    found, confidence = predicted(outputs)
    right = [int(label == c) for label, c in zip(labels, found)]
    answer = {"items": len(labels), "correct": sum(right),
              "accuracy": part(sum(c * r for c, r in zip(counts, right)), sum(counts))}
    answer["top5_accuracy"] = NAN
    if classes > 5:  # 24.80
        near = [c for c, label, y in zip(counts, labels, outputs)
                if 0 <= label < classes and sorted(range(classes), key=lambda j: (-y[j], j)).index(label) < 5]
        answer["top5_accuracy"] = part(sum(near), sum(counts))
    rows = [_of_class(k, labels, found, right, counts) for k in range(classes)]
    for k, row in enumerate(rows):
        column = outputs[:, -1] if classes == 2 else outputs[:, k]
        member = labels == (1 if classes == 2 else k)
        row["auc"] = area(column, member, counts) if classes == 2 or (labels == k).any() else NAN
    support = [sum(c for c, label in zip(counts, labels) if label == k) for k in range(classes)]
    for name in ("precision", "recall", "f1"):
        each = [row[name] for row in rows]
        answer[name] = mean(each, [1] * classes)
        answer["weighted_" + name] = mean(each, support)
    answer["auc"] = rows[1]["auc"] if classes == 2 else mean([r["auc"] for r in rows], [1] * classes)
    answer["by_class"] = rows
    if probabilities:
        answer.update(_calibration(labels, outputs, confidence, right, counts))
    return answer


def _of_class(k, labels, found, right, counts):
    taken = sum(c for c, f in zip(counts, found) if f == k)
    own = sum(c for c, label in zip(counts, labels) if label == k)
    both = sum(c for c, f, r in zip(counts, found, right) if f == k and r)
    known = taken + own > 0
    return {"precision": part(both, taken) if known else NAN,
            "recall": part(both, own) if known else NAN,
            "f1": part(2 * both, taken + own) if known else NAN}


def _calibration(labels, outputs, confidence, right, counts):
    """19.3 and 19.5."""
    bins = [[0, 0, Fraction(0), 0] for _ in range(BINS)]
    loss = Fraction(0)
    for label, y, c, r, count in zip(labels, outputs, confidence, right, counts):
        b = min(max(math.ceil(Fraction(float(c)) * BINS) - 1, 0), BINS - 1)
        bins[b][0] += count
        bins[b][1] += count * r
        bins[b][2] += count * Fraction(float(c))
        bins[b][3] += 1
        loss += count * Fraction(-float(elementary.log(_probability(label, y))))
    whole = sum(counts)
    return {"log_loss": float(loss / whole),
            "calibration_error": float(sum(abs(b[1] - b[2]) for b in bins) / whole),
            "calibration": {"items": [b[3] for b in bins],
                            "confidence": [float(b[2] / b[0]) if b[0] else NAN for b in bins],
                            "accuracy": [part(b[1], b[0]) if b[0] else NAN for b in bins],
                            "low": [b / BINS for b in range(BINS)],
                            "high": [(b + 1) / BINS for b in range(BINS)]}}


def _probability(label, y):
    p = np.float32(0)
    if len(y) == 1 and label in (0, 1):
        p = y[0] if label else np.float32(1) - y[0]
    elif 0 <= label < len(y):
        p = y[label]
    return max(p, np.float32(2.0**-52))


def errors(targets, predictions, counts=None):
    """19.6."""
    counts = [1] * len(targets) if counts is None else counts
    t, p = ([Fraction(float(x)) for x in v] for v in (targets, predictions))
    whole = sum(counts)
    absolute = sum(c * abs(a - b) for c, a, b in zip(counts, t, p))
    squares = sum(c * (a - b)**2 for c, a, b in zip(counts, t, p))
    middle = sum(c * a for c, a in zip(counts, t)) / whole
    spread = sum(c * (a - middle)**2 for c, a in zip(counts, t))
    return {"mae": float(absolute / whole), "rmse": root(squares / whole),
            "r2": float(1 - squares / spread) if spread else NAN}


def next_tokens(losses, right, lengths=None):
    """25.65 and 25.66: `losses` of targets in binary32, how many answers are right, and the bytes that
    each target stands for."""
    total = sum((Fraction(float(x)) for x in losses), Fraction(0))
    loss = float(total / len(losses))
    answer = {"tokens": len(losses), "correct": right, "accuracy": part(right, len(losses)), "loss": loss}
    if lengths is not None:
        answer["bytes"] = sum(lengths)
        answer["bits_per_byte"] = float(total / sum(lengths)) / float.fromhex("0x1.62e42fefa39efp-1")
    return answer

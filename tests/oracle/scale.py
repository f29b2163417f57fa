"""Section 5 of the contract: inputs."""

from fractions import Fraction

import numpy as np

from binary32 import F, ONE, ZERO, nearest, nearest_root

SMALLEST_NORMAL = F(2.0**-126)


def statistics(table, weights=None):
    """5.2: (mean, deviation, inverse), arrays (F), of the training items.

    Every float is an integer times 2^-149, so the sums are sums of Python's integers, exact.
    """
    own = [1] * len(table) if weights is None else [int(float(w) * 2.0**149) for w in weights]
    n = sum(own)
    mean, deviation, inverse = [], [], []
    for column in table.T:
        units = [int(float(value) * 2.0**149) for value in column]
        total = sum(w * unit for w, unit in zip(own, units))
        squares = sum(w * unit * unit for w, unit in zip(own, units))
        # Adding +0 turns a mean that was rounded to -0 into +0 and changes no other.
        mean.append(nearest(Fraction(total, n << 149)) + ZERO)
        spread = nearest_root(Fraction(n * squares - total * total, (n * n) << 298))
        constant = not spread >= SMALLEST_NORMAL
        deviation.append(ZERO if constant else spread)
        inverse.append(ZERO if constant else ONE / spread)
    return tuple(np.array(a, dtype=np.float32) for a in (mean, deviation, inverse))


def of_channels(table, shape, weights=None):
    """17.11: the same for each channel, as arrays (F). A channel's values stand in one column."""
    channels, pixels = shape[0], shape[1] * shape[2]
    column = table.reshape(len(table), channels, pixels).transpose(0, 2, 1).reshape(-1, channels)
    return statistics(column, None if weights is None else np.repeat(weights, pixels))


def given(text, are_bytes):
    """24.51: the same of the numbers in `scale_numbers`."""
    u = np.float32(255 if are_bytes else 1)
    mean, deviation = (np.array(part.split(","), np.float32) * u for part in text.split("/"))
    return mean, deviation, ONE / deviation


def quartile(values, j):
    """17.16: the real number q(j) of an ascending list of Fractions."""
    i, h = divmod(j * (len(values) - 1), 4)
    return values[i] + (Fraction(h, 4) * (values[i + 1] - values[i]) if h else 0)


def by_order(table, scaling, weights=None):
    """17.16: (mean, deviation, inverse), arrays (F), of the training items."""
    counting = table if weights is None else table[weights > 0]
    mean, deviation, inverse = [], [], []
    for column in counting.T:
        values = sorted(Fraction(float(value)) for value in column)
        if scaling == "minmax":
            middle, spread = values[0], nearest(values[-1] - values[0])
        else:
            middle, spread = quartile(values, 2), nearest(quartile(values, 3) - quartile(values, 1))
            if spread < SMALLEST_NORMAL and values[0] < values[-1]:
                spread = ONE
        constant = not spread >= SMALLEST_NORMAL
        mean.append(nearest(middle) + ZERO)
        deviation.append(ZERO if constant else spread)
        inverse.append(ZERO if constant else ONE / spread)
    return tuple(np.array(a, dtype=np.float32) for a in (mean, deviation, inverse))


def for_inputs(stats, width):
    """17.11: what the inputs of a channel share, for each of them."""
    return tuple(np.repeat(a, width // len(a)) for a in stats)


def inputs(table, scaling, stats):
    """5.1: the array (n, F) of inputs."""
    x = table.astype(np.float32)
    if scaling in ("unit", "fraction"):
        if table.dtype != np.uint8:
            raise SystemExit(f"oracle: the scaling {scaling} is for data of bytes only")
        return x / F(255 if scaling == "unit" else 256)
    if scaling in ("standard", "channel", "minmax", "robust"):
        mean, _, inverse = for_inputs(stats, table.shape[1])
        return (x - mean) * inverse
    return x


def targets(labels, chosen, weights=None, kept=None):
    """5.3: the scaled labels of all items, and (mean, deviation) of the training items."""
    mean, deviation, inverse = kept or statistics(labels[chosen][:, None], weights)
    return (labels - mean) * inverse, (mean, deviation)


def kept(tensors, name):
    """6.2: (mean, deviation, inverse) of a model, of `scale` or `target`."""
    mean, deviation = tensors[f"{name}.mean"], tensors[f"{name}.deviation"]
    with np.errstate(divide="ignore"):
        inverse = np.where(deviation >= SMALLEST_NORMAL, ONE / deviation, ZERO)
    return mean, deviation, inverse.astype(np.float32)

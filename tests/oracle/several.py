"""24.70 to 24.76: several answers to an item. Targets are uint8: items x labels, or items x rows x columns.
Those of 25.14 are int64: items x 1 x positions, -1 where one is ignored."""

import numpy as np

import elementary
from binary32 import ONE, ZERO, integer

IGNORED = 255


def is_several(labels):
    return labels.dtype == np.uint8 or labels.dtype == np.int64 and labels.ndim == 3


def is_ignored(targets):
    return targets == (IGNORED if targets.dtype == np.uint8 else -1)


def next_tokens(tokens):
    """25.14: the targets of items of tokens."""
    targets = tokens[:, None, 1:].astype(np.int64)
    return np.where(targets == np.iinfo(tokens.dtype).max, -1, targets)


def read_npy(content):
    """2.1.8: the array of an NPY file."""
    import ast

    long = content[6] > 1
    size = int.from_bytes(content[8:12 if long else 10], "little")
    begin = (12 if long else 10) + size
    header = ast.literal_eval(content[begin - size:begin].decode())
    order = "F" if header["fortran_order"] else "C"
    return np.frombuffer(content[begin:], header["descr"]).reshape(header["shape"], order=order)


def digest_part(targets):
    """24.75: what stands for the digest of the labels."""
    from data import block_digest

    mask = targets.shape[1:] if targets.ndim == 3 else (0, 0)
    sizes = (int(np.prod(targets.shape[1:])), *mask)
    return b"".join(size.to_bytes(8, "little") for size in sizes) + block_digest(targets.tobytes())


def task(targets):
    """24.76."""
    return "next" if targets.dtype == np.int64 else "segment" if targets.ndim == 3 else "multilabel"


def shares(shares, targets):
    """24.72."""
    counts = (~is_ignored(targets.reshape(len(targets), -1))).sum(axis=1)
    own = np.ones(len(targets), np.float32) if shares is None else shares
    return np.array([s / integer(int(n)) if n else ZERO for s, n in zip(own, counts)], np.float32)


def by_pixel(values, targets):
    """(items, rows, columns, channels) of the last layer's values."""
    mask = targets.shape[1:] if targets.ndim == 3 else (1, 1)
    return values.reshape(len(values), *mask, -1)


def classes(loss, y, targets):
    """24.74: like the targets."""
    y = by_pixel(y, targets)
    return (y > 0.5).reshape(targets.shape) if loss == "binary" else y.argmax(axis=3)


def chain(values):
    """The sum over the last axis, one after the other."""
    acc = np.zeros(values.shape[:-1], np.float32)
    for j in range(values.shape[-1]):
        acc = acc + values[..., j]
    return acc


def losses(loss, z, targets):
    """24.71."""
    z = by_pixel(z, targets)
    t = targets.reshape(*z.shape[:3], -1)
    if loss == "binary":
        v = np.where(t == 1, -z, z)
        own = np.where(v > 0, v, ZERO) + elementary.log(ONE + elementary.exp(-np.abs(v)))
        pixels = chain(np.where(is_ignored(t), ZERO, own))
    else:
        m = z.max(axis=3, keepdims=True)
        s = chain(elementary.exp(z - m))
        chosen = np.take_along_axis(z, np.where(is_ignored(t), 0, t).astype(np.int64), axis=3)
        own = elementary.log(s) - (chosen - m)[..., 0]
        pixels = np.where(is_ignored(t[..., 0]), ZERO, own)
    return chain(chain(pixels))


def deltas(loss, y, targets, factor, smoothing):
    """24.73."""
    pixels = by_pixel(y, targets)
    t = targets.reshape(*pixels.shape[:3], -1)
    ignored = is_ignored(t)
    wanted = t.astype(np.float32)
    if loss == "cross-entropy":
        outputs = pixels.shape[3]
        off = smoothing / integer(outputs)
        wanted = np.where(t == np.arange(outputs), (ONE - smoothing) + off, off)
    own = (pixels - wanted).reshape(y.shape) * factor
    return np.where(np.broadcast_to(ignored, pixels.shape).reshape(y.shape), ZERO, own)


PAIRS = [(make(zero), make(one)) for make in (str.lower, str.capitalize, str.upper)
         for zero, one in (("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"))]


def list_of(words, names):
    """24.15: the columns of a list, or None where the text names one column."""
    import csv

    from tables import column_of

    if words is None or words in names or "," not in words:
        return None
    return [column_of(word, names) for word in next(csv.reader([words]))]


def of_columns(columns, numbers, names):
    """24.15: (targets, keys of 11.6) of columns as (values, categories)."""
    import csv
    import io

    targets, values = [], []
    for cells, categories in columns:
        pair = next((pair for pair in PAIRS if len(categories) == 1 and categories[0] in pair), tuple(categories))
        if categories and len(pair) != 2:
            raise SystemExit("oracle: the column of a label has not two texts")
        cells = np.array(cells)
        known = np.array([0, 1])[[pair.index(text) for text in categories]] if categories else np.array([0, 1])
        missing = np.isnan(cells)
        if not np.isin(cells[~missing], (0, 1)).all():
            raise SystemExit("oracle: a label is neither 0 nor 1")
        whole = np.where(missing, 0, cells).astype(np.int64)
        targets.append(np.where(missing, IGNORED, known[whole]))
        values.append(list(pair) if categories else [])
    classes = [names[k] or str(k + 1) for k in numbers]
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(classes)
    table = {"label": line.getvalue(), "target": "several", "classes": classes}
    return np.array(targets, np.uint8).T, {**table, **({"values": values} if any(values) else {})}

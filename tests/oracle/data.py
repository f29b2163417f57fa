"""Section 2 of the contract: items.

The readers are as plain as can be: IDX and CSV, either of them compressed with gzip. A table is
an array (n, F) of uint8 (the type `u8`) or float32 (`f32`), labels an array (n) of uint32.
"""

import gzip
import hashlib
from fractions import Fraction
from math import floor, prod

import numpy as np

import several
import tables
from order import permutation
from philox import SPLIT

BLOCK = 1048576


def read_bytes(path):
    """The bytes of a file, unpacked when they begin as gzip does."""
    with open(path, "rb") as file:
        content = file.read()
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def is_idx(content):
    """An IDX file of unsigned bytes begins with 0, 0, 8 and the number of dimensions."""
    return content[:3] == b"\0\0\x08"


def read_idx(content):
    """The array of an IDX file: big-endian sizes, then the elements, the last index fastest."""
    dimensions = content[3]
    shape = [int(size) for size in np.frombuffer(content, ">u4", dimensions, 4)]
    elements = np.frombuffer(content, np.uint8, prod(shape), 4 + 4 * dimensions)
    return elements.reshape(shape)


def read_weights(path, word):
    """2.1.5: (weights, the name of their column or None)."""
    return tables.weights(read_bytes(path), word)


def read(path, labels_path=None, label="1", task="auto", weight=None, tokens="", **more):
    """2.1: (table, labels, names); the names are those of 11.6, or None."""
    content = read_bytes(path)
    if is_idx(content):
        values = read_idx(content)
        labels = read_idx(read_bytes(labels_path)).astype(np.uint32)
        return values.reshape(len(values), -1), labels, None
    if content[:6] == b"\x93NUMPY":
        values = several.read_npy(content)
        if tokens and not labels_path:  # 25.14
            return tokens_of(values), several.next_tokens(tokens_of(values)), None
        labels = several.read_npy(read_bytes(labels_path))
        if tokens and labels.shape == values.shape:  # 25.39
            labels = np.where(np.isin(labels, (-100, 65535)), 255, labels)[:, None, :]
        labels = labels.astype(np.uint8 if labels.ndim > 1 else np.uint32)
        return tokens_of(values) if tokens else values.reshape(len(values), -1), labels, None
    return tables.read(content, label, task, weight=weight, **more)


def tokens_of(values):
    """25.40: numbers of tokens."""
    if values.ndim != 2 or values.dtype.kind not in "iu" or values.min() < 0 or values.max() >= 2**32:
        raise SystemExit("oracle: the array does not hold numbers of tokens")
    return values.astype(np.uint16 if values.dtype.itemsize <= 2 else np.uint32)


def corpus(tokens, context):
    """25.42: the items of one row of tokens."""
    n = (len(tokens) - 1) // context
    return np.stack([tokens[i * context:i * context + context + 1] for i in range(n)])


def block_digest(content):
    """2.2: D(b)."""
    blocks = [content[i : i + BLOCK] for i in range(0, len(content), BLOCK)]
    return hashlib.sha256(b"".join(hashlib.sha256(block).digest() for block in blocks)).digest()


def digest(table, labels, weights=None, exact=None, times=None, words=None):
    """2.2, 23.5: the digest of a data set, as hexadecimal digits. `exact`: values of wide columns of numbers;
    `times`: moments of wide columns of dates; `words`: texts of columns of texts (25.61)."""
    import texts
    import wide  # it needs block_digest

    n, features = table.shape
    text = b"quern data 3\n" if words else b"quern data 2\n" if exact or times else b"quern data 1\n"
    kinds = {"uint8": 1, "float32": 2, "uint16": 3, "uint32": 4}  # 25.40
    text += bytes([kinds[table.dtype.name]])
    text += n.to_bytes(8, "little") + features.to_bytes(8, "little")
    real = labels is not None and labels.dtype == np.float32
    unlabelled = labels is None or labels.dtype == np.int64  # 25.14, 25.42
    kind = 0 if unlabelled else 3 if several.is_several(labels) else 2 if real else 1
    text += bytes([kind + (0 if weights is None else 4)])
    text += block_digest(table.astype(table.dtype.newbyteorder("<")).tobytes())
    if not unlabelled and several.is_several(labels):  # 24.75
        text += several.digest_part(labels)
    elif not unlabelled:
        text += block_digest(labels.astype("<f4" if real else "<u4").tobytes())
    if weights is not None:
        text += block_digest(weights.astype("<f4").tobytes())
    end = wide.digest_end(exact or {}, times or {}) if exact or times or words else b""
    return hashlib.sha256(text + end + (texts.digest_end(words) if words else b"")).hexdigest()


def training_items(seed, n, fraction, context=0):
    """2.3: the indices of the training items, ascending; fraction None or a float."""
    if fraction is None:
        return np.arange(n)
    v = floor(Fraction(float(fraction)) * n + Fraction(1, 2))
    if not 0 < v < n:
        raise SystemExit("oracle: the fraction leaves one of the two parts without items")
    if context:  # 25.43
        return np.arange(n - v - 1)
    held_back = permutation(seed, n, SPLIT, 0)[:v]
    return np.setdiff1d(np.arange(n), held_back)

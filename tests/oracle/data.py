"""Section 2 of the contract: items.

The readers are as plain as can be: IDX and CSV, either of them compressed with gzip. A table is
an array (n, F) of uint8 (the type `u8`) or float32 (`f32`), labels an array (n) of uint32.
"""

import csv
import gzip
import hashlib
import io
import re
from fractions import Fraction
from math import floor, prod

import numpy as np

from binary32 import from_text
from order import permutation
from philox import SPLIT

BLOCK = 1048576
MISSING = ("", "nan", "inf", "na", "null")


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


def is_number(cell):
    return re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", cell) is not None


def separator(line):
    """Comma, semicolon or tab: that which the line has most of outside quotes; the first wins."""
    outside = "".join(line.split('"')[::2])
    return max(",;\t", key=outside.count)  # max gives the first of equals


def read_csv(content):
    """(names, rows) of a CSV file, both of stripped texts; names is None without a header."""
    text = content.decode("utf-8-sig")  # skips a byte order mark
    lines = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=separator(text.split("\n", 1)[0]),
        skipinitialspace=True,
    )
    rows = [[cell.strip() for cell in row] for row in lines if row]
    if all(is_number(cell) or cell.lower() in MISSING for cell in rows[0]):
        return None, rows
    return rows[0], rows[1:]


def is_byte(cell):
    """2.1: written with digits alone and at most 255."""
    return re.fullmatch(r"[0-9]+", cell) is not None and int(cell) <= 255


def is_missing(cell):
    """2.1.4."""
    return re.fullmatch(r"[+-]?(nan|na|n/a|null|#n/a|<na>|\?)?", cell.lower()) is not None


def is_none(cell):
    return re.fullmatch(r"[+-]?none", cell.lower()) is not None


def is_infinite(cell):
    return re.fullmatch(r"[+-]?inf(inity)?", cell.lower()) is not None


def categories_of(cells):
    """2.1.4: the categories of a column, or None for a column of numbers."""
    numbers = sum(is_number(cell) for cell in cells)
    texts = sum(not (is_number(cell) or is_missing(cell) or is_none(cell) or is_infinite(cell))
                for cell in cells)
    if texts <= numbers:
        return None
    present = {cell for cell in cells if not is_missing(cell)}
    return sorted(present, key=lambda text: text.encode("utf-8"))


def value_of(cell, categories):
    if is_missing(cell) or (categories is None and is_none(cell)):
        return np.float32(np.nan)
    if categories is not None:
        return np.float32(categories.index(cell))
    if not is_number(cell):
        raise SystemExit(f"oracle: no number: {cell!r}")
    value = from_text(cell)
    if not np.isfinite(value):
        raise SystemExit("oracle: the data hold a number beyond the range of float")
    return value


def table_of_cells(rows):
    """2.1: the type of a CSV table and its values; the categories of each column, or None."""
    columns = list(zip(*rows))
    kinds = [categories_of(cells) for cells in columns]
    if all(is_byte(cell) for row in rows for cell in row):
        return np.array([[int(cell) for cell in row] for row in rows], dtype=np.uint8), kinds
    values = []
    for cells, categories in zip(columns, kinds):
        known = {cell: value_of(cell, categories) for cell in set(cells)}
        values.append([known[cell] for cell in cells])
    return np.array(values, dtype=np.float32).T.copy(), kinds


def label_column(label, names, width):
    """The index of the column that --label means: a header's name, a number from 1, or `last`."""
    if names is not None and label in names:
        return names.index(label)
    return width - 1 if label == "last" else int(label) - 1


def real_labels(cells, task):
    """2.1: the labels as floats where they are real numbers, else None."""
    if not all(is_number(cell) for cell in cells):
        return None
    if task != "regress" and all(Fraction(cell).denominator == 1 for cell in cells):
        return None
    return np.array([from_text(cell) for cell in cells], dtype=np.float32)


def classes_of_cells(cells):
    """2.1: (labels, names of the classes, or [] where labels are class numbers)."""
    if not all(is_number(cell) for cell in cells):
        names = sorted(set(cells), key=lambda name: name.encode("utf-8"))
        return [names.index(cell) for cell in cells], names
    values = [Fraction(cell) for cell in cells]
    distinct = sorted(set(values))
    if any(value.denominator != 1 for value in distinct):
        raise SystemExit("oracle: no label is a class")
    if distinct[0] >= 0 and distinct[-1] + 1 <= 2 * len(distinct):
        return [int(value) for value in values], []
    return [distinct.index(value) for value in values], [str(value) for value in distinct]


def read(path, labels_path=None, label="1", task="auto"):
    """2.1: (table, labels, names); the names are those of 11.6, or None."""
    content = read_bytes(path)
    if is_idx(content):
        values = read_idx(content)
        labels = read_idx(read_bytes(labels_path)).astype(np.uint32)
        return values.reshape(len(values), -1), labels, None
    names, rows = read_csv(content)
    width = len(rows[0])
    column = label_column(label, names, width)
    cells = [row[column] for row in rows]
    real = real_labels(cells, task)
    labels, classes = ([], []) if real is not None else classes_of_cells(cells)
    header = names or [None] * width
    target = "real" if real is not None else "class" if classes else "index"
    values, kinds = table_of_cells([row[:column] + row[column + 1 :] for row in rows])
    features = [name if categories is None else {"name": name, "categories": categories}
                for name, categories in zip(header[:column] + header[column + 1 :], kinds)]
    table = {"label": header[column], "target": target, "classes": classes, "features": features}
    return values, np.array(labels, dtype=np.uint32) if real is None else real, table


def block_digest(content):
    """2.2: D(b)."""
    blocks = [content[i : i + BLOCK] for i in range(0, len(content), BLOCK)]
    return hashlib.sha256(b"".join(hashlib.sha256(block).digest() for block in blocks)).digest()


def digest(table, labels):
    """2.2: the digest of a data set, as hexadecimal digits."""
    n, features = table.shape
    u8 = table.dtype == np.uint8
    text = b"quern data 1\n"
    text += bytes([1 if u8 else 2])
    text += n.to_bytes(8, "little") + features.to_bytes(8, "little")
    real = labels.dtype == np.float32
    text += bytes([2 if real else 1])  # there are labels: nothing can be trained without
    text += block_digest(table.tobytes() if u8 else table.astype("<f4").tobytes())
    text += block_digest(labels.astype("<f4" if real else "<u4").tobytes())
    return hashlib.sha256(text).hexdigest()


def training_items(seed, n, fraction):
    """2.3: the indices of the training items, ascending; fraction None or a float."""
    if fraction is None:
        return np.arange(n)
    v = floor(Fraction(float(fraction)) * n + Fraction(1, 2))
    if not 0 < v < n:
        raise SystemExit("oracle: the fraction leaves one of the two parts without items")
    held_back = permutation(seed, n, SPLIT, 0)[:v]
    return np.setdiff1d(np.arange(n), held_back)

"""Tables and labels of NumPy, pandas, polars and pyarrow as arrays for the library."""

from typing import NamedTuple, Optional

import numpy as np

from .errors import InputError


class Table(NamedTuple):
    """Values as the library stores them, and what their columns are."""

    values: np.ndarray  # items x features, uint8 or float32, C order; NaN: missing
    names: Optional[list]  # of the columns, or None
    categories: Optional[list]  # of each column: None, or its texts; None: all are numbers


def table_of(given):
    """What is in a table. The values are the table's own memory where that has the right form.

    Whole numbers from 0 to 255 become uint8, as in a CSV file, all others float32. Texts become
    categories.
    """
    if hasattr(given, "tocsr"):
        raise InputError("a sparse matrix cannot be read", "X", "convert it with .toarray()")
    names = column_names(given)
    if hasattr(given, "column_names") and hasattr(given, "to_pandas"):
        columns = [np.asarray(column) for column in given.columns]
        values = np.column_stack(columns)
    else:
        columns = None
        values = np.asarray(given.to_numpy() if hasattr(given, "to_numpy") else given)
    if values.ndim > 2:  # pictures
        values = values.reshape(len(values), -1)
    if values.ndim != 2:
        raise InputError(f"a table has two dimensions, and this has {values.ndim}", "X",
                         "use .reshape(-1, 1) for one column, .reshape(1, -1) for one item")
    if values.dtype.kind == "c":
        raise InputError("complex numbers cannot be read", "X")
    if values.dtype.kind in "biuf":
        return Table(np.ascontiguousarray(numbers(values)), names, None)
    return mixed(columns or list(values.T), names)


def numbers(values):
    """The array as uint8 or float32."""
    kind = values.dtype.kind
    if kind == "f":
        with np.errstate(over="ignore"):
            return values.astype(np.float32, copy=False)
    small = kind == "b" or not values.size or (values.min() >= 0 and values.max() <= 255)
    return values.astype(np.uint8 if small else np.float32, copy=False)


def mixed(columns, names):
    """A table of columns that are not all numbers."""
    values = np.empty((len(columns[0]), len(columns)), np.float32)
    categories = []
    for k, column in enumerate(columns):
        values[:, k], texts = column_of(np.asarray(column, object))
        categories.append(texts)
    return Table(values, names, categories if any(categories) else None)


def is_missing(value):
    """None, NaN, and what pandas has for missing values."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (
        isinstance(value, (float, np.floating)) and value != value)


def column_of(column):
    """The numbers of a column and None, or indices of categories and their texts."""
    there = np.array([not is_missing(value) for value in column], bool)
    found = np.full(len(column), np.nan, np.float32)
    try:
        with np.errstate(over="ignore"):
            found[there] = column[there].astype(np.float64).astype(np.float32)
        return found, None
    except (TypeError, ValueError):
        pass
    indices, texts = text_classes([str(value) for value in column[there]])
    found[there] = indices
    return found, texts


def text_classes(values):
    """Indices of texts among the different ones, which ascend bytewise."""
    texts = sorted(set(values), key=lambda text: text.encode("utf-8", "surrogateescape"))
    place = {text: i for i, text in enumerate(texts)}
    return np.array([place[value] for value in values], np.int32), texts


def column_names(table):
    """The names of the columns when all are texts, else None."""
    names = getattr(table, "column_names", None)
    names = getattr(table, "columns", None) if names is None else names
    if names is None or callable(names):
        return None
    names = list(names)
    return names if names and all(isinstance(n, str) for n in names) else None


def labels_of(values, items, task):
    """Whole labels or indices as int32, or real labels as float32; and the names of classes or None.

    What whole numbers mean, the library decides, as for a file.
    """
    values = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError("labels have one dimension", "y")
    if len(values) != items:
        raise InputError(f"there are {len(values)} labels for {items} items", "y")
    if values.dtype.kind in "iuf":
        return number_labels(values, task), None
    if task == "regress":
        raise InputError("the labels are texts, and regression needs numbers", "y")
    if any(is_missing(value) for value in values):
        raise InputError("a label is missing", "y")
    return text_classes([str(value) for value in values])


def number_labels(values, task):
    if not np.isfinite(values).all():
        raise InputError("a label is not a finite number", "y")
    whole = values.dtype.kind != "f" or (values == np.floor(values)).all()
    if task == "regress" or (not whole and task != "classify"):
        with np.errstate(over="ignore"):
            return values.astype(np.float32)
    if not whole:
        raise InputError("a label is not a whole number", "y", "task='regress' takes all numbers")
    if len(values) and not -2**31 <= values.min() <= values.max() < 2**31:
        raise InputError("a label is beyond 32 bits", "y", "task='regress' takes all numbers")
    return values.astype(np.int32)

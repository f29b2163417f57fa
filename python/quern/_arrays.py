"""Tables and labels of NumPy, pandas, polars and pyarrow as arrays for the library."""

import numpy as np

from .errors import InputError


def matrix(table, as_float=False):
    """The numbers of a table, and the names of its columns or None.

    The array is C-contiguous, uint8 or float32. It is the table's own memory where that has such a
    form already. Whole numbers from 0 to 255 become uint8, as in a CSV file, all others float32.
    """
    names = column_names(table)
    if hasattr(table, "tocsr"):
        raise InputError("a sparse matrix cannot be read", "X", "convert it with .toarray()")
    if hasattr(table, "column_names") and hasattr(table, "to_pandas"):
        table = np.column_stack([np.asarray(c) for c in table.columns])
    elif hasattr(table, "to_numpy"):
        table = table.to_numpy()
    values = np.asarray(table)
    if values.ndim > 2:  # pictures
        values = values.reshape(len(values), -1)
    if values.ndim != 2:
        raise InputError(f"a table has two dimensions, and this has {values.ndim}", "X",
                         "use .reshape(-1, 1) for one column, .reshape(1, -1) for one item")
    return np.ascontiguousarray(numbers(values, as_float)), names


def numbers(values, as_float):
    """The array as uint8 or float32."""
    kind = values.dtype.kind
    if kind == "c":
        raise InputError("complex numbers cannot be read", "X")
    if kind not in "biuf":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"a column is not numbers: {error}", "X",
                             "encode texts as numbers, such as with pandas.get_dummies") from None
        kind = "f"
    if kind == "f" or as_float:
        with np.errstate(over="ignore"):
            return values.astype(np.float32, copy=False)
    if values.dtype == np.uint8:
        return values
    small = kind == "b" or not values.size or (values.min() >= 0 and values.max() <= 255)
    return values.astype(np.uint8 if small else np.float32)


def column_names(table):
    """The names of the columns when all are texts, else None."""
    names = getattr(table, "column_names", None)
    names = getattr(table, "columns", None) if names is None else names
    if names is None or callable(names):
        return None
    names = list(names)
    return names if names and all(isinstance(n, str) for n in names) else None


def labels(values, items):
    """Class numbers as int32 and the names of classes, or None where classes are numbers.

    The rules are those for a CSV file (docs/exactness.md 2.1): whole numbers from 0 without a gap
    are class numbers; others are classes by value, and texts are classes in bytewise order.
    """
    values = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError("labels have one dimension", "y")
    if len(values) != items:
        raise InputError(f"there are {len(values)} labels for {items} items", "y")
    if values.dtype.kind in "iuf":
        return of_numbers(values)
    texts = values.astype(str)
    classes, found = np.unique(texts, return_inverse=True)
    order = sorted(range(len(classes)), key=lambda i: classes[i].encode())
    place = np.empty(len(classes), np.int32)
    place[order] = np.arange(len(classes), dtype=np.int32)
    return place[found], [str(classes[i]) for i in order]


def of_numbers(values):
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise InputError("a label is not a finite number", "y")
        if (values != np.floor(values)).any():
            raise InputError("a label is not a whole number", "y",
                             "classes are whole numbers or texts")
    classes, found = np.unique(values, return_inverse=True)
    if classes[0] >= 0 and classes[-1] < 2 * len(classes):  # few gaps: class numbers as written
        return np.ascontiguousarray(values, np.int32), None
    return found.astype(np.int32), [str(int(c)) for c in classes]

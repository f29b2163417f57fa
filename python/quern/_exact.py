"""What the models by exact sums have in common."""

import ctypes as C

import numpy as np

from .data import Data


def pointer(array, kind=np.float64):
    """The address of an array for the library."""
    return C.cast(array.ctypes.data, C.POINTER(np.ctypeslib.as_ctypes_type(kind)))


def data_of(table, targets=None):
    """The data set of a table in its own order; targets are float32."""
    for k, words in enumerate(table.categories or ()):
        if words is not None and len(words):
            raise ValueError(f"column {k} of X has texts or categories: could not convert string to float")
    if hasattr(table, "data"):  # a data set that the caller has made
        return table.data
    made = Data.__new__(Data)
    made._lend(table, targets)
    return made


def chain(values, weights, start, less=None):
    """start + values @ weights, by additions in the order of the columns: the same bytes anywhere.

    NumPy's product of matrices depends on the processor and on the number of threads. `less` is
    taken from the columns first.
    """
    found = np.full(len(values), start, np.float64)
    for k, weight in enumerate(weights):
        column = values[:, k].astype(np.float64)
        found += (column if less is None else column - less[k]) * weight
    return found


def squares(values, centre):
    """Squares of the distances of items from a centre, by additions in the order of the columns."""
    found = np.zeros(len(values), np.float64)
    for k, place in enumerate(centre):
        step = values[:, k].astype(np.float64) - place
        found += step * step
    return found

"""Batches of a caller's iterator for qn_data_from_batches."""

import numpy as np

from . import _abi, _arrays, _arrow
from ._library import library, new
from .errors import InputError


class Batches:
    """Reads an iterator. The type, the number of features and their names are those of the first
    batch that has items."""

    def __init__(self, batches):
        self.source, self.number = iter(batches), -1
        self.kind = self.features = self.names = None
        self.failure, self.ended = None, False
        self.kept = None  # labels and weights of all batches
        self.current = self._next()
        if self.current is None:
            raise InputError("there are no batches with items", "", "give at least one item")

    def _next(self):
        """The values of the next batch that has items; None at the end."""
        for given in self.source:
            self.number += 1
            apart = isinstance(given, tuple) and len(given) in (2, 3)
            values, *more = given if apart else (given,)
            values = self._values(values)
            if len(values):
                self._keep(dict(zip(("labels", "weights"), more)), len(values))
                return values
        self.ended = True
        return None

    def _refuse(self, what, remedy=""):
        raise InputError(what, f"batch {self.number}", remedy)

    def _values(self, given):
        values = _arrays.values_of(given)
        if values.dtype.kind not in "biuf":
            self._refuse("batches hold numbers", "replace texts and dates by numbers")
        if self.kind is None and len(values):
            self.kind = np.uint8 if values.dtype in (np.uint8, np.bool_) else np.float32
            self.features, self.names = values.shape[1], _arrow.column_names(given)
        if self.kind is None:
            return values
        names = _arrow.column_names(given)
        if names is not None and self.names is not None and names != self.names:
            self._refuse(f"it has the columns {', '.join(names)}, and the first has "
                         f"{', '.join(self.names)}", "give all batches the same columns in one order")
        if values.shape[1] != self.features:
            self._refuse(f"it has {values.shape[1]} features, and the first has {self.features}")
        if self.kind == np.uint8 and values.dtype not in (np.uint8, np.bool_):
            self._refuse("it has other values than bytes, and the first has bytes",
                         "convert all batches to float32")
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(values, self.kind)

    def _keep(self, more, items):
        more = {what: _arrays.array_of(array, what) for what, array in more.items()
                if array is not None}
        if self.kept is None:
            self.kept = {what: [] for what in more}
        if set(more) != set(self.kept):
            self._refuse("it differs from those before in whether it has labels and weights",
                         "give them with every batch or with none")
        for what, array in more.items():
            if len(array) != items:
                self._refuse(f"there are {len(array)} {what} for {items} items")
            self.kept[what].append(array)

    def all_of(self, what):
        """The labels or the weights of all batches, or None."""
        return np.concatenate(self.kept[what]) if what in self.kept else None

    def _give(self, _, batch, error):
        try:
            if self.current is None:
                self.current = self._next()
        except BaseException as failure:  # it goes through the library to the caller
            self.failure = failure
            return _abi.QN_INPUT
        self.given, self.current = self.current, None  # the library reads it before the next call
        if self.given is not None:
            batch.contents.items = len(self.given)
            batch.contents.values = self.given.ctypes.data
        return _abi.QN_OK

    def read(self):
        """The address of the library's data set, without labels."""
        arrays = _abi.qn_data_arrays()
        library().qn_data_arrays_init(arrays)
        arrays.type = _abi.QN_U8 if self.kind == np.uint8 else _abi.QN_F32
        arrays.features, arrays.missing = self.features, 1
        try:
            address = new("qn_data_from_batches", arrays, _abi.qn_data_next(self._give), None)
        except InputError:
            if self.failure is None:
                raise
            address = None
        if self.failure is not None:
            raise self.failure
        if not self.ended:  # an interrupt between two lines of this file
            library().qn_data_close(address)
            raise KeyboardInterrupt
        return address

"""Tables that come a batch at a time: iterators of Arrow batches, and data sets of pyarrow.

The library reads a batch and releases it before it asks for the next ones, so that memory never holds
all of them beside the values.
"""

import ctypes as C
import itertools
import os
from collections.abc import Iterator

from . import _arrow
from .errors import InputError

_EIO = 5
_FIELDS = dict(_arrow.Stream._fields_)


def of(table):
    """The table itself, or what stands for it where it comes in batches."""
    if isinstance(table, _arrow.Export):
        return table
    if hasattr(table, "count_rows") and hasattr(table, "scanner"):  # a data set of pyarrow
        table = table.scanner()
    if hasattr(table, "count_rows") and hasattr(table, "to_reader"):  # a scanner
        table = table.to_reader()
    if hasattr(table, "read_next_batch"):
        return Reader(table)
    if isinstance(table, Iterator):
        first = next(table, None)
        rest = itertools.chain((first,), table)
        if _is_batch(first):
            return Batches(rest)
        return rest if isinstance(first, (str, os.PathLike)) else table  # what is refused keeps its name
    return Batches(table) if isinstance(table, list) and table and all(map(_is_batch, table)) else table


def _is_batch(batch):
    return hasattr(batch, "__arrow_c_array__") or hasattr(batch, "__arrow_c_stream__")


class Reader(_arrow.Export):
    """A stream of pyarrow, which can be read once."""

    def __init__(self, reader):
        super().__init__(reader)
        self.column_names = list(reader.schema.names)


def _names(schema):
    return [schema.children[k].contents.name for k in range(schema.n_children)]


def _same(one, other):
    """Whether two schemas have the same columns of the same types."""
    if (one.format, one.name or b"", one.n_children) != (other.format, other.name or b"", other.n_children):
        return False
    if bool(one.dictionary) != bool(other.dictionary) or (
            one.dictionary and not _same(one.dictionary.contents, other.dictionary.contents)):
        return False
    return all(_same(one.children[k].contents, other.children[k].contents) for k in range(one.n_children))


class Batches(_arrow.Export):
    """An iterator of Arrow batches or tables as one stream, which can be read once."""

    def __init__(self, batches):
        super().__init__(batches)
        self.source, self.number = iter(batches), -1
        self.failure = self.inner = self.kept = None
        self.waiting = self._open()
        if self.waiting is None:
            raise InputError("the iterator gives no batches", "X", "give at least one item")
        self.schema = self.waiting[0]
        self.column_names = [name.decode("utf-8", "replace") if name else "" for name in _names(self.schema)]

    def _open(self):
        """The schema of the next batch, what gives its arrays, and what owns both; None at the end."""
        for batch in self.source:
            self.number += 1
            if not _is_batch(batch):
                raise InputError(f"it is of the type {type(batch).__name__}, and not an Arrow batch",
                                 f"batch {self.number}")
            if hasattr(batch, "__arrow_c_array__"):
                capsules = batch.__arrow_c_array__()
                schema, array = map(self._address, capsules, (b"arrow_schema", b"arrow_array"))
                return _arrow.Schema.from_address(schema), _arrow.Array.from_address(array), capsules
            capsule = batch.__arrow_c_stream__()
            stream = _arrow.Stream.from_address(self._address(capsule, b"arrow_array_stream"))
            schema = _arrow.Schema()
            if stream.get_schema(C.byref(stream), C.byref(schema)):
                raise InputError("its schema cannot be read", f"batch {self.number}")
            return schema, stream, capsule
        return None

    def _take(self, to):
        """Moves the next array to `to`; False at the end."""
        while True:
            if self.inner is None:
                opened = self.waiting or self._open()
                if opened is None:
                    return False
                self.waiting = None
                schema, self.inner, self.kept = opened
                if not _same(schema, self.schema):
                    raise InputError("it has other columns than the first, or other types of them",
                                     f"batch {self.number}", "give all batches the same schema")
            inner, self.inner = self.inner, None
            if isinstance(inner, _arrow.Array):
                C.memmove(to, C.byref(inner), C.sizeof(inner))
                _arrow._ended(inner)
                return True
            if inner.get_next(C.byref(inner), to):
                raise InputError("its rows cannot be read", f"batch {self.number}")
            if to.contents.release:
                self.inner = inner
                return True

    def _guarded(self, work, to):
        try:
            C.memset(to, 0, C.sizeof(to.contents))
            work(to)
        except BaseException as failure:  # it goes through the library to the caller
            self.failure = failure
            return _EIO
        return 0

    def _give_schema(self, to):
        """A copy, which owns nothing: the first batch's schema stays here."""
        C.memmove(to, C.byref(self.schema), C.sizeof(self.schema))
        to.contents.release = _arrow._release_schema

    def read(self, **members):
        """As `Export.read`."""
        if self.waiting is None:
            raise InputError("the batches were read already", "X", "an iterator can be read once: make another one")
        self.first = self.waiting  # it owns the schema
        get_schema = _FIELDS["get_schema"](lambda _, to: self._guarded(self._give_schema, to))
        get_next = _FIELDS["get_next"](lambda _, to: self._guarded(self._take, to))
        release = _FIELDS["release"](lambda at: _arrow._ended(at.contents))
        stream = _arrow.Stream(get_schema, get_next, release=release)
        try:
            return _arrow._read(C.addressof(stream), members)
        except InputError:
            if self.failure is None:
                raise
        raise self.failure

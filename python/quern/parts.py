"""Data in parts: each rank has some rows of a table, and no rank has all of them."""

import ctypes as C
import itertools
import os
import sys
import warnings
import weakref
from collections.abc import Iterator

from . import _abi, _arrow, ranks
from ._library import assign, call, kinds_of, library, new, text
from ._paths import is_paths
from .data import Data, _list_of, _reading, data_of, streamed
from .errors import QuernError, status_of


def _in_child():
    """A child of the process has none of the threads that answer other ranks."""
    for table in ranks._parts:
        table._release.detach()


os.register_at_fork(after_in_child=_in_child)


_NO_PATHS = (C.c_char_p * 1)()


def _checked(name):
    """A property of Data; raises where numbers of other ranks that were read before could not be fetched."""
    known = getattr(Data, name)

    def get(self):
        call("qn_parts_check", self._address)
        return known.fget(self)

    return property(get, doc=known.__doc__)


def _close(address):
    """Nobody may have asked since the last numbers were read."""
    try:
        call("qn_parts_check", address)
    except QuernError as why:
        warnings.warn(f"numbers of other ranks that were read from quern.Parts are 0: {why}", RuntimeWarning)
    library().qn_data_close(address)


class Parts(Data):
    """A table whose rows are with several ranks: the rows of rank 0, then those of rank 1, and so on.

    All ranks make it together, each with its own part (`quern.ranks`). It is the `Data` of the whole:
    ``len(parts)``, ``parts.digest`` and ``parts.describe()`` are those of one process that has all rows,
    and `train`, `fit` and `search` give the same bytes and numbers. Other ranks' values are fetched when they are needed.

    Parameters
    ----------
    data : optional
        The part of this rank, which is whatever `Data` takes, or paths as for `open`. Iterators of Arrow
        batches are read a batch at a time. None, or a table without rows: this rank has none. Where all
        ranks name the same files, these are dealt to them; else an empty list stands for a rank without files.
    labels : optional
        As for `Data` and `open`.
    part_cache : int
        MiB of other ranks' values to keep. 0: a quarter of the memory that is available, divided among
        the ranks of a machine.
    copies : int
        How many ranks have each part, so that ``copies - 1`` of them may end whose part no other rank
        can read. The copies are in memory, or in the cache folder where memory may not hold them.
    **columns
        The options of `Data` or `open`, such as ``label="sick"`` and ``task="regress"``; the same on
        all ranks.

    Attributes
    ----------
    first : int
        The number of this rank's first row in the whole.

    Raises
    ------
    MismatchError
        The parts are not one table: columns differ in their names or types.
    QuernError
        What went wrong on any rank; the message names it. All ranks raise it.

    Notes
    -----
    If a rank ends, another one reads the part again from its files. A part from memory is lost with its
    rank, unless ``copies`` is more than 1: the others raise a `FileError` that names it.

    `values`, `labels` and `targets` are filled when they are touched. So all ranks keep the table, and run,
    until none reads them: a call of all ranks after it, such as ``describe``, makes sure. What cannot be
    fetched is 0: the next use of the table raises the error, or its end warns. System calls cannot read
    them: ``numpy.save`` needs a copy, ``numpy.array(parts.values)``.
    """

    def __init__(self, data=None, labels=None, *, part_cache=0, copies=1, **columns):
        cluster = ranks.current()
        from_files = False

        def begin():
            nonlocal data, from_files
            from_files = isinstance(data, (list, tuple)) and not data
            data = data if from_files else _filled(data)
            from_files = from_files or is_paths(data)
            if from_files:
                return _reading(labels=labels, **columns), None
            return _table(data, labels, columns), _options(columns)

        made, shared = together(begin, lambda: (
            ("the parts", "files" if from_files else "tables"),
            ("the options", ", ".join(f"{word}={value!r}" for word, value in sorted(columns.items())) or "none")))
        if from_files:
            parts = new("qn_parts_open", cluster, *(_list_of(data) if data else (_NO_PATHS, 0)), made)
        else:
            parts = new("qn_parts_of_data", cluster, made and made._address, shared)
        self.first = library().qn_parts_first(parts)
        self._made = made  # its values and texts are used where they are
        self._can_be_read_again = from_files or int(copies) > 1  # where their rank has ended
        try:
            call("qn_parts_copies", parts, int(copies))
        except BaseException:
            library().qn_parts_close(parts)
            raise
        self._address = new("qn_parts_table", parts, int(part_cache) << 20)
        self._release = weakref.finalize(self, _close, self._address)
        ranks._parts.add(self)

    values, labels, targets = map(_checked, ("values", "labels", "targets"))

    @property
    def own(self):
        """The rows of this rank, with the categories and classes of the whole: a `Data`, maybe without rows."""
        parts = library().qn_data_parts(self._address)
        return _Own(self, library().qn_parts_own(parts)) if parts else self

    def _end(self):
        self._release()
        self._address = None

    def __repr__(self):
        return super().__repr__().replace("quern.Data", f"quern.Parts: {len(self.own)} of", 1).replace(": ", " ", 1)


class _Own(Data):
    """The rows of one rank; the whole owns them."""

    _is_own = True

    def __init__(self, whole, address):
        self._whole, self._address = whole, address


def _filled(data):
    """What a user gave, without batches that have no rows; None where nothing is left."""
    data = data if isinstance(data, Iterator) else streamed(data)
    data = iter(data.table) if isinstance(data, _arrow.Export) else data
    if isinstance(data, Iterator):
        rest = (batch for batch in data if getattr(batch, "num_rows", 1))
        first = next(rest, None)
        return None if first is None else streamed(itertools.chain((first,), rest))
    return None if _rows(data) == 0 else data


def _rows(data):
    """How many rows a table has; None where that is not known yet."""
    if isinstance(data, tuple) and len(data) == 2:
        return _rows(data[0])
    shape = getattr(data, "shape", None)
    return shape[0] if shape else len(data) if hasattr(data, "__len__") else None


def _table(data, labels, columns):
    """The data set of this rank; None: it has no rows."""
    return None if data is None else data_of(data, labels, **columns)


def _options(columns):
    """The members of qn_data_options that decide what the parts are together."""
    options = _abi.qn_data_options()
    library().qn_data_options_init(options)
    for word, value in columns.items():
        if value is not None and word in kinds_of(_abi.qn_data_options):
            assign(options, word, value)
    return options


def together(work, told=tuple):
    """What `work` gives, on all ranks or on none: where it raises on one, all raise. `told` gives names and
    texts that all ranks must have alike."""
    error, failure, made = _abi.qn_error(), None, None
    try:
        made = work()
    except Exception as why:  # of any kind: the other ranks have to hear of it
        failure = why
        error.status = status_of(why)
        error.what = text(getattr(why, "what", None) or repr(why))[:_abi.qn_error.what.size - 1]
        error.where = text(getattr(why, "where", ""))[:_abi.qn_error.where.size - 1]
    pairs = told()
    items = (_abi.qn_agreement * len(pairs))()
    for item, (name, value) in zip(items, pairs):
        item.size = C.sizeof(_abi.qn_agreement)
        item.name, item.value = text(name), text(value[:20000])
        item.remedy = b"give all ranks files, or all tables, and the same options"
    try:
        call("qn_cluster_agree", ranks.current(), error if failure else None, items, len(items))
    except QuernError:
        raise failure or sys.exc_info()[1] from None
    return made

"""Tables as streams of the Arrow C interface, which the library reads (<quern/arrow.h>).

polars, pyarrow, DuckDB and others export such a stream. For pandas and for arrays of objects it is
made here, so that the result does not depend on whether pyarrow is installed. The stream of pandas
itself also has the index as a column.
"""

import ctypes as C
import datetime
from typing import Any, NamedTuple, Optional

import numpy as np

from . import _abi
from ._library import assign, library, new, text
from .errors import InputError, UsageError


class Schema(C.Structure):
    pass


class Array(C.Structure):
    pass


class Stream(C.Structure):
    pass


def _calls(result, *arguments):
    return C.CFUNCTYPE(result, *map(C.POINTER, arguments))


Schema._fields_ = [("format", C.c_char_p), ("name", C.c_char_p), ("metadata", C.c_char_p),
                   ("flags", C.c_int64), ("n_children", C.c_int64),
                   ("children", C.POINTER(C.POINTER(Schema))), ("dictionary", C.POINTER(Schema)),
                   ("release", _calls(None, Schema)), ("private_data", C.c_void_p)]
Array._fields_ = [("length", C.c_int64), ("null_count", C.c_int64), ("offset", C.c_int64),
                  ("n_buffers", C.c_int64), ("n_children", C.c_int64),
                  ("buffers", C.POINTER(C.c_void_p)), ("children", C.POINTER(C.POINTER(Array))),
                  ("dictionary", C.POINTER(Array)), ("release", _calls(None, Array)),
                  ("private_data", C.c_void_p)]
Stream._fields_ = [("get_schema", _calls(C.c_int, Stream, Schema)),
                   ("get_next", _calls(C.c_int, Stream, Array)),
                   ("get_last_error", _calls(C.c_void_p, Stream)),
                   ("release", _calls(None, Stream)), ("private_data", C.c_void_p)]


def _ended(struct):
    """Marks a struct as released."""
    struct.release = type(struct.release)()


_release_schema = _calls(None, Schema)(lambda at: _ended(at.contents))
_release_array = _calls(None, Array)(lambda at: _ended(at.contents))


# ------------------------------------------------------------------------------------- streams

class Export:
    """What a table exports: a capsule with a stream, or two with a schema and an array."""

    def __init__(self, table):
        self.table = table

    def _address(self, capsule, name):
        get = C.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = C.c_void_p, [C.py_object, C.c_char_p]
        return get(capsule, name)

    def read(self, **members):
        """The address of the library's data set. `members` are those of qn_data_options."""
        if hasattr(self.table, "__arrow_c_stream__"):
            capsule = self.table.__arrow_c_stream__()
            return _read(self._address(capsule, b"arrow_array_stream"), members)
        capsules = self.table.__arrow_c_array__()
        schema, array = map(self._address, capsules, (b"arrow_schema", b"arrow_array"))
        return _read_part(Schema.from_address(schema), Array.from_address(array), members)


class Column(NamedTuple):
    """A column that was made here."""

    name: Optional[str]
    format: str
    values: Any  # an array; where there are texts, indices into them
    valid: Any = None  # an array of bool; None: no value is missing
    texts: Optional[list] = None


class Columns:
    """A stream of one part from columns of NumPy."""

    def __init__(self, columns):
        self.columns, self.kept = columns, []

    def read(self, **members):
        """As `Export.read`."""
        if not self.columns:
            raise InputError("a data set needs at least one item and one feature", "X")
        parts = [self._column(column) for column in self.columns]
        schema = Schema(b"+s", None, None, 0, len(parts), release=_release_schema)
        array = Array(len(self.columns[0].values), 0, 0, 1, len(parts), release=_release_array)
        schema.children = self._pointers(Schema, [s for s, _ in parts])
        array.children = self._pointers(Array, [a for _, a in parts])
        array.buffers = self._buffers(None)
        return _read_part(schema, array, members)

    def _pointers(self, kind, structs):
        self.kept.append((C.POINTER(kind) * len(structs))(*map(C.pointer, structs)))
        return C.cast(self.kept[-1], C.POINTER(C.POINTER(kind)))

    def _buffers(self, *arrays):
        self.kept.append(arrays)
        addresses = [None if a is None else a.ctypes.data for a in arrays]
        self.kept.append((C.c_void_p * len(arrays))(*addresses))
        return C.cast(self.kept[-1], C.POINTER(C.c_void_p))

    def _column(self, column):
        values = np.ascontiguousarray(column.values)
        valid, missing = None, 0
        if column.valid is not None:
            missing = len(values) - int(np.count_nonzero(column.valid))
            valid = np.packbits(column.valid, bitorder="little")
        schema = Schema(column.format.encode(), text(column.name), release=_release_schema)
        array = Array(len(values), missing, 0, 2, release=_release_array)
        array.buffers = self._buffers(valid, values)
        if column.texts is not None:
            schema.dictionary = C.pointer(Schema(b"U", release=_release_schema))
            array.dictionary = C.pointer(self._texts(column.texts))
        return schema, array

    def _texts(self, texts):
        encoded = [each.encode("utf-8", "surrogateescape") for each in texts]
        places = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(each) for each in encoded], out=places[1:])
        array = Array(len(encoded), 0, 0, 3, release=_release_array)
        array.buffers = self._buffers(None, places, np.frombuffer(b"".join(encoded) or b"\0", "u1"))
        return array


def _read_part(schema, array, members):
    """Reads a stream whose only part these structs are. The reader releases both."""
    given = [schema, array]

    def move(kind, to):
        source = given[kind]
        given[kind] = None
        if source is None:
            C.memset(to, 0, C.sizeof(to.contents))
        else:
            C.memmove(to, C.byref(source), C.sizeof(source))
            _ended(source)
        return 0

    get_schema = dict(Stream._fields_)["get_schema"](lambda _, to: move(0, to))
    get_next = dict(Stream._fields_)["get_next"](lambda _, to: move(1, to))
    release = dict(Stream._fields_)["release"](lambda at: _ended(at.contents))
    stream = Stream(get_schema, get_next, release=release)
    return _read(C.addressof(stream), members)


def _read(stream, members):
    options = _abi.qn_data_options()
    library().qn_data_options_init(options)
    kept = []
    for name, value in members.items():
        try:
            if value is not None:
                kept.append(assign(options, name, value))
        except (TypeError, ValueError, OverflowError):
            word = _abi.OPTIONS.get(f"data.{name}", name)
            raise UsageError(f"{word} cannot be {value!r}") from None
    return new("qn_data_from_arrow", stream, options)


# ------------------------------------------------------------------------------------- columns

_FORMATS = {"i1": "c", "i2": "s", "i4": "i", "i8": "l", "u1": "C", "u2": "S", "u4": "I", "u8": "L",
            "f2": "e", "f4": "f", "f8": "g", "b1": "c"}


def stream_of(table, chosen=False):
    """The table as something with `read`, or None where an array holds all that it says.

    `chosen`: columns of it are to be chosen by name, which arrays have not.
    """
    if isinstance(table, (Columns, Export)):
        return table
    if is_frame(table):
        if not chosen and is_uniform(table):
            return None
        names = [name if isinstance(name, str) else None for name in table.columns]
        return Columns([column_of(table.iloc[:, k], name) for k, name in enumerate(names)])
    if hasattr(table, "to_frame"):
        raise InputError("a Series is not a table", "X", "its .to_frame() is a table of one column")
    if hasattr(table, "collect_schema") and hasattr(table, "lazy") and not is_table(table):
        raise InputError("a LazyFrame holds no values yet", "X", "its .collect() reads them")
    return Export(table) if is_table(table) else None


def with_labels(table, labels, weights, members):
    """The table of texts that become tokens, (table, None, None, members): labels and weights in arrays are
    columns of it then, since a network gets the tokens alone."""
    table = table.to_frame() if hasattr(table, "to_frame") and not is_frame(table) else table
    if not is_table(table):
        values = np.asarray(table)
        if values.ndim > 2 or values.dtype.kind not in "OUS":
            return table, labels, weights, members
        columns = [texts(None, values)] if values.ndim < 2 else [texts(None, column) for column in values.T]
    elif labels is None and weights is None:
        return table, None, None, members
    elif not is_frame(table):
        raise UsageError("labels or weights were given beside a table", "y", "name their columns with label and weight")
    else:
        columns = list(stream_of(table, chosen=True).columns)
    for word, given in (("label_column", labels), ("weight", weights)):
        if given is not None:
            name = getattr(given, "name", None)
            members = {**members, word: name if isinstance(name, str) else word.split("_")[0]}
            values = np.asarray(given)
            columns.append(numbers(members[word], values) if values.dtype.kind in "biuf"
                           else texts(members[word], values))
    return Columns(columns), None, None, members


def is_table(table):
    """Whether its columns have names and types of their own."""
    return is_frame(table) or isinstance(table, Export) or any(
        hasattr(table, export) for export in ("__arrow_c_stream__", "__arrow_c_array__"))


def is_frame(table):
    """Whether it is a table of pandas, or behaves like one."""
    return all(hasattr(table, name) for name in ("iloc", "dtypes", "columns"))


def is_uniform(frame):
    """Whether all columns are numbers of one type of NumPy."""
    kinds = set(frame.dtypes)
    return len(kinds) == 1 and getattr(kinds.pop(), "str", "|O")[1] in "biufc"


def _all_names(table):
    names = getattr(table, "column_names", None)
    names = getattr(table, "columns", None) if names is None else names
    return [] if names is None or callable(names) else list(names)


def has_column(table, name):
    """Whether it is a table with a column of this name, a text or what else pandas takes."""
    return name is not None and is_table(table) and name in _all_names(table)


def column_names(table):
    """The names of the columns when all are texts, else None."""
    names = _all_names(table)
    return names if names and all(isinstance(n, str) for n in names) else None


def words_of(names, chosen):
    """Columns as a list of columns names them: by the name, or by the place where several have it."""
    for place, name in enumerate(names, 1):
        if name in chosen:
            alone = names.count(name) == 1 or str(place) in names
            yield '"%s"' % name.replace('"', '""') if alone else str(place)


def is_missing(value):
    """None, NaN, NaT, and what pandas has for missing values."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (
        isinstance(value, (float, np.floating, np.datetime64, np.timedelta64)) and value != value)


def need_texts(values, place):
    """Refuses objects whose text would be another one in each process, and complex numbers."""
    for value in values:
        kind = type(value)
        if isinstance(value, (complex, np.complexfloating)):
            raise InputError("complex numbers cannot be read", place, COMPLEX_REMEDY)
        if kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__:
            raise InputError(f"objects of the type {kind.__name__} are neither numbers nor texts", place,
                             "convert them to numbers or texts")


def text_of(value):
    """The text of a class or a category. Bytes are UTF-8, as in a file."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def column_of(series, name):
    """A column of pandas."""
    codes = getattr(getattr(series, "cat", None), "codes", None)
    if codes is not None:
        codes = np.asarray(codes, np.int32)
        return Column(name, "i", codes, codes >= 0, [text_of(value) for value in series.cat.categories])
    own = getattr(series.dtype, "numpy_dtype", None)  # of a type that has a mask
    if own is not None and own.kind in "biuf":
        valid = ~np.asarray(series.isna(), bool)
        return numbers(name, series.to_numpy(dtype=own, na_value=own.type(0).item()), valid)
    if hasattr(series.dtype, "freq"):  # periods are dates of their beginnings
        series = series.dt.to_timestamp()
    elif series.dtype.kind == "M" and getattr(series.dtype, "tz", None) is not None:
        return moments(name, np.asarray(series.dt.tz_convert("UTC").dt.tz_localize(None)), "UTC")
    values = np.asarray(series)
    return numbers(name, values) if values.dtype.kind in "biufcMm" else texts(name, values)


COMPLEX_REMEDY = "give the real and the imaginary parts as columns of their own"


def _place(name):
    return f"column {name}" if name else "X"


def numbers(name, values, valid=None):
    """A column of numbers. Other types get a format that the library refuses by name."""
    kind = values.dtype.kind
    if kind in "Mm":
        return moments(name, values)
    if kind == "c":
        raise InputError("complex numbers cannot be read", _place(name), COMPLEX_REMEDY)
    if kind == "f" and values.dtype.itemsize > 8:
        values = values.astype(np.float64)
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    return Column(name, _FORMATS[values.dtype.str[1:]], values, valid)


# Seconds of NumPy's units, of years and months about; and the unit that dates in them are given in.
_SECONDS = {"Y": 31556952, "M": 2629746, "W": 604800, "D": 86400, "h": 3600, "m": 60, "s": 1}
_DATES_IN = {"Y": "D", "M": "D", "W": "D", "h": "s", "m": "s", "ns": "us", "ps": "us", "fs": "us", "as": "us"}
_FAR = 2**39  # seconds from 1970 to a year that no date has, on both sides


def moments(name, values, zone=""):
    """A column of dates, or of spans of time, from an array of NumPy; `zone`: "UTC" or none."""
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    kind, valid = values.dtype.kind, ~np.isnat(values)
    unit, count = np.datetime_data(values.dtype)
    if unit == "generic" and not valid.any():
        unit, count, values = "s", 1, values.astype(f"{kind}8[s]")
    if (unit, count) not in (("s", 1), ("ms", 1), ("us", 1), ("ns", 1)):
        values = _spans(name, values, unit, count) if kind == "m" else _dates_in(name, values, unit, count)
        unit = np.datetime_data(values.dtype)[0]
    values = np.ascontiguousarray(values).view(np.int64)
    if unit == "D":  # what 32 bits do not hold is in no year from 1 to 9999, either
        return Column(name, "tdD", values.clip(-2**31, 2**31 - 1).astype(np.int32), valid)
    return Column(name, f"ts{unit[0]}:{zone}" if kind == "M" else f"tD{unit[0]}", values, valid)


def _dates_in(name, values, unit, count):
    """Dates of any unit in one that Arrow has: as days, or rounded down to microseconds.

    NumPy's conversions wrap around. What is far beyond the years 1 to 9999 stays there.
    """
    if unit == "generic":
        raise InputError("the dates have no unit", _place(name), 'give them one, such as by .astype("M8[s]")')
    if unit in _SECONDS or unit in ("ms", "us"):
        seconds = _SECONDS.get(unit, 1) * count
        most = _FAR * {"ms": 10**3, "us": 10**6}.get(unit, 1) // seconds + 1
        numbers = np.where(np.isnat(values), values.view(np.int64), values.view(np.int64).clip(-most, most))
        values = numbers.view(values.dtype)
    return values.astype(f"M8[{_DATES_IN.get(unit, unit)}]")


def _spans(name, values, unit, count):
    """Spans of time in seconds."""
    if unit not in ("W", "D", "h", "m", "s"):
        raise InputError(f"spans of time in the unit {values.dtype.str[3:] or 'of none'} cannot be read", _place(name),
                         'convert them to seconds, such as by .astype("m8[s]")')
    most = (2**63 - 1) // (_SECONDS[unit] * count)
    there = values.view(np.int64)[~np.isnat(values)]
    if len(there) and (there.max() > most or there.min() < -most):
        raise InputError("a span of time is longer than 64 bits of seconds", _place(name))
    return values.astype("m8[s]")


# Formats that the library refuses, with the name of the column, unless the column is left out.
TIMES, NESTED = "t", "+l"


def refused(name, items, form):
    """A column whose values no network can take."""
    return Column(name, form, np.zeros(items, np.int64))


def _strange(value):
    """The format by which the library refuses an object, or None."""
    if isinstance(value, (datetime.date, datetime.time, datetime.timedelta, np.datetime64,
                          np.timedelta64)) or type(value).__name__ == "Period":
        return TIMES
    return NESTED if isinstance(value, (list, tuple, dict, set, np.ndarray)) else None


def hold_times(values):
    """Whether there are dates, times or spans of time in an array of objects."""
    return any(_strange(value) == TIMES for value in values.flat)


def _wraps(value, kind):
    """Whether NumPy's conversion of a date or a span gives another one, or an average of years or months."""
    unit = np.datetime_data(value.dtype)[0]
    if unit in "YM" and kind[0] == "m":
        return True
    return (unit in _SECONDS or unit == "ms") and value.astype(kind).astype(value.dtype) != value


def _dates(name, values, valid):
    """A column of objects that are all dates, moments or spans; None where they are not of one kind."""
    there = values[valid]
    whole = [isinstance(v, datetime.date) and not isinstance(v, datetime.datetime) for v in there]
    aware = [getattr(v, "tzinfo", None) is not None for v in there]
    spans = [isinstance(v, (datetime.timedelta, np.timedelta64)) for v in there]
    kind = "m8[us]" if all(spans) else "M8[D]" if all(whole) else "M8[us]"
    if (any(spans) and not all(spans)) or (any(aware) and not all(aware)) or (
            any(whole) and not all(whole)) or any(isinstance(v, datetime.time) for v in there):
        return None
    if any(_wraps(v, kind) for v in there if isinstance(v, (np.datetime64, np.timedelta64))):
        raise InputError("a date or a span of time is too far away", _place(name))
    if all(aware):
        there = [v.astimezone(datetime.timezone.utc).replace(tzinfo=None) for v in there]
    found = np.full(len(values), "NaT", kind)
    try:
        found[valid] = np.array(list(there), kind)
    except (TypeError, ValueError, OverflowError):
        return None
    return moments(name, found, "UTC" if all(aware) else "")


def texts(name, values, parse=False):
    """A column of objects: of numbers, where all are numbers, else of texts.

    `parse`: texts that are numbers count as numbers, as in a CSV file.
    """
    values = np.asarray(values, object)
    valid = np.array([not is_missing(value) for value in values], bool)
    there = values[valid]
    strange = next(filter(None, map(_strange, there)), None)
    dates = _dates(name, values, valid) if strange == TIMES else None
    if strange:
        return dates or refused(name, len(values), strange)
    if parse or not any(isinstance(value, (str, bytes)) for value in there):
        try:
            found = np.full(len(values), np.nan)
            found[valid] = there.astype(np.float64)
            return Column(name, "g", found)
        except (TypeError, ValueError):
            pass
    need_texts(there, _place(name))
    known = {}
    indices = np.zeros(len(values), np.int32)
    indices[valid] = [known.setdefault(text_of(value), len(known)) for value in there]
    return Column(name, "i", indices, valid, list(known))


def objects(values, names=None):
    """The stream of an array of objects or of dates, items x features."""
    names = names or [None] * values.shape[1]
    if values.dtype.kind in "Mm":
        return Columns([moments(name, values[:, k]) for k, name in enumerate(names)])
    return Columns([texts(name, values[:, k], parse=True) for k, name in enumerate(names)])

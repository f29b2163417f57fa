"""The shared library: found beside this file, loaded once, called with errors as exceptions."""

import ctypes as C
import functools
import os
import threading
import weakref

from . import _abi
from .errors import InputError, of

_lock = threading.Lock()
_loaded = None


def library():
    """The library with types for its functions. QUERN_LIBRARY names another file."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                beside = os.path.join(os.path.dirname(__file__), "libquern.so")
                found = C.CDLL(os.environ.get("QUERN_LIBRARY", beside))
                _abi.bind(found)
                _loaded = found
    return _loaded


def call(name, *arguments):
    """Calls a function that takes a qn_error last; raises what it says."""
    error = _abi.qn_error()
    if getattr(library(), name)(*arguments, error):
        raise of(error)


def new(name, *arguments):
    """The object that a function makes: its last argument before the qn_error is its address."""
    made = C.c_void_p()
    call(name, *arguments, C.byref(made))
    return made.value


def owned(owner, release, address):
    """Releases the object of the library when `owner` is collected."""
    return weakref.finalize(owner, getattr(library(), release), address)


def sized(struct):
    """A struct that the library fills."""
    made = struct()
    made.size = C.sizeof(struct)
    return made


def text(value):
    """UTF-8 for the library; None is NULL."""
    if value is None:
        return None
    made = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else os.fsencode(value)
    if b"\0" in made:  # for the library the text would end there
        raise InputError(f"the text {value!r} holds a null character")
    return made


def said(value):
    """A text of the library; NULL is None."""
    return None if value is None else value.decode("utf-8", "replace")


def _quoted(column):
    """A column as the library takes it in a list: a number, or a name in quotes."""
    return str(column) if isinstance(column, int) else _in_quotes(column)


def _in_quotes(name):
    return '"%s"' % name.replace('"', '""')


@functools.lru_cache(maxsize=None)
def kinds_of(struct):
    """The types of the members of a struct of the library."""
    return dict(struct._fields_)


def assign(struct, member, value):
    """Sets a member from Python's value. Returns what must stay alive.

    Raises TypeError, ValueError or OverflowError for a value of the wrong kind. ctypes alone would
    take a whole number for the address of a text.
    """
    kind = kinds_of(type(struct))[member]
    if member in ("features", "drop", "category", "text") and isinstance(value, (list, tuple)):
        value = ",".join(map(_quoted, value))
    if member in ("dates", "text_features") and isinstance(value, (list, tuple)):
        value = ",".join(value)
    if member == "class_weight" and isinstance(value, dict):
        value = ",".join(f"{_in_quotes(str(name))}={float(weight)!r}" for name, weight in value.items())
    if member == "model" and isinstance(value, os.PathLike):
        value = "@" + os.fspath(value)
    if kind is C.c_char_p:
        value = text(value)
    elif kind in (C.c_float, C.c_double):
        value = float(value)
    elif kind in (C.c_int, C.c_uint32, C.c_uint64):
        number = int(value)
        if number != value or kind(number).value != number:
            raise ValueError(value)
        value = number
    setattr(struct, member, value)
    return value

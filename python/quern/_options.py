"""The options of a training and of what computes it: their words, and how a struct gets their values."""

import ctypes as C
import difflib

from . import _abi
from ._library import assign, library, text
from .errors import UsageError

# Members that the user of Python sets otherwise.
_OTHERS = {"size", "command_line", "checkpoint_seconds", "checkpoint_steps", "checkpoint_part"}
_KINDS = (C.c_char_p, C.c_float, C.c_double, C.c_int, C.c_uint32, C.c_uint64)


def _words(name, struct):
    """The options of one of the library's structs: word -> member."""
    return {_abi.OPTIONS.get(f"{name}.{member}", member): member for member, kind in struct._fields_
            if kind in _KINDS and member not in _OTHERS}


_RECIPE = _words("train", _abi.qn_train_options)
_COMPUTE = _words("compute", _abi.qn_compute)
FILE = set(_words("data", _abi.qn_data_options)) - {"labels", "threads", "classes"}


def options():
    """The options of `train` with their defaults, as the library writes them.

    Returns
    -------
    dict
        Word -> text of the default; None where there is none.
    """
    found, line = {}, C.create_string_buffer(256)
    for struct, words in (("train", _RECIPE), ("compute", _COMPUTE)):
        for word, member in words.items():
            there = library().qn_default_text(text(f"{struct}.{member}"), line, len(line))
            found[word] = line.value.decode().replace("`train.", "`") if there else None
    return found


def _set(struct, member, value, word, kept):
    """Sets a member from Python's value; raises UsageError for one of the wrong kind."""
    if value is None:
        return
    if word == "lora" and type(value) is int:  # a rank alone
        value = str(value)
    try:
        kept.append(assign(struct, member, value))
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{word} cannot be {value!r}", "", f"default: {options().get(word)}") from None


def _unknown(word, words):
    near = difflib.get_close_matches(word, words, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return TypeError(f"there is no option {word!r}{hint}")


def fill_compute(struct, given):
    """Sets the members that choose devices; returns what must stay alive."""
    kept = []
    struct.size = C.sizeof(struct)
    for word, value in given.items():
        if word not in _COMPUTE:
            raise _unknown(word, _COMPUTE)
        _set(struct, _COMPUTE[word], value, word, kept)
    return kept


_UNITS = {"s": 1, "m": 60, "h": 3600}


def _fill_checkpoint_every(o, value):
    """"auto", seconds as "30s", "5m", "2h", or a number of steps."""
    if value in (None, "auto"):
        o.checkpoint_part = 0.01
        return
    try:
        if isinstance(value, str) and value[-1:] in _UNITS:
            o.checkpoint_seconds = float(value[:-1]) * _UNITS[value[-1]]
        else:
            assign(o, "checkpoint_steps", int(value) if isinstance(value, str) else value)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"checkpoint_every cannot be {value!r}", "",
                         'give "auto", a time such as "30s", or a number of steps') from None


def _fill(o, given):
    """Sets the options of a training; returns what must stay alive."""
    compute = {word: given.pop(word) for word in list(given) if word in _COMPUTE}
    kept = fill_compute(o.compute, compute)
    every = given.pop("checkpoint_every", None)
    for word, value in given.items():
        if word not in _RECIPE:
            raise _unknown(word, [*_RECIPE, *_COMPUTE, "valid", "test", "output"])
        if word in ("batch", "epochs") and value is not None and value == 0:  # the library's default
            raise UsageError(f"the {'batch' if word == 'batch' else 'number of epochs'} is 0", f"`{word}`",
                             "give 1 or more, or None for the default")
        _set(o, _RECIPE[word], value, word, kept)
    if o.checkpoint_dir:
        _fill_checkpoint_every(o, every)
    elif every is not None:
        raise UsageError("checkpoint_every needs checkpoint", "", "name the folder to write to")
    return kept

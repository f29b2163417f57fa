"""Failures of the library as exceptions: what happened, where, and what to do."""

import re

from . import _abi


class QuernError(Exception):
    """A failure of Quern.

    Attributes
    ----------
    what, where, remedy : str
        What happened, at which place, and what to do about it. The last two may be empty.
    """

    def __init__(self, what, where="", remedy=""):
        super().__init__(what, where, remedy)
        self.what, self.where, self.remedy = what, where, remedy

    def __str__(self):
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}; {self.remedy}" if self.remedy else text


class UsageError(QuernError, ValueError):
    """An argument is invalid."""


class InputError(QuernError, ValueError):
    """Data is missing, malformed or does not fit."""


class FileError(QuernError, OSError):
    """The system failed to read or write."""


class OutOfMemory(QuernError, MemoryError):
    """There is not enough memory."""


class FormatError(QuernError, ValueError):
    """A model or checkpoint is malformed, or of a newer version."""


class MismatchError(QuernError, ValueError):
    """Two things do not fit each other, such as a model and data."""


class NumericError(QuernError, ArithmeticError):
    """A NaN, an infinity or a sum out of range."""


class UnsupportedError(QuernError, RuntimeError):
    """This machine or this build does not support it."""


class BusyError(QuernError, RuntimeError):
    """Another process uses it, such as a folder of checkpoints."""


class DeviceError(QuernError, RuntimeError):
    """A device failed and no other one is left."""


class DiffersError(QuernError, RuntimeError):
    """A replay produced other bytes."""


class ClusterError(QuernError, RuntimeError):
    """The ranks of a run could not connect, or continue without this one."""


_KINDS = {_abi.QN_USAGE: UsageError, _abi.QN_INPUT: InputError, _abi.QN_IO: FileError,
          _abi.QN_MEMORY: OutOfMemory, _abi.QN_FORMAT: FormatError,
          _abi.QN_MISMATCH: MismatchError, _abi.QN_NUMERIC: NumericError,
          _abi.QN_UNSUPPORTED: UnsupportedError, _abi.QN_BUSY: BusyError,
          _abi.QN_DEVICE: DeviceError, _abi.QN_DIFFERS: DiffersError,
          _abi.QN_CLUSTER: ClusterError}


def spelled(text):
    """A text of the library with Python's words for its members: `train.learning_rate` is `lr`."""
    return re.sub(r"`(\w+\.[\w. ]+)`", lambda m: f"`{_abi.OPTIONS.get(m[1], m[1].split('.')[1])}`",
                  text)


def of(error):
    """The exception for a qn_error."""
    texts = (spelled(t.decode("utf-8", "replace")) for t in (error.what, error.where, error.remedy))
    return _KINDS.get(error.status, QuernError)(*texts)


def status_of(failure):
    """The status of the library for an exception."""
    return next((status for status, kind in _KINDS.items() if isinstance(failure, kind)), _abi.QN_INPUT)

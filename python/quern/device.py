"""Devices and versions."""

import ctypes as C
from types import SimpleNamespace

from . import _abi
from ._library import call, library, sized


class Device(SimpleNamespace):
    """A device of this machine.

    The attributes are the members of qn_device_info in <quern/device.h>, among them ``id`` (a word
    for the option ``devices``), ``name``, ``cores``, ``memory`` in bytes, ``automatic`` and
    ``reason``.
    """


def devices():
    """The devices of this machine.

    Returns
    -------
    list of Device
        The first is the CPU.
    """
    found = []
    for index in range(library().qn_device_count()):
        info = sized(_abi.qn_device_info)
        call("qn_device_get", index, info)
        values = {name: getattr(info, name) for name, _ in info._fields_ if name != "size"}
        for name, value in values.items():
            if isinstance(value, bytes):
                values[name] = value.decode("utf-8", "replace")
            elif isinstance(value, C.Array):
                values[name] = list(value)
        values["automatic"], values["refused"] = bool(info.automatic), bool(info.refused)
        found.append(Device(**values))
    return found


def version():
    """The version of the library, such as "0.1.0"."""
    return library().qn_version().decode()


def build_info():
    """How the library was built, as a dict."""
    lines = library().qn_build_info().decode().splitlines()
    return dict((part.strip() for part in line.split(":", 1)) for line in lines if ":" in line)

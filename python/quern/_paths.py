"""Files as a user names them."""

import os
from collections.abc import Iterator

from .errors import InputError


def paths_of(given):
    """The paths of one table. An iterator has no order of its own: that of Path.glob is arbitrary."""
    if isinstance(given, (str, bytes, os.PathLike)):
        return [given]
    paths = list(given)
    if not paths:
        raise InputError("the list of files is empty", "", "give at least one path")
    return paths if isinstance(given, (list, tuple)) else sorted(paths, key=os.fsencode)


def is_paths(given):
    """Whether a user gave a path, or several that are one table."""
    return isinstance(given, (str, os.PathLike)) or _are_paths(given)


def _are_paths(given):
    """A list of paths, or the iterator of Path.glob."""
    if isinstance(given, Iterator):
        return True
    return isinstance(given, (list, tuple)) and len(given) > 0 and \
        all(isinstance(one, (str, os.PathLike)) for one in given)

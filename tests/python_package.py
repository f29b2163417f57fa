"""The Python package of the preset `clang`, for the tests of it."""

import os
import subprocess
import sys

import pytest

import builds


def folder():
    """The folder that holds `quern`, built if it is not there yet."""
    path = builds.ready("clang", "python") / "python"
    if str(path) not in sys.path:
        sys.path.insert(0, str(path))
    return path


def python(script, *arguments, status=0, **kwargs):
    """Runs a script in a new interpreter that finds the package; returns what it printed."""
    env = {**os.environ, "PYTHONPATH": str(folder()), **kwargs.pop("env", {})}
    done = subprocess.run([sys.executable, "-c", script, *map(str, arguments)], text=True, env=env,
                          capture_output=True, timeout=120, **kwargs)
    if done.returncode != status:
        pytest.fail(f"the script ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def placed(values):
    """A copy in the middle of a page. The library copies values that end closely before the end of
    one, and where NumPy puts an array is chance."""
    import numpy as np

    page = 4096
    buffer = np.empty(values.nbytes + page, np.uint8)
    first = (page // 2 - buffer.ctypes.data - values.nbytes) % page
    copy = buffer[first:first + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[:] = values
    return copy

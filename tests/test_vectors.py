"""The vectors that C tests of src/num compare with are those that the scripts beside this file compute."""

import subprocess
import sys

import pytest

from builds import ROOT


@pytest.mark.parametrize("name", ["optimise", "intgemm", "host"])
def test_vectors_are_current(name):
    written = subprocess.run([sys.executable, ROOT / "tests" / f"{name}_vectors.py"],
                             capture_output=True, check=True).stdout
    assert written == (ROOT / "src" / "num" / f"{name}_vectors.h").read_bytes()

"""The vectors that src/num/optimise_test.c compares with are those that the script beside this file computes."""

import subprocess
import sys

from builds import ROOT


def test_vectors_are_current():
    written = subprocess.run([sys.executable, ROOT / "tests" / "optimise_vectors.py"],
                             capture_output=True, check=True).stdout
    assert written == (ROOT / "src" / "num" / "optimise_vectors.h").read_bytes()

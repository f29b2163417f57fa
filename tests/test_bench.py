"""The benchmarks are built and begin: nobody builds them otherwise but who wants a figure."""

import subprocess
import sys

import pytest

import builds
import machine

SCRIPTS = sorted(f for f in (builds.ROOT / "bench").glob("*.py") if f.name != "common.py")


@machine.LONG  # intgemm_test.c compares the same kernels in every run
def test_products_of_integers():
    """All programs of bench/ and examples/ are built. `integers` compares before it times: odd sizes, plain C."""
    program = builds.ready("release", "bench", "examples") / "bench" / "integers"
    done = subprocess.run([program, "5", "37", "19", "scalar"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[2:]]
    assert [row[:2] for row in rows] == [["scalar", a] for a in ("f32", "i7", "i14", "i21")]
    assert all(float(rate) > 0 for row in rows for rate in row[2:])
    done = subprocess.run([program, "5", "37", "19", "sse"], capture_output=True, text=True)
    assert done.returncode == 2 and "no instruction set sse" in done.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda s: s.name)
def test_scripts_begin(script):
    done = subprocess.run([sys.executable, script, "--help"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage:")

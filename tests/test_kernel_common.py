"""Kernels that call functions for common arguments first: the bytes of those that never do, which are kernels with a
loop. Blocks of 512 items with a rare argument are computed again."""

import json
import os
import subprocess

import numpy as np
import pytest

KERNEL = """INDEX(i);
INPUT(double, x);
OUTPUT(double, angles);
OUTPUT(double, powers);
OUTPUT(float, narrow);
SUM(double, total);
MAX(double, most);
COUNT(large, 4);
static double twice(double a) { return sin(a) + exp(a) * cos(a * 2); }
KERNEL {
    LOOP
    const float f = (float)min(x, 1e38);
    angles = twice(min(x, 700.0)) * tan(x) + tanh(x) + erf(x);
    const double p = min(pow(x, 1.5) + log(fabs(x)), 1e300);
    powers = p;
    narrow = sin(f) + cos(f) * tan(f);
    total = p < 1e30 && p > -1e30 ? p : 0;
    if (x > 1) most = p;
    large[(int)min(fabs(x), 3.0)] = 1;
}
"""
COUNT = 3000


def draw(rare):
    """Common arguments for all functions, and some that are rare for one of them or for all."""
    x = np.random.default_rng(7).uniform(0.01, 30, COUNT)
    special = [2.0**20, 3e7, 1e300, 709.5, 5e-324, 2.0**-1022, 1.5e6]
    for k, at in enumerate(rare):
        x[at] = special[k % len(special)]
    return x


@pytest.fixture
def both(quern, tmp_path):
    """both(x): what a run says and writes, with and without the first loop."""
    compiler = tmp_path / "quick-cc"
    compiler.write_text(f'#!/bin/sh\ncat > {tmp_path}/text.c\nexec cc "$@" -O1 < {tmp_path}/text.c\n')
    compiler.chmod(0o755)

    def call(x, **words):
        np.save(tmp_path / "x.npy", x)
        found = []
        for loop in ("", "for (int k = 0; k < 1; k++) {}"):
            (tmp_path / "k.c").write_text(KERNEL.replace("LOOP", loop))
            (tmp_path / "text.c").write_text("")
            names = ("angles", "powers", "narrow", "large")
            done = subprocess.run(
                [quern, "run", "--kernel", "k.c", "--json", "--threads", "1", "--in=x=x.npy",
                 *(f"--out={n}={n}.npy" for n in names)],
                cwd=tmp_path, capture_output=True, text=True, timeout=60,
                env={**os.environ, "QUERN_CACHE": str(tmp_path / "cache"), "CC": str(compiler),
                     "QUERN_KERNEL_LANES": "never"})
            answer = json.loads(done.stdout.splitlines()[-1])
            text = (tmp_path / "text.c").read_text()
            assert not text or text.count("\nQN_PLAIN\n") == (loop == ""), "the form of the program"
            found.append((answer["what"], answer["where"]) if done.returncode else
                         (answer["results"], [(tmp_path / f"{n}.npy").read_bytes() for n in names]))
        assert found[0] == found[1]
        return found[0]
    return call


def test_rare_arguments(both):
    for rare in ([], [0, 511, 512, 1100, 1101, 1700, 2999], range(COUNT)):
        results, files = both(draw(rare))
        assert len(results) == 6 and len(set(files)) == 4


def test_first_item_that_fails(both):
    """Beside rare arguments, after them in the same block, and where all is common."""
    for rare, bad in ([400], 450), ([400], 3), ([], 2222), ([10, 2000], 1500):
        x = draw(rare)
        x[bad] = np.nan
        x[2900] = np.nan
        what, where = both(x)
        assert f"{bad}" in what + where, (what, where)

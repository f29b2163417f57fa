"""The fuzz targets of tests/fuzz over their corpora, and over mutations of these from a fixed seed, under
the address and undefined-behaviour sanitizers. `make fuzz` looks for more with libFuzzer."""

import os
import re
import subprocess

import pytest

import builds

FUZZ = builds.ROOT / "tests" / "fuzz"
TARGETS = sorted(f.name.removesuffix("_fuzz.c") for f in FUZZ.glob("*_fuzz.c"))
MOST_BYTES = 200_000  # of all corpora: they are seeds, a campaign makes its own

# Mutations of each file; fewer where a run is slow. Their seed is the same each time, so by default half
# of them are tried. make fuzz tries millions.
MOST = 200
MUTATIONS = {"bodies": 15, "store": 40, "options": 100, "record": 100, "table": 60, "images": 150, "numpy": 110, "typed": 150}
PART = 1 if "QUERN_LONG_TESTS" in os.environ else 2


@pytest.mark.parametrize("name", TARGETS)
def test_target(name):
    program = builds.ready("asan", "fuzz") / "fuzz" / name
    mutations = MUTATIONS.get(name, MOST) // PART
    done = subprocess.run([program, f"-mutations={mutations}", FUZZ / "corpus" / name],
                          capture_output=True, text=True, errors="replace",
                          env=builds.environment("asan"), timeout=600)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    files, runs = map(int, re.fullmatch(r"(\d+) files, (\d+) runs\n", done.stdout).groups())
    assert files == len(list((FUZZ / "corpus" / name).iterdir())) and runs > mutations * files // 2


def test_corpora():
    files = [f for f in (FUZZ / "corpus").rglob("*") if f.is_file()]
    assert {f.parent.name for f in files} == set(TARGETS)
    assert sum(f.stat().st_size for f in files) < MOST_BYTES

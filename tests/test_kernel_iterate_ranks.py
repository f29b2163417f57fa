"""Iterated kernels over ranks: the bytes of one process, whichever ranks die meanwhile."""

import os
import random
import shutil
import subprocess
import time

import numpy
import pytest

import launch
import machine
import ranks

if not (shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")):
    pytest.skip("no C compiler", allow_module_level=True)

ITERATIONS = 600
# Waves: two fields, one of them with neighbours; `work` makes items expensive.
KERNEL = """#include <quern/kernel_file.h>
INDEX(y, x); HALO(float, u, 2, wrap); INPUT(double, v); INPUT(float, c); SCALAR(int, work, 0);
OUTPUT(float, u_new); OUTPUT(double, v_new); OUTPUT(int32_t, seen); ITERATION(t);
NEXT(u_new, u); NEXT(v_new, v); SUM(double, all); MAX(float, most); COUNT(high);
KERNEL {
    float s = 0;
    for (int k = 0; k < work; k++) s = s * 0.5f + 1;
    const float lap = u(-2, 0) + u(2, 0) + u(0, -2) + u(0, 2) - 4 * u(0, 0) + 0 * s;
    v_new = v + c * lap;
    u_new = (float)(u(0, 0) + 0.1 * v);
    seen = (int)(t + (u(1, -1) > 0));
    all = v; most = u(0, 0); high = v > 0.5;
}
"""
FILES = ["u_new.npy", "v_new.npy", "seen.npy", "r.json"]
WORDS = ["run", "--kernel", "k.c", "--recipe", "r.json", "--threads", 1, "--iterations", ITERATIONS,
         *[w for n in "uvc" for w in ("--in", f"{n}={n}.npy")],
         *[w for n in ("u_new", "v_new", "seen") for w in ("--out", f"{n}={n}.npy")]]


@pytest.fixture(scope="module")
def place(tmp_path_factory, quern):
    folder = tmp_path_factory.mktemp("waves")
    draw = numpy.random.default_rng(3)
    (folder / "k.c").write_text(KERNEL)
    numpy.save(folder / "u.npy", draw.standard_normal((80, 61)).astype("float32"))
    numpy.save(folder / "v.npy", draw.standard_normal((80, 61)))
    numpy.save(folder / "c.npy", draw.uniform(0, 0.1, (80, 61)).astype("float32"))
    (folder / "cc").write_text('#!/bin/sh\nexec cc "$@" -O1\n')
    (folder / "cc").chmod(0o755)
    return folder, launch.clean_environment(QUERN_CACHE=str(folder / "cache"), CC=str(folder / "cc"))


def files(folder, also=()):
    found = [(folder / name).read_bytes() for name in [*FILES, *also]]
    for name in [*FILES, *also]:
        (folder / name).unlink()
    return found


@pytest.fixture(scope="module")
def wanted(quern, place):
    folder, env = place
    subprocess.run([quern, *map(str, WORDS)], cwd=folder, env=env, check=True, capture_output=True)
    return files(folder)


def test_same_bytes(quern, place, wanted):
    folder, env = place
    done = ranks.run(quern, 3, *WORDS, cwd=folder, env=env)
    assert files(folder) == wanted
    assert "600 iterations of 4,880 items" in done[0][1]


def test_series(quern, place):
    """A series has the numbers of all iterations, on one process and on two."""
    folder, env = place
    words = [*WORDS, "--series", "all=all.npy", "--iterations", 20]
    del words[words.index(ITERATIONS) - 1:words.index(ITERATIONS) + 1]
    seen = []
    for count in (1, 2):
        ranks.run(quern, count, *words, cwd=folder, env=env)
        seen.append(files(folder, ["all.npy"]))
    assert seen[0] == seen[1]


def test_fault(quern, place):
    """The first item that fails, of several iterations at once, is found by all ranks."""
    folder, env = place
    text = (folder / "k.c").read_text()
    try:
        (folder / "k.c").write_text(text.replace("(int)(t +", "(int)(t / (t != 333 || y * x != 2006) +"))
        done = ranks.run(quern, 3, *WORDS, cwd=folder, env=env, status=1)
    finally:
        (folder / "k.c").write_text(text)
    assert "divided by zero" in done[0][2] and "item (34, 59) of iteration 333" in done[0][2], done
    assert not (folder / "seen.npy").exists()


def wait_for_the_start(folder, run):
    """The first rank makes its files when all have met."""
    while not list(folder.glob(".quern-*")) and all(r.poll() is None for r in run.rank):
        time.sleep(0.01)
    time.sleep(0.05)


def test_deaths(quern, place, wanted):
    """Ranks die at random times; those that are left end with the same bytes."""
    folder, env = place
    draw = random.Random(7)

    def attempt(size):
        deaths = 50 if os.environ.get("QUERN_LONG_TESTS") == "yes" else 4
        survived = 0
        while deaths > 0:
            with ranks.Ranks(quern, 4, *WORDS, "--set", f"work={150 * size}", cwd=folder, env=env) as run:
                wait_for_the_start(folder, run)
                dying = draw.sample(range(4), min(deaths, draw.randint(1, 3)))
                for rank in dying:
                    time.sleep(draw.uniform(0.02, 0.3))
                    run.rank[rank].kill()
                done = run.wait()
            killed = [code == -9 for code, _, _ in done]
            assert all(code in (0, -9) for code, _, _ in done), done
            deaths -= max(1, sum(killed))
            if all(killed):
                continue
            survived += any(killed)
            assert sum(out.count("600 iterations") for _, out, _ in done) == 1, done
            got = files(folder)
            assert got[:3] == wanted[:3]  # the recipe has another value of `work`
        return survived or None

    machine.caught(attempt)

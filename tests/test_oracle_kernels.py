"""Kernels of users against a second program, written from section 22 of the contract."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import random_kernels
from builds import ROOT

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import kernels  # noqa: E402
from kernel_numbers import Refused  # noqa: E402

LONG = os.environ.get("QUERN_LONG_TESTS") == "yes"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A compiler that optimises little, which takes half of the time."""
    path = tmp_path_factory.mktemp("cc") / "quick-cc"
    path.write_text('#!/bin/sh\nexec cc "$@" -O1\n')
    path.chmod(0o755)
    return str(path)


def program(quern, folder, kernel, env, *words):
    """What quern run gives for a random kernel: results by name, or (item, message) of a failure."""
    (folder / "k.c").write_text(kernel.text)
    for name, a in kernel.arrays.items():
        np.save(folder / f"{name}.npy", a)
    words = [*words, *(f"--in={n}={n}.npy" for n in kernel.arrays),
             *(f"--out={n}={n}.npy" for n in kernel.outputs),
             *(f"--set={n}={v}" for n, v in kernel.scalars.items())]
    done = subprocess.run(
        [quern, "run", "--kernel", "k.c", "--json", "--shape", "x".join(map(str, kernel.shape)),
         *(["--seed", str(kernel.seed)] if kernel.seed != 1 else []),
         *(["--iterations", str(kernel.iterations)] if kernel.iterations != 1 else []), *words],
        cwd=folder, capture_output=True, text=True, env={**os.environ, **env})
    answer = json.loads(done.stdout.splitlines()[-1]) if done.stdout else {}
    if done.returncode:
        assert done.returncode == 1 and answer, (done.stdout, done.stderr)
        return answer
    results = answer["results"]
    return {n: np.load(folder / f"{n}.npy") if n in kernel.outputs else r for n, r in results.items()}


def same(mine, theirs):
    """A result of the oracle and one of the program."""
    if isinstance(mine, np.ndarray):
        return mine.dtype == theirs.dtype and mine.shape == theirs.shape and mine.tobytes() == theirs.tobytes()
    if mine is None:
        return theirs["value"] is None
    if isinstance(mine, tuple):
        return list(mine[1]) == theirs["item"] and same(mine[0], theirs)
    return str(mine) == theirs["value"] if isinstance(mine, int) else \
        kernels.from_text(theirs["value"], "double" if mine.dtype == "f8" else "float").tobytes() == mine.tobytes()


def compare(quern, folder, kernel, env, *words):
    theirs = program(quern, folder, kernel, env, *words)
    try:
        mine = kernels.run(kernel.text, kernel.shape, kernel.arrays, kernel.scalars, kernel.seed,
                           kernel.iterations)[-1]
    except kernels.Fault as fault:
        assert theirs.get("event") == "error", (fault.args, theirs)
        if fault.item is not None:
            place = ", ".join(str(int(i)) for i in np.unravel_index(fault.item, kernel.shape))
            place = f"item ({place})" if len(kernel.shape) > 1 else f"item {place}"
            if kernel.iterations > 1:
                place += f" of iteration {fault.iteration}"
            assert place == theirs["where"], (fault.args, theirs)
        return "fault"
    assert theirs.get("event") != "error", theirs
    for name, value in mine.items():
        assert same(value, theirs[name]), (name, value, theirs[name])
    return "same"


@pytest.mark.parametrize("seed", range(400 if LONG else 6))
def test_a_random_kernel_has_the_results_of_the_text(quern, tmp_path, cache, quick, seed):
    compare(quern, tmp_path, random_kernels.kernel(seed, LONG), {"QUERN_CACHE": str(cache), "CC": quick})


EDGES = """INDEX(i);
INPUT(double, a); INPUT(double, b); INPUT(float, c); INPUT(float, d); INPUT(int64_t, n); INPUT(uint64_t, m);
SCALAR(float, near, 1.000000059604644775390625000001); SCALAR(double, minus, 2);
OUTPUT(double, choices); OUTPUT(float, singles); OUTPUT(int32_t, tests); OUTPUT(float, whole); OUTPUT(float, natural);
OUTPUT(double, wide); OUTPUT(float, literals); OUTPUT(double, exact); COUNT(odd); RANDOM; OUTPUT(double, draws);
OUTPUT(float, more);
static const float TWICE = 1.000000059604644775390625000001;
static double real(double x) { return x == x ? x : 7; }
static double mix(double h, double x) { return h * 3 + real(x); }
KERNEL {
    double h = 0;
    h = i % 4 == 0 ? fmin(a, b) : i % 4 == 1 ? fmax(a, b) : i % 4 == 2 ? min(a, b) : max(a, b);
    choices = real(h);
    float g = i % 4 == 0 ? fmin(c, d) : i % 4 == 1 ? fmax(c, d) : i % 4 == 2 ? min(c, d) : max(c, d);
    singles = (float)real(g);
    tests = (a ? 1 : 2) + (!a ? 4 : 8) + (a && 1) * 16 + (c || 0) * 32 + (a < b) * 64 + (a != b) * 128 + (c >= d) * 256;
    whole = n;
    natural = m;
    wide = (double)n - (double)m;
    literals = i & 1 ? 1.000000059604644775390625000001f : i & 2 ? TWICE : near;
    exact = i & 1 ? fma(1e30f, 16777217, 0) : i & 2 ? pow(c, 2) == pow((double)c, 2.0) : 1 / minus;
    odd = a;
    draws = mix(mix(mix(uniform(i), normal(i)), uniformf(-i)), random32(i - 3));
    more = normalf(i) + (float)normal(i | 1);
}
"""


def test_edges(quern, tmp_path, cache, quick):
    """Zeros, NaN and halves that random kernels meet too rarely."""
    some = np.array([0.0, -0.0, np.nan, 1.5, np.inf, 5e-324, -np.inf, -2.5])
    a, b = (x.repeat(4) for x in (np.repeat(some, 8), np.tile(some, 8)))
    halves = [2**54 + 2**30 + 1, 2**63 - 1, -2**63, 2**62 + 2**38 + 1, -2**62 - 2**38 - 1, 2**24 + 1, -3, 0]
    n = np.resize(np.array(halves), 256)
    shapes = {"choices": 0, "singles": 0, "tests": 0, "whole": 0, "natural": 0, "wide": 0, "literals": 0, "exact": 0,
              "draws": 0, "more": 0}
    kernel = random_kernels.Kernel(
        EDGES, (256,), {"a": a, "b": b, "c": a.astype("f4"), "d": b.astype("f4"), "n": n,
                        "m": n.astype("u8") * np.uint64(3)}, {"minus": "-0.0"}, list(shapes), 5, 1)
    assert compare(quern, tmp_path, kernel, {"QUERN_CACHE": str(cache), "CC": quick}) == "same"


@pytest.mark.parametrize("body", [
    "o = 010;", "o = 1e400;", "o = 1 << 2.0;", "o = 7 % 2.0;", "int a[3] = {0}; a[0] += 1; o = 1;", "o += 1;",
    "int a[2] = {1, 2, 3}; o = 1;", "o = 9223372036854775808;", "o = x = 1;", "int x; o = 1;", "o = o;",
    "int a[2] = {0}; o = a[0.5];", "o = 1.5l;", "o = 1l;", "o = (1, 2);", "i = 1;", "int x = 1; int x = 2; o = x;",
    "const int x = 1; x = 2; o = x;", "const int a[1] = {1}; o = a[0];", "o = uniform(1);", "return 1;", "break;"])
def test_what_the_text_refuses(quern, tmp_path, body):
    text = f"INDEX(i);\nOUTPUT(double, o);\nKERNEL {{ {body} }}\n"
    kernel = random_kernels.Kernel(text, (2,), {}, {}, ["o"], 1, 1)
    assert program(quern, tmp_path, kernel, {})["status"] == "bad input"
    with pytest.raises(Refused):
        kernels.run(text, (2,))

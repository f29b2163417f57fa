"""Kernels whose items are computed in the lanes of vectors: the bytes of one item after the other.

QUERN_KERNEL_LANES is for tests: "never" computes one item after the other, "always" all kernels in lanes.
"""

import json
import os
import platform
import subprocess
import sys

import numpy as np
import pytest

import builds
import random_loops
from builds import ROOT

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import kernels  # noqa: E402

LONG = os.environ.get("QUERN_LONG_TESTS") == "yes"
SEEDS = range(400) if LONG else (30, 88, 298, 383)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def both(quern, tmp_path, cache):
    """both(text, arrays, outputs, word, ...): what quern run writes and says, the same in lanes and without."""
    quick = tmp_path / "quick-cc"
    quick.write_text('#!/bin/sh\nexec ${LANES_CC:-cc} "$@" -O1\n')
    quick.chmod(0o755)

    def call(text, arrays, outputs, *words, lanes=("never", "always"), compiler="cc"):
        (tmp_path / "k.c").write_text(text)
        for name, array in arrays.items():
            np.save(tmp_path / f"{name}.npy", array)
        found = []
        for wish in lanes:
            done = subprocess.run(
                [quern, "run", "--kernel", "k.c", "--json", "--threads", "1", *words,
                 *(f"--in={n}={n}.npy" for n in arrays), *(f"--out={n}={n}.npy" for n in outputs)],
                cwd=tmp_path, capture_output=True, text=True, timeout=60,
                env={**os.environ, "QUERN_CACHE": str(cache), "CC": str(quick), "LANES_CC": compiler,
                     "QUERN_KERNEL_LANES": wish})
            assert done.returncode in (0, 1) and done.stdout, (text, wish, done.returncode, done.stderr)
            answer = json.loads(done.stdout.splitlines()[-1])
            found.append((answer["results"], [(tmp_path / f"{n}.npy").read_bytes() for n in outputs])
                         if done.returncode == 0 else (answer["what"], answer["where"]))
        assert found.count(found[0]) == len(found), (text, found)
        return found[0]
    return call


def draw_arrays(rows=3, columns=37):
    draw = np.random.default_rng(5)
    return {"a": draw.integers(-20, 40, (rows, columns)).astype("i4"), "b": draw.uniform(-9, 9, (rows, columns)),
            "w": draw.uniform(-3, 3, 8).astype("f4")}


@pytest.mark.parametrize("seed", SEEDS)
def test_random_loops(both, seed):
    both(random_loops.kernel(seed), draw_arrays(), ["o1", "o2", "total"])


@pytest.mark.parametrize("seed", range(1000, 1200) if LONG else (5, 21))
@pytest.mark.parametrize("narrow", (False, True))
def test_random_counters(both, seed, narrow):
    """Variables that count a loop and are read after it, in masks of 64 and of 32 bits."""
    both(random_loops.kernel(seed, True, narrow), draw_arrays(), ["o1", "o2", "total"])


COLLATZ = """INDEX(i); INPUT(uint64_t, first); OUTPUT(int32_t, steps); OUTPUT(uint64_t, top); MAX(int32_t, longest);
SUM(uint64_t, all); COUNT(odd);
KERNEL {
    uint64_t n = first, highest = first;
    int32_t count = 0;
    while (n > 1) {
        n = n & 1 ? 3 * n + 1 : n / 2;
        highest = max(highest, n);
        count++;
        if (count == 400) return;
    }
    steps = count;
    top = highest;
    longest = count;
    all = n;
    odd = first & 1;
}
"""


@pytest.mark.parametrize("count", (1, 3, 16, 29, 500))
def test_oracle_agrees_and_tails_are_complete(both, count):
    first = np.arange(count, dtype="u8") * 37 % 1000
    results, files = both(COLLATZ, {"first": first}, ["steps", "top"])
    steps, top = [], []
    for n in first.tolist():
        k, most = 0, n
        while n > 1:
            n = 3 * n + 1 if n & 1 else n // 2
            most, k = max(most, n), k + 1
        steps.append(k)
        top.append(most)
    assert files[0][128:] == np.array(steps, "i4").tobytes() and files[1][128:] == np.array(top, "u8").tobytes()
    assert results["longest"]["value"] == str(max(steps)) and results["odd"]["value"] == str(int((first & 1).sum()))


@pytest.mark.parametrize("compiler", ("cc -mno-avx512f", "cc -mno-avx", "cc -DQV_NO_BITS", "clang", "clang -mno-avx512f"))
def test_vectors_of_every_width(both, compiler):
    """Those of 64 bytes are the default where there are any, with masks of bits; 32 and 16 bytes without."""
    if platform.machine() != "x86_64":
        pytest.skip("it has vectors of one width")
    builds.require(compiler.split()[0])
    both(random_loops.kernel(5, True, True), draw_arrays(), ["o1", "o2", "total"], compiler=compiler)
    both(COLLATZ, {"first": np.arange(29, dtype="u8") * 37 % 1000}, ["steps", "top"], compiler=compiler)


ANGLES = """INDEX(i); INPUT(double, x); OUTPUT(double, s); OUTPUT(float, f); COUNT(odd);
KERNEL {
    double all = 0;
    float narrow = 0;
    for (int64_t k = 1; k < i % 5 + 2; k++) {
        const double part = x * k;
        const float small = (float)part;
        all += k == 1 ? sin(part) : k == 2 ? cos(part) : tan(part);
        narrow += k == 1 ? sin(small) : k == 2 ? cos(small) : tan(small);
        if (part != part) odd = 1;
    }
    s = all == all ? all : 0;
    f = narrow == narrow ? narrow : 0;
}
"""


def test_angles(both):
    """Common ones are computed in vectors; in some, or in all, an item has another one, or none."""
    draw = np.random.default_rng(3)
    x = draw.uniform(-90, 90, 200)
    others = np.concatenate([10.0 ** draw.uniform(5, 37, 195), [np.inf, np.nan, -0.0, 2.0**20, 2.0**25]])
    for rare in (0, 0.05, 1):
        results, files = both(ANGLES, {"x": np.where(draw.uniform(size=200) < rare, others, x)}, ["s", "f"])
        assert results["odd"]["value"] == ("1" if rare == 1 else "0")
        assert np.count_nonzero(np.frombuffer(files[0][128:], "f8")) > 190


def test_second_program_agrees(both, tmp_path):
    text, arrays = random_loops.kernel(8), draw_arrays(2, 21)
    found = both(text, arrays, ["o1", "o2", "total"])
    theirs = kernels.run(text, (2, 21), arrays, {}, 1, 1)[-1]
    for k, name in enumerate(("o1", "o2", "total")):
        assert found[1][k][128:] == theirs[name].tobytes()


# Of each an item alone does what ends a run; its neighbours in the vector do not.
FAULTS = {
    "lazy read": "(k < 8 && w(k) > 100) || (i == item && w(k + 9) > 0)",
    "chosen read": "i == item ? w(8 + k) : k < 8 ? w(k) : 1",
    "division": "7 / ((i == item ? 0 : 1) + k * 0)",
    "table": "T[i == item ? 4 : k & 3]",
    "function": "g(i == item ? 0 : 1 + k)",
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_count_for_items_that_take_part(both, name):
    function = """static int g(int64_t n) {
        int64_t m = n; int k = 0;
        while (m != 1) { m = 8 / n; k++; if (k > 3) return 0; }
        return k;
    }""" if name == "function" else ""
    text = f"""INDEX(i); WHOLE(float, w, 1); SCALAR(int64_t, item); OUTPUT(double, o);
    static const int T[4] = {{1, 2, 3, 4}};
    {function}
    KERNEL {{ double s = 0; for (int k = 0; k < i % 7 + 3; k++) s += {FAULTS[name]}; o = s; }}"""
    arrays = {"w": np.arange(8, dtype="f4")}
    assert len(both(text, arrays, ["o"], "--shape", "37", "--set", "item=99")[1]) == 1
    _, where = both(text, arrays, ["o"], "--shape", "37", "--set", "item=20")
    assert where == "item 20"


ENDLESS = """INDEX(i); OUTPUT(int, o); SCALAR(int, s, 1);
KERNEL {
    int all = 0;
    for (int k = 0;; k++) {
        int n = s;
        if (k == i % 5) all += 100;
        if (n & 1) break;             /* all items leave here; the loop after does not end for n = 1 */
        while (n != 10) n += 2;
        all += n;
        if (k > i % 3) return;
    }
    o = all;
}
"""


def test_code_behind_a_way_out_is_not_entered_without_items(both):
    both(ENDLESS, {}, ["o"], "--shape", "19")


UNCALLED = """INDEX(i); INPUT(int32_t, a); OUTPUT(int, o);
static int odd(int k) { while (k % 2 == 0) k /= 2; return k; }
KERNEL {
    int all = 0;
    for (int k = 0; k < 4; k++) all += a + k > 0 ? odd(k) : 0;  /* odd(0) does not end */
    o = all;
}
"""


def test_function_is_not_called_without_items(both):
    _, (o,) = both(UNCALLED, {"a": np.array([0, -1] * 10, "int32")}, ["o"])
    assert o.endswith(np.array([5, 4] * 10, "int32").tobytes())


def test_loops_use_lanes_and_straight_lines_do_not(quern, tmp_path):
    """The default is one of the two forms, by the text alone. A file of the cache is a form."""
    def forms(text, name):
        (tmp_path / "k.c").write_text(text)
        for wish in ({"QUERN_KERNEL_LANES": "never"}, {}):
            subprocess.run([quern, "run", "--kernel", "k.c", "--shape", "9", "--out=o=o.npy", "--quiet"], cwd=tmp_path,
                           check=True, env={**os.environ, "QUERN_CACHE": str(tmp_path / name), **wish}, timeout=60)
        return len(list((tmp_path / name).glob("*.kernel")))
    assert forms("INDEX(i); OUTPUT(int, o); KERNEL { int n = 0; while (n < i) n++; o = n; }", "loop") == 2
    assert forms("INDEX(i); OUTPUT(int, o); KERNEL { o = (int)i; }", "line") == 1

#!/usr/bin/env python3
"""Random numbers, prefix sums and arrays of sums of user kernels beside NumPy, one thread, in one run.

    bench/kernel_numbers.py [build/quern] [--items 4000000] [--repeats 7]

Results are compared first: random numbers with tests/oracle, sums with NumPy's. Times are nanoseconds
an item, the median of repeats that alternate; Quern's are those of its report. NumPy writes to memory
that is there.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import draws  # noqa: E402

# Each of these items has four numbers.
DRAWS = """INDEX(i); RANDOM; OUTPUT(%s, y); KERNEL { y = %s(0) + %s(1) + %s(2) + %s(3); }"""
WALK = """INDEX(i); RANDOM; OUTPUT(double, y);
KERNEL { double s = 0; for (int k = 0; k < 64; k += 2) s = s + normal(k) + normal(k | 1); y = s; }"""
INPUTS = "INDEX(i); INPUT(double, a); INPUT(int32_t, n); "


def quern(folder, args, text, *words):
    (folder / "k.c").write_text(text)
    done = subprocess.run([args.quern, "run", "--json", "--threads", "1", "--kernel", "k.c", *map(str, words)],
                          cwd=folder, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["seconds"]


def timed(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def compare(title, args, each, ours, theirs):
    calls = {"quern": ours, **{name: lambda c=call: timed(c) for name, call in theirs.items()}}
    times = {name: [] for name in calls}
    for _ in range(args.repeats):
        for name, call in calls.items():
            times[name].append(call() * 1e9 / each)
    own = statistics.median(times["quern"])
    for name, all_of in times.items():
        middle = statistics.median(all_of)
        print(f"{title:24} {name:34} {middle:7.2f} ns  {min(all_of):7.2f} to {max(all_of):7.2f}"
              f"  quern is {middle / own:5.2f} times as fast")


def random_numbers(folder, args):
    generators = {"PCG64": numpy.random.Generator(numpy.random.PCG64(1)),
                  "Philox": numpy.random.Generator(numpy.random.Philox(1))}
    contract = (ROOT / "docs" / "exactness.md").read_text()
    section = contract[contract.index("## 21. "):contract.index("## 22. ")]
    items = args.items // 4
    for name, kind, call in (("uniform", "double", "random"), ("uniformf", "float", "random"),
                             ("normal", "double", "standard_normal"), ("normalf", "float", "standard_normal")):
        text = DRAWS % (kind, *[name] * 4)
        def ours(count=items):
            return quern(folder, args, text, "--shape", count, "--out", "y=y.npy")
        ours(500)
        of = draws.of(section, 1, numpy.arange(500))
        k = numpy.zeros(500, "int64")
        want = ((getattr(of, name)(k) + getattr(of, name)(k + 1)) + getattr(of, name)(k + 2)) + getattr(of, name)(k + 3)
        assert numpy.load(folder / "y.npy").tobytes() == want.tobytes(), name
        buffer = numpy.zeros(args.items, "float32" if kind == "float" else "float64")
        theirs = {f"numpy {g}": lambda r=rng: getattr(r, call)(out=buffer, dtype=buffer.dtype)
                  for g, rng in generators.items()}
        compare(name, args, 4 * items, ours, theirs)
    buffer = numpy.zeros((args.items // 64, 64))
    def walk():
        generators["PCG64"].standard_normal(out=buffer)
        buffer.sum(axis=1)
    compare("64 normal, added", args, args.items // 64 * 64,
            lambda: quern(folder, args, WALK, "--shape", args.items // 64, "--out", "y=y.npy"), {"numpy PCG64": walk})


def sums(folder, args):
    draw = numpy.random.default_rng(1)
    a, n = draw.standard_normal(args.items), draw.integers(0, 1000, args.items, "int32")
    numpy.save(folder / "a.npy", a)
    numpy.save(folder / "n.npy", n)
    words = ["--in", "a=a.npy", "--in", "n=n.npy", "--out", "y=y.npy"]
    buffer = numpy.zeros(args.items)
    for title, text, theirs in (
            ("a copy", "OUTPUT(double, y); KERNEL { y = a; }", lambda: numpy.copyto(buffer, a)),
            ("prefix sums", "SCAN(double, y); KERNEL { y = a; }", lambda: numpy.cumsum(a, out=buffer)),
            ("histogram, 1,000 bins", "COUNT(y, 1000); KERNEL { y[n] = 1; }", lambda: numpy.bincount(n, minlength=1000)),
            ("sums of 1,000 groups", "SUM(double, y, 1000); KERNEL { y[n] = a; }", lambda: numpy.bincount(n, a))):
        def ours():
            return quern(folder, args, INPUTS + text, *words)
        ours()
        want = theirs()
        got, want = numpy.load(folder / "y.npy"), buffer if want is None or want is buffer else want
        assert abs(got - want).max() <= 1e-9 * abs(want).max(), title
        compare(title, args, args.items, ours, {"numpy": theirs})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("quern", nargs="?", default=ROOT / "build" / "quern", type=Path)
    parser.add_argument("--items", type=int, default=4_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    args.quern = args.quern.resolve()
    with tempfile.TemporaryDirectory() as folder:
        random_numbers(Path(folder), args)
        sums(Path(folder), args)


if __name__ == "__main__":
    main()

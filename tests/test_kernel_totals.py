"""Totals of kernels that a device makes itself: OpenCL (PoCL) and CUDA (emulated), against Python's
integers and fractions."""

import collections
import fractions
import json
import math
import re

import numpy
import pytest

from test_kernel_devices import device, folder, only, opencl_without, quick, run, written  # noqa: F401

REALS = """INDEX(i);
INPUT(double, x); INPUT(float, f); INPUT(int64_t, n); INPUT(uint64_t, u); INPUT(int16_t, h);
SUM(double, dx); SUM(double, dy); SUM(float, df); SUM(int64_t, dn); SUM(uint64_t, du);
MIN(double, low); MAX(double, high); MIN(float, flow); MAX(int64_t, most); MIN(int16_t, least); MAX(uint64_t, top);
COUNT(some);
SUM(double, few, 7); SUM(double, many, 61); SUM(float, plain, 2000);
KERNEL {
    dx = x; df = f; dn = n;
    if (i % 3 == 0) { dy = -x; du = u >> 20; low = x; high = x; flow = f; most = n; least = h; top = u; }
    some = h > 0;
    if (h % 5) few[i % 7] = fabs(x) < 1e300 ? x : 1;
    many[(int)(u % 61)] = f;
    plain[i % 2000] = f;
}
"""
BINS = """INDEX(i);
INPUT(float, f); INPUT(int64_t, n); INPUT(int16_t, h);
SUM(float, df); SUM(int64_t, dn); MIN(float, flow); COUNT(some);
SUM(float, few, 7); SUM(int64_t, whole, 5); SUM(int64_t, wide, 900); COUNT(often, 9); COUNT(rare, 3001);
KERNEL {
    df = f; dn = n; flow = f; some = h > 0;
    few[i % 7] = f; whole[i % 5] = n; wide[i % 900] = -n; often[i % 9] = h > 3;
    if (h > 0) rare[h % 3001] = i % 2;
}
"""


def hard(draw, count):
    """Numbers that cancel: all exponents, subnormal ones, and the largest with both signs."""
    x = draw.standard_normal(count) * 2.0 ** draw.integers(-1074, 1000, count)
    x[::4] = draw.standard_normal(len(x[::4]))
    x[1::97] = 2.0**1023
    x[2::97] = -2.0**1023
    x[2::97][len(x[1::97]):] = 0
    x[5::50] = 2.0**-1074
    x[6::60] = -0.0
    return numpy.append(x, -x[: count // 3])


@pytest.fixture(scope="module")
def arrays(folder):
    draw, count = numpy.random.default_rng(8), 9000
    x = hard(draw, count)
    count = len(x)
    with numpy.errstate(over="ignore"):
        f = numpy.clip(x, -2.0**60, 2.0**60).astype("float32")
    f[3::11] = draw.integers(-2**23, 2**23, len(f[3::11])) * numpy.float32(2**-149)
    made = {"x": x, "f": f, "n": draw.integers(-2**50, 2**50, count), "h": draw.integers(-2**15, 2**15, count, "int16"),
            "u": draw.integers(0, 2**64, count, "uint64")}
    for name, array in made.items():
        numpy.save(folder / f"t-{name}.npy", array)
    return made


def rounded(exact, kind):
    """The nearest number of a type, ties to even; of a zero +0."""
    if kind == "float64":
        return float(exact)
    near = numpy.float32(float(exact))
    found = min([near, numpy.nextafter(near, numpy.float32(-math.inf)), numpy.nextafter(near, numpy.float32(math.inf))],
                key=lambda a: (abs(fractions.Fraction(float(a)) - exact), a.view("uint32") & 1))
    return found + numpy.float32(0)


def total(values, kind="float64"):
    return rounded(sum(map(fractions.Fraction, map(float, values))), kind)


def grouped(values, bins, count, kind="float64"):
    parts = collections.defaultdict(list)
    for value, place in zip(values, bins):
        parts[int(place)].append(value)
    return numpy.array([total(parts[k], kind) for k in range(count)], kind)


def bytes_back(done):
    return float(re.search(r"received ([\d.]+) KiB", done.stdout)[1])


def test_all_kinds(run, folder, device, arrays):
    """Each total is that of Python's fractions and integers; by a device alone, and beside the processor.
    No value of a total comes to the host, unless its bins are many."""
    name, env = device
    x, f, n, u, h = (arrays[k] for k in "xfnuh")
    items = numpy.arange(len(x))
    third = items % 3 == 0
    want = {"dx": total(x), "dy": total(-x[third]), "df": total(f, "float32"), "dn": int(n.sum()),
            "du": int((u[third] >> numpy.uint64(20)).sum()), "some": int((h > 0).sum())}
    for word, array, best in (("low", x, numpy.argmin), ("high", x, numpy.argmax), ("flow", f, numpy.argmin),
                              ("most", n, numpy.argmax), ("least", h, numpy.argmin), ("top", u, numpy.argmax)):
        at = int(best(array[::3]))
        want[word] = (array[::3][at], 3 * at)
    bins = {"few": grouped(numpy.where(numpy.fmod(h, 5) != 0, numpy.where(abs(x) < 1e300, x, 1), 0), items % 7, 7),
            "many": grouped(f, u % numpy.uint64(61), 61), "plain": grouped(f, items % 2000, 2000, "float32")}
    words = [w for k in "xfnuh" for w in ("--in", f"{k}=t-{k}.npy")]
    words += [w for k in bins for w in ("--out", f"{k}=o-{k}.npy")]
    for which in (name, f"cpu:1,{name}"):
        done = run(REALS, which, *words, "--json", "--grain", 64, env=env)
        results = json.loads(done.stdout)["results"]
        for key, value in want.items():
            got = results[key]
            if isinstance(value, tuple):
                assert got["item"] == [value[1]], (which, key)
                value = value[0]
            assert type(value)(got["value"]) == value, (which, key)
        for key, value in bins.items():
            assert numpy.load(folder / f"o-{key}.npy").tobytes() == value.tobytes(), (which, key)
    done = run(REALS, name, *words, "--verbose", env=env)
    slots = (6 * 16 * 1024 + 68 * 8 * 68 + 100) / 1024
    assert bytes_back(done) < len(x) * 8 / 1024 + 1.1 * slots, done.stdout


def test_without_wide_atomics(run, folder, device, arrays, quern):
    """Devices that add 32 bits at once; integers and counts in few bins and in many."""
    name, env = device
    f, n, h = (arrays[k] for k in "fnh")
    items = numpy.arange(len(f))
    counted = numpy.bincount(h[h > 0] % 3001, weights=(items[h > 0] % 2), minlength=3001).astype("uint64")
    want = {"few": grouped(f, items % 7, 7, "float32"),
            "whole": numpy.array([n[k::5].sum() for k in range(5)]), "wide": -numpy.array([n[k::900].sum() for k in range(900)]),
            "often": numpy.array([(h[k::9] > 3).sum() for k in range(9)], "uint64"), "rare": counted}
    words = [w for k in "fnh" for w in ("--in", f"{k}=t-{k}.npy")]
    words += [w for k in want for w in ("--out", f"{k}=o-{k}.npy")]
    for more in [{}] + [opencl_without(quern, "atomics=0")] * name.startswith("opencl"):
        done = run(BINS, name, *words, "--json", env={**env, **more})
        results = json.loads(done.stdout)["results"]
        assert numpy.float32(results["df"]["value"]) == total(f, "float32") and int(results["dn"]["value"]) == int(n.sum())
        assert int(results["some"]["value"]) == int((h > 0).sum())
        assert results["flow"]["item"] == [int(numpy.argmin(f))]
        for key, value in want.items():
            assert numpy.load(folder / f"o-{key}.npy").tobytes() == value.tobytes(), (more, key)


def test_wrong_totals(run, device, arrays, quern):
    """A device that computes a total wrongly is refused by its self-test."""
    name, env = device
    only(device, "opencl")
    text = "INDEX(i);\nINPUT(float, f);\nSUM(float, all);\nKERNEL { all = f; }\n"
    env = {**env, **opencl_without(quern, "totals=0")}
    done = run(text, name, "--in", "f=t-f.npy", status=1, env=env)
    assert "computes a sum, an extreme or bins wrongly" in done.stderr and "--devices" in done.stderr


ZEROS = """INDEX(i);
INPUT(double, x);
MIN(double, low); MAX(double, high); SUM(double, all, 3); SUM(double, one); COUNT(none);
KERNEL { if (i > 5000) { low = x; high = x; } if (i == 7000) all[1] = x > 2 ? 1 / (x - x) : x; one = x > 3 ? 1 / (x - x) : x; none = 0; }
"""


def test_zeros_and_infinities(run, folder, device):
    """-0 and +0 are equal: the first of them is kept. An infinity for a sum, of a bin or not, is a fault."""
    name, env = device
    x = numpy.zeros(9000)
    x[5001] = -0.0
    numpy.save(folder / "z.npy", x)
    words = ["--in", "x=z.npy", "--out", "all=o-all.npy"]
    results = json.loads(run(ZEROS, name, *words, "--json", env=env).stdout)["results"]
    assert results["low"] == results["high"] == {"value": "-0", "item": [5001]}
    assert results["one"]["value"] == "0" and results["none"]["value"] == "0"
    for place, value in ((7000, 3.0), (8000, 4.0)):
        x[place] = value
        numpy.save(folder / "z.npy", x)
        want = run(ZEROS, "cpu", *words, status=1).stderr
        assert run(ZEROS, name, *words, status=1, env=env).stderr == want and f"item {place}" in want
        x[7000] = 1

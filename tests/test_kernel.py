"""Kernels of users: `quern run` and the replay of its recipes, compared with NumPy."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy
import pytest

from builds import ROOT

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import draws  # noqa: E402
import functions  # noqa: E402

if not (shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")):
    pytest.skip("no C compiler", allow_module_level=True)

HEAD = "#include <quern/kernel_file.h>\n"


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


@pytest.fixture
def run(quern, tmp_path, cache, quick):
    """run(text, word, ...) writes k.c and calls quern run, or another command, in the test's folder."""
    def call(text, *words, status=0, env=None, command=None):
        if text is not None:
            (tmp_path / "k.c").write_text(text)
        done = subprocess.run([quern, *(command or ["run", "--kernel", "k.c"]), *map(str, words)],
                              cwd=tmp_path, capture_output=True, text=True,
                              env={**os.environ, "QUERN_CACHE": str(cache), "CC": quick, **(env or {})})
        assert done.returncode == status, (done.stdout, done.stderr)
        return done
    return call


def results(done):
    return json.loads(done.stdout)["results"]


MAP = HEAD + """INDEX(i);
INPUT(float, price); INPUT(int8_t, kind); WHOLE(double, rate, 2); SCALAR(float, part, 0.1);
OUTPUT(double, cost); OUTPUT(uint8_t, low); SUM(double, all); MIN(double, least); MAX(float, most);
COUNT(cheap); SUM(int64_t, kinds); RANDOM; SCAN(float, walk); SUM(double, drawn, 9);
static double weigh(double a, float b) { if (a > 50) return a * b; return a; }
KERNEL {
    const int k = kind;
    double c = 0;
    for (int j = 0; j < length(rate, 1); j++)
        c += weigh(price, part) * rate(k < 0 ? -k % 3 : k % 3, j);
    cost = c; all = c; least = c; low = (uint8_t)c; most = price; cheap = price < 10; kinds = kind;
    walk = normalf(1) + uniformf(0); drawn[random32(0) % 9] = normal(3) * uniform(2);
}
"""


def map_inputs(folder, count):
    draw = numpy.random.default_rng(5)
    price = draw.uniform(0, 100, count).astype("float32")
    kind = draw.integers(-128, 128, count).astype("int8")
    rate = draw.standard_normal((3, 4))
    for name, array in (("price", price), ("kind", kind), ("rate", rate.astype(">f8"))):
        numpy.save(folder / f"{name}.npy", array)
    return price, kind, rate


INPUTS = ["--in", "price=price.npy", "--in", "kind=kind.npy", "--in", "rate=rate.npy",
          "--out", "cost=cost.npy", "--out", "low=low.npy", "--out", "walk=walk.npy", "--out", "drawn=drawn.npy"]


def test_map_and_sums(run, tmp_path):
    price, kind, rate = map_inputs(tmp_path, 20_011)
    got = results(run(MAP, *INPUTS, "--json", "--grain", 1000, "--threads", 3))
    wide, part = price.astype("float64"), numpy.float64(numpy.float32(0.1))
    weight = numpy.where(wide > 50, wide * part, wide)
    row = numpy.abs(kind.astype(int)) % 3
    cost = numpy.zeros(len(price))
    for j in range(4):
        cost = cost + weight * rate[row, j]
    assert numpy.load(tmp_path / "cost.npy").tobytes() == cost.tobytes()
    clamped = numpy.clip(numpy.trunc(cost), 0, 255).astype("uint8")
    assert numpy.load(tmp_path / "low.npy").tobytes() == clamped.tobytes()
    assert float(got["all"]["value"]) == math.fsum(cost)
    assert float(got["least"]["value"]) == cost.min() and got["least"]["item"] == [int(cost.argmin())]
    assert numpy.float32(got["most"]["value"]) == price.max()
    assert got["most"]["item"] == [int(price.argmax())]
    assert int(got["cheap"]["value"]) == (price < 10).sum()
    assert int(got["kinds"]["value"]) == kind.sum(dtype="int64")


# LLVM makes a choice between x and a zero the greater or lesser of them, also where the sign of the
# zero is not that of the zero in the comparison.
ZEROS = """#include <quern/kernel_file.h>
INDEX(i);
INPUT(float, f); INPUT(double, d);
OUTPUT(float, a); OUTPUT(float, b); OUTPUT(float, c); OUTPUT(double, e); OUTPUT(double, g);
static float turned(float x) { return -x; }
KERNEL {
    a = f < 0.0f ? -0.0f : f;
    b = f > turned(0.0f) ? 0.0f : f;
    c = fmin(fmax(f, 0.0f * -1.0f), 1.0f);
    e = d < 0.0 ? -0.0 : d;
    double least = d;
    for (int k = 0; k < 1 + (d > 2); k++) least = fmin(least, -0.0);
    g = least;
}
"""
ZERO_FILES = [w for n in "fd" for w in ("--in", f"{n}={n}.npy")] + [w for n in "abceg" for w in ("--out", f"{n}={n}.npy")]


def zeros_are_right(folder):
    """Of the arrays that ZEROS has made of those in zero_inputs."""
    x = zero_inputs(folder)
    minus = numpy.copysign(0, -1.0)
    wanted = {"a": numpy.where(x < 0, minus, x), "b": numpy.where(x > 0, 0, x),
              "c": numpy.where(x > 1, 1, numpy.where(x < 0, minus, x)), "e": numpy.where(x < 0, minus, x),
              "g": numpy.where(x > 0, minus, x)}
    for name, array in wanted.items():
        kind = "f4" if name in "abc" else "f8"
        assert numpy.load(folder / f"{name}.npy").tobytes() == array.astype(kind).tobytes(), name


def zero_inputs(folder):
    x = numpy.array([0.0, -0.0, 1, -1, numpy.inf, -numpy.inf, 2, -3, 2.0**-149] * 30)
    numpy.save(folder / "f.npy", x.astype("float32"))
    numpy.save(folder / "d.npy", x)
    return x


@pytest.mark.parametrize("lanes", ["never", "always"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_signs_of_zeros(run, tmp_path, compiler, lanes):
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    zero_inputs(tmp_path)
    run(ZEROS, *ZERO_FILES, env={"CC": compiler, "QUERN_KERNEL_LANES": lanes})
    zeros_are_right(tmp_path)


def test_a_constant_is_not_minus_zero(run, tmp_path):
    zero_inputs(tmp_path)
    for text in ("static const float Z = -0.0f;", "static const double Z[2] = {1, -0e5};"):
        told = run(ZEROS.replace("KERNEL", text + "\nKERNEL"), *ZERO_FILES, status=1).stderr
        assert "cannot be -0.0" in told and "line 6" in told and "a sign where the constant is used" in told


def test_same_bytes_and_replay(run, tmp_path):
    """Threads, grains and a compiler that optimises nothing change no byte."""
    map_inputs(tmp_path, 4001)
    plain = tmp_path / "plain-cc"
    plain.write_text('#!/bin/sh\nexec cc "$@" -O0\n')
    plain.chmod(0o755)
    seen = set()
    others = [{"CC": str(plain)}] + [{"CC": c} for c in ("", "clang") if c == "" or shutil.which(c)]
    for words, env in [(["--threads", 1], {}), (["--devices", "cpu:3", "--grain", 7], {}),
                       *[([], env) for env in others]]:
        run(MAP, *INPUTS, *words, env=env)
        seen.add(b"".join((tmp_path / f).read_bytes()
                          for f in ("cost.npy", "low.npy", "walk.npy", "drawn.npy", "cost.recipe.json")))
    assert len(seen) == 1
    done = run(None, "cost.recipe.json", command=["replay"])
    assert done.stdout.endswith("replay: identical, cost.recipe.json\n")
    (tmp_path / "price.npy").rename(tmp_path / "moved.npy")
    done = run(None, "cost.recipe.json", command=["replay"], status=1)
    assert "price.npy" in done.stderr and "--in price=FILE.npy" in done.stderr
    run(None, "cost.recipe.json", "--in", "price=moved.npy", command=["replay"])
    done = run(None, "cost.recipe.json", "--in", "price=moved.npy", "--seed", 1, command=["replay"], status=2)
    done = run(None, "cost.recipe.json", "--in", "price=moved.npy", "--trace", "t", command=["replay"], status=2)
    assert "--trace does nothing for the recipe of a kernel" in done.stderr
    array = numpy.load(tmp_path / "moved.npy")
    array[7] += 1
    numpy.save(tmp_path / "price.npy", array)
    done = run(None, "cost.recipe.json", command=["replay"], status=1)
    assert 'the array for "price" is not the one' in done.stderr
    recipe = json.loads((tmp_path / "cost.recipe.json").read_text())
    recipe["results"]["all"] = "1"
    (tmp_path / "changed.json").write_text(json.dumps(recipe))
    done = run(None, "changed.json", "--in", "price=moved.npy", command=["replay"], status=3)
    assert '"all" is 1 in the recipe' in done.stderr


def test_example(run, tmp_path):
    """The kernel of docs/kernels.md, item by item as NumPy computes it."""
    text = (ROOT / "examples" / "kernels" / "mandelbrot.c").read_text()
    assert f"```c\n{text}```" in (ROOT / "docs" / "kernels.md").read_text()
    height, width, size = 48, 64, 0.05
    got = results(run(text, "--shape", f"{height}x{width}", "--out", "steps=steps.npy", "--set", "left=-2.25",
                      "--set", f"size={size}", "--json"))
    cx = numpy.broadcast_to(-2.25 + size * numpy.arange(width), (height, width))
    cy = numpy.broadcast_to(size * (numpy.arange(height)[:, None] - height // 2), (height, width))
    a, b, steps = numpy.zeros(cx.shape), numpy.zeros(cx.shape), numpy.zeros(cx.shape, "int32")
    for _ in range(1000):
        inside = a * a + b * b <= 4
        a, b = numpy.where(inside, [a * a - b * b + cx, 2 * a * b + cy], [a, b])
        steps += inside
    assert (numpy.load(tmp_path / "steps.npy") == steps).all()
    assert int(got["inside"]["value"]) == (steps == 1000).sum() > 100


STENCIL = HEAD + """INDEX(%s);
HALO(%s, a, 2, %s);
OUTPUT(%s, b);
KERNEL { b = %s; }
"""


@pytest.mark.parametrize("kind, names, shape, taps", [
    ("float", "y, x", (37, 41), [(-2, 0), (0, 1), (1, -2), (0, 0)]),
    ("int64_t", "z, y, x", (5, 7, 300), [(0, 0, 2), (-1, 2, 0), (2, -2, -2)]),
    ("uint16_t", "x", (1000,), [(-2,), (2,), (1,)]),
])
def test_stencil(run, tmp_path, kind, names, shape, taps):
    """Each border, in one to three dimensions, against NumPy's padding."""
    dtype = {"float": "float32"}.get(kind, kind.removesuffix("_t"))
    a = numpy.random.default_rng(3).integers(0, 1000, shape).astype(dtype)
    numpy.save(tmp_path / "a.npy", a)
    for border, mode in (("zero", "constant"), ("nearest", "edge"), ("wrap", "wrap"))[len(shape) - 1:]:
        sum_of = " + ".join(f"{k + 2} * a({', '.join(map(str, tap))})" for k, tap in enumerate(taps))
        run(STENCIL % (names, kind, border, kind, sum_of), "--in", "a=a.npy", "--out", "b=b.npy", "--quiet")
        wide = numpy.pad(a, 2, mode=mode)
        want = sum(((k + 2) * wide[tuple(slice(2 + d, 2 + d + n) for d, n in zip(tap, shape))]
                    for k, tap in enumerate(taps)), numpy.zeros(shape, dtype))
        assert (numpy.load(tmp_path / "b.npy") == want.astype(dtype)).all(), border


WIDE = HEAD + """INDEX(y, x);
HALO(%s, a, 1, nearest);
OUTPUT(%s, b); SUM(%s, all); MAX(%s, most); COUNT(some);
KERNEL { const %s v = a(0, 1) - 2 * a(0, -1) + a(1, 0); b = v; all = v; most = v; some = v > 0; }
"""


@pytest.mark.parametrize("kind, dtype", [("float", "float32"), ("double", "float64")])
def test_rows_that_begin_anywhere(run, tmp_path, kind, dtype):
    """Stores are aligned, for which items at the begin of a row are computed twice."""
    draw = numpy.random.default_rng(5)
    for width in (65, 66, 67, 131, 200):
        a = draw.integers(-1000, 1000, (21, width)).astype(dtype)
        numpy.save(tmp_path / "a.npy", a)
        got = results(run(WIDE.replace("%s", kind), "--in", "a=a.npy", "--out", "b=b.npy", "--threads", 1, "--grain", 1000,
                          "--json", env={"CC": "cc"}))
        wide = numpy.pad(a, 1, mode="edge")
        want = wide[1:-1, 2:] - 2 * wide[1:-1, :-2] + wide[2:, 1:-1]
        assert (numpy.load(tmp_path / "b.npy") == want).all()
        assert float(got["all"]["value"]) == want.sum(dtype=float) and int(got["some"]["value"]) == (want > 0).sum()
        assert got["most"]["item"] == list(numpy.unravel_index(want.argmax(), want.shape))
    for y, x in ((2, 0), (3, 1), (5, 17), (8, 63), (20, width - 1)):
        bad = a.copy()
        bad[y, x] = numpy.nan
        numpy.save(tmp_path / "a.npy", bad)
        said = run(WIDE.replace("%s", kind), "--in", "a=a.npy", "--out", "b=b.npy", "--quiet", status=1, env={"CC": "cc"}).stderr
        assert f"item ({y - 1}, {x})" in said and "not a number" in said


NUMBERS = HEAD + """INDEX(i);
INPUT(double, x); INPUT(int32_t, n); INPUT(int32_t, m); INPUT(float, f);
OUTPUT(int32_t, quotient); OUTPUT(int32_t, rest); OUTPUT(int32_t, left); OUTPUT(int32_t, right);
OUTPUT(int32_t, product); OUTPUT(uint8_t, byte); OUTPUT(int64_t, whole); OUTPUT(double, near);
OUTPUT(float, fused); OUTPUT(float, rounded);
KERNEL {
    quotient = n / m; rest = n % m; left = n << m; right = n >> m; product = n * m;
    byte = (uint8_t)x; whole = (int64_t)x; near = fmin(fmax(rint(x), -5), 5.5);
    fused = fma(f, f, -f); rounded = f * f - f;
}
"""


def test_arithmetic(run, tmp_path):
    """What C leaves open has the meaning that docs/kernels.md gives it."""
    draw = numpy.random.default_rng(9)
    n = draw.integers(-2**31, 2**31, 3000).astype("int32")
    m = draw.integers(-100, 100, 3000).astype("int32")
    m[m == 0] = 3
    n[:4], m[:4] = -2**31, [-1, 1, -2, 33]
    x = draw.standard_normal(3000) * 10.0 ** draw.integers(-3, 25, 3000)
    x[:7] = [255.9, 256, -0.9, 2.0**63, -2.0**63, numpy.inf, -numpy.inf]
    f = draw.standard_normal(3000).astype("float32")
    words = ["--quiet"]
    for name, array in (("x", x), ("n", n), ("m", m), ("f", f)):
        numpy.save(tmp_path / f"{name}.npy", array)
        words += ["--in", f"{name}={name}.npy"]
    names = "quotient rest left right product byte whole near fused rounded".split()
    run(NUMBERS, *words, *[w for name in names for w in ("--out", f"{name}=o-{name}.npy")])
    got = {name: numpy.load(tmp_path / f"o-{name}.npy") for name in names}
    wide, by = n.astype("int64"), m.astype("int64")
    quotient = (numpy.abs(wide) // numpy.abs(by) * numpy.sign(wide) * numpy.sign(by))
    with numpy.errstate(all="ignore"):
        trunc = numpy.trunc(x)
        whole = numpy.where(x >= 2.0**63, 2**63 - 1,
                            numpy.where(x <= -2.0**63, -2**63, trunc).astype("int64"))
        whole[x >= 2.0**63] = 2**63 - 1
        double = f.astype("float64")
        # A product of two floats is exact in double; the difference of that and a float may not be.
        exact = [float(numpy.float32(v)) for v in [numpy.longdouble(a) * a - numpy.longdouble(a) for a in double]]
    want = {"quotient": quotient.astype("int32"), "rest": (wide - quotient * by).astype("int32"),
            "left": (wide << (by & 31)).astype("int32"), "right": (wide >> (by & 31)).astype("int32"),
            "product": (wide * by).astype("int32"), "byte": numpy.clip(trunc, 0, 255).astype("uint8"),
            "whole": whole, "near": numpy.minimum(numpy.maximum(numpy.rint(x), -5), 5.5),
            "fused": numpy.array(exact, "float32"), "rounded": f * f - f}
    for name in names:
        assert (got[name] == want[name]).all(), name


def test_loops(run, tmp_path):
    """Where loops end, go on and are left, and what their last parts count."""
    run(HEAD + """INDEX(i); OUTPUT(int, a); OUTPUT(int, b); OUTPUT(int, c);
        KERNEL {
            int s = 0, k = 0, n = 0;
            for (k = 2; k < i; k += 2, n++) { if (k % 3 == 0) continue; if (k > 20) break; s += k; }
            a = s + 1000 * n;
            s = 0;
            do { s++; if (s % 2 == 1) continue; s += 3; } while (s < i);
            b = s;
            while (s > 3) { s -= 2; if (s == 9) break; do s--; while (0); }
            c = s;
        }""", "--shape", 40, "--quiet", *[w for n in "abc" for w in ("--out", f"{n}={n}.npy")])

    def item(i):
        some = [k for k in range(2, i, 2) if k % 3 == 0 or k <= 20 or k == 22]
        s = sum(k for k in some if k % 3 and k <= 20)
        a = s + 1000 * sum(1 for k in some if k <= 20)
        s = 1
        while s < i:
            s += 1 if s % 2 == 0 else 4
        b = s
        while s > 3:
            s -= 2
            if s == 9:
                break
            s -= 1
        return a, b, s
    got = [numpy.load(tmp_path / f"{n}.npy").tolist() for n in "abc"]
    assert list(zip(*got)) == [item(i) for i in range(40)]


FUNCTIONS = ("cbrt exp log sin cos tan atan erf erfc normcdf tanh exp2 expm1 log2 log10 log1p asin acos sinh "
             "cosh").split()


def test_functions(run, tmp_path):
    """The functions of section 21 of docs/exactness.md, beside a second implementation of it."""
    x = numpy.random.default_rng(2).standard_normal(64) * 3
    x[:4] = [0.5, 1, 700, 1e5]
    x[x < 0] *= -1
    y = x[::-1].copy()
    numpy.save(tmp_path / "x.npy", x)
    numpy.save(tmp_path / "y.npy", y)
    least = {"asin", "acos"}  # of 1 and less
    calls = [f"{f}({'%s' if f not in least else '1 / (1 + %s)'})" for f in FUNCTIONS]
    calls += [f"{f}(%s, %s)" for f in ("pow", "atan2", "hypot")]
    text = HEAD + "INDEX(i);\nINPUT(double, x);\nINPUT(double, y);\n"
    text += f"OUTPUT(double, d, {len(calls)}); OUTPUT(float, f, {len(calls)});\n"
    text += "KERNEL {\n    const float a = (float)x, b = (float)y;\n"
    text += "".join(f"    {to}[{k}] = {call % names[:call.count('%')]};\n" for k, call in enumerate(calls)
                    for to, names in (("d", ("x", "y")), ("f", ("a", "b")))) + "}\n"
    run(text, "--quiet", "--in", "x=x.npy", "--in", "y=y.npy", "--out", "d=o-d.npy", "--out", "f=o-f.npy")
    contract = (ROOT / "docs" / "exactness.md").read_text()
    section = contract[contract.index("## 21. "):contract.index("## 22. ")]
    for k, kind in zip("fd", functions.formats(section)):
        a, b = x.astype(kind.real), y.astype(kind.real)
        with numpy.errstate(all="ignore"):
            want = {f: getattr(kind, f)(1 / (1 + a) if f in least else a) for f in FUNCTIONS}
            want.update((f, getattr(kind, f)(a, b)) for f in ("pow", "atan2", "hypot"))
        got = numpy.load(tmp_path / f"o-{k}.npy")
        for place, (name, array) in enumerate(want.items()):
            assert got[:, place].tobytes() == numpy.asarray(array, kind.real).tobytes(), (name, k)


RANDOM = HEAD + """INDEX(y, x); EXTENT(h, w); RANDOM; SCALAR(int, two, 2);
OUTPUT(uint32_t, bits); OUTPUT(double, u); OUTPUT(float, uf); OUTPUT(double, n); OUTPUT(float, nf);
OUTPUT(double, later); SUM(double, all); COUNT(inside);
static double one(int64_t k) { return k % 2 == 0 ? uniform(k) : normal(k); }
KERNEL {
    const int k = (int)(x % 4);
    const double z = normal(k);
    bits = random32(k + (x == 0 ? -1 : 0)); u = uniform(k); uf = uniformf(k); n = z; nf = normalf(k);
    double s = 0;
    for (int j = 0; j < two; j++) s = s + one(x + j);
    later = s; all = z; inside = uniform(0) * uniform(0) + uniform(1) * uniform(1) < 1;
}
"""


def test_random(run, tmp_path):
    """Section 22.10 of docs/exactness.md beside a second implementation, and beside plain formulas."""
    shape, seed = (5, 37), 0xFEDCBA9876543210
    names = "bits u uf n nf later".split()
    words = ["--shape", "5x37", *[w for o in names for w in ("--out", f"{o}=r-{o}.npy")], "--json"]
    done = results(run(RANDOM, *words, "--seed", seed, "--threads", 3, "--grain", 7))
    got = {o: numpy.load(tmp_path / f"r-{o}.npy").ravel() for o in names}
    contract = (ROOT / "docs" / "exactness.md").read_text()
    section = contract[contract.index("## 21. "):contract.index("## 22. ")]
    item = numpy.arange(185)
    x = item % shape[1]
    of, k = draws.of(section, seed, item), x % 4
    want = {"bits": of.random32(numpy.where(x == 0, 2**32 - 1, k)), "u": of.uniform(k), "uf": of.uniformf(k),
            "n": of.normal(k), "nf": of.normalf(k)}
    want["later"] = sum((numpy.where((x + j) % 2 == 0, of.uniform(x + j), of.normal(x + j)) for j in range(2)),
                        numpy.zeros(185))
    for name, array in want.items():
        assert got[name].tobytes() == array.tobytes(), name
    u, q, f = of.parts(k)
    turn = numpy.where(k % 2 == 0, numpy.cos, numpy.sin)
    angle = (q + f) * (numpy.pi / 2)
    plain = numpy.sqrt(-2 * numpy.log(u)) * [t(a) for t, a in zip(turn, angle)]
    assert abs(plain - got["n"]).max() < 1e-14 and 0.8 < got["n"].std() < 1.2 and abs(got["nf"].std() - 1) < 0.2
    assert float(done["all"]["value"]) == math.fsum(got["n"])
    assert int(done["inside"]["value"]) == (of.uniform(0 * k)**2 + of.uniform(0 * k + 1)**2 < 1).sum()
    run(RANDOM, *words, "--seed", seed, "--iterations", 3, "--series", "all=all.npy")
    later = draws.of(section, seed, item, 2)
    assert (numpy.load(tmp_path / "r-n.npy").ravel() == later.normal(k)).all()
    assert numpy.load(tmp_path / "all.npy").tolist() == [math.fsum(d.normal(k)) for d in (
        of, draws.of(section, seed, item, 1), later)]
    # The recipe keeps the seed; without one it is 1.
    assert json.loads((tmp_path / "r-bits.recipe.json").read_text())["seed"] == seed
    run(None, "r-bits.recipe.json", command=["replay"])
    run(RANDOM, *words)
    assert (numpy.load(tmp_path / "r-u.npy").ravel() == draws.of(section, 1, item).uniform(k)).all()
    recipe = json.loads((tmp_path / "r-bits.recipe.json").read_text())
    assert recipe.pop("seed") == 1
    (tmp_path / "r.json").write_text(json.dumps(recipe))
    assert "the seed is missing" in run(None, "r.json", command=["replay"], status=1).stderr
    (tmp_path / "r.json").write_text(json.dumps({**recipe, "seed": 2}))
    run(None, "r.json", command=["replay"], status=3)
    done = run("INDEX(i);\nCOUNT(n);\nKERNEL { n = 1; }\n", "--shape", 3, "--seed", 2, status=2)
    assert "does not declare RANDOM" in done.stderr and "leave --seed out" in done.stderr


SCAN = HEAD + """INDEX(y, x); INPUT(double, a); INPUT(int64_t, n); SCAN(double, s); SCAN(float, f);
SCAN(int64_t, c); OUTPUT(double, b);
KERNEL { s = a; f = (float)a; b = a; if (n != 7) c = n; }
"""


EXTREMES = HEAD + """INDEX(i); INPUT(float, a); INPUT(int8_t, n); SCALAR(int, turns, 1);
MIN(float, low, 9); MAX(float, high, 9); MAX(int8_t, most, 9); ARGMIN(float, first, 9); ARGMAX(int8_t, place, 9);
SCAN(int64_t, before, exclusive); SCAN(double, sums, inclusive);
KERNEL {
    int k = (int)(i % 10);
    for (int t = 0; t < turns; t++) k = k * 3 % 10;
    before = n; sums = a;
    if (k != 4 && k != 9) { low[k] = a; high[k] = a; most[k] = n; first[k] = a; place[k] = n; }
}
"""


def test_extremes_of_bins(run, tmp_path):
    """Each bin has what the total over its items would be; one without an item has the end of the type."""
    draw = numpy.random.default_rng(3)
    a, n = draw.integers(-30, 30, 20_000).astype("float32") * 0, draw.integers(-128, 128, 20_000).astype("int8")
    a += draw.integers(-30, 30, len(a)).astype("float32")
    a[a == 0] *= draw.choice(numpy.float32([1, -1]), (a == 0).sum())
    numpy.save(tmp_path / "a.npy", a)
    numpy.save(tmp_path / "n.npy", n)
    names, files = ["low", "high", "most", "first", "place", "before", "sums"], set()
    words = ["--in", "a=a.npy", "--in", "n=n.npy", *[w for o in names for w in ("--out", f"{o}=x-{o}.npy")]]
    for more, lanes in ((["--threads", 1], "never"), (["--threads", 3, "--grain", 64], "always")):
        run(EXTREMES, *words, *more, env={"QUERN_KERNEL_LANES": lanes})
        files.add(tuple((tmp_path / f"x-{o}.npy").read_bytes() for o in names))
    assert len(files) == 1
    got = {o: numpy.load(tmp_path / f"x-{o}.npy") for o in names}
    for k in range(9):
        items = numpy.flatnonzero(numpy.arange(len(a)) * 3 % 10 == k)
        want = [numpy.inf, -numpy.inf, -128, -1, -1]
        if k != 4:
            want = [a[items].min(), a[items].max(), n[items].max(), items[a[items].argmin()], items[n[items].argmax()]]
        assert [got[o][k] for o in names[:5]] == want, k
    assert (got["before"] == n.cumsum(dtype="int64") - n).all() and (got["sums"] == a.cumsum(dtype="float64")).all()
    assert got["first"].dtype == got["place"].dtype == "int64" and got["most"].dtype == "int8"
    run(None, "x-low.recipe.json", command=["replay"])
    assert 'the bin of "low" is out of range (bins: 9)' in run(
        EXTREMES.replace(" && k != 9", ""), *words, status=1).stderr


def test_long_chains(run, tmp_path):
    """As many "else if" as are allowed, and one more; a compiler gets them without brackets in brackets."""
    x = numpy.arange(1100, dtype="float32")
    numpy.save(tmp_path / "x.npy", x)
    for links in (1000, 1001):
        chain = "\nelse ".join(f"if (x < {k}) y = {k % 7};" for k in range(links + 1))
        done = run(f"INDEX(i); INPUT(float, x); OUTPUT(float, y);\nKERNEL {{ {chain} else y = x; }}", "--in", "x=x.npy",
                   "--out", "y=y.npy", status=links - 1000)
    assert 'more than 1000 "else if"' in done.stderr and "line 1003, column 6" in done.stderr
    y = numpy.load(tmp_path / "y.npy")
    assert (y == numpy.where(x < 1000, (x + 1) % 7, x)).all()


COLOURS = HEAD + """INDEX(y, x); EXTENT(h, w); INPUT(float, f); SCALAR(int, turns, 3); SCALAR(int, at, 0);
OUTPUT(uint8_t, rgb, 3); OUTPUT(float, v, 4); OUTPUT(double, one); static const int FOUR = 4; OUTPUT(int8_t, last, FOUR);
KERNEL {
    float a = f;
    for (int t = 0; t < turns; t++) { a = a * 0.5f + 1; if (a > 1.7f) break; }
    rgb[0] = (uint8_t)(x * 255 / w); rgb[1] = (uint8_t)(y * 255 / h);
    if (a > 1.5f) rgb[2] = (uint8_t)(a * 100);
    for (int c = 0; c < 3; c++) v[c] = a * c;
    if (f > 0) v[at + (int)(x % 4)] = f;
    last[3] = -5;
    one = a;
}
"""


def test_components(run, tmp_path):
    """An item has several numbers, which its last assignment of each fixes; three make a picture."""
    shape = (41, 37)
    f = numpy.random.default_rng(1).standard_normal(shape).astype("float32")
    numpy.save(tmp_path / "f.npy", f)
    names, files = ["v", "one", "last"], set()
    words = ["--in", "f=f.npy", *[w for o in names for w in ("--out", f"{o}=c-{o}.npy")]]
    for more, lanes in ((["--threads", 1], "never"), (["--threads", 3, "--grain", 64], "always")):
        run(COLOURS, *words, "--out", "rgb=c-rgb.npy", *more, env={"QUERN_KERNEL_LANES": lanes})
        files.add(tuple((tmp_path / f"c-{o}.npy").read_bytes() for o in ["rgb", *names]))
    assert len(files) == 1
    got = {o: numpy.load(tmp_path / f"c-{o}.npy") for o in ["rgb", *names]}
    a, left = f.copy(), numpy.zeros(shape, bool)
    for _ in range(3):
        a = numpy.where(left, a, a * numpy.float32(0.5) + numpy.float32(1))
        left |= a > numpy.float32(1.7)
    y, x = numpy.indices(shape)
    blue = numpy.where(a > 1.5, (a * numpy.float32(100)).astype("int64").clip(0, 255), 0)
    assert got["rgb"].dtype == "uint8" and (got["rgb"] == numpy.stack([x * 255 // 37, y * 255 // 41, blue], -1)).all()
    v = numpy.stack([a * 0, a, a * 2, a * 0], -1)
    v[f > 0, x[f > 0] % 4] = f[f > 0]
    assert (got["v"] == v).all() and (got["one"] == a).all() and got["last"].tolist() == [[[0, 0, 0, -5]] * 37] * 41
    run(COLOURS, *words, "--out", "rgb=c.PNG")
    image = pytest.importorskip("PIL.Image")
    assert (numpy.asarray(image.open(tmp_path / "c.PNG")) == got["rgb"]).all()
    run(None, "c-v.recipe.json", command=["replay"])
    for lanes in ("never", "always"):
        done = run(COLOURS, *words, "--out", "rgb=c.png", "--set", "at=1", status=1, env={"QUERN_KERNEL_LANES": lanes})
        first = numpy.argwhere((f > 0) & (x % 4 == 3))[0]
        assert 'a component of "v" is out of range (components: 4)' in done.stderr
        assert f"item ({first[0]}, {first[1]})" in done.stderr


BINS = HEAD + """INDEX(i); static const int PARTS = 5; INPUT(int32_t, n); INPUT(double, a);
SUM(double, s, 5); SUM(float, f, PARTS); SUM(int64_t, c, PARTS); SUM(uint64_t, u, 3); COUNT(h, 1000); SUM(double, all);
KERNEL {
    if (n % 7 != 3) { s[n %% 5] = a; f[n %% 5] = 9; f[n %% PARTS] = (float)a; }
    c[4 - n %% 5] = (i % 2 ? -n : n) * 10000000000000ll; all = a;
    u[i %% 2] = 1ull << 63; h[n + %d] = a > 0;
}
""".replace("% 7", "%% 7").replace("i % 2 ?", "i %% 2 ?")


def test_bins(run, tmp_path):
    """Arrays of sums: each bin is what the sum over its items would be."""
    draw = numpy.random.default_rng(8)
    n = draw.integers(0, 990, 20_000).astype("int32")
    a = draw.standard_normal(20_000) * 10.0**draw.integers(-20, 20, 20_000)
    numpy.save(tmp_path / "n.npy", n)
    numpy.save(tmp_path / "a.npy", a)
    words = ["--in", "n=n.npy", "--in", "a=a.npy", *[w for o in "sfch" for w in ("--out", f"{o}=b-{o}.npy")]]
    text = BINS.replace("u[i %% 2] = 1ull << 63; ", "if (i < 2) u[i] = 1ull << 63; ")
    files = set()
    for more in (["--threads", 1], ["--threads", 3, "--grain", 64]):
        done = results(run(text % 0, *words, "--out", "u=b-u.npy", "--json", *more))
        files.add(tuple((tmp_path / f"b-{o}.npy").read_bytes() for o in "sfchu"))
    assert len(files) == 1 and done["s"]["file"] == "b-s.npy" and len(done["s"]["digest"]) == 64
    got = {o: numpy.load(tmp_path / f"b-{o}.npy") for o in "sfchu"}
    some = n % 7 != 3
    assert got["s"].dtype == "float64" and got["f"].dtype == "float32" and got["c"].dtype == "int64"
    for k in range(5):
        at = some & (n % 5 == k)
        assert got["s"][k] == math.fsum(a[at])
        assert got["f"][k] == nearest_float(a.astype("float32")[at])
        assert got["c"][4 - k] == (numpy.where(numpy.arange(20_000) % 2, -n, n).astype("int64") * 10**13)[n % 5 == k].sum()
    assert got["h"].dtype == "uint64" and (got["h"] == numpy.bincount(n[a > 0], minlength=1000)).all()
    assert got["u"].tolist() == [2**63, 2**63, 0]
    run(None, "b-s.recipe.json", command=["replay"])
    recipe = json.loads((tmp_path / "b-s.recipe.json").read_text())
    recipe["results"]["h"]["digest"] = "0" * 64
    (tmp_path / "changed.json").write_text(json.dumps(recipe))
    assert '"h" is 000' in run(None, "changed.json", command=["replay"], status=3).stderr
    for changed, more, status, says in [
            (text % 0, [], 2, "add --out u=FILE.npy"),
            (text % 0, ["--in", "u=n.npy"], 2, "write --out"),
            (text % 0, ["--out", "u=u.npy", "--series", "h=h.npy"], 2, "that is one number"),
            (text % 0, ["--out", "u=u.npy", "--out", "all=all.npy"], 2, "it has: n, a, s, f, c, u, h"),
            (BINS % 0, ["--out", "u=u.npy"], 1, 'the sum "u" is beyond the range of uint64_t'),
            (text % (1000 - n[:5000].max()), ["--out", "u=u.npy"], 1,
             f'the bin of "h" is out of range (bins: 1000)\n  at item {n[:5000].argmax()}\n')]:
        assert says in run(changed, *words, *more, status=status).stderr
    assert not (tmp_path / "u.npy").exists()


def nearest_float(values):
    units = sum(int(x * 2.0**200) for x in values.tolist())
    return nearest(units, 24) / 2**200


def nearest(integer, bits):
    """The nearest integer with so many leading bits, ties to even."""
    drop = max(abs(integer).bit_length() - bits, 0)
    kept, rest = divmod(abs(integer), 1 << drop)
    kept += 2 * rest > 1 << drop or (2 * rest == 1 << drop and kept % 2)
    return (kept << drop) * (1 if integer > 0 else -1)


def test_scan(run, tmp_path):
    """Prefix sums over all items, as Python's integers have them."""
    draw = numpy.random.default_rng(6)
    a = draw.standard_normal((3, 12_000)) * 10.0**draw.integers(-9, 9, (3, 12_000))
    a[1] = -a[0][::-1]
    n = draw.integers(-10, 10, a.shape)
    numpy.save(tmp_path / "a.npy", a)
    numpy.save(tmp_path / "n.npy", n)
    words = ["--in", "a=a.npy", "--in", "n=n.npy", *[w for o in "sfcb" for w in ("--out", f"{o}=s-{o}.npy")]]
    files = set()
    for threads in (1, 3):
        run(SCAN, *words, "--threads", threads, "--grain", 100)
        files.add(tuple((tmp_path / f"s-{o}.npy").read_bytes() for o in "sfcb"))
    assert len(files) == 1
    got = {o: numpy.load(tmp_path / f"s-{o}.npy") for o in "sfcb"}
    for name, values in (("s", a), ("f", a.astype("float32"))):
        units = [int(x * 2.0**130) for x in values.ravel().tolist()]  # all are multiples of 2^-130
        assert all(u == x * 2.0**130 for u, x in zip(units, values.ravel().tolist()))
        total, want = 0, []
        for unit in units:
            total += unit
            want.append(nearest(total, 53 if name == "s" else 24) / 2**130)
        assert got[name].ravel().tolist() == want, name
    assert (got["c"].ravel() == numpy.cumsum(numpy.where(n == 7, 0, n))).all()
    assert (got["b"] == a).all()
    run(None, "s-s.recipe.json", command=["replay"])
    a[2, 5] = numpy.inf
    numpy.save(tmp_path / "a.npy", a)
    done = run(SCAN, *words, status=1)
    assert 'the value for the sum "s" is infinite' in done.stderr and "item (2, 5)" in done.stderr
    a[2, 4:6] = 1.7e308
    numpy.save(tmp_path / "a.npy", a)
    done = run(SCAN.replace("SCAN(float", "OUTPUT(float"), *words, status=1)
    assert '"s" up to this item is beyond the range of double' in done.stderr and "item (2, 5)" in done.stderr


def test_black_scholes(run, tmp_path):
    """The example beside the C library's erf, log and exp, in double."""
    draw = numpy.random.default_rng(4)
    price, strike, years = draw.uniform(5, 30, 500), draw.uniform(1, 100, 500), draw.uniform(0.25, 10, 500)
    words = []
    for name, array in (("price", price), ("strike", strike), ("years", years)):
        numpy.save(tmp_path / f"{name}.npy", array)
        words += ["--in", f"{name}={name}.npy"]
    text = (ROOT / "examples" / "kernels" / "black_scholes.c").read_text()
    got = results(run(text, *words, "--out", "call=call.npy", "--out", "put=put.npy", "--set", "sigma=0.2",
                      "--json"))
    normal = numpy.vectorize(lambda v: 0.5 * (1 + math.erf(v / math.sqrt(2))))
    spread = 0.2 * numpy.sqrt(years)
    up = (numpy.log(price / strike) + (0.02 + 0.02) * years) / spread
    now = strike * numpy.exp(-0.02 * years)
    call = price * normal(up) - now * normal(up - spread)
    have = numpy.load(tmp_path / "call.npy")
    assert abs(have - call).max() < 1e-12 * 30 and have.max() > 1
    assert abs(numpy.load(tmp_path / "put.npy") - (call + now - price)).max() < 1e-12 * 100
    assert float(got["value"]["value"]) == math.fsum(have)


def test_refused_inputs(run, tmp_path):
    numpy.save(tmp_path / "a.npy", numpy.zeros((3, 4)))
    numpy.save(tmp_path / "f.npy", numpy.asfortranarray(numpy.zeros((3, 4), "float32")))
    numpy.save(tmp_path / "s.npy", numpy.zeros((3, 5), "float32"))
    numpy.save(tmp_path / "g.npy", numpy.zeros((3, 4), "float32"))
    numpy.save(tmp_path / "c.npy", numpy.zeros((3, 4), "complex64"))
    text = HEAD + "INDEX(y, x);\nINPUT(float, a);\nINPUT(float, b);\nOUTPUT(float, o);\nKERNEL { o = a + b; }\n"
    both = ["--in", "a=g.npy", "--in", "b=g.npy"]
    for words, status, says in [
            (["--in", "a=a.npy"], 1, "\"a\" of the kernel is float32, and the file holds float64"),
            (["--in", "a=f.npy"], 1, "numpy.ascontiguousarray"),
            (["--in", "a=c.npy"], 1, "complex"),
            (["--in", "a=none.npy"], 1, "none.npy"),
            (["--in", "a=g.npy"], 2, "there is no array for \"b\""),
            (["--in", "z=g.npy"], 2, "it has: a, b"),
            (["--in", "a"], 2, "is not NAME=VALUE"),
            (["--in", "a=g.npy", "--in", "b=s.npy", "--out", "o=o.npy"], 2, "has the shape 3x4, and \"b\" 3x5"),
            ([*both, "--out", "o=g.npy"], 2, "--out o"),
            ([*both, "--out", "o=k.c"], 2, "--kernel"),
            ([*both, "--out", "o=no/o.npy"], 1, "no/o.npy"),
            ([*both, "--in", "o=g.npy"], 2, "write --out"),
            ([*both, "--set", "a=1"], 2, "no scalar"),
            ([*both, "--out", "o=o.npy", "--shape", "3x5"], 2, "the given shape"),
            ([*both, "--out", "o=o.npy", "--shape", "3y5"], 2, "--shape cannot be"),
            ([*both, "--out", "o=o.npy", "--devices", "gpu"], 2, "no kind of device \"gpu\""),
            ([*both], 2, "add --out o=FILE.npy")]:
        done = run(text, *words, status=status)
        assert says in done.stderr, (words, done.stderr)
    assert not (tmp_path / "o.npy").exists() and not list(tmp_path.glob("*.json"))


def test_refused_texts(run, tmp_path):
    done = run("INDEX(i);\nOUTPUT(float, o);\nKERNEL {\n    o = lgamma(i);\n}\n", status=1)
    assert "lgamma" in done.stderr and "k.c, line 4, column 9" in done.stderr
    (tmp_path / "k.c").write_bytes(b"INDEX(i); // \xff\n")
    assert "UTF-8" in run(None, status=1).stderr


def test_interrupted(quern, tmp_path):
    """Ctrl-C while the compiler runs leaves no file and no folder."""
    slow, temporary = tmp_path / "slow-cc", tmp_path / "temporary"
    slow.write_text(f'#!/bin/sh\n: > "$TMPDIR/part.s"\n: > "{tmp_path}/started"\nexec sleep 1000\n')
    slow.chmod(0o755)
    temporary.mkdir()
    (tmp_path / "k.c").write_text("INDEX(i);\nCOUNT(n);\nKERNEL { n = 1; }\n")
    job = subprocess.Popen([quern, "run", "--kernel", "k.c", "--shape", "3"], cwd=tmp_path, start_new_session=True,
                           env={**os.environ, "CC": str(slow), "TMPDIR": str(temporary),
                                "QUERN_CACHE": str(tmp_path / "cache")})
    while not (tmp_path / "started").exists() and job.poll() is None:
        time.sleep(0.01)
    os.killpg(job.pid, signal.SIGINT)
    assert job.wait(60) != 0
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("kind", ["float", "double"])
def test_nan_of_a_function(run, tmp_path, kind):
    """What a function gives is looked at by its bits: NaN ends a run, infinity ends one in a sum only."""
    words = ["--in", "x=x.npy"]
    for sign in (1, -1):
        for value in (numpy.inf, numpy.nan):
            x = numpy.full(70, -2, {"float": "f4", "double": "f8"}[kind])
            x[40:] = numpy.copysign(value, sign)
            numpy.save(tmp_path / "x.npy", x)
            bad = numpy.isnan(value)
            output = f"INDEX(i);\nINPUT({kind}, x);\nOUTPUT({kind}, o);\nKERNEL {{ o = cbrt(x); }}\n"
            done = run(output, *words, "--out", "o=o.npy", status=int(bad))
            assert not bad or ("not a number (NaN)" in done.stderr and "item 40\n" in done.stderr)
            sums = f"INDEX(i);\nINPUT({kind}, x);\nSUM({kind}, s);\nKERNEL {{ s = cbrt(x); }}\n"
            assert "item 40\n" in run(sums, *words, status=1).stderr


def test_compilers(run, tmp_path, quern, cache):
    """No compiler, one that fails, one that computes wrongly; a failed item leaves no file."""
    text = HEAD + "INDEX(i);\nINPUT(float, x);\nOUTPUT(float, o);\nKERNEL { o = x - 4 + 4; }\n"
    numpy.save(tmp_path / "x.npy", numpy.array([1, numpy.nan, numpy.nan], "float32"))
    words = ["--in", "x=x.npy", "--out", "o=o.npy"]
    assert "CC names" in run(text, *words, status=1, env={"CC": "no-such-cc"}).stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "install gcc or clang" in run(text, *words, status=1, env={"PATH": str(empty), "CC": ""}).stderr
    fast = tmp_path / "fast-cc"
    fast.write_text('#!/bin/sh\nexec cc "$@" -ff' 'ast-math\n')
    fast.chmod(0o755)
    assert "gives wrong results" in run(text, *words, status=1, env={"CC": str(fast)}).stderr
    for compiler in ("false", "true"):
        assert "did not compile" in run(text, *words, status=1, env={"CC": compiler}).stderr
    other = tmp_path / "other-cc"
    other.write_text('#!/bin/sh\nfor a; do [ "$before" = -o ] && seq 999 > "$a"; before=$a; done; exit 0\n')
    other.chmod(0o755)
    done = run(text, *words, status=1, env={"CC": str(other)})
    assert "cannot be loaded: " in done.stderr and "ELF" in done.stderr
    assert "defines a keyword of C" in run(text, *words, status=1, env={"CC": "cc -Dif=while"}).stderr
    done = run(text, *words, status=1, env={"CC": "cc -fsingle-precision-constant"})  # of GCC only
    assert "gives wrong results" in done.stderr or "did not compile" in done.stderr
    done = run(text, *words, status=1)
    assert "not a number (NaN)" in done.stderr and "item 1\n" in done.stderr
    assert not (tmp_path / "o.npy").exists() and not (tmp_path / "o.recipe.json").exists()
    # What is damaged in the cache is compiled again.
    kept = list(cache.glob("*.kernel"))
    assert kept
    for file in kept:
        file.write_bytes(file.read_bytes()[:-100])
    numpy.save(tmp_path / "x.npy", numpy.ones(3, "float32"))
    assert not json.loads(run(text, *words, "--json").stdout)["cached"]
    assert json.loads(run(text, *words, "--json").stdout)["cached"]

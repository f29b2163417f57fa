"""Kernels of users that run many times: NEXT and ITERATION, compared with loops of NumPy."""

import json
import math
import shutil

import numpy
import pytest

from builds import ROOT
from test_kernel import HEAD, cache, quick, results, run  # noqa: F401: fixtures

MODES = {"zero": "constant", "nearest": "edge", "wrap": "wrap"}


def star(a, mode):
    """The sum of an array's neighbours in all directions, in the order of the kernels here."""
    wide = numpy.pad(a, 1, mode=MODES[mode])
    total = None
    for d in range(a.ndim):
        for offset in (0, 2):
            at = tuple(slice(offset, offset + n) if k == d else slice(1, 1 + n) for k, n in enumerate(a.shape))
            total = wide[at] if total is None else total + wide[at]
    return total


def star_text(dimensions):
    places = [["0"] * dimensions for _ in range(2 * dimensions)]
    for d in range(dimensions):
        places[2 * d][d], places[2 * d + 1][d] = "-1", "1"
    return " + ".join(f"u({', '.join(p)})" for p in places)


@pytest.mark.parametrize("names, shape", [("x", (301,)), ("y, x", (23, 70)), ("z, y, x", (9, 11, 40))])
def test_stencils(run, tmp_path, names, shape):  # noqa: F811
    """Each border in one to three dimensions. Without a series several iterations are computed at once."""
    start = numpy.random.default_rng(1).uniform(-1, 1, shape).astype("float32")
    numpy.save(tmp_path / "u.npy", start)
    before = (tmp_path / "u.npy").read_bytes()
    for mode, count in (("zero", 6), ("nearest", 55), ("wrap", 90)):
        text = HEAD + (f"INDEX({names});\nHALO(float, u, 1, {mode});\nOUTPUT(float, v);\nSUM(double, all);\n"
                       f"NEXT(v, u);\nKERNEL {{ v = 0.5f * u({', '.join('0' * len(shape))}) + "
                       f"0.125f * ({star_text(len(shape))}); all = u({', '.join('0' * len(shape))}); }}\n")
        got = results(run(text, "--in", "u=u.npy", "--out", "v=v.npy", "--json", "--iterations", count,
                          "--threads", 2, *(["--series", "all=s.npy", "--grain", 97] if count % 2 == 0 else [])))
        u, sums = start, []
        for _ in range(count):
            sums.append(math.fsum(u.ravel().tolist()))
            u = numpy.float32(0.5) * u + numpy.float32(0.125) * star(u, mode)
        assert numpy.load(tmp_path / "v.npy").tobytes() == u.tobytes(), mode
        if count % 2 == 0:
            series = numpy.load(tmp_path / "s.npy")
            assert series.dtype == "float64" and series.tolist() == sums
        assert float(got["all"]["value"]) == sums[-1]
        assert json.loads((tmp_path / "v.recipe.json").read_text()).get("iterations", 1) == count
        assert (tmp_path / "u.npy").read_bytes() == before
        run(None, "v.recipe.json", command=["replay"])


@pytest.mark.parametrize("kind, names, shape", [("float", "y, x", (400, 200)), ("double", "z, y, x", (40, 9, 33))])
def test_corners_beyond_the_border(run, tmp_path, kind, names, shape):  # noqa: F811
    """All neighbours of an item, of which those outside are zero. Of several iterations at once only
    some rows are in memory: what stands for a neighbour outside has to be one of them."""
    start = numpy.random.default_rng(2).uniform(-1, 1, shape).astype({"float": "f4", "double": "f8"}[kind])
    numpy.save(tmp_path / "u.npy", start)
    places = [tuple(k - 1 for k in at) for at in numpy.ndindex(*[3] * len(shape))]
    text = HEAD + (f"INDEX({names});\nHALO({kind}, u, 1, zero);\nOUTPUT({kind}, v);\nNEXT(v, u);\n"
                   f"KERNEL {{ v = ({kind})0.03125 * ({' + '.join(f'u{at}' for at in places)}); }}\n")
    run(text, "--in", "u=u.npy", "--out", "v=v.npy", "--iterations", 40, "--threads", 2, "--grain", 1000)
    u = start
    for _ in range(40):
        wide, total = numpy.pad(u, 1), None
        for at in places:
            item = wide[tuple(slice(1 + d, 1 + d + n) for d, n in zip(at, shape))]
            total = item if total is None else total + item
        u = u.dtype.type(0.03125) * total
    assert numpy.load(tmp_path / "v.npy").tobytes() == u.tobytes()


FIELDS = HEAD + """INDEX(i);
EXTENT(n);
ITERATION(t);
WHOLE(double, place, 1); INPUT(double, speed); INPUT(int16_t, steps); SCALAR(double, dt, 0.25);
OUTPUT(double, place_new); OUTPUT(double, speed_new); OUTPUT(int16_t, steps_new); OUTPUT(int64_t, seen);
NEXT(place_new, place); NEXT(steps_new, steps); NEXT(speed_new, speed);
COUNT(odd); MIN(int16_t, least); MAX(float, fast); SUM(int64_t, times);
KERNEL {
    double pull = 0;
    for (int k = 0; k < n; k++)
        pull += (place(k) - place(i)) / (1 + k);
    speed_new = speed + dt * pull;
    place_new = place(i) + dt * speed;
    steps_new = (int16_t)(steps - i);
    odd = (steps & 1) == 1; least = steps; fast = (float)speed; times = t;
    seen = t;
}
"""


def test_fields(run, tmp_path):  # noqa: F811
    """Three pairs, of a whole array and of inputs; ITERATION; series of all kinds of results."""
    n, count = 57, 9
    draw = numpy.random.default_rng(2)
    place, speed = draw.standard_normal(n), draw.standard_normal(n)
    steps = draw.integers(-9, 9, n).astype("int16")
    words = []
    for name, array in (("place", place), ("speed", speed), ("steps", steps)):
        numpy.save(tmp_path / f"{name}.npy", array)
        words += ["--in", f"{name}={name}.npy", "--out", f"{name}_new={name}_new.npy"]
    for name in ("odd", "least", "fast", "times"):
        words += ["--series", f"{name}=s-{name}.npy"]
    got = results(run(FIELDS, *words, "--out", "seen=seen.npy", "--iterations", count, "--json"))
    want = {"odd": [], "least": [], "fast": [], "times": []}
    for t in range(count):
        want["odd"].append(int((steps & 1).sum()))
        want["least"].append(int(steps.min()))
        want["fast"].append(float(speed.astype("float32").max()))
        want["times"].append(n * t)
        pull = numpy.zeros(n)
        for k in range(n):
            pull = pull + (place[k] - place) / (1 + k)
        place, speed, steps = (place + 0.25 * speed, speed + 0.25 * pull, steps - numpy.arange(n).astype("int16"))
    for name, array in (("place", place), ("speed", speed), ("steps", steps)):
        assert numpy.load(tmp_path / f"{name}_new.npy").tobytes() == array.tobytes(), name
    assert (numpy.load(tmp_path / "seen.npy") == count - 1).all()
    for name, dtype in (("odd", "uint64"), ("least", "int64"), ("fast", "float64"), ("times", "int64")):
        series = numpy.load(tmp_path / f"s-{name}.npy")
        assert series.dtype == dtype and series.tolist() == want[name], name
        assert numpy.float32(got[name]["value"]) == numpy.float32(want[name][-1])
    recipe = json.loads((tmp_path / "place_new.recipe.json").read_text())
    assert recipe["iterations"] == count and set(recipe["series"]) == set(want)
    run(None, "place_new.recipe.json", command=["replay"])
    recipe["series"]["odd"]["digest"] = "0" * 64
    (tmp_path / "changed.json").write_text(json.dumps(recipe))
    assert '"odd" is of another series' in run(None, "changed.json", command=["replay"], status=3).stderr
    recipe["iterations"] = 0
    (tmp_path / "changed.json").write_text(json.dumps(recipe))
    assert "number of iterations" in run(None, "changed.json", command=["replay"], status=1).stderr


def test_example(run, tmp_path):  # noqa: F811
    text = (ROOT / "examples" / "kernels" / "heat.c").read_text()
    assert f"```c\n{text}```" in (ROOT / "docs" / "kernels.md").read_text()
    u = numpy.zeros((12, 20), "float32")
    u[3:6, 4:9] = 100
    numpy.save(tmp_path / "u.npy", u)
    done = run(text, "--in", "u=u.npy", "--out", "u_new=end.npy", "--iterations", 20,
               "--series", "hottest=hottest.npy")
    assert "20 iterations of 240 items" in done.stdout and "all in hottest.npy" in done.stdout
    hottest = []
    for _ in range(20):
        hottest.append(u.max())
        u = u + numpy.float32(0.2) * (star(u, "nearest") - 4 * u)
    assert numpy.load(tmp_path / "end.npy").tobytes() == u.tobytes()
    assert numpy.load(tmp_path / "hottest.npy").tolist() == [float(v) for v in hottest]
    # With vectors, by each compiler, several iterations at once.
    for compiler in ("cc", *filter(shutil.which, ["clang"])):
        run(text, "--in", "u=u.npy", "--out", "u_new=end.npy", "--iterations", 20, env={"CC": compiler})
        assert numpy.load(tmp_path / "end.npy").tobytes() == u.tobytes(), compiler


PAIR = "INDEX(y, x);\nINPUT(float, a);\nWHOLE(float, w, 1);\nOUTPUT(float, o);\nOUTPUT(float, p);\n"


@pytest.mark.parametrize("text, says, place", [
    ("NEXT(o, b);", '"b" is not declared', "line 6, column 9"),
    ("NEXT(a, o);", '"a" is not an OUTPUT', "column 6"),
    ("NEXT(o, p);", '"p" is not an array that is read', "column 9"),
    ("NEXT(o, w);", '"w" has other dimensions', "column 9"),
    ("NEXT(o, a); NEXT(p, a);", '"a" is in two NEXT', "column 21"),
    ("INPUT(float, b); NEXT(o, a); NEXT(o, b);", '"o" is in two NEXT', "column 35"),
    ("INPUT(double, b); NEXT(o, b);", '"o" is float, and "b" is double', "column 27"),
    ("NEXT(o);", '"," is missing', "column 7"),
    ("ITERATION(t); ITERATION(s);", "a second ITERATION", "column 15"),
    ("ITERATION(a);", '"a" is declared already', "column 11"),
    ("SCALAR(float, NEXT);", '"NEXT" cannot be declared', "column 15"),
])
def test_refused_texts(run, text, says, place):  # noqa: F811
    done = run(PAIR + text + "\nKERNEL { o = a; p = a; }\n", status=1)
    assert says in done.stderr and place in done.stderr, done.stderr


def test_refused_runs(run, tmp_path):  # noqa: F811
    """Iterations without NEXT, shapes that differ, series that cannot be, an item that fails late."""
    numpy.save(tmp_path / "a.npy", numpy.ones((3, 4), "float32"))
    numpy.save(tmp_path / "b.npy", numpy.ones((3, 5), "float32"))
    plain = HEAD + "INDEX(y, x);\nINPUT(float, a);\nOUTPUT(float, o);\nMAX(float, m);\nKERNEL { o = a; %s }\n"
    words = ["--in", "a=a.npy", "--out", "o=o.npy"]
    for text, more, status, says in [
            (plain % "m = a;", ["--iterations", 7], 2, "the kernel has no NEXT, so all 7 iterations are the same"),
            (plain % "m = a;", ["--iterations", 0], 2, "--iterations"),
            (plain % "m = a;", ["--series", "o=s.npy"], 2, 'no SUM, MIN, MAX or COUNT "o"'),
            (plain % "m = a;", ["--series", "m=o.npy"], 2, "--series m"),
            (plain % "if (a > 2) m = a;", ["--series", "m=s.npy"], 1, "no item gave a number for \"m\"")]:
        assert says in run(text, *words, *more, status=status).stderr
    whole = HEAD + ("INDEX(y, x);\nINPUT(float, a);\nWHOLE(float, w, 2);\nOUTPUT(float, o);\nNEXT(o, w);\n"
                    "ITERATION(t);\nKERNEL { o = w(y, x) + 1 / (float)(4 - t - y) - 1 / (float)(4 - t - y); }\n")
    done = run(whole, *words, "--in", "w=b.npy", "--iterations", 3, status=2)
    assert '"w" 3x5' in done.stderr
    # An infinity for a sum counts in an iteration whose sums nobody asks for, too.
    numpy.save(tmp_path / "s.npy", numpy.full(300, 1e300))
    text = HEAD + ("INDEX(i);\nHALO(double, u, 1, wrap);\nOUTPUT(double, v);\nSUM(double, s);\nNEXT(v, u);\n"
                   "ITERATION(t);\nKERNEL { v = u(1); s = t == 70 && i == 123 ? u(0) * u(0) : 1.0; }\n")
    done = run(text, "--in", "u=s.npy", "--iterations", 90, status=1)
    assert 'the value for the sum "s" is infinite' in done.stderr and "item 123 of iteration 70\n" in done.stderr
    # A sum beyond the range counts where it is asked for.
    text = HEAD + ("INDEX(i);\nINPUT(double, u);\nOUTPUT(double, v);\nSUM(double, s);\nNEXT(v, u);\n"
                   "ITERATION(t);\nKERNEL { v = u; s = t == 2 ? 1.5e308 : 1.0; }\n")
    done = run(text, "--in", "u=s.npy", "--iterations", 9, "--json")
    assert float(results(done)["s"]["value"]) == 300
    done = run(text, "--in", "u=s.npy", "--iterations", 9, "--series", "s=o.npy", status=1)
    assert 'the sum "s" is beyond the range of double' in done.stderr and "iteration 2\n" in done.stderr
    (tmp_path / "s.npy").unlink()
    for iterations, threads in ((3, 1), (6, 2)):
        done = run(whole, *words, "--in", "w=a.npy", "--iterations", iterations, "--threads", threads, status=1)
        assert '"o" is not a number (NaN)' in done.stderr and "item (2, 0) of iteration 2\n" in done.stderr
    assert not list(tmp_path.glob("o*")) and not list(tmp_path.glob("s*"))
    run(whole, *words, "--in", "w=a.npy", "--iterations", 2)

"""quern.Kernel: kernels of users from Python, compared with NumPy and with the command."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys

import pytest

import python_package
from builds import ROOT

np = pytest.importorskip("numpy")

if not (shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")):
    pytest.skip("no C compiler", allow_module_level=True)


@pytest.fixture(scope="module")
def q(tmp_path_factory):
    python_package.folder()
    import quern

    folder = tmp_path_factory.mktemp("cc")
    quick = folder / "quick-cc"  # optimises little, which takes half of the time
    quick.write_text('#!/bin/sh\nexec cc "$@" -O1\n')
    quick.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CC", str(quick))
        patch.setenv("QUERN_CACHE", str(folder / "cache"))
        yield quern


TEXT = """INDEX(y, x); EXTENT(height, width);
INPUT(double, a); HALO(float, h, 1, wrap); WHOLE(int32_t, t, 1);
SCALAR(double, f, 0.5); SCALAR(float, g); SCALAR(int32_t, n, -3);
OUTPUT(double, o); OUTPUT(uint8_t, low);
SUM(double, all); SUM(int64_t, whole); SUM(float, part); MIN(double, least); MAX(int32_t, most); COUNT(some);
KERNEL {
    const double v = a * f + h(0, 1) * g + t(n + 3);
    o = v; low = (uint8_t)(x + y); all = v; whole = x; part = g; some = x == 2; least = a;
    if (a > 1e9) most = 1;
}
"""


@pytest.fixture(scope="module")
def k(q):
    return q.Kernel(text=TEXT)


def arrays(shape=(5, 7)):
    draw = np.random.default_rng(1)
    return {"a": draw.standard_normal(shape), "h": draw.standard_normal(shape).astype("float32"),
            "t": np.array([4, 5], "int32")}


def want(a, h, t, f=0.5, g=0.25, n=-3):
    return a * f + (np.roll(h, -1, 1) * np.float32(g)) + t[n + 3]


def test_results_are_those_of_numpy(k):
    given = arrays()
    r = k.run(**given, g=0.25)
    o = want(**given)
    assert r.o.dtype == np.float64 and r.low.dtype == np.uint8 and r["o"] is r.o
    assert (r.o == o).all() and (r.low == np.add.outer(range(5), range(7))).all()
    assert r.all == math.fsum(o.ravel()) and r.whole == 5 * 21 and r.some == 5
    assert type(r.whole) is int and type(r.part) is float and r.part == 35 * 0.25
    assert r.least == (given["a"].min(), np.unravel_index(given["a"].argmin(), (5, 7)), 35)
    assert given["a"][r.least.item] == r.least.value
    assert r.most.value is None and r.most.item is None and r.most.count == 0
    assert list(r) == "o low all whole part least most some".split() and len(r) == 8
    assert r.report.items == 35 and r.report.shape == (5, 7) and r.report.threads >= 1
    assert r.digests == {} and "o=<float64 5x7>" in repr(r) and "some=5" in repr(r)
    with pytest.raises(AttributeError, match="no result 'nothing'"):
        r.nothing


def test_inputs_are_used_where_they_are_or_converted(k):
    given = arrays()
    o = want(**given)
    same = [given, {**given, "a": np.asfortranarray(given["a"])}, {**given, "a": given["a"].astype(">f8")},
            {**given, "a": given["a"].tolist(), "h": given["h"].tolist(), "t": [4, 5]},
            {**given, "a": np.repeat(given["a"], 2, 1)[:, ::2]}, {**given, "t": np.array([4, 5], "uint8")},
            {**given, "t": (4, 5)}]
    for values in same:
        assert (k.run(**values, g=0.25).o == o).all()
    k.run(**given, g=0.25)
    assert all(k._held[name] is given[name] for name in given)  # no copy
    frozen = given["a"].copy()
    frozen.flags.writeable = False
    assert (k.run(given | {"a": frozen}, g=0.25).o == o).all()


def test_broadcasting(k):
    given = arrays()
    row, column = given["a"][:1], given["h"][:, :1]
    r = k.run(a=row, h=column, t=given["t"], g=0.25)
    assert (r.o == want(np.broadcast_to(row, (5, 7)), np.broadcast_to(column, (5, 7)), given["t"])).all()
    r = k.run(a=2, h=np.float32(3), t=given["t"], g=0.25, shape=(5, 7))
    assert (r.o == 2 * 0.5 + 3 * 0.25 + 4).all() and r.o.shape == (5, 7)


def test_scalars(q, k):
    given = arrays()
    assert (k.run(**given, g=np.float32(0.1), f=np.float64(1) / 3, n=np.int64(-2)).o
            == want(**given, g=0.1, f=1 / 3, n=-2)).all()
    assert (k.run(**given, g="0.25").o == want(**given)).all()  # f and n are the defaults again
    # Rounded to float32 once from the double, as NumPy does it: the shortest text of this double is
    # on the other side of the tie.
    x = float(np.float32(1)) + 2.0**-24 + 2.0**-50
    one = q.Kernel(text="INDEX(i); SCALAR(float, s); OUTPUT(float, o); KERNEL { o = s; }")
    assert one.run(s=x, shape=1).o[0] == np.float32(x)
    for value, says in ((None, "has no value"), ("many", "not a value of the scalar"), ([1], "is not a number"),
                        (float("nan"), "not a value of the scalar"), (1e300, "not a value of the scalar")):
        with pytest.raises(ValueError, match=says):
            k.run(**given, g=value)
    with pytest.raises(q.UsageError, match="whole number"):
        k.run(**given, g=1, n=2.5)


def test_text_in_place_of_a_path(q):
    with pytest.raises(q.UsageError, match="not the path") as failure:
        q.Kernel("INDEX(i);\nOUTPUT(double, v);\nKERNEL { v = 1; }\n")
    assert "text=" in failure.value.remedy


def test_outputs_are_filled_or_written(q, k, tmp_path):
    given = arrays()
    o = np.full((5, 7), 9.0)
    r = k.run(**given, g=0.25, o=o, low=tmp_path / "low.npy", recipe=tmp_path / "r.json")
    assert r.o is o and (o == want(**given)).all()
    assert (r.low == np.load(tmp_path / "low.npy")).all() and not r.low.flags.writeable
    assert set(r.digests) == {"o", "low"} and len(r.digests["o"]) == 64
    np.save(tmp_path / "a.npy", given["a"])
    r = k.run(a=str(tmp_path / "a.npy"), h=given["h"], t=given["t"], g=0.25)  # the shape is of the file
    assert (r.o == want(**given)).all() and r.o is not o
    r = k.run(**given, g=0.25, low=str(tmp_path / "low.png"), o=str(tmp_path / "o.raw"))
    assert r.low == str(tmp_path / "low.png") and (tmp_path / "low.png").read_bytes()[1:4] == b"PNG"
    assert r.o.shape == (5, 7) and (r.o == want(**given)).all()
    for wrong in (np.zeros((5, 7), "float32"), np.zeros((7, 5)).T, np.zeros((5, 8)), [0.0] * 7, 5):
        with pytest.raises(q.QuernError) as failure:
            k.run(**given, g=0.25, o=wrong)
        assert failure.value.remedy
    with pytest.raises(q.UsageError, match="overlaps"):
        k.run(**given, g=0.25, o=given["a"])
    frozen = np.zeros((5, 7))
    frozen.flags.writeable = False
    apart = np.zeros(8 * frozen.size + 3, "u1")[3:].view("f8").reshape(frozen.shape)
    with pytest.raises(q.InputError, match="float64, not aligned"):
        k.run(**given, g=0.25, o=apart)
    with pytest.raises(q.InputError, match="float64, read-only"):
        k.run(**given, g=0.25, o=frozen)
    memory = np.zeros(36)
    with pytest.raises(q.UsageError, match='"o" overlaps that of "low"'):
        k.run(**given, g=0.25, o=memory[:35].reshape(5, 7), low=memory[31:].view("uint8")[:35].reshape(5, 7))
    assert not frozen.any() and not memory.any()


def test_outputs_that_are_used_again(k):
    given = arrays()
    o, low = np.empty((5, 7)), np.full((5, 7), 255, "uint8")
    at = o.ctypes.data
    for f in (0.5, 2.0):
        r = k.run(**given, g=0.25, f=f, o=o, low=low)
        assert r.o is o and r.low is low and o.ctypes.data == at and (o == want(**given, f=f)).all()
    assert (k.run(**given, g=0.25).o is not o) and (o == want(**given, f=2.0)).all()  # not kept for later runs


def test_arrays_of_sums(q, tmp_path):
    k = q.Kernel(text="INDEX(i);\nINPUT(int32_t, n);\nCOUNT(h, 10);\nSUM(float, s, 10);\nSCAN(int64_t, c);\n"
                      "KERNEL { h[n] = 1; s[n] = i; c = n; }")
    n = np.array([3, 0, 3, 9], "int32")
    h = np.ones(10, "uint64")
    r = k.run(n=n, h=h, s=str(tmp_path / "s.raw"))
    assert r.h is h and h.tolist() == [1, 0, 0, 2, 0, 0, 0, 0, 0, 1]
    assert r.s.dtype == "float32" and r.s.tolist() == [1, 0, 0, 2, 0, 0, 0, 0, 0, 3]
    assert r.c.tolist() == [3, 3, 6, 15] and k.parts[1].bins == 10 and not k.parts[0].bins
    assert k.run(n=n).h.tolist() == h.tolist()
    k = q.Kernel(text="INDEX(i);\nINPUT(int32_t, n);\nMIN(double, low, 3);\nARGMAX(int32_t, at, 3);\n"
                      "SCAN(int64_t, c, exclusive);\nKERNEL { low[n % 3] = -n; at[n % 3] = n; c = n; }")
    r = k.run(n=n)
    assert r.low.tolist() == [-9, np.inf, np.inf] and r.at.tolist() == [3, -1, -1] and r.at.dtype == "int64"
    assert r.c.tolist() == [0, 3, 3, 6] and [p.use for p in k.parts] == ["input", "min", "argmax", "output"]
    k = q.Kernel(text="INDEX(i);\nINPUT(int32_t, n);\nOUTPUT(float, o, 3);\nKERNEL { o[1] = n; o[2] = 1; }")
    want, memory = [[0, a, 1] for a in n.tolist()], np.ones((4, 3), "float32")
    assert k.run(n=n).o.tolist() == want and k.parts[1].components == 3
    assert k.run(n=n, o=memory).o is memory and memory.tolist() == want
    assert k.run(n=n, o=tmp_path / "o.raw").o.tolist() == want
    assert k.run(n=n, o=tmp_path / "o.npy").o.tolist() == want
    with pytest.raises(q.QuernError, match="has 3 components"):
        k.run(n=n, o=np.ones((4, 4), "float32"))
    k = q.Kernel(text="INDEX(i); INPUT(int32_t, n); COUNT(h, 10); KERNEL { h[n] = 1; }")
    with pytest.raises(q.UsageError, match="has 10 bins"):
        k.run(n=n, h=np.ones(9, "uint64"))


def test_recipes(q, k, tmp_path, quern):
    """The command replays what Python computed, and Python what the command did."""
    given = arrays()
    words = []
    for name, array in given.items():
        np.save(tmp_path / f"{name}.npy", array)
        words += ["--in", f"{name}={name}.npy"]
    (tmp_path / "kernel.c").write_text(TEXT)
    subprocess.run([quern, "run", "--kernel", "kernel.c", *words, "--set", "g=0.25", "--out", "o=o.npy", "--out",
                    "low=low.npy", "--recipe", "theirs.json", "--quiet"], cwd=tmp_path, check=True)
    k.run(**given, g=0.25, recipe=tmp_path / "ours.json")
    theirs, ours = (json.loads((tmp_path / f"{who}.json").read_text()) for who in ("theirs", "ours"))
    assert theirs["results"] == ours["results"]
    files = {name: tmp_path / f"{name}.npy" for name in given}
    subprocess.run([quern, "replay", tmp_path / "ours.json", "--quiet",
                    *[w for name, path in files.items() for w in ("--in", f"{name}={path}")]], check=True)
    again = q.Kernel.from_recipe(tmp_path / "theirs.json")
    r = again.replay(**given, threads=1)
    assert r.some == 5 and r.digests["o"] == k.run(**given, g=0.25, recipe=tmp_path / "n").digests["o"]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "theirs.json").write_text((tmp_path / "theirs.json").read_text().replace(
        '"file": "', f'"file": "{tmp_path}/'))
    with pytest.raises(q.UsageError, match="not below the folder of the recipe.*|allow_path"):
        q.Kernel.from_recipe(tmp_path / "elsewhere" / "theirs.json").replay()
    for allowed in (tmp_path, [str(path) for path in files.values()]):
        assert q.Kernel.from_recipe(tmp_path / "elsewhere" / "theirs.json", allow_path=allowed).replay().some == 5
    with pytest.raises(q.MismatchError):
        again.replay(**{**given, "a": given["a"] + 1})
    changed = {**theirs, "results": {**theirs["results"], "some": "6"}}
    (tmp_path / "changed.json").write_text(json.dumps(changed))
    with pytest.raises(q.DiffersError, match='"some" is 6'):
        q.Kernel.from_recipe(tmp_path / "changed.json").replay(**given)
    with pytest.raises(q.UsageError, match="is not an input"):
        again.replay(g=1)
    with pytest.raises(q.UsageError, match="not opened from a recipe"):
        k.replay()


def test_iterations(q, tmp_path):
    """Each iteration reads what the one before has written."""
    k = q.Kernel(text="INDEX(i); HALO(double, u, 1, wrap); OUTPUT(double, v); NEXT(v, u); SUM(double, all);\n"
                 "MAX(float, top); KERNEL { const double w = 0.5 * (u(-1) + u(1)); v = w; all = w; top = (float)w; }")
    u = np.random.default_rng(2).standard_normal(50)
    r = k.run(u=u, iterations=7, series={"all": None, "top": tmp_path / "top.npy"})
    want, sums = u, []
    for _ in range(7):
        want = 0.5 * (np.roll(want, 1) + np.roll(want, -1))
        sums.append(math.fsum(want))
    assert (r.v == want).all() and r.all == sums[-1] and r.report.iterations == 7
    assert r.series["all"].tolist() == sums and list(r.series) == ["all", "top"]
    assert (r.series["top"] == np.load(tmp_path / "top.npy")).all() and r.series["top"][-1] == r.top.value
    (tmp_path / "top.npy").unlink()
    assert k.run(u=u).series == {} and not (tmp_path / "top.npy").exists()
    assert [p.next for p in k.parts] == ["v", "u", None, None]
    with pytest.raises(q.UsageError, match="v"):
        k.run(u=u, series="v")
    with pytest.raises(ValueError, match="cannot run 0 times"):
        k.run(u=u, iterations=0)
    with pytest.raises(q.UsageError, match="runs once"):
        k.run(u=u, checkpoint=tmp_path / "state", checkpoint_every=5)
    assert (k.run(u=u, checkpoint=tmp_path / "state").v == k.run(u=u).v).all()


def test_seeds(q, k):
    random = q.Kernel(text="INDEX(i); RANDOM; OUTPUT(double, u); KERNEL { u = uniform(0); }")
    first = random.run(shape=9).u
    assert (random.run(shape=9, seed=2**64 - 1).u != first).all()
    assert (random.run(shape=9).u == first).all() and (random.run(shape=9, seed=1).u == first).all()
    for seed in (-1, 2**64, 1.5, "1"):
        with pytest.raises(q.UsageError, match="the seed cannot be"):
            random.run(shape=9, seed=seed)
    with pytest.raises(q.UsageError, match="RANDOM"):
        k.run(**arrays(), g=1, seed=3)


def test_progress(q):
    """Callbacks hear of a run, and an exception of theirs ends it."""
    k, told = q.Kernel(text="INDEX(i); COUNT(n); KERNEL { n = 1; }"), []

    def stop(progress):
        told.append(progress)
        raise ZeroDivisionError("enough")
    with pytest.raises(ZeroDivisionError, match="enough"):
        k.run(shape=2**48, on_progress=stop, on_note=print)
    assert told[0].items == 2**48 and 0 <= told[0].done < 2**48 and told[0].seconds > 0
    assert k.run(shape=5).n == 5
    # Each iteration is much shorter than the time between two calls.
    waves = q.Kernel(text="INDEX(i); INPUT(double, u); OUTPUT(double, v); NEXT(v, u); ITERATION(t);"
                          "KERNEL { v = sin(u + t); }")
    with pytest.raises(ZeroDivisionError, match="enough"):
        waves.run(u=np.zeros(1000), iterations=400_000, on_progress=stop)


def test_checkpoints(q, tmp_path):
    k = q.Kernel(text="INDEX(i); WHOLE(double, u, 1); OUTPUT(double, v); NEXT(v, u); KERNEL { v = u(i) * 0.5 + i; }")
    u = np.random.default_rng(4).standard_normal(40)
    want = k.run(u=u, iterations=12).v
    for every in (5, "5", "1m"):
        options = {"iterations": 12, "checkpoint": tmp_path / "state", "checkpoint_every": every, "resume": True}
        assert (k.run(u=u, **options).v == want).all() and (k.run(u=u, **options).v == want).all()
    for every in ("soon", -1, 2.5):
        with pytest.raises(q.UsageError, match="checkpoint_every cannot be"):
            k.run(u=u, iterations=2, checkpoint=tmp_path / "other", checkpoint_every=every)


def test_declarations_and_options(q, k):
    assert k.dimensions == 2 and [p.name for p in k.parts][:4] == ["a", "h", "t", "f"]
    h = k.parts[1]
    assert (h.use, h.dtype, h.dimensions, h.reach, h.default) == ("halo", "float32", 2, 1, None)
    assert k.parts[3].default == "0.5" and k.parts[4].default is None
    assert "HALO(float32, h)" in repr(k) and "SCALAR(float64, f, 0.5)" in repr(k)
    given = arrays()
    assert k.run(**given, g=0.25, threads=1).report.threads == 1
    assert k.run(**given, g=0.25, devices="cpu:2", grain=3).report.threads == 2
    assert k.run(given, g=0.25).some == 5
    assert q.Kernel(ROOT / "examples" / "kernels" / "mandelbrot.c").parts[-1].use == "count"
    both = q.Kernel(text="INDEX(i); SCALAR(int, threads); COUNT(c); KERNEL { c = threads == 2; }")
    assert both.run({"threads": 2}, shape=4).c == 4


@pytest.mark.parametrize("values, error, says", [
    ({"h": np.zeros((5, 7), "int64")}, "InputError", r"is int64.*astype\('float32'\)"),
    ({"h": np.zeros((5, 7))}, "InputError", r"is float64, and the kernel declares float32"),
    ({"t": [2**31]}, "InputError", "is int64"),
    ({"t": [0.5]}, "InputError", "is float64"),
    ({"t": [[4, 5]]}, "InputError", "2 dimensions"),
    ({"a": np.zeros((5, 7), complex)}, "InputError", "complex128"),
    ({"a": [["text"]]}, "InputError", "not of numbers"),
    ({"a": np.zeros((6, 7))}, "InputError", "do not fit"),
    ({"a": np.zeros((2, 5, 7))}, "QuernError", "dimension"),
    ({"a": "none.npy"}, "FileError", "none.npy"),
    ({"b": 1}, "UsageError", "no declaration or option 'b'; the kernel has: a, h, t, f, g, n, o, low"),
    ({"all": 1}, "UsageError", "takes no value"),
    ({"threads": -1}, "UsageError", "-1 threads"),
    ({"threads": "two"}, "UsageError", "threads cannot be 'two'"),
    ({"devices": 3}, "UsageError", "devices cannot be 3"),
    ({"grain": 2**40}, "UsageError", "grain"),
    ({"shape": (5, 8)}, "InputError", "and the index space"),
    ({"shape": 5}, "UsageError", "2 dimensions"),
    ({"shape": "5x7"}, "UsageError", "shape"),
    ({"recipe": "no/such/folder.json"}, "FileError", "no/such"),
    ({"a": np.full((5, 7), np.nan)}, "NumericError", r"item \(0, 0\).*not a number"),
])
def test_refused(q, k, values, error, says):
    with pytest.raises(getattr(q, error), match=says):
        k.run(**{**arrays(), "g": 0.25, **values})
    assert k.run(**arrays(), g=0.25).some == 5  # as if nothing had been


def test_refused_texts(q, tmp_path):
    with pytest.raises(q.InputError, match="kernel.c, line 2.*lgamma"):
        q.Kernel(text="INDEX(i); OUTPUT(float, o);\nKERNEL { o = lgamma(i); }")
    with pytest.raises(OSError, match="none.c"):
        q.Kernel(tmp_path / "none.c")
    for wrong in ({}, {"path": "a.c", "text": "b"}):
        with pytest.raises(q.UsageError, match="a file or a text"):
            q.Kernel(**wrong)
    k = q.Kernel(text="INDEX(i); OUTPUT(float, o); KERNEL { o = i; }")
    with pytest.raises(q.UsageError, match="shape=1000000"):
        k.run()
    with pytest.raises(q.UsageError, match="no array for 'x'"):
        q.Kernel(text="INDEX(i); INPUT(float, x); OUTPUT(float, o); KERNEL { o = x; }").run()
    with pytest.raises(MemoryError, match='o="o.npy"'):
        k.run(shape=2**47)
    for shape in (2.5, "34", (1, 2)):
        with pytest.raises(q.UsageError, match="the shape cannot be"):
            k.run(shape=shape)
    k = q.Kernel(text="INDEX(i); OUTPUT(float, o); OUTPUT(float, p); KERNEL { o = i; p = i; }")
    with pytest.raises(q.UsageError, match='"o" and "p" have the same file'):
        k.run(shape=3, o=tmp_path / "o.npy", p=tmp_path / "o.npy")


def test_threads_share_a_kernel(k):
    """Runs of one kernel wait for each other."""
    from concurrent.futures import ThreadPoolExecutor

    given = arrays()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda g: k.run(**given, g=g, threads=1).o, [0.25, 0.5, 1, 2] * 4))
    for g, o in zip([0.25, 0.5, 1, 2] * 4, found):
        assert (o == want(**given, g=g)).all()


ENDLESS = """
import os, signal, sys, threading, time
import quern
k = quern.Kernel(text="INDEX(i); SCALAR(int, far); COUNT(n); KERNEL { int a = 1; while (a == far) a = 1; n = 1; }")
k.run(far=0, shape=3)
times = int(sys.argv[2])
def press():
    for _ in range(times):
        begun = time.process_time()
        while time.process_time() < begun + 0.1:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
try:
    threading.Thread(target=press).start()
    k.run(far=int(sys.argv[1]), shape=2**48, threads=2)
except KeyboardInterrupt:
    print("interrupted", end="")
if times == 1:
    print("", k.run(far=0, shape=3).n, end="")
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.parametrize("far, times, says", [(0, 1, "interrupted 3"), (1, 2, "interrupted")])
def test_interrupted(q, far, times, says):
    """Ctrl-C ends days of work. A second one leaves an item that never ends."""
    env = {name: os.environ[name] for name in ("CC", "QUERN_CACHE")}
    assert python_package.python(ENDLESS, far, times, env=env) == says


def test_documentation(q):
    """The example of docs/python.md, compared with NumPy as it says."""
    page = (ROOT / "docs" / "python.md").read_text()
    section = page[page.index("## Kernels of your own"):]
    code = section[section.index("    import numpy"):].split("\n\n#")[0].split("\nThe ")[0]
    lines = [line[4:] for line in code.splitlines() if line.startswith("    ") or not line]
    names, script = {}, "\n".join(lines)
    for there, here in (("mandelbrot.c", str(ROOT / "examples" / "kernels" / "mandelbrot.c")), ("480", "48"),
                        ("640", "64"), ("240", "24"), ("0.005", "0.05"), ("left=-2.25", "left=-2.25, size=0.05")):
        assert there in script
        script = script.replace(there, here)
    exec(script, names)
    assert names["r"].steps.shape == (48, 64) and (names["r"].steps == names["steps"]).all()
    assert names["r"].inside == (names["steps"] == 1000).sum()
    import doctest

    import quern.kernel

    assert doctest.testmod(quern.kernel).attempted >= 2 and doctest.testmod(quern.kernel).failed == 0

"""`quern run` where each rank has some rows of the inputs: numbers, files and recipes are those of one process."""

import json
import resource
import shutil
import signal

import numpy
import pytest

import ranks

if not (shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")):
    pytest.skip("no C compiler", allow_module_level=True)

# One text for all, because a compiler takes its time. `bad` is a row without a number, `work` makes rows below
# it cost time.
KERNEL = """#include <quern/kernel_file.h>
INDEX(y, x); INPUT(float, a); HALO(int16_t, h, 2, wrap); HALO(float, u, 1, nearest); WHOLE(double, t, 2);
SCALAR(int64_t, bad, -1); SCALAR(int64_t, work, 0);
OUTPUT(float, next); NEXT(next, u); OUTPUT(uint8_t, rgb, 3); RANDOM;
SUM(double, all); MIN(float, least); MAX(int, most); COUNT(odd); SUM(double, groups, 7); ARGMAX(int16_t, place, 9);
KERNEL {
    float s = u(0, 0);
    for (int64_t k = 0; k < (y < work ? 1000000000 : 0); k++) s = s * 0.5f + 1;
    next = (bad >= 0 && y >= bad ? 0.0f : s) / (bad >= 0 && y >= bad ? 0.0f : 2.0f) + u(1, -1) * 0.25f + uniformf(0);
    rgb[0] = (uint8_t)h(-2, 1); rgb[1] = (uint8_t)h(2, 0); rgb[2] = (uint8_t)t(y % length(t, 0), 1);
    all = a * 1e200; if (y > 30) least = a; if (x % 3 == 1) most = h(0, 0); odd = h(0, 0) % 2;
    groups[y % 7] = a * 1e200; if (x > 3) place[x % 8] = h(1, 1);
}
"""
ROWS, WIDTH = 61, 37
CUTS = {"a": [0, 17, 18, 40, ROWS], "h": [0, 30, 60, 60, ROWS], "u": [0, 17, 18, 40, ROWS], "t": [0, 2, 2, 3, 5]}
OUTS = ["--out", "rgb=rgb-%r.npy", "--out", "groups=groups.npy", "--out", "place=place.npy", "--recipe", "r.json"]
MORE = ["--iterations", 4, "--series", "least=least.npy", "--threads", 1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, run_quern):
    """Each array as one file, and as four, some of which have no rows; `want` has what one process writes from the whole ones."""
    folder = tmp_path_factory.mktemp("parts")
    draw = numpy.random.default_rng(3)
    arrays = {"a": draw.normal(size=(ROWS, WIDTH)).astype("f4"), "t": draw.normal(size=(5, 3)) * 9 + 99,
              "h": draw.integers(-9999, 9999, (ROWS, WIDTH), "i2"), "u": draw.normal(size=(ROWS, WIDTH)).astype("f4")}
    (folder / "want").mkdir()
    for name, array in arrays.items():
        numpy.save(folder / f"{name}.npy", array)
        for k, (begin, end) in enumerate(zip(CUTS[name], CUTS[name][1:])):
            numpy.save(folder / f"{name}{k}.npy", array[begin:end])
    (folder / "k.c").write_text(KERNEL)
    outs = [word.replace("=", "=want/") for word in OUTS[2:-1]] + ["want/r.json"]
    run_quern("run", "--kernel", "k.c", *(w for n in arrays for w in ("--in", f"{n}={n}.npy")), "--out",
              "next=want/next.npy", "--out", "rgb=want/rgb.npy", *outs, *MORE[:2], "--series", "least=want/least.npy",
              cwd=folder)
    return folder


def recipe(path):
    """Without names of files."""
    found = json.loads(path.read_text())
    for group in (found["inputs"], found["outputs"], found["results"], found["series"]):
        for value in group.values():
            isinstance(value, dict) and value.pop("file", None)
    return {**found, "name": ""}


def check(folder, count):
    want = folder / "want"
    own = [numpy.load(folder / f"rgb-{rank}.npy") for rank in range(count)]
    assert numpy.concatenate(own).tobytes() == numpy.load(want / "rgb.npy").tobytes()
    for name in "next", "groups", "place", "least":
        assert (folder / f"{name}.npy").read_bytes() == (want / f"{name}.npy").read_bytes(), name
        (folder / f"{name}.npy").unlink()
    assert recipe(folder / "r.json") == recipe(want / "r.json")
    return [len(rows) for rows in own]


def test_files_of_each_rank(quern, folder):
    """Of unequal sizes: a rank has one row, and one has none of h and t. The output `next` is written whole."""
    own = {k: [w for n in "au" for w in ("--in-parts", f"{n}={n}{k}.npy")] for k in range(4)}
    done = ranks.run(quern, 4, "run", "--kernel", "k.c", "--in-parts", "h=h[0-3].npy", "--in-parts", "t=t[0-3].npy",
                     "--out", "next=next.npy", *OUTS, *MORE, own=own, cwd=folder)
    assert check(folder, 4) == [17, 1, 22, 21]
    assert [out for _, out, _ in done[1:]] == ["", "", ""]


def test_files_that_are_dealt(quern, folder):
    """One file of all ranks, one that each has whole, several files, and more ranks than some have files."""
    ranks.run(quern, 3, "run", "--kernel", "k.c", "--in-parts", "a=a.npy", "--in-parts", "u=u?.npy", "--in", "h=h.npy",
              "--in-parts", "t=t?.npy", "--out", "next=next.npy", *OUTS, *MORE, cwd=folder)
    assert check(folder, 3) == [20, 20, 21]


def test_one_process(run_quern, folder):
    """It replays a run of ranks, too."""
    parts = [w for n in "ahut" for w in ("--in-parts", f"{n}={n}?.npy")]
    run_quern("run", "--kernel", "k.c", *parts, "--out", "next=next.npy", *OUTS, *MORE, cwd=folder)
    assert check(folder, 1) == [ROWS]
    run_quern("replay", "r.json", *(w for n in "ahut" for w in ("--in", f"{n}={n}.npy")), cwd=folder)
    run_quern("replay", "r.json", *parts, cwd=folder)
    other = run_quern("replay", "r.json", *parts[:-1], "t=t[0-2].npy", cwd=folder, status=1).stderr
    assert 'the array for "t" is not the one that the recipe names' in other


UNUSED = [w for n in ("rgb", "groups", "place") for w in ("--out", f"{n}=dead-{n}.npy")]
INPUTS = [w for n in "ahut" for w in ("--in-parts", f"{n}={n}.npy")]


def test_the_first_fault_is_told(quern, folder):
    """Ranks 1 and 2 have faults: all end with that of rank 1, and no file is written."""
    done = ranks.run(quern, 3, "run", "--kernel", "k.c", *INPUTS, "--out", "next=dead-%r.npy", *UNUSED,
                     "--set", "bad=33", cwd=folder, status=1)
    assert "rank 1 on " in done[0][2] and 'the result "next" is not a number' in done[0][2]
    assert "at item (33, 0)" in done[0][2] and not list(folder.glob("dead*"))


def test_a_rank_dies(quern, folder):
    """Its rows take so long that the system ends it."""
    with ranks.Ranks(quern, 3, "run", "--kernel", "k.c", *INPUTS, "--out", "next=dead-%r.npy", *UNUSED, "--set", "work=20",
                     "--threads", 1, cwd=folder) as all:
        resource.prlimit(all.rank[0].pid, resource.RLIMIT_CPU, (1, 1))
        done = all.wait()
    assert [code for code, _, _ in done] == [-signal.SIGKILL, 1, 1]
    assert "has ended, and its part of the data is missing" in done[1][2] and "at a.npy" in done[1][2]
    assert not list(folder.glob("dead*"))


def test_refused(quern, run_quern, folder):
    def said(*words, inputs=INPUTS, status=2):
        return run_quern("run", "--kernel", "k.c", *inputs, "--out", "next=no-%r.npy", *words, cwd=folder,
                         status=status).stderr

    assert '"groups"' in said("--out", "rgb=no.npy", "--out", "groups=%r.npy")
    assert "--in and --in-parts name a" in said("--in", "a=a.npy")
    assert '"rgb" is an output of the kernel, and --in-parts names it' in said("--in-parts", "rgb=a.npy")
    more = ["--out", "rgb=no.npy", "--out", "groups=no2.npy", "--out", "place=no3.npy"]
    assert "writes no checkpoint" in said(*more, "--checkpoint", "c", status=1)
    there = ["run", "--kernel", "k.c", *INPUTS, "--out", "next=there%r/n%r.npy", *more]
    assert 'cannot write "there0/n.recipe.json"' in run_quern(*there, cwd=folder, status=1).stderr
    there += ["--recipe", "r.json"]
    assert 'cannot open the folder there0:' in run_quern(*there, cwd=folder, status=1).stderr
    numpy.save(folder / "a9.npy", numpy.zeros((2, WIDTH + 1), "f4"))
    parts = ["--in-parts", "a=a?.npy", *INPUTS[2:]]
    assert "a9.npy" in said(*more, inputs=parts, status=1)
    (folder / "a9.npy").unlink()
    (folder / "none").mkdir()
    parts[1] = "a=none"
    assert '"a" has no file in the folder' in said(*more, inputs=parts, status=1)
    other = {2: ["--in-parts", "u=u3.npy"], 1: ["--in-parts", "u=none.npy"], 0: ["--in-parts", "u=u0.npy"]}
    done = ranks.run(quern, 3, "run", "--kernel", "k.c", *INPUTS[:4], *INPUTS[6:], "--out", "next=no-%r.npy", *more,
                     own=other, cwd=folder, status=1)
    assert "rank 1 on " in done[0][2] and "cannot open none.npy" in done[0][2]

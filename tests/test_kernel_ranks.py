"""`quern run` over ranks: the bytes of one process, whichever rank dies; one message for all."""

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import time

import numpy
import pytest

import launch
import machine
import ranks

if not (shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")):
    pytest.skip("no C compiler", allow_module_level=True)

FILES = ["bytes.npy", "wide.npy", "before.npy", "groups.npy", "digits.npy", "low.npy", "place.npy",
         "rgb.npy", "r.json"]
# One text for all, because a compiler takes its time. `work` makes items expensive, `bad` is one
# that divides by zero.
KERNEL = """#include <quern/kernel_file.h>
INDEX(y, x); INPUT(float, a); HALO(int16_t, h, 1, wrap); SCALAR(int, work, 0); SCALAR(int64_t, bad, -1);
OUTPUT(int8_t, bytes); OUTPUT(double, wide); SUM(double, all); MIN(float, least); MAX(int, most);
COUNT(odd); RANDOM; SCAN(float, before); SUM(double, groups, 7); SUM(int64_t, digits, 10);
MIN(float, low, 7); ARGMAX(int16_t, place, 9); OUTPUT(uint8_t, rgb, 3);
KERNEL {
    double s = a;
    for (int k = 0; k < (y < 20 ? work : 0); k++) s = s * 0.999 + 1;
    bytes = (int8_t)(h(-1, 1) + h(1, -1)); wide = s; all = s * 1e200; least = a;
    if (x % 3 == 1) most = (int)(y * x % 1000 / (x + 100 * y != bad));
    odd = h(0, 0) % 2; before = normalf(1); groups[y % 7] = s * 1e200; if (x > 3) digits[x % 10] = -(y * x);
    low[y * x % 7] = a; if (x > 9) place[x % 8] = h(0, 0);
    rgb[0] = (uint8_t)x; if (a > 0) rgb[1 + x % 2] = (uint8_t)y;
}
"""
WORDS = ["run", "--kernel", "k.c", "--in", "a=a.npy", "--in", "h=h.npy", "--out", "bytes=bytes.npy",
         "--out", "wide=wide.npy", "--out", "before=before.npy", "--out", "groups=groups.npy",
         "--out", "digits=digits.npy", "--out", "low=low.npy", "--out", "place=place.npy",
         "--out", "rgb=rgb.npy", "--seed", 5, "--recipe", "r.json", "--threads", 1]


@pytest.fixture(scope="module")
def place(tmp_path_factory, quern):
    """A folder with kernel, inputs and what one process writes from them; words add to a command."""
    folder = tmp_path_factory.mktemp("ranks")
    draw = numpy.random.default_rng(2)
    (folder / "k.c").write_text(KERNEL)
    numpy.save(folder / "a.npy", draw.standard_normal((91, 100)).astype("float32"))
    numpy.save(folder / "h.npy", draw.integers(-9999, 9999, (91, 100)).astype("int16"))
    (folder / "cc").write_text('#!/bin/sh\nexec cc "$@" -O1\n')
    (folder / "cc").chmod(0o755)
    env = launch.clean_environment(QUERN_CACHE=str(folder / "cache"), CC=str(folder / "cc"))
    return folder, env


def alone(quern, place, *words):
    folder, env = place
    subprocess.run([quern, *map(str, [*WORDS, *words])], cwd=folder, env=env, check=True,
                   capture_output=True)
    return files(folder)


def files(folder):
    found = [(folder / name).read_bytes() for name in FILES]
    for name in FILES:
        (folder / name).unlink()
    return found


def nothing_is_left(folder):
    return not [name for name in os.listdir(folder) if name in FILES or name.startswith(".quern")]


def run(quern, place, count, *words, **more):
    folder, env = place
    return ranks.run(quern, count, *WORDS, *words, cwd=folder, env=env, **more)


@pytest.mark.parametrize("count, words", [(2, []), (3, ["--grain", 100])])
def test_same_bytes(quern, place, count, words):
    wanted = alone(quern, place)
    done = run(quern, place, count, *words)
    assert files(place[0]) == wanted
    assert "9,100 items" in done[0][1] and [out for _, out, _ in done[1:]] == [""] * (count - 1)


def test_replay(quern, place):
    folder, env = place
    run(quern, place, 2)
    done = ranks.run(quern, 2, "replay", "r.json", cwd=folder, env=env)
    assert done[0][1].endswith("replay: identical, r.json\n") and done[1][1] == ""
    files(folder)


def test_report(quern, place):
    """Who computed how much, as text, as JSON, and as one time line of all ranks."""
    folder = place[0]
    out = run(quern, place, 2, "--set", "work=2000", "--verbose", "--trace", "t.json")[0][1]
    assert "lower bound" in out and "  0/cpu " in out and "  1/cpu " in out and "on 2 cores" in out
    events = json.loads((folder / "t.json").read_text())["traceEvents"]
    assert len({e["pid"] for e in events}) == 2 and {"grains", "ranks"} <= {e["name"] for e in events}
    (folder / "t.json").unlink()
    got = json.loads(run(quern, place, 2, "--set", "work=2000", "--json")[0][1])
    assert sum(w["items"] for w in got["workers"]) == pytest.approx(9100, abs=2)
    assert [r["rank"] for r in got["ranks"]] == [0, 1] and not any(r["lost"] for r in got["ranks"])
    assert 0 < got["bound"] and got["threads"] == 2
    files(folder)


def test_progress(quern, place):
    """A bar on a terminal, when an eighth of a second has passed."""
    folder, env = place

    def attempt(size):
        ours, theirs = os.openpty()
        subprocess.run([quern, *map(str, WORDS), "--set", f"work={100000 * size}"], cwd=folder,
                       env={**env, "TERM": "xterm"}, stderr=theirs, stdout=subprocess.PIPE, check=True)
        os.set_blocking(ours, False)
        try:
            drawn = os.read(ours, 1 << 16).decode()
        except BlockingIOError:  # nothing
            drawn = None
        os.close(theirs)
        os.close(ours)
        files(folder)
        return drawn

    drawn = machine.caught(attempt)
    assert "/9,100 items" in drawn and " left" in drawn and " items/s" in drawn


@pytest.mark.parametrize("launcher", list(launch.MPIS))
def test_mpirun(quern, place, launcher):
    launch.need(launcher)
    folder, env = place
    mpi = launch.MPIS[launcher]
    wanted = alone(quern, place)
    done = subprocess.run([mpi["program"], *mpi["crowded"], "-n", "2", quern, *map(str, WORDS)],
                          cwd=folder, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert files(folder) == wanted and done.stdout.count("9,100 items") == 1


def test_differences(quern, place):
    """The first thing that differs; a fault that all ranks find; a folder that one lacks."""
    folder, env = place
    numpy.save(folder / "g.npy", numpy.ones((91, 100), "int16"))
    for own, status, what in (({1: ["--set", "work=3"]}, 1, "the scalars: work=3, bad=-1, not work=0, bad=-1"),
                              ({1: ["--iterations", 2]}, 1, "the options: 2 iterations"),
                              ({1: ["--shape", "91x99"]}, 2, "has the shape 91x99")):
        done = run(quern, place, 2, own=own, status=status)
        assert what in done[0][2] and "rank 1" in done[0][2]
    at = WORDS.index("h=h.npy")
    done = ranks.run(quern, 2, *WORDS[:at - 1], *WORDS[at + 1:], cwd=folder, env=env, status=1,
                     own={0: ["--in", "h=h.npy"], 1: ["--in", "h=g.npy"]})
    assert 'in the input "h": ' in done[0][2] and nothing_is_left(folder)
    done = run(quern, place, 3, "--set", "bad=4322", status=1)
    assert "item (43, 22)" in done[0][2] and [err for _, _, err in done[1:]] == ["", ""]
    done = run(quern, place, 2, own={0: ["--series", "all=no/folder/s.npy"],
                                     1: ["--series", "all=no/folder/s.npy"]}, status=1)
    assert "no/folder" in done[0][2] and nothing_is_left(folder)


def slow(size):
    """Words that make a run take a while: some 0.7 s of processor time, and more for a larger size."""
    return ["--set", f"work={120000 * size}"]


@contextlib.contextmanager
def started(quern, place, count, size, *words):
    """Ranks that have begun to compute: the writer has opened its files. A fast run may have ended."""
    folder, env = place
    with ranks.Ranks(quern, count, *WORDS, *slow(size), *words, cwd=folder, env=env) as run:
        end = time.monotonic() + 60
        own = f".quern-{run.rank[0].pid}-"
        while not any(name.startswith(own) for name in os.listdir(folder)) and run.rank[0].poll() is None:
            assert time.monotonic() < end
            time.sleep(0.01)
        machine.until_computed(run.rank, 0.02 * size)
        yield run


@pytest.fixture(scope="module")
def slow_bytes(quern, place):
    """The files of a slow run of that size."""
    return functools.cache(lambda size: alone(quern, place, *slow(size)))


@pytest.mark.parametrize("dies", [[0], [1], [0, 2]])
def test_deaths(quern, place, slow_bytes, dies):
    def attempt(size):
        wanted = slow_bytes(size)
        with started(quern, place, len(dies) + 2, size) as run:
            for rank in dies:
                run.rank[rank].kill()
            done = run.wait()
        assert files(place[0]) == wanted
        return done if all(done[rank][0] != 0 for rank in dies) else None

    done = machine.caught(attempt)
    assert [code for code, _, _ in done] == [-9 if r in dies else 0 for r in range(len(dies) + 2)]
    out = "".join(out for _, out, _ in done)
    assert out.count("9,100 items") == 1


def test_very_large(quern, place):
    """2^44 items: the first round is short, too, so the ranks stop soon."""
    folder, env = place
    (folder / "count.c").write_text("INDEX(i); COUNT(n); KERNEL { n = i % 3 == 0; }\n")
    env = {**env, "QUERN_CACHE": str(folder / "fresh")}
    with ranks.Ranks(quern, 2, "run", "--kernel", "count.c", "--shape", 2**44, "--threads", 1, cwd=folder, env=env) as run:
        end = time.monotonic() + 60
        while not list((folder / "fresh").glob("*.kernel")):
            assert time.monotonic() < end and run.rank[0].poll() is None
            time.sleep(0.01)
        machine.until_computed(run.rank, 0.05)
        run.rank[1].send_signal(signal.SIGINT)
        done = run.wait()
    assert [code for code, _, _ in done] == [130] * 2, done


@pytest.mark.parametrize("count", [2, 1])
def test_trace_of_what_was_interrupted(quern, place, count):
    """It is written, with all ranks; of a process alone, too."""
    folder, _ = place

    def attempt(size):
        with started(quern, place, count, size, "--trace", "t.json") as run:
            run.rank[0].send_signal(signal.SIGINT)
            done = run.wait()
        events = json.loads((folder / "t.json").read_text())["traceEvents"]
        (folder / "t.json").unlink()
        if done[0][0] == 0:
            files(folder)
            return None
        # A rank that waited for a processor has not begun.
        return done if len({e["pid"] for e in events if e["name"] == "grains"}) == count else None

    done = machine.caught(attempt)
    assert [code for code, _, _ in done] == [130] * count, done
    assert nothing_is_left(folder)


def test_interrupted(quern, place):
    def attempt(size):
        with started(quern, place, 3, size) as run:
            run.rank[1].send_signal(signal.SIGINT)
            done = run.wait()
        if done[0][0] != 0:
            return done
        files(place[0])

    done = machine.caught(attempt)
    assert [code for code, _, _ in done] == [130] * 3, done
    assert "stopped" in done[0][2] and nothing_is_left(place[0])

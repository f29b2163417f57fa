"""`quern run --checkpoint`: whatever ends a run, it goes on to the same bytes."""

import os
import random
import re
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

KERNEL = """#include <quern/kernel_file.h>
INDEX(y, x); HALO(double, u, 1, nearest); INPUT(int16_t, n); WHOLE(float, w, 1);
SCALAR(double, rate, 0.1); SCALAR(int, work, 60); ITERATION(t);
OUTPUT(double, v); OUTPUT(int16_t, m); OUTPUT(int32_t, seen); NEXT(v, u); NEXT(m, n);
SUM(double, all); MIN(int16_t, least); COUNT(odd);
KERNEL {
    double s = 0;
    for (int k = 0; k < work; k++) s = s * 0.5 + 1;
    v = u(0, 0) + rate * (u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1) - 4 * u(0, 0)) + w(t % 3) + 0 * s;
    m = (int16_t)(n + y - x); seen = (int)t; all = u(0, 0); least = n; odd = n % 2 != 0;
}
"""
ITERATIONS = 400
FILES = ["v.npy", "m.npy", "seen.npy", "all.npy", "odd.npy", "v.recipe.json"]
WORDS = ["run", "--kernel", "k.c", *[w for n in "unw" for w in ("--in", f"{n}={n}.npy")],
         *[w for n in ("v", "m", "seen") for w in ("--out", f"{n}={n}.npy")],
         "--series", "all=all.npy", "--series", "odd=odd.npy", "--threads", 1]
ALL = [*WORDS, "--iterations", ITERATIONS]
CHECKPOINT = ["--checkpoint", "state", "--resume", "--checkpoint-every"]


@pytest.fixture(scope="module")
def place(tmp_path_factory, quern):
    folder = tmp_path_factory.mktemp("state")
    draw = numpy.random.default_rng(3)
    (folder / "k.c").write_text(KERNEL)
    numpy.save(folder / "u.npy", draw.standard_normal((50, 44)))
    numpy.save(folder / "n.npy", draw.integers(-99, 99, (50, 44)).astype("int16"))
    numpy.save(folder / "w.npy", draw.standard_normal(3).astype("float32"))
    (folder / "cc").write_text('#!/bin/sh\nexec cc "$@" -O1\n')
    (folder / "cc").chmod(0o755)
    return folder, launch.clean_environment(QUERN_CACHE=str(folder / "cache"), CC=str(folder / "cc"))


@pytest.fixture(scope="module")
def call(quern, place):
    def run(*words, status=0):
        done = subprocess.run([quern, *map(str, words)], cwd=place[0], env=place[1], capture_output=True, text=True)
        assert done.returncode == status, (done.stdout, done.stderr)
        return done
    return run


def files(folder):
    found = [(folder / name).read_bytes() for name in FILES]
    for name in FILES:
        (folder / name).unlink()
    (folder / "state").unlink(missing_ok=True)
    return found


@pytest.fixture(scope="module")
def wanted(call, place):
    call(*ALL)
    return files(place[0])


def started(quern, place, *words):
    return subprocess.Popen([quern, *map(str, words)], cwd=place[0], env=place[1], stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)


def wait_for(file, job):
    while not file.exists() and job.poll() is None:
        time.sleep(0.005)


def test_killed(quern, place, call, wanted):
    """kill -9 at random times; the last part by two ranks."""
    folder, _ = place
    draw = random.Random(4)
    for _ in range(40 if os.environ.get("QUERN_LONG_TESTS") == "yes" else 4):
        job = started(quern, place, *ALL, *CHECKPOINT, 7)
        wait_for(folder / "state", job)
        time.sleep(draw.uniform(0, 0.1))
        job.kill()
        job.wait()
        job.stderr.close()
    assert (folder / "state").read_bytes().startswith(b"quern kernel checkpoint 2\n")
    done = ranks.run(quern, 2, *ALL, *CHECKPOINT, "5s", cwd=folder, env=place[1])
    assert "continued after iteration" in done[0][2]
    assert files(folder) == wanted


def gone(folder):
    """Takes away what a run left that ended too soon. Returns None, for machine.caught."""
    for name in ["state", *FILES]:
        (folder / name).unlink(missing_ok=True)


def test_writer_dies(quern, place, call, wanted):
    """The next rank writes the checkpoints; all ranks die, and one process goes on."""
    folder, env = place

    def attempt(size):
        words = [*ALL, "--set", f"work={500 * size}"]
        with ranks.Ranks(quern, 3, *words, *CHECKPOINT, "0.01s", cwd=folder, env=env) as run:
            for rank in run.rank[:2]:
                wait_for(folder / "state", rank)
                rank.kill()
                rank.wait()
                (folder / "state").unlink(missing_ok=True)
            wait_for(folder / "state", run.rank[2])
            run.rank[2].kill()
            codes = [code for code, _, _ in run.wait()]
        return (words, codes) if 0 not in codes else gone(folder)

    words, codes = machine.caught(attempt)
    assert codes == [-9] * 3
    said = call(*words, *CHECKPOINT, "5s").stderr
    assert "continued after iteration" in said
    assert files(folder)[:5] == wanted[:5]


def test_interrupted(quern, place, call, wanted):
    """Ctrl-C writes a checkpoint, whenever one was due. By time, by threads, without a series."""
    folder, _ = place

    def attempt(size):
        words = ["--set", f"work={400 * size}", *CHECKPOINT]
        job = started(quern, place, *ALL, *words, "0.01s")
        wait_for(folder / "state", job)
        job.send_signal(signal.SIGINT)
        _, said = job.communicate()
        return (words, job.returncode, said) if job.returncode != 0 else gone(folder)

    words, code, said = machine.caught(attempt)
    assert code == 130 and "stopped" in said and "add --resume" in said
    before = (folder / "state").read_bytes().split(b"\0iteration ")[1].split(b"\n")[0]
    assert 0 < int(before) < ITERATIONS and not (folder / "v.npy").exists()
    more = [3 if w == 1 else w for w in ALL]
    done = call(*more, *words, 100)
    assert f"continued after iteration {before.decode()}" in done.stderr
    assert files(folder)[:5] == wanted[:5]
    plain = [w for w in ALL if not str(w).startswith("--series") and w not in ("all=all.npy", "odd=odd.npy")]
    call(*plain, *CHECKPOINT, 150)
    state = (folder / "state").read_bytes()
    assert b"\0iteration 300\n" in state and b"\nseries odd" not in state
    call(*plain, *CHECKPOINT, 150)
    for name, bytes_ in zip(FILES[:3], wanted[:3]):
        assert (folder / name).read_bytes() == bytes_
        (folder / name).unlink()  # the next test looks whether a run makes it
    (folder / "state").unlink()


def test_two_runs(quern, place, call, wanted):
    """The second one is refused, whether the file is there or not. Ranks lock it once."""
    folder, env = place

    def attempt(size):
        words = [*ALL, "--set", f"work={700 * size}", "--checkpoint", "state", "--resume"]
        told = []
        for _ in range(2):
            job = started(quern, place, *words, "--checkpoint-every", 20)
            wait_for(folder / "state.lock", job)
            second = subprocess.run([quern, *map(str, words)], cwd=folder, env=env, capture_output=True, text=True)
            job.send_signal(signal.SIGINT)
            job.communicate()
            if job.returncode == 0:
                return gone(folder)
            told.append((job, second.returncode, second.stderr, os.listdir(folder)))
        return words, told

    words, told = machine.caught(attempt)
    for job, code, said, left in told:
        assert code == 1 and f"the file of the checkpoint is in use by process {job.pid}" in said, said
        assert "(--checkpoint)" in said and job.returncode == 130
        assert "state.lock" not in left and "v.npy" not in left
    (folder / "state.lock").write_text("12345\n")  # left by a process that was killed
    done = ranks.run(quern, 2, *words, "--checkpoint-every", 100, cwd=folder, env=env)
    assert not (folder / "state.lock").exists() and "note" not in done[0][2], done
    assert files(folder)[:5] == wanted[:5]


def test_refused(place, call):
    """Another kernel, other scalars, inputs, series; a run that ends before; what is damaged."""
    folder, _ = place
    call(*WORDS, "--iterations", 30, *CHECKPOINT, 10)
    good = (folder / "state").read_bytes()
    assert b"\0iteration 20\n" in good
    text = (folder / "k.c").read_text()
    numpy.save(folder / "other.npy", numpy.ones(3, "float32"))
    other = [w if w != "w=w.npy" else "w=other.npy" for w in WORDS]
    fewer = WORDS[:-4] + WORDS[-2:]
    go_on = ["--checkpoint", "state", "--resume", "--iterations", 40]
    for words, status, says in [
            ([*WORDS, *go_on, "--set", "rate=0.2"], 1, "other scalars or seed"),
            ([*other, *go_on], 1, "other inputs"),
            ([*fewer, *go_on], 1, "other series"),
            ([*WORDS, "--series", "least=l.npy", *go_on], 1, "other series"),
            ([*WORDS, "--checkpoint", "state", "--resume", "--iterations", 20], 2, "has 20 iterations"),
            ([*WORDS, "--checkpoint", "state", "--iterations", 40], 2, "add --resume"),
            ([*WORDS, "--iterations", 9, "--resume"], 2, "--resume needs --checkpoint"),
            ([*WORDS, "--checkpoint-every", "5s"], 2, "--checkpoint-every needs"),
            ([*WORDS, *go_on, "--checkpoint-every", "x"], 2, 'cannot be "x"'),
            ([*WORDS, "--checkpoint", "other", "--checkpoint-every", 5], 2, "the kernel runs once"),
            ([*WORDS, "--checkpoint", "state", "--resume"], 1, "a run with several iterations"),
            ([*ALL, "--checkpoint", "no/state"], 1, "no/state"),
            ([*ALL, "--checkpoint", "/dev/null"], 1, "not a regular file"),
            ([*ALL, "--checkpoint", "v.npy"], 2, "--checkpoint")]:
        assert says in call(*words, status=status).stderr, words
    (folder / "k.c").write_text(text.replace("0 * s", "1 * s"))
    assert "another kernel" in call(*WORDS, *go_on, status=1).stderr
    (folder / "k.c").write_text(text)
    draw = random.Random(1)
    damaged = [good[:-1], good + b"x", good[:100], b"", good.replace(b"iteration 20", b"iteration 21"),
               good.replace(b"run iterations", b"run iterationt")]
    starts = [30, 4096, *(int(at) for at in re.findall(rb"(?m)^(?:output|series) \w+ (\d+) ", good))]
    assert len(starts) == 6
    for start in starts:
        at = start + draw.randrange(160)
        damaged.append(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:])
    for bytes_ in damaged:
        (folder / "state").write_bytes(bytes_)
        said = call(*WORDS, *go_on, status=1).stderr
        assert "the checkpoint is damaged" in said and "without --resume" in said
    assert (folder / "state").read_bytes() == damaged[-1]
    for old in (good.replace(b"checkpoint 2", b"checkpoint 1"), good.replace(b"checkpoint 2", b"items 1")):
        (folder / "state").write_bytes(old)
        said = call(*WORDS, *go_on, status=1).stderr
        assert "it has format 1, not 2" in said and "the version that wrote it" in said
    (folder / "state").write_bytes(good)
    made = call(*WORDS, *go_on)
    assert "continued after iteration 20" in made.stderr and "\n20 iterations of 2,200 items" in made.stdout
    files(folder)



MAP = """#include <quern/kernel_file.h>
INDEX(y, x); EXTENT(h, w); INPUT(int16_t, n); SCALAR(int, work, 6000); RANDOM;
OUTPUT(double, v); OUTPUT(uint8_t, three, 3); SCAN(float, before, exclusive); SUM(float, all); SUM(int64_t, whole);
MIN(double, least); MAX(int16_t, most); COUNT(odd); SUM(double, bins, 5); COUNT(often, 4); MIN(float, low, 3);
ARGMAX(int16_t, where, 9);
KERNEL {
    double s = 0;
    for (int k = 0; k < work; k++) s = s * 0.5 + uniform(k);
    v = s + n; three[x % 3] = (uint8_t)n; before = (float)s; all = (float)s; whole = n; least = s; most = n; odd = n & 1;
    bins[x % 5] = s; often[y % 4] = n > 0; if (x > 3) { low[y % 3] = (float)s; where[x % 9] = n; }
}
"""
ARRAYS = ["v", "three", "before", "bins", "often", "low", "where"]
MAP_WORDS = ["run", "--kernel", "map.c", "--in", "n=n.npy", "--seed", 3,
             *[w for a in ARRAYS for w in ("--out", f"{a}=m-{a}.npy")], "--recipe", "m.json"]


def map_files(folder):
    found = [(folder / name).read_bytes() for name in [*(f"m-{a}.npy" for a in ARRAYS), "m.json"]]
    for a in ARRAYS:
        (folder / f"m-{a}.npy").unlink()
    return found


def done_in(state):
    """The items of the better state in a file."""
    return max(int(items) for items in re.findall(rb"\0items (\d+)\n", state))


def wait_for_items(folder, job, more_than):
    """Until the file has more items."""
    file = folder / "state"
    while job.poll() is None and not (file.exists() and done_in(b"\0items 0\n" + file.read_bytes()) > more_than):
        time.sleep(0.001)


def test_one_iteration(quern, place, call):
    """The items that are done, with all kinds of results: killed, stopped, then by other threads and ranks."""
    folder, env = place
    (folder / "map.c").write_text(MAP)

    def attempt(size):
        words, done = [*MAP_WORDS, "--set", f"work={6000 * size}"], 0
        for threads, sign in ((1, signal.SIGKILL), (2, signal.SIGINT)):
            job = started(quern, place, *words, "--threads", threads, "--grain", 8, *CHECKPOINT, "0.001s")
            wait_for_items(folder, job, done)
            job.send_signal(sign)
            said = job.communicate()[1]
            if job.returncode == 0:
                map_files(folder)
                return gone(folder)
            assert job.returncode == (-9 if sign == signal.SIGKILL else 130), said
            assert not (folder / "m-v.npy").exists()
            done = done_in((folder / "state").read_bytes())
        return words, said, done

    words, said, done = machine.caught(attempt)
    call(*words, "--threads", 2)
    want, go_on = map_files(folder), [*CHECKPOINT, "0.001s"]
    assert 0 < done < 2200 and f"add --resume to continue after {done} items" in said
    state = (folder / "state").read_bytes()
    made = call(*words, "--threads", 3, *go_on)
    assert f"continued after {done} items" in made.stderr and f"\n{2200 - done:,} items in " in made.stdout
    assert map_files(folder) == want
    (folder / "state").write_bytes(state)
    assert f"continued after {done} items" in ranks.run(quern, 2, *words, "--threads", 1, *go_on, cwd=folder,
                                                        env=env)[0][2]
    assert map_files(folder) == want
    (folder / "state").write_bytes(state)
    assert "a run with one iteration" in call(*words, *go_on, "--iterations", 2, status=1).stderr
    (folder / "state").unlink()


def test_killed_in_items(quern, place, call):
    """kill -9 at random times, by one process and by the writer of two ranks; a loss of what was not synced."""
    folder, env = place
    (folder / "map.c").write_text(MAP)
    call(*MAP_WORDS)
    want, draw, words = map_files(folder), random.Random(2), [*MAP_WORDS, "--grain", 8, *CHECKPOINT, "0.001s"]
    for _ in range(60 if os.environ.get("QUERN_LONG_TESTS") == "yes" else 4):
        job = started(quern, place, *words, "--threads", draw.randrange(1, 3))
        wait_for_items(folder, job, 0)
        time.sleep(draw.uniform(0, 0.02))
        job.kill()
        job.communicate()
        if job.returncode == 0:  # it was faster
            assert map_files(folder) == want
            (folder / "state").unlink()
            continue
        state = bytearray((folder / "state").read_bytes())
        starts = [int(at) for at in re.findall(rb"(?m)^output \w+ (\d+) ", bytes(state))]
        # Bytes after the items of the state, which may have reached the disk or not.
        behind = starts[0] + 8 * done_in(bytes(state))
        state[behind:starts[1]] = draw.randbytes(len(state[behind:starts[1]]))
        (folder / "state").write_bytes(bytes(state))
    before = done_in((folder / "state").read_bytes()) if (folder / "state").exists() else 0
    with ranks.Ranks(quern, 2, *words, cwd=folder, env=env) as run:
        wait_for_items(folder, run.rank[0], before)
        run.rank[0].kill()
        done = run.wait()
    assert done[1][0] == 0, done
    assert map_files(folder) == want
    (folder / "state").unlink()


def test_the_writer_of_items_dies(quern, place, call):
    """A rank that has neither read nor made the file writes it on; then all are dead, and one process goes on."""
    folder, env = place
    (folder / "map.c").write_text(MAP)

    def attempt(size):
        words = [*MAP_WORDS, "--set", f"work={6000 * size}", "--threads", 1]
        with ranks.Ranks(quern, 2, *words, "--grain", 8, *CHECKPOINT, "0.001s", cwd=folder, env=env) as run:
            wait_for_items(folder, run.rank[0], 0)
            run.rank[0].kill()
            run.rank[0].wait()
            first = done_in((folder / "state").read_bytes()) if (folder / "state").exists() else 0
            wait_for_items(folder, run.rank[1], first)
            run.rank[1].kill()
            codes = [code for code, _, _ in run.wait()]
        return words if 0 not in codes and first > 0 else gone(folder)

    words = machine.caught(attempt)
    assert "continued after" in call(*words, *CHECKPOINT, "5s").stderr
    made = map_files(folder)
    (folder / "state").unlink()
    call(*words)
    assert made == map_files(folder)


def test_damaged_items(place, call):
    """Either state may be lost, but not both. What is of another run."""
    folder, _ = place
    (folder / "map.c").write_text(MAP)
    call(*MAP_WORDS, *CHECKPOINT, "0.001s", "--grain", 8)
    want, good = map_files(folder), (folder / "state").read_bytes()
    states = [int(at) for at in re.findall(rb"(?m)^state (\d+)$", good)]
    items = [int(good[at:].split(b"\n")[0].split()[1]) for at in states]
    starts = [int(at) for at in re.findall(rb"(?m)^output \w+ (\d+) ", good)]
    assert min(items) > 0 and items[0] != items[1]

    def changed(*places):
        bytes_ = bytearray(good)
        for at in places:
            bytes_[at] ^= 1
        return bytes(bytes_)

    totals = int(re.search(rb"(?m)^totals (\d+)$", good)[1]) + 8  # in a state
    for at in (states[0] + 9, states[1] + 9, states[0] + totals, states[1] + 200):
        (folder / "state").write_bytes(changed(at))
        left = items[0 if at >= states[1] else 1]
        said = call(*MAP_WORDS, *CHECKPOINT, "9s").stderr
        assert f"continued after {left} items; a later state in the checkpoint is not whole" in said
        assert map_files(folder) == want
    header, numbers = "its header does not fit", "its numbers do not fit"
    for bytes_, says in [
            (changed(states[0] + 9, states[1] + totals), "none of its two states fits"), (changed(60), header),
            (changed(starts[0] + 9), numbers), (changed(starts[1] + 2 * max(items)), numbers),
            (good[:starts[1]], "it is cut off"), (good[:states[0]], "none of its two states fits"),
            (good[:99], header), (b"", header), (good + bytes(1 << 20), "bytes follow its end")]:
        (folder / "state").write_bytes(bytes_)
        said = call(*MAP_WORDS, *CHECKPOINT, "9s", status=1).stderr
        assert says in said and "without --resume" in said, said
    (folder / "state").write_bytes(good)
    assert "other scalars or seed" in call(*MAP_WORDS, "--set", "work=1", *CHECKPOINT, "9s", status=1).stderr
    (folder / "state").unlink()


def test_no_space_for_items(quern, place, call):
    """On a full disk the state before stays; a run goes on from it where there is space."""
    folder, env = place
    (folder / "map.c").write_text(MAP)
    call(*MAP_WORDS)
    want, words = map_files(folder), [*MAP_WORDS, "--grain", 8, *CHECKPOINT, "0.001s"]
    limit = "ulimit -f 52; trap '' XFSZ; exec \"$@\""  # blocks of 1,024 bytes: 1,024 items
    done = subprocess.run(["bash", "-c", limit, "bash", quern, *map(str, words)], cwd=folder, env=env,
                          capture_output=True, text=True)
    assert done.returncode == 0 and "a checkpoint could not be written" in done.stderr, done.stderr
    assert map_files(folder) == want
    items = done_in((folder / "state").read_bytes())
    assert 0 < items <= 1024
    assert f"continued after {items} items\n" in call(*words).stderr
    assert map_files(folder) == want and done_in((folder / "state").read_bytes()) > 1024
    (folder / "state").unlink()


def test_no_space(quern, place):
    """A checkpoint that cannot be written does not end the run; a note says so."""
    folder, env = place
    (folder / "small.c").write_text("INDEX(i); INPUT(double, u); OUTPUT(double, v); NEXT(v, u); SUM(double, all);\n"
                                    "KERNEL { v = u + 1; all = u; }\n")
    numpy.save(folder / "long.npy", numpy.ones(20000))
    limit = "ulimit -f 100; trap '' XFSZ; exec \"$@\""  # blocks of 1,024 bytes
    done = subprocess.run(["bash", "-c", limit, "bash", quern, "run", "--kernel", "small.c", "--in", "u=long.npy",
                           "--iterations", "12", "--checkpoint", "state", "--checkpoint-every", "5"],
                          cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0 and "a checkpoint could not be written" in done.stderr, done.stderr
    assert done.stdout.startswith("all              2.4e+05\n")
    assert not (folder / "state").exists() and not list(folder.glob(".quern*"))

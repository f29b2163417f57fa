"""Ranks that stop without dying, hosts that are cut off, hosts that are lost.

Silence means death only after a stated time (--rank-timeout). Of two parts that cannot reach each
other at most one goes on, and whoever is left behind writes nothing.
"""

import functools
import json
import shutil
import signal
import socket
import sqlite3
import subprocess
import time

import numpy
import pytest

import hosts
import launch
import machine
import midwrite
from cluster_job import Job

TIMEOUT = 2.5  # seconds of silence, in the tests where they count


@pytest.fixture(scope="module")
def jobs(quern, tmp_path_factory):
    """jobs(size), for machine.caught."""
    return functools.cache(lambda size: Job(quern, tmp_path_factory.mktemp("job"), epochs=30 * size))


@pytest.fixture(scope="module")
def job(jobs):
    return jobs(1)


@pytest.fixture(scope="module")
def long_job(quern, tmp_path_factory):
    return Job(quern, tmp_path_factory.mktemp("long"), epochs=150)


@pytest.fixture(scope="module")
def midway(tmp_path_factory):
    """midway(folder, n): the environment in which rank 0 stops in the midst of its nth file there."""
    library = midwrite.library(tmp_path_factory.mktemp("midway"))
    return lambda folder, number=1: midwrite.environment(library, folder, number)


def signature(path):
    """Changes whenever the file is written, even with the same bytes."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size


def files_in(folder):
    """All that somebody may read; not what a rank was writing and takes away when it leaves."""
    return {path: signature(path) for path in folder.rglob("*")
            if path.is_file() and not path.name.startswith(".quern-")}


def is_late(run, job):
    """Whether the run is near its end, so that what a test has just done to it may have come too late."""
    return f'"epoch":{job.epochs - 5},' in run.text() or run.over()


def record_is_whole(job, folder):
    """Whether the record of a run says all of it: each epoch once, and its end."""
    lines = (folder / "metrics.csv").read_text().splitlines()[1:]
    assert [int(line.split(",")[0]) for line in lines] == list(range(1, job.epochs + 1))
    assert json.loads((folder / "run.json").read_text())["state"] == "finished"


def made_in(folder):
    folder.mkdir()
    return folder


# ---------------------------------------------------------------- one rank

def sleeps_as_it_writes(run, folder):
    """Waits till rank 0 has stopped in the midst of a file, wakes it when the others have ended well,
    and returns what the folder held in between."""
    pid = run.processes[0].pid
    run.until(lambda: midwrite.stopped(pid), 60)
    assert len(list(folder.glob(f".quern-{pid}-*"))) == 1
    run.until(lambda: all(run.processes[r].poll() is not None for r in (1, 2)), 60)
    assert [run.processes[r].returncode for r in (1, 2)] == [0, 0], run.story()
    before = files_in(folder)
    assert run.kill(0, signal.SIGCONT)
    assert run.wait(20) == [0, 0, 0], run.story()
    assert files_in(folder) == before
    return before


def test_stopped_while_it_saves(job, midway, tmp_path):
    """In the middle of a checkpoint: neither is that put in its place, nor an older one taken
    away."""
    out, checkpoints = tmp_path / "model", tmp_path / "checkpoints"
    words = job.train(out, "--rank-timeout", TIMEOUT, "--checkpoint", checkpoints,
                      "--checkpoint-every", 9)
    with launch.Run(job.quern, "meet", 3, words, environment=midway(checkpoints, 3)) as run:
        before = sleeps_as_it_writes(run, checkpoints)
    assert before and files_in(checkpoints) == before
    assert job.made(out)
    assert not list(checkpoints.glob(".quern-*"))


@pytest.mark.parametrize("command", ["train", "replay", "predict"])
def test_stopped_while_it_writes_the_result(command, job, midway, run_quern, tmp_path):
    """It wakes when the others have written the result in its stead: its own does not take the
    place of theirs, though the bytes are the same, and nobody could tell by them."""
    out, alone = tmp_path / "out" / "result", job.folder / "alone"
    words = job.train(out)
    if command == "replay":
        words = ["replay", alone, *job.data(), "-o", out]
    elif command == "predict":
        words = ["predict", alone, "--data", job.images, "--outputs", "-o"]
        alone = tmp_path / "alone.csv"
        run_quern(*words, alone, "--quiet")
        words += [out]
    out.parent.mkdir()
    with launch.Run(job.quern, "meet", 3, [*words, "--rank-timeout", TIMEOUT],
                    environment=midway(out.parent)) as run:
        before = sleeps_as_it_writes(run, out.parent)
        assert run.outputs[0].read_text().count("has to leave: ") == 1, run.story()
    assert list(before) == [out]
    assert out.read_bytes() == alone.read_bytes()
    assert list(out.parent.iterdir()) == [out]


# Beside run.json there is metrics.csv, which is begun with the run.
@pytest.mark.parametrize("file, number", [("run.json", 2), ("trace.json", 1), ("page.html", 1)])
def test_stopped_while_it_tells_of_the_run(file, number, job, midway, tmp_path):
    """The same of what is not a result: the record and the trace are then the others'."""
    out, folder = tmp_path / "model", tmp_path / "run"
    folder.mkdir()
    option = ["--trace", folder / file] if file == "trace.json" else \
        ["--report", folder / file] if file == "page.html" else ["--run-dir", folder]
    words = job.train(out, "--rank-timeout", TIMEOUT, *option)
    with launch.Run(job.quern, "meet", 3, words, environment=midway(folder, number)) as run:
        before = sleeps_as_it_writes(run, folder)
        assert run.outputs[0].read_text().count("has to leave: ") == 1, run.story()
    assert folder / file in before and job.made(out)
    assert file != "run.json" or len((folder / "metrics.csv").read_text().splitlines()) == 31
    assert not list(folder.glob(".quern-*"))


# The first call at a lock file, or at one that becomes it.
AT_THE_LOCK = midwrite.IS_RANK_0 + r"""
static void look(const char *call, const char *path) {
    static int done;
    const char *folder = getenv("QUERN_TEST_STOP_IN");
    const char *name = strstr(path, folder) == path ? path + strlen(folder) + 1 : "none";
    if (!done && !strcmp(call, getenv("QUERN_TEST_CALL")) && is_rank_0() &&
        (strstr(name, ".quern-") == name || !strcmp(name, "run.lock"))) {
        done = 1;
        kill(getpid(), SIGSTOP);
    }
}

ssize_t pwrite(int file, const void *bytes, size_t size, off_t at) {
    char link[40], path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    if (readlink(link, path, sizeof path - 1) > 0)
        look("pwrite", path);
    return syscall(SYS_pwrite64, file, bytes, size, at);
}
ssize_t pwrite64(int file, const void *bytes, size_t size, off_t at) { return pwrite(file, bytes, size, at); }

int link(const char *from, const char *to) {
    look("link", to);
    return syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}
"""


@pytest.mark.parametrize("call", ["pwrite", "link"])
def test_stopped_before_it_has_the_lock(call, job, tmp_path):
    """The others exclude it, take the lock and write the record; it wakes, and finds that it is theirs."""
    out, folder = tmp_path / "model", made_in(tmp_path / "run")
    library = midwrite.compiled(tmp_path, "lock", AT_THE_LOCK)
    words = job.train(out, "--rank-timeout", TIMEOUT, "--run-dir", folder)
    environment = {"QUERN_TEST_CALL": call, **midwrite.environment(library, folder)}
    with launch.Run(job.quern, "meet", 3, words, environment=environment) as run:
        sleeps_as_it_writes(run, folder)
    assert job.made(out)
    record_is_whole(job, folder)
    assert not list(folder.glob(".quern-*"))


@pytest.mark.parametrize("rank", [0, 1])
def test_stopped_rank(rank, jobs, tmp_path):
    """SIGSTOP: noticed, named, treated as dead; when it wakes it leaves and touches nothing."""
    def attempt(size):
        job, folder = jobs(size), made_in(tmp_path / str(size))
        out = folder / "model"
        words = job.train(out, "--rank-timeout", TIMEOUT, "--checkpoint", folder / "checkpoints",
                          "--checkpoint-every", 5 * size, "--run-dir", folder / "run", "--runs",
                          folder / "runs.sqlite", "--report", folder / "page.html")
        with launch.Run(job.quern, "meet", 3, words) as run:
            run.until('"epoch":2,')
            stopped = time.monotonic()
            if not run.kill(rank, signal.SIGSTOP) or is_late(run, job):
                return None
            lost = f"rank {rank} on {socket.gethostname()} was silent too long"
            run.until(lambda: any(lost in row["text"] for row in run.events("ranks")), TIMEOUT + 10)
            assert 0.5 * TIMEOUT < time.monotonic() - stopped
            others = [r for r in range(3) if r != rank]
            run.until(lambda: all(run.processes[r].poll() is not None for r in others), 30)
            assert [run.processes[r].returncode for r in others] == [0, 0], run.story()
            assert job.made(out)
            # All locks of the rank that is stopped are free for the others, which tell the whole story.
            record_is_whole(job, folder / "run")
            assert len(run.events("end")) == 1 and not run.events("error")
            assert "in use" not in run.text() and "without" not in run.text(), run.story()
            with sqlite3.connect(folder / "runs.sqlite") as runs:
                assert runs.execute("SELECT state, epochs FROM runs").fetchall() == [("finished", job.epochs)]
            runs.close()
            before = files_in(folder)
            assert run.kill(rank, signal.SIGCONT)
            codes = run.wait(20)
            assert codes[rank] == 0, run.story()
            assert files_in(folder) == before
            # It says so, its name once.
            leaves, = [line for line in run.outputs[rank].read_text().splitlines()
                       if "has to leave: " in line]
            assert f"rank {rank} on {socket.gethostname()}: this rank has to leave: " in leaves
            assert leaves.count(f"rank {rank} on ") == 1
        return True

    machine.caught(attempt)


def test_left_alone_it_says_so(jobs, tmp_path):
    """Half of the ranks without the lowest is not a quorum. Whoever is left so ends with 1 and says
    why, also when it was told to be quiet."""
    def attempt(size):
        job, out = jobs(size), tmp_path / str(size)
        words = job.train(out, "--quiet", "--rank-timeout", TIMEOUT)
        with launch.Run(job.quern, "meet", 2, words) as run:
            run.until('"epoch":2,')
            if not run.kill(0, signal.SIGSTOP) or is_late(run, job):
                return None
            run.until(lambda: run.processes[1].poll() is not None, 20)
            lines = run.outputs[1].read_text().splitlines()
            assert run.processes[1].returncode == 1, run.story()
            said, = [line for line in lines if line.startswith("quern train: rank 1 on ")]
            assert ": this rank has to leave: too few of the other ranks can be reached" in said
            assert [row["exit"] for row in run.events("error")] == [1]
            run.kill(0, signal.SIGKILL)
        assert not out.exists()
        return True

    machine.caught(attempt)


def test_rank_that_is_slow_to_answer(job, tmp_path):
    """Stopped for less than the time limit: nobody is lost."""
    with launch.Run(job.quern, "meet", 3, job.train(tmp_path / "model")) as run:  # 20 s
        run.until('"epoch":2,')
        run.kill(1, signal.SIGSTOP)
        time.sleep(0.7)
        run.kill(1, signal.SIGCONT)
        assert run.wait(60) == [0, 0, 0], run.story()
        assert not any(row["lost"] for row in run.events("end")[0]["ranks"])
    assert job.made(tmp_path / "model")


# ---------------------------------------------------------------- two hosts, a cable

@pytest.mark.parametrize("slots, goes_on", [([2, 2], 0), ([1, 2], 1), ([2, 1], 0)])
def test_hosts_cut_apart(slots, goes_on, jobs, tmp_path):
    """Half with the lowest rank, or more than half, goes on; the others say why and write nothing,
    also when they can be reached again."""
    def attempt(size):
        job = jobs(size)
        with hosts.Hosts(2) as net:
            out = net.own / "model"
            shared = net.folder / "run"
            words = job.train(out, "--rank-timeout", TIMEOUT, "--run-dir", shared, "--runs", net.folder / "runs")
            with launch.Run(job.quern, "meet", sum(slots), words, net=net, slots=slots) as run:
                run.until('"epoch":2,')
                net.unplug(1)
                if is_late(run, job):
                    return None
                place = [0] * slots[0] + [1] * slots[1]
                codes = run.wait(60)
                net.plug(1)
                assert codes == [0 if here == goes_on else 1 for here in place], run.story()
                left = [run.outputs[r].read_text() for r, here in enumerate(place) if here != goes_on]
                assert all("cannot be reached" in text or "reach" in text for text in left), run.story()
            record_is_whole(job, shared)
            with sqlite3.connect(net.folder / "runs") as runs:
                assert runs.execute("SELECT state, epochs FROM runs").fetchall() == [("finished", job.epochs)]
            runs.close()
            assert net.read(1 - goes_on, out) is None
            net.run(goes_on, "cp", out, tmp_path / "model")
            assert job.made(tmp_path / "model")
        return True

    machine.caught(attempt)


def test_short_cut(jobs, tmp_path):
    """A cable pulled for less than the time limit: nothing happens."""
    def attempt(size):
        job, out = jobs(size), tmp_path / str(size)
        with hosts.Hosts(2) as net:
            words = job.train(out, "--rank-timeout", 6)
            with launch.Run(job.quern, "meet", 3, words, net=net, slots=[1, 2]) as run:
                run.until('"epoch":2,')
                net.unplug(1)
                if is_late(run, job):
                    return None
                time.sleep(1.0)
                assert not run.over()
                net.plug(1)
                assert run.wait(60) == [0, 0, 0], run.story()
                assert not any(row["lost"] for row in run.events("end")[0]["ranks"])
        return job.made(out)

    assert machine.caught(attempt)


@pytest.mark.parametrize("line", ["slow", "long"])
def test_poor_line(line, job, tmp_path):
    """Little passes between the hosts, or it takes long: the run takes longer, and that is all."""
    with hosts.Hosts(2, delay=0.002 if line == "long" else 0) as net:
        if line == "slow":
            net.rate(1, "100mbit")
        words = job.train(tmp_path / "model")
        with launch.Run(job.quern, "meet", 3, words, net=net, slots=[1, 2]) as run:
            assert run.wait(90) == [0, 0, 0], run.story()
            assert {row["host"] for row in run.events("end")[0]["ranks"]} == {"host-a", "host-b"}
    assert job.made(tmp_path / "model")


# ---------------------------------------------------------------- a host that is lost

@pytest.mark.parametrize("how", ["killed", "power cut"])
def test_host_lost_by_hand(how, jobs, tmp_path):
    """Without a launcher that ends everything, the hosts that are left go on."""
    def attempt(size):
        job, out = jobs(size), tmp_path / str(size)
        with hosts.Hosts(3) as net:
            words = job.train(out, "--rank-timeout", TIMEOUT)
            with launch.Run(job.quern, "meet", 4, words, net=net, slots=[1, 2, 1]) as run:
                run.until('"epoch":2,')
                (net.kill_all if how == "killed" else net.lose)(1)
                if is_late(run, job):
                    return None
                assert run.wait(60) == [0, -9, -9, 0], run.story()
                lost = [row["rank"] for row in run.events("end")[0]["ranks"] if row["lost"]]
                assert lost == [1, 2]
        return job.made(out)

    assert machine.caught(attempt)


@pytest.mark.parametrize("launcher, how", [
    ("openmpi5", "killed"), ("openmpi5", "power cut"), ("openmpi4", "power cut"),
    ("mpich", "killed")])
def test_host_lost_with_its_daemon(launcher, how, long_job, tmp_path):
    """mpirun's daemon dies with its host. Whatever the launcher then does (Open MPI 5 leaves at once
    with 0, and some ranks may go on without it), it ends, the ranks end, and if there is no model
    then the same command, started on what is left, goes on to it."""
    launch.need(launcher)
    out, checkpoints = tmp_path / "model", tmp_path / "checkpoints"
    words = long_job.train(out, "--checkpoint", checkpoints, "--checkpoint-every", 50,
                           "--rank-timeout", TIMEOUT)
    with hosts.Hosts(3) as net:
        with launch.Run(long_job.quern, launcher, 5, words, net=net, slots=[2, 2, 1],
                        deaths=True) as run:
            run.until(lambda: any(checkpoints.glob("checkpoint-*.safetensors")))
            (net.kill_all if how == "killed" else net.lose)(1)
            run.wait(60)
            run.until(lambda: not run.pids(), 30)
        assert not out.exists() or long_job.made(out)
        with launch.Run(long_job.quern, launcher, 2, [*words, "--resume"], net=net,
                        slots=[1, 0, 1]) as run:
            assert run.wait(60) == [0], run.story()
    assert long_job.made(out)


# ---------------------------------------------------------------- kernels

KERNEL = """INDEX(y, x); HALO(double, u, 1, wrap); SCALAR(int, work, 500); OUTPUT(double, v); NEXT(v, u); SUM(double, all);
KERNEL {
    double s = u(0, 1);
    for (int k = 0; k < work; k++) s = s * 0.5 + u(1, 0);
    v = s * 0.1 + u(0, 0); all = s;
}
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
@pytest.mark.parametrize("cut", ["apart", "short"])
def test_a_kernel_whose_hosts_are_cut_apart(quern, tmp_path, monkeypatch, cut):
    """As in a training: more than half goes on, and the others write nothing; a short cut is nothing."""
    numpy.save(tmp_path / "u.npy", numpy.random.default_rng(1).random((60, 50)))
    (tmp_path / "k.c").write_text(KERNEL)
    monkeypatch.setenv("QUERN_CACHE", str(tmp_path / "cache"))

    def attempt(size):
        words = ["run", "--kernel", tmp_path / "k.c", "--in", f"u={tmp_path / 'u.npy'}", "--iterations", 400,
                 "--set", f"work={500 * size}", "--threads", 1]
        subprocess.run([quern, *map(str, words), "--out", f"v={tmp_path / 'v.npy'}"], check=True, capture_output=True)
        with hosts.Hosts(2) as net:
            words += ["--out", f"v={net.own / 'v.npy'}", "--rank-timeout", TIMEOUT if cut == "apart" else 6,
                      "--checkpoint", net.own / "state", "--checkpoint-every", 5]
            with launch.Run(quern, "meet", 3, words, net=net, slots=[1, 2]) as run:
                run.until(lambda: net.read(0, net.own / "state"))
                net.unplug(1)
                if int(net.read(0, net.own / "state").split(b"\0iteration ")[1].split()[0]) > 350 or run.over():
                    return None
                time.sleep(1.0)
                if cut == "short":
                    net.plug(1)
                codes = run.wait(60)
                net.plug(1)
                assert codes == ([1, 0, 0] if cut == "apart" else [0, 0, 0]), run.story()
                assert cut == "short" or "reach" in run.outputs[0].read_text(), run.story()
            made = [net.read(host, net.own / "v.npy") for host in range(2)]
            assert made == [None, (tmp_path / "v.npy").read_bytes()] if cut == "apart" else \
                made == [(tmp_path / "v.npy").read_bytes(), None]
        return True

    machine.caught(attempt)

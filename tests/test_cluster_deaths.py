"""Ranks die, stop and are cut off at any moment: the others end with the same bytes, and nothing
hangs.

One run of each kind of failure; the moments are drawn from a seed, so that a failure can be
repeated. bench/deaths.py makes hundreds of such runs.
"""

import functools
import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

import deaths
import hosts
import launch
import machine
from cluster_job import AUGMENT, LAYERS, Job

# Kinds that run on one machine under Open MPI; all others are started by hand, at a drawn place.
BY_MPI = {"two at once": "openmpi5", "one after another": "openmpi4", "end": "openmpi5",
          "short stop": "openmpi4"}
# Kinds that are run on one machine in any case, because a drawn place would seldom be that.
ON_ONE = {*BY_MPI, "speaker", "checkpoint"}
TRIES = 5  # seeds, until the fault meets a run that is not over
LIMIT = 40  # seconds until a run counts as one that hangs


# Kinds that hit the job with layers that do not train, a residual block, batchnorm and augmentation.
LAYERED = ["one", "two at once", "checkpoint", "cut", "power cut"]


@pytest.fixture(scope="module")
def jobs(quern, job, tmp_path_factory):
    return {"usual": Job(quern, tmp_path_factory.mktemp("job"), epochs=60), "layers": job,
            "large": Job(quern, tmp_path_factory.mktemp("large"), items=6000, epochs=5, batch=256,
                         every=25, network="dense 500 tanh; dense 10 softmax", grain=32)}


@pytest.fixture(scope="module")
def job(quern, tmp_path_factory):
    return Job(quern, tmp_path_factory.mktemp("small"), epochs=20, network=LAYERS, more=AUGMENT, freeze="0..1")


@pytest.fixture(scope="module")
def net():
    with hosts.Hosts(5, faults=True) as made:
        yield made


# Others of the same make meet the same code.
REPEATED = ["in recovery", "last in checkpoint", "all but one", "stop of the speaker", "one-way cut",
            "cut between two", "long outage", "two outages", "delay", "loss of 1 %", "bit in a head",
            "reset and outage", "kill in an outage", "power cut of most"]


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[machine.LONG] * (kind.name in REPEATED),
                                               id=kind.name.replace(" ", "-")) for kind in deaths.KINDS])
def test_failure(kind, jobs, request, tmp_path):
    launcher = BY_MPI.get(kind.name, "meet")
    launch.need(launcher)
    place = deaths.ONE if kind.name in ON_ONE else None
    for seed in range(TRIES):
        drawn = deaths.draw(kind, seed, launcher, place)
        net = request.getfixturevalue("net") if drawn.place in deaths.ON_HOSTS else None
        folder = tmp_path / str(seed)
        folder.mkdir()
        job = jobs["layers" if kind.name in LAYERED else kind.job]
        trial = deaths.trial(job, folder, launcher, seed, kind, place=place, net=net,
                             limit=LIMIT)
        print(trial)
        assert not trial.wrong, f"{trial}: {trial.class_}: {trial.wrong}"
        if trial.faults:
            return
    pytest.fail(f"{kind.name} met no run that was not over yet")


@pytest.mark.parametrize("launcher", ["openmpi4", "openmpi5"])
def test_sums_by_mpi(launcher, jobs, tmp_path):
    """MPI carries the sums, and a rank dies. With ULFM the others go on by MPI, otherwise by sockets."""
    job = jobs["large"]
    with hosts.Hosts(3) as net:
        words = job.train(tmp_path / "model", "--transport", "mpi")
        with launch.Run(job.quern, launcher, 3, words, net=net, slots=[1] * 3, deaths=True) as run:
            run.until('"event":"epoch"')
            assert run.kill(1)
            assert run.wait(LIMIT) == [0], run.story()
            notes = " ".join(row["text"] for row in run.events("ranks"))
    assert job.made(tmp_path / "model")
    assert "rank 1 on host-b has died" in notes
    assert ("the sums go by sockets" in notes) == (launcher == "openmpi4")


# ---------------------------------------------------------------- what a failed run is known by

def stage(job, codes, text="", **more):
    """What deaths.py looks at after a run of three ranks."""
    run = SimpleNamespace(known={0: 10, 1: 11, 2: 12}, events=lambda kind: [
        row for row in map(json.loads, text.splitlines()) if row["event"] == kind])
    empty = {"dead": set(), "leaves": set(), "cut_off": set(), "may_leave": set(), "most_lost": 0,
             "no_quorum": False, "folders": [job.folder]}
    trial = deaths.Trial("meet", deaths.ONE, 3, "one", 0, [deaths.Fault("kill", 2, 0.0)], codes)
    return SimpleNamespace(trial=trial, run=run, job=job, **{**empty, **more})


def end(*lost):
    ranks = [{"rank": r, "lost": r in lost} for r in range(3)]
    return json.dumps({"event": "end", "ranks": ranks})


@pytest.mark.parametrize("class_, codes, text, more", [
    ("", [0, 0, -9], end(2), {"dead": {2}}),
    ("codes", [0, 0, 0], end(2), {"dead": {2}}),
    ("codes", [0, 1, -9], end(2), {"dead": {2}}),
    ("lost", [0, 0, -9], end(1, 2), {"dead": {2}}),
    ("lost", [0, 0, 0], end(1), {}),
    ("", [0, 0, 0], end(1), {"leaves": {1}}),
    ("codes", [0, 1, 0], end(1), {"leaves": {1}}),
    ("", [0, 1, 0], end(1), {"cut_off": {1}}),
    ("codes", [0, 0, 0], end(1), {"cut_off": {1}}),
    ("", [0, 1, 0], end(1), {"may_leave": {1, 2}, "most_lost": 1}),
    ("lost", [0, 1, 0], end(1, 2), {"may_leave": {1, 2}, "most_lost": 1}),
    ("bytes", [1, -9, -9], "", {"dead": {1, 2}, "cut_off": {0}, "no_quorum": True}),
])
def test_judge(class_, codes, text, more, job):
    assert deaths.judge(stage(job, codes, text, **more), job.folder / "alone")[0] == class_


def test_judge_files(job, tmp_path):
    """Another byte, no model, a checkpoint cut short, and a partial file of a rank that ended."""
    whole = (job.folder / "alone").read_bytes()
    for name, data, class_ in (("model", whole[:-1] + bytes([whole[-1] ^ 1]), "bytes"),
                               ("model", None, "bytes"), ("model", whole, ""),
                               ("checkpoint-1.safetensors", whole, ""),
                               ("checkpoint-2.safetensors", whole[:-1], "files"),
                               ("checkpoint-2.safetensors", b"", "files"),
                               ("checkpoint-2.safetensors", None, ""),
                               (".quern-12-x", b"", ""), (".quern-10-x", b"", "files")):
        (tmp_path / name).unlink(missing_ok=True)
        if data is not None:
            (tmp_path / name).write_bytes(data)
        s = stage(job, [0, 0, -9], end(2), dead={2}, folders=[tmp_path])
        assert deaths.judge(s, tmp_path / "model")[0] == class_, name


def test_told(job):
    """Each epoch once and one end, whoever tells them."""
    lines = [json.dumps({"event": "epoch", "epoch": e + 1}) for e in range(job.epochs)]
    for rows, told in ((lines, "end 0 times"), ([*lines, end()], ""),
                       ([*lines, lines[4], end()], "epoch 5 2 times"),
                       ([*lines[1:], end(), end()], "epoch 1 0 times, end 2 times")):
        assert deaths.told(stage(job, [], "\n".join(rows))) == told


def test_hang(job, tmp_path):
    """A run that does not end in time is stopped, and shows where its threads are."""
    kind = deaths.Kind("asleep", "", "", lambda s: None, ranks=(2,), midwrite=True)
    trial = deaths.trial(job, tmp_path, "meet", 0, kind, limit=0.5)
    assert trial.class_ == "hang" and trial.wrong.startswith("it hangs after ")
    assert shutil.which("gdb") is None or "#1 " in trial.wrong and "Thread" in trial.wrong


# ---------------------------------------------------------------- all or none

def test_nobody_dies(job, tmp_path):
    """What the others are compared with: these launchers, these options, no death."""
    for launcher in launch.LAUNCHERS:
        with launch.Run(job.quern, launcher, 3, job.train(tmp_path / launcher), deaths=True) as run:
            assert set(run.wait(60)) == {0}, run.story()
        assert job.made(tmp_path / launcher), launcher


def test_all_die(quern, tmp_path):
    """Nobody is left: nothing is written, and the run goes on from its checkpoint."""
    def attempt(size):
        (tmp_path / str(size)).mkdir()
        job = Job(quern, tmp_path / str(size), epochs=30 * size)
        out, checkpoints = job.folder / "model", job.folder / "checkpoints"
        words = job.train(out, "--checkpoint", checkpoints, "--checkpoint-every", 5)
        with launch.Run(quern, "meet", 3, words) as run:
            run.until('"epoch":3,')
            for rank in range(3):
                run.kill(rank)
            codes = run.wait(30)
        return (job, out, words, codes) if 0 not in codes else None

    job, out, words, codes = machine.caught(attempt)
    assert codes == [-9] * 3 and not out.exists()
    with launch.Run(quern, "meet", 2, [*words, "--resume"]) as run:
        assert run.wait(60) == [0, 0], run.story()
        assert run.events("end")[0]["resumed_from"] > 0
    assert job.made(out)


def test_launcher_that_ends_all(quern, tmp_path):
    """MPICH's mpiexec kills the others when a rank is killed, and Open MPI's unless it is told not
    to: the run ends, and started again it goes on from its checkpoint."""
    @functools.cache
    def jobs(size):
        (tmp_path / f"job-{size}").mkdir()
        return Job(quern, tmp_path / f"job-{size}", epochs=150 * size)

    def attempt(size):
        job, out = jobs(size), tmp_path / f"{launcher}-{size}"
        words = job.train(out, "--checkpoint", f"{out}-checkpoints", "--checkpoint-every", 40)
        with launch.Run(quern, launcher, 3, words) as run:
            run.until(lambda: any(Path(f"{out}-checkpoints").glob("checkpoint-*.safetensors")))
            run.kill(1)
            codes = run.wait(30)
            if f'"epoch":{job.epochs - 5},' in run.text():
                return None
            assert codes != [0] and not out.exists(), run.story()
        return job, out, words

    for launcher in launch.MPIS if "QUERN_LONG_TESTS" in os.environ else ["mpich"]:
        launch.need(launcher)
        job, out, words = machine.caught(attempt)
        with launch.Run(quern, launcher, 2, [*words, "--resume"]) as run:
            assert run.wait(60) == [0], run.story()
            assert run.events("end")[0]["resumed_from"] > 0
        assert job.made(out), launcher
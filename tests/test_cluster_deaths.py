"""Ranks die, stop and are cut off at any moment: the others end with the same bytes, and nothing
hangs.

One run of each kind of failure; the moments are drawn from a seed, so that a failure can be
repeated. bench/deaths.py makes hundreds of such runs.
"""

import pytest

import deaths
import hosts
import launch
from cluster_job import Job

# Kinds that run on one machine under Open MPI; all others are started by hand, at a drawn place.
BY_MPI = {"two at once": "openmpi5", "one after another": "openmpi4", "end": "openmpi5",
          "short stop": "openmpi4"}
# Kinds that are run on one machine in any case, because a drawn place would seldom be that.
ON_ONE = {*BY_MPI, "speaker", "checkpoint"}
TRIES = 3  # seeds, until the fault meets a run that is not over
LIMIT = 40  # seconds until a run counts as one that hangs


@pytest.fixture(scope="module")
def jobs(quern, tmp_path_factory):
    return {"usual": Job(quern, tmp_path_factory.mktemp("job"), epochs=60),
            "large": Job(quern, tmp_path_factory.mktemp("large"), items=6000, epochs=5, batch=256,
                         every=25, network="dense 500 tanh; dense 10 softmax", grain=32)}


@pytest.fixture(scope="module")
def job(quern, tmp_path_factory):
    return Job(quern, tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def net():
    with hosts.Hosts(5, faults=True) as made:
        yield made


@pytest.mark.parametrize("kind", deaths.KINDS, ids=lambda kind: kind.name.replace(" ", "-"))
def test_failure(kind, jobs, request, tmp_path):
    launcher = BY_MPI.get(kind.name, "meet")
    launch.need(launcher)
    place = deaths.ONE if kind.name in ON_ONE else None
    for seed in range(TRIES):
        drawn = deaths.draw(kind, seed, launcher, place)
        net = request.getfixturevalue("net") if drawn.place in deaths.ON_HOSTS else None
        folder = tmp_path / str(seed)
        folder.mkdir()
        trial = deaths.trial(jobs[kind.job], folder, launcher, seed, kind, place=place, net=net,
                             limit=LIMIT)
        print(trial)
        assert not trial.wrong, f"{trial}: {trial.class_}: {trial.wrong}"
        if trial.faults:
            return
    pytest.fail(f"{kind.name} met no run that was not over yet")


def test_nobody_dies(job, tmp_path):
    """What the others are compared with: these launchers, these options, no death."""
    for launcher in launch.LAUNCHERS:
        with launch.Run(job.quern, launcher, 3, job.train(tmp_path / launcher), deaths=True) as run:
            assert set(run.wait(60)) == {0}, run.story()
        assert job.made(tmp_path / launcher), launcher


def test_all_die(job, tmp_path):
    """Nobody is left: nothing is written, and the run goes on from its checkpoint."""
    out, checkpoints = tmp_path / "model", tmp_path / "checkpoints"
    words = job.train(out, "--checkpoint", checkpoints, "--checkpoint-every", 5)
    with launch.Run(job.quern, "meet", 3, words) as run:
        run.until('"epoch":3,')
        for rank in range(3):
            run.kill(rank)
        assert run.wait(30) == [-9] * 3
    assert not out.exists()
    with launch.Run(job.quern, "meet", 2, [*words, "--resume"]) as run:
        assert run.wait(60) == [0, 0], run.story()
        assert run.events("end")[0]["resumed_from"] > 0
    assert job.made(out)


def test_launcher_that_ends_all(quern, tmp_path):
    """MPICH's mpiexec kills the others when a rank is killed, and Open MPI's unless it is told not
    to: the run ends, and started again it goes on from its checkpoint."""
    job = Job(quern, tmp_path, epochs=150)
    for launcher in launch.MPIS:
        launch.need(launcher)
        out, checkpoints = tmp_path / launcher, tmp_path / f"{launcher}-checkpoints"
        words = job.train(out, "--checkpoint", checkpoints, "--checkpoint-every", 5)
        with launch.Run(job.quern, launcher, 3, words) as run:
            run.until(lambda: any(checkpoints.glob("checkpoint-*.safetensors")))
            run.kill(1)
            assert run.wait(30) != [0] and not out.exists(), run.story()
        with launch.Run(job.quern, launcher, 2, [*words, "--resume"]) as run:
            assert run.wait(60) == [0], run.story()
            assert run.events("end")[0]["resumed_from"] > 0
        assert job.made(out), launcher

"""kill -9 of ranks at any moment: those that are left end with the same bytes, and nothing hangs.

The kills are drawn from a seed each, so a failure can be had again; bench/deaths.py makes hundreds.
"""

import pytest

import deaths
import launch
from cluster_job import Job

# Every kind of death twice with the ranks started by hand and by Open MPI 5, once by 4.1.
TRIALS = [(launcher, seed) for launcher, seeds in (
    ("meet", range(18)), ("openmpi5", range(18)), ("openmpi4", range(18, 27))) for seed in seeds]


@pytest.fixture(scope="module")
def job(quern, tmp_path_factory):
    return Job(quern, tmp_path_factory.mktemp("job"))


@pytest.mark.parametrize("launcher, seed", TRIALS)
def test_kill(launcher, seed, job, tmp_path):
    launch.need(launcher)
    trial = deaths.trial(job, tmp_path, launcher, seed)
    print(trial)
    assert not trial.wrong, f"{trial}: {trial.wrong}"


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

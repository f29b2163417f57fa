"""quern.submit from Python: what it hands over, and what it tells of the job."""

import importlib
import os
import re

import pytest

import python_package
import recipes

OPTIONS = {"data": recipes.FEW["data"], "labels": recipes.FEW["labels"], "model": "dense 10 softmax", "weight_decay": 0.5, "epochs": 1,
           "threads": 1, "quiet": True, "report": None, "nesterov": False, "output": "it's a model"}


@pytest.fixture
def q(quern, tmp_path, monkeypatch):
    python_package.folder()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUERN_JOBS", str(tmp_path / "jobs"))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.path.dirname(quern)}:{os.environ['PATH']}")
    return importlib.import_module("quern")


def test_a_job_of_this_machine(q, quern):
    job = q.submit("local", "train", OPTIONS, name="mine")
    assert (job.engine, job.name, job.result) == ("local", "mine", os.path.abspath("it's a model"))
    assert "--weight-decay=0.5" in job.command and "--quiet" in job.command.split() and not re.search("report|nesterov", job.command)
    assert job.wait(timeout=240, pause=0.05) == "done" == job.state
    assert job.load().digest in job.log
    [other] = q.jobs(program=quern)
    assert (other.id, other.log, repr(other)) == (job.id, job.log, f"<quern.Job local {job.id} mine>")


def test_a_job_of_slurm(q, tmp_path):
    """A script stands for Slurm: what it gets, states on the way, and a job that it forgot."""
    for name, text in (("sbatch", 'cp "$2" given; echo 12'), ("squeue", "[ -e running ] && echo RUNNING"), ("sacct", "exit 1")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    job = q.submit("slurm", "train", ["--data", "a b.csv", "-o", "m"], ranks=3, time="04:00:00", dry_run=False)
    given = (tmp_path / "given").read_text()
    assert "#SBATCH --time=04:00:00" in given and "#SBATCH --nodes=2-3" in given and "--data 'a b.csv'" in given
    assert job.id == "12" and job.state == "unknown" and "does not know it" in job.detail and job.log == ""
    (tmp_path / "running").write_text("")
    with pytest.raises(TimeoutError, match="slurm 12 m> is running"):
        job.wait(timeout=0)
    (tmp_path / "running").unlink()
    (tmp_path / "m-12.log").write_text("said")
    (tmp_path / "jobs" / "slurm-12.ended").write_text("1\n")
    assert job.wait() == "failed" and job.log == "said"


def test_what_cannot_be_submitted(q, quern, tmp_path, monkeypatch):
    for engine, command, options, more, told in (("slrm", "train", {}, {}, "engine cannot be 'slrm'"),
                                                 ("local", "train", {"lrr": 1, "output": "m"}, {}, 'no option "--lrr".*did you mean --lr'),
                                                 ("local", "train", {"epochs": 1}, {}, "-o FILE is required"),
                                                 ("local", "train", {"output": "m"}, {"time": 3}, "--time belongs to --slurm"),
                                                 ("local", "predict", ["m"], {}, "only train, run")):
        with pytest.raises(q.UsageError, match=told):
            q.submit(engine, command, options, **more)
    with pytest.raises(q.FileError, match="No such file"):
        q.jobs(program=tmp_path / "absent")
    assert not (tmp_path / "jobs").exists() or not list((tmp_path / "jobs").glob("*.json"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    with pytest.raises(q.QuernError, match='no command "kubectl"'):
        q.submit("kubernetes", "train", {"output": "m"}, image="i", program=quern)
    with pytest.raises(q.UnsupportedError, match="command quern is not on the PATH"):
        q.jobs()

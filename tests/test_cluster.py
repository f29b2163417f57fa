"""The bytes do not depend on who started how many ranks, where, nor on what they compute with.

The digests are those of tests/digests.txt. What one process of its own is told (--meet) is tested
in test_ranks.py; here are the launchers, several hosts, and mixed ranks.
"""

import json
import os
import shlex
import signal

import pytest

import devices
import hosts
import launch
import machine
import recipes
import processor
from cluster_job import Job

A_FEW = ["dropout", "batch-50-grain-7", "batch-300-grain-1"]


@pytest.fixture(scope="module")
def files(quern, tmp_path_factory):
    return recipes.make_data([quern], tmp_path_factory.mktemp("data"))


def train(name, files, out, *more):
    arguments = [a.format(**files) for a in shlex.split(recipes.RECIPES[name])]
    return ["train", *arguments, "--json", *more, "-o", out]


def check(run, name, out, seconds=60):
    """The run ended well and its model is the recipe's; its report."""
    assert set(run.wait(seconds)) == {0}, run.story()
    assert recipes.sha256(out) == recipes.table()[name], run.story()
    reports = run.events("end")
    assert len(reports) == 1, f"{len(reports)} ranks spoke\n{run.story()}"
    return reports[0]


# ---------------------------------------------------------------- launchers and counts

@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("launcher", launch.MPIS)
def test_launcher(launcher, ranks, quern, files, tmp_path):
    for name in A_FEW if ranks == 3 else A_FEW[1:2]:
        with launch.Run(quern, launcher, ranks, train(name, files, tmp_path / "model")) as run:
            report = check(run, name, tmp_path / "model")
            assert len(report.get("ranks", [0])) == ranks


@pytest.mark.parametrize("launcher", launch.LAUNCHERS)
def test_two_hosts(launcher, quern, files, tmp_path):
    with hosts.Hosts(2) as net:
        words = train("dropout", files, tmp_path / "model")
        with launch.Run(quern, launcher, 3, words, net=net, slots=[2, 1]) as run:
            report = check(run, "dropout", tmp_path / "model")
            assert [row["host"] for row in report["ranks"]] == ["host-a", "host-a", "host-b"]
            assert 0 < report["ranks"][2]["bytes_out"] < report["ranks"][2]["counted_out"]


@pytest.mark.parametrize("launcher", launch.MPIS)
def test_predict_and_replay(launcher, quern, run_quern, files, tmp_path):
    model, alone, shared = tmp_path / "model", tmp_path / "alone.csv", tmp_path / "shared.csv"
    recipes.train([quern], "dropout", files, model)
    words = ["predict", model, "--data", files["images"]]
    run_quern(*words, "-o", alone)
    with launch.Run(quern, launcher, 3, [*words, "-o", shared]) as run:
        assert run.wait(60) == [0], run.story()
    assert shared.read_bytes() == alone.read_bytes()
    words = ["replay", model, "--data", files["images"], "--labels", files["labels"]]
    with launch.Run(quern, launcher, 2, words) as run:
        assert run.wait(60) == [0], run.story()


@pytest.mark.parametrize("launcher, name", [("openmpi5", "Open MPI 5"), ("openmpi4", "Open MPI 4"),
                                            ("mpich", "MPICH ")])
def test_version_names_the_launchers_library(launcher, name, quern):
    for ranks in (1, 2):
        with launch.Run(quern, launcher, ranks, ["version"]) as run:
            assert run.wait(30) == [0], run.story()
            text = run.text()
        assert text.count(f"MPI: {name}") == ranks and text.count("started by: ") == ranks
        deaths = "end the run under the launcher of this MPI; start it again from its checkpoint " \
            if launcher == "mpich" else "the run continues with mpirun --"
        assert text.count(f"failed ranks: {deaths}") == text.count("failed ranks") == ranks


# ---------------------------------------------------------------- one time line

def spans(trace, name):
    """[(begin, end)] of the spans of that name, in order, for each process of a trace."""
    rows = {}
    for e in trace:
        if e.get("ph") == "X" and e["name"] == name:
            rows.setdefault(e["pid"], []).append((e["ts"], e["ts"] + e["dur"]))
    return {pid: sorted(row) for pid, row in rows.items()}


@pytest.mark.parametrize("launcher", ["openmpi5", "meet"])
def test_one_trace_of_all_ranks(launcher, quern, files, tmp_path):
    """A row of spans for each rank; no rank has a round's total before the last has its part, within
    the 5 ms by which clocks of two hosts may seem to differ where messages have to wait."""
    out = tmp_path / "trace.json"
    with hosts.Hosts(2) as net:
        words = train("dropout", files, tmp_path / "model", "--trace", out)
        with launch.Run(quern, launcher, 3, words, net=net, slots=[2, 1]) as run:
            report = check(run, "dropout", tmp_path / "model")
    trace = json.loads(out.read_text())["traceEvents"]
    names = [e["args"]["name"] for e in trace if e["name"] == "process_name"]
    assert names == ["rank 0 on host-a", "rank 1 on host-a", "rank 2 on host-b"]
    rounds = list(spans(trace, "ranks").values())
    assert len(rounds) == 3 and len({len(row) for row in rounds}) == 1
    assert len(rounds[0]) >= report["steps"]
    late = [k for k, of_all in enumerate(zip(*rounds))
            if min(end for _, end in of_all) < max(begin for begin, _ in of_all) - 5000]
    assert not late, f"rounds {late} end before they begin {rounds}"
    assert {len(row) for row in spans(trace, "update").values()} == {report["steps"]}


# ---------------------------------------------------------------- unequal ranks

def test_instruction_sets(quern, files, tmp_path):
    there = processor.here()
    each = {rank: ["--isa", isa] for rank, isa in enumerate(there)}
    each[len(there)] = ["--isa", "auto"]
    for launcher in launch.LAUNCHERS:
        for name in A_FEW[:2]:
            words = train(name, files, tmp_path / "model")
            with launch.Run(quern, launcher, len(each), words, each=each) as run:
                check(run, name, tmp_path / "model")


@pytest.mark.parametrize("kind", devices.KINDS)
def test_one_rank_without_its_processor(kind, quern, files, tmp_path):
    """A rank with nothing but PoCL's device, or an emulated GPU, beside ranks of cores."""
    (name,), environment = devices.KINDS[kind]()
    environment = {k: v for k, v in environment.items() if os.environ.get(k) != v}
    each = {0: ["--devices", "cpu"], 1: ["--devices", name], 2: ["--devices", "cpu"]}
    for recipe in A_FEW[:2]:
        words = train(recipe, files, tmp_path / "model", "--threads", 1)
        with launch.Run(quern, "meet", 3, words, each=each, environment=environment) as run:
            report = check(run, recipe, tmp_path / "model", 120)
            by_rank = {w["rank"]: w for w in report["workers"]}
            assert by_rank[1]["name"] == name and by_rank[1]["grains"] > 0


# ---------------------------------------------------------------- other counts at every start

@pytest.mark.parametrize("launcher", launch.LAUNCHERS)
def test_resume_on_other_counts(launcher, quern, tmp_path):
    def attempt(size):
        folder = tmp_path / str(size)
        folder.mkdir()
        job = Job(quern, folder, epochs=30 * size)
        out, checkpoints = folder / "model", folder / "checkpoints"
        words = job.train(out, "--checkpoint", checkpoints, "--checkpoint-every", 3 * size)
        for ranks in (1, 3, 2):
            more = ["--resume"] if any(checkpoints.glob("checkpoint-*.safetensors")) else []
            with launch.Run(quern, launcher, ranks, [*words, *more]) as run:
                run.until('"epoch"')
                run.until(lambda: any(checkpoints.glob("checkpoint-*.safetensors")))
                run.kill(ranks - 1, signal.SIGTERM)
                codes = run.wait(30)
                if out.exists():
                    return None
                assert 0 in codes or 130 in codes or launcher != "meet", run.story()
        return job, out, words

    job, out, words = machine.caught(attempt)
    with launch.Run(quern, launcher, 5, [*words, "--resume"]) as run:
        assert set(run.wait(60)) == {0}, run.story()
    assert job.made(out)
"""Runs in integer arithmetic (--arith i7, i14, i21): what one recipe in the matrix does not show.

Instruction sets beside one another in one run, a run that is killed and goes on elsewhere, ranks
that die, predictions, and what cannot be computed with integers.
"""

import csv
import fcntl
import json
import os
import shlex
import signal
import subprocess

import numpy as np
import pytest

import builds
import deaths
import devices
import machine
import processor
import ranks
import recipes
from cluster_job import AUGMENT, INTEGER_LAYERS, Job


@pytest.fixture(scope="module")
def files(quern, tmp_path_factory):
    return recipes.make_data([quern], tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def job(quern, tmp_path_factory):
    return layered(quern, tmp_path_factory, "i14", epochs=16)


def layered(quern, factory, arith, epochs, items=1000):
    """Blocks of integers of images that change in each epoch, running averages, floats between them."""
    return Job(quern, factory.mktemp(arith), items=items, epochs=epochs, arith=arith, network=INTEGER_LAYERS,
               more=AUGMENT)


def words_of(name, files):
    return ["train", *(a.format(**files) for a in shlex.split(recipes.RECIPES[name])),
            "--threads", "1"]


# ---------------------------------------------------------------- one run, many processors

@pytest.mark.parametrize("name", ["i7-adamw", "i14-batch-50-grain-7", "i21-batch-300-grain-1",
                                  "i14-bytes-fraction", "residual-i21-dropout", "groups-i7-first"])
def test_every_instruction_set_in_one_run(name, quern, files, tmp_path):
    """A rank for each that this machine has: scalar beside VNNI beside AMX, in every step, which
    has 8 grains or more."""
    sets = processor.here(integers=True)
    done = ranks.run(quern, len(sets), *words_of(name, files), "--json", "-o", tmp_path / "m",
                     own={i: ["--isa", isa] for i, isa in enumerate(sets)})
    assert recipes.sha256(tmp_path / "m") == recipes.table()[name]
    end = json.loads(done[0][1].splitlines()[-1])
    assert [r["items"] > 0 for r in end["ranks"]] == [True] * len(sets)


WIDE = ("conv 12 3x3 relu; conv 20 3x2 pad 1 relu; conv 34 3x3 relu; conv 70 2x3 stride 2 pad 1 relu dropout 0.3; conv 40 3x3 tanh; "
        "globalpool; dense 3 softmax")

# Pools whose windows do not overlap, which are computed with the convolution before them.
POOLED = ("conv 20 3x3 relu; maxpool 2; residual { conv 36 3x3 relu; maxpool 2 | conv 36 1x1 stride 2 } relu; "
          "conv 40 1x1 relu; maxpool 1x2; conv 34 3x1; maxpool 3x1; dense 3 softmax")


@pytest.mark.parametrize("arith, grain, model", [("i7", 5, WIDE), ("i14", 16, WIDE), ("i14", 16, POOLED)])
def test_wide_convolutions(arith, grain, model, run_quern, tmp_path):
    """Enough items for convolutions by tiles, which only AMX has, of few and of many channels: every set
    has their bytes.
    The last batch has three items."""
    random = np.random.default_rng(1)
    shape = (6, 7) if model == WIDE else (12, 8)
    np.save(tmp_path / "x.npy", random.integers(0, 256, (41, shape[0] * shape[1]), np.uint8))
    np.save(tmp_path / "y.npy", np.arange(41, dtype=np.uint8) % 3)
    made = set()
    for isa in processor.here(integers=True):
        run_quern("train", "--data", tmp_path / "x.npy", "--labels", tmp_path / "y.npy", "--shape",
                  "1x{}x{}".format(*shape), "--model", model, "--loss", "cross-entropy", "--batch", "19", "--grain", str(grain), "--epochs",
                  "2", "--lr", "0.1", "--arith", arith, "--isa", isa, "--quiet", "-o", tmp_path / isa)
        made.add(recipes.sha256(tmp_path / isa))
    assert len(made) == 1


@pytest.mark.parametrize("count", [2, 3])
def test_ranks(count, quern, files, tmp_path):
    ranks.run(quern, count, *words_of("i14-batch-50-grain-7", files), "--quiet", "-o",
              tmp_path / "m")
    assert recipes.sha256(tmp_path / "m") == recipes.table()["i14-batch-50-grain-7"]


@pytest.mark.parametrize("arith, data, scale", [
    ("f32", "csv", "unit"), ("i7", "csv", "unit"), ("i14", "csv", "fraction"),
    ("i21", "csv", "fraction"), ("i14", "decimals", "standard")])
def test_usual_scale(arith, data, scale, run_quern, files, tmp_path):
    """Bytes are scaled so that the integers hold them, where they can."""
    done = run_quern("train", "--data", files[data], "--arith", arith, "--epochs", "1", "--model",
                     "dense 10 softmax", "-o", tmp_path / "m")
    assert f" scale {scale}, " in done.stderr + done.stdout


# ---------------------------------------------------------------- killed, and gone on elsewhere

def kill_after_epochs(quern, words, count=1, environment=None):
    """The pipe has space for so few lines more that the process waits for it until it is killed."""
    ours, theirs = os.pipe()
    fcntl.fcntl(ours, fcntl.F_SETPIPE_SZ, 4096)
    os.write(theirs, b"\n" * (4096 - 900 - 330 * count))
    process = subprocess.Popen([quern, *map(str, words)], stdout=theirs, env=environment)
    os.close(theirs)
    with open(ours, "rb", buffering=0) as told:
        seen = b""
        while seen.count(b'"epoch":') < count:  # not to the end of the line: an empty pipe has space again
            seen += (more := told.read(1))
            assert more, "it ended"
        process.kill()
    assert process.wait() == -signal.SIGKILL


def test_killed_and_resumed_elsewhere(quern, run_quern, job, tmp_path):
    """kill -9 again and again, each time to go on with another instruction set and other threads."""
    state, out = tmp_path / "state", tmp_path / "m"
    words = [*job.train(out), "--checkpoint", state, "--checkpoint-every", 1, "--resume"]
    for threads, isa in enumerate(processor.here(integers=True), 1):
        kill_after_epochs(quern, [*words, "--isa", isa, "--threads", threads])
    assert any(state.glob("checkpoint-*.safetensors")) and not out.exists()
    done = run_quern(*words)
    assert json.loads(done.stdout.splitlines()[-1])["resumed_from"] > 0
    assert job.made(out)


@machine.LONG
@pytest.mark.parametrize("kind", devices.KINDS)
@pytest.mark.parametrize("arith", ["i7", "i14", "i21"])
def test_killed_and_resumed_on_other_devices(quern, kind, arith, tmp_path_factory, tmp_path):
    """The state of a device alone is that of both, of two devices, and of the processor beside one."""
    job = layered(quern, tmp_path_factory, arith, epochs=60, items=100)
    names, environment = devices.KINDS[kind](2)
    state, out = tmp_path / "state", tmp_path / "m"
    words = [*job.train(out), "--checkpoint", state, "--checkpoint-every", 1, "--resume", "--device-timeout", 600]
    for team in [names[0]], ["cpu", *names], names, ["cpu", names[1]]:
        share = ["--shares", ",".join("111"[:len(team)])] if len(team) > 1 else []
        # An epoch is one step here, and told before its checkpoint is written.
        kill_after_epochs(quern, [*words, "--devices", ",".join(team), *share], 3, environment)
    assert any(state.glob("checkpoint-*.safetensors")) and not out.exists()
    done = subprocess.run([quern, *map(str, words), "--devices", f"cpu,{names[1]}", "--shares", "9,1"],
                          env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["resumed_from"] > 0
    assert job.made(out)


@pytest.mark.parametrize("seed", range(4))
def test_ranks_that_die(seed, job, tmp_path):
    trial = deaths.trial(job, tmp_path, "meet", 100 + seed, kind=deaths.KINDS[seed])
    assert not trial.wrong, f"{trial}: {trial.wrong}"


# ---------------------------------------------------------------- replay and predictions

@pytest.mark.parametrize("name", ["i14-relu-momentum", "i14-bytes-fraction", "residual-i14-batchnorm"])
def test_replay(quern, run_quern, files, tmp_path, name):
    """By the slowest instruction set and by the fastest; with other bits it is another model."""
    model, data = tmp_path / "m", ["--data", files["images"], "--labels", files["labels"]]
    recipes.train([quern], name, files, model)
    for isa in ("scalar", "auto"):
        assert "identical" in run_quern("replay", model, *data, "--isa", isa).stdout
    assert model.read_bytes().count(b'"i14\\"') == 1
    model.write_bytes(model.read_bytes().replace(b'"i14\\"', b'"i21\\"'))
    assert "differs" in run_quern("replay", model, *data, status=3).stderr


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))[1:]


def test_prediction_looks_at_no_neighbour(quern, run_quern, files, tmp_path):
    """The scores of an item are the same alone, among others and in any order, on any processor:
    in integers, too, what is rounded together is one item."""
    model = tmp_path / "model"
    recipes.train([quern], "i14-sizes-none", files, model)
    lines = files["sizes"].read_text().splitlines()
    far = ",".join(["3", *["3e37"] * (lines[0].count(","))])
    orders = {"whole": lines, "turned": lines[::-1], "one": lines[7:8],
              "beside the greatest": [far, *lines, far]}
    scores = {}
    for order, some in orders.items():
        (tmp_path / "some.csv").write_text("\n".join(some) + "\n")
        for way in (["--isa", "scalar"], ["--threads", "3"]):
            run_quern("predict", model, "--data", tmp_path / "some.csv", "--outputs", *way, "-o",
                      tmp_path / "scores.csv")
            rows = rows_of(tmp_path / "scores.csv")
            assert len(rows) == len(some)
            for line, row in zip(some, rows):
                assert scores.setdefault(line, row[1:]) == row[1:], (order, way)


# -------------------------------------------------------------------- more layers than usual

def test_many_layers(tmp_path):
    """A pass over sixteen layers whose sums go to an outlet, as a rank's do, under the address
    sanitizer: it has more phases than any other, and each has its counters."""
    program = builds.ready("asan") / "quern"
    model = "; ".join(["dense 6 tanh"] * 15 + ["dense 10 softmax"])
    done = subprocess.run([program, "devices", "--costs", "--model", model, "--arith", "i14"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]

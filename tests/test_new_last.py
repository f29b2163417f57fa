"""The random numbers of a new last layer (docs/exactness.md 24.60, 24.83): its first loss is that of one that knows
nothing, and models of the former rule can still be repeated."""

import json
import math

import pytest

import recipes
from test_oracle import run_oracle


@pytest.fixture(scope="module")
def data(run_quern, tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "d.csv"
    run_quern("data", "synth", "digits", "--items", "200", "-o", path)
    return path


def test_its_first_loss_is_that_of_guessing(data, run_quern, tmp_path):
    """With the seed of the start, whose layers were trained for the numbers that its last layer began with: also
    where that one was a new layer."""
    def loss(out, *more):
        done = run_quern("train", "--data", data, *more, "--json", "-o", tmp_path / out)
        assert "random numbers" not in done.stderr
        return json.loads(done.stdout.splitlines()[-1])["loss"]

    learning = ["--epochs", 25, "--batch", 20, "--lr", 0.3]
    assert loss("a", "--model", "dense 8 tanh; dense 10 softmax", *learning) < 0.4
    for start, out in ("ab", "bc"):
        new = ["--init-from", tmp_path / start, "--new-last"]
        assert abs(loss("first", *new, "--epochs", 1, "--batch", 200) - math.log(10)) < 0.6
        assert loss(out, *new, *learning) < 0.4


def test_a_model_of_the_former_rule(data, run_quern, tmp_path):
    """Its recipe has 1. It is repeated to the byte; the same training has other numbers today."""
    job = ["--data", data, "--seed", 1, "--loss", "cross-entropy", "--scale", "unit", "--lr", 0.5, "--batch", 50,
           "--grain", 32, "--epochs", 1, "--optimizer", "sgd"]
    start, old, new = (tmp_path / name for name in ("start", "old", "new"))
    run_quern("train", *job, "--model", "dense 6 tanh; dense 10 softmax", "-o", start)
    again = [*job, "--init-from", start, "--model", "dense 6 tanh; dense 10 softmax", "--new-last"]
    run_oracle([*again, 1], old)
    assert b'"new_last\\":1' in old.read_bytes()
    assert "identical" in run_quern("replay", old, "--data", data, "--init-from", start).stdout
    run_quern("train", *again, "-o", new)
    assert b'"new_last\\":2' in new.read_bytes() and recipes.sha256(new) != recipes.sha256(old)


def test_integers_take_it(data, run_quern, tmp_path):
    """It is of contract 9, as layers of sequences are."""
    run_quern("train", "--data", data, "--model", "dense 8 tanh; dense 10 softmax", "--epochs", 1, "-o", tmp_path / "s")
    job = ["--data", data, "--init-from", tmp_path / "s"]
    run_quern("train", *job, "--new-last", "--arith", "i14", "--epochs", 1, "-o", tmp_path / "n")
    assert b'"contract\\":9' in (tmp_path / "n").read_bytes()
    assert "identical" in run_quern("replay", tmp_path / "n", *job).stdout

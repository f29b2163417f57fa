"""Weights of items and of classes, and scaling that is kept: docs/exactness.md 7.7, 2.6, 5.2, 6.2.

The jobs are trained by the program and by the oracle, and the files must be the same. What the
text does not decide is tested beside: how files, options and messages go together.
"""

import json
import os
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from test_oracle import BASE, tensors, train

ITEMS = 150
WEIGHTS = ["1", "0", "2.5", "-0", "1e-3", "0", "7.000001", "1e4", "0"]

JOBS = {
    "median": {"--label": "town", "--missing": "median", "--scale": "standard",
               "--model": "dense 7 tanh; dense 3 softmax", "--loss": "cross-entropy",
               "--class-weight": 'Zug=0.25, "Bern, Wabern" = 3', "--valid": "0.3",
               "--keep": "best"},
    "balanced": {"--label": "town", "--missing": "mean", "--scale": "none",
                 "--model": "dense 3 softmax", "--loss": "mse", "--class-weight": "balanced",
                 "--grain": 3},
    "real": {"--label": "size", "--missing": "drop", "--scale": "standard",
             "--model": "dense 5 sigmoid; dense 1 tanh", "--loss": "huber", "--delta": "0.5",
             "--valid": "0.25", "--keep": "best", "--optimizer": "adam", "--arith": "i14"},
}


def rows():
    """A number, a town, a number with both zeros, the weight, a quantity; values are missing."""
    draw = np.random.default_rng(15)
    kinds = draw.integers(0, 3, ITEMS)
    towns = ["Ulm", '"Bern, Wabern"', "Zug"]
    found = [["a", "town", "twos", "weight", "size"]]
    for i, kind in enumerate(kinds):
        found.append([f"{draw.normal() + kind:.9g}" if i % 9 else "", towns[kind],
                      ["-0", "0.1", "1e-45", "-2"][i % 4] if i % 7 else "?",
                      WEIGHTS[(i * i + int(kind)) % 9], f"{draw.normal() * 100:.6g}"])
    return found


def write(path, lines):
    path.write_text("".join(",".join(line) + "\n" for line in lines))
    return path


def options(job, table):
    merged = {"--data": table, "--weight": "weight", **BASE, **JOBS[job]}
    return [str(part) for pair in merged.items() for part in pair]


@pytest.mark.parametrize("job", JOBS)
def test_model_files_are_those_of_the_oracle(job, tmp_path):
    train(options(job, write(tmp_path / "t.csv", rows())), tmp_path / "model.st")


def test_only_the_ratio_of_weights_counts(tmp_path):
    """Weights that are all 2 are as good as ones; others give another model."""
    models = {}
    for name, weight in ("ones", "1"), ("twos", "2"), ("others", None):
        lines = rows()
        for line in lines[1:]:
            line[3] = weight or line[3]
        train(options("median", write(tmp_path / name, lines)), tmp_path / "model.st")
        models[name] = tensors((tmp_path / "model.st").read_bytes())[1]
    assert all(np.array_equal(models["ones"][key], models["twos"][key]) for key in models["ones"])
    assert not any(np.array_equal(models["ones"][key], models["others"][key])
                   for key in ("layer0.weight", "table.fill", "scale.mean"))


@pytest.mark.parametrize("job", JOBS)
def test_scaling_of_another_model_is_kept(job, tmp_path):
    """The first half of the items makes the model that the second half goes on from."""
    start, model, plain = (tmp_path / name for name in ("start.st", "model.st", "plain.st"))
    head, *items = rows()
    first = options(job, write(tmp_path / "first.csv", [head, *items[:ITEMS // 2]]))
    second = options(job, write(tmp_path / "second.csv", [head, *items[ITEMS // 2:]]))
    train(first, start)
    train([*second, "--init-from", start, "--init-scale", "keep"], model)
    train([*second, "--init-from", start], plain)
    made, kept, fitted = (tensors(path.read_bytes())[1] for path in (start, model, plain))
    names = {"scale.mean", "table.fill", "target.mean"} & set(made)
    assert names and all(np.array_equal(made[name], kept[name]) for name in names)
    assert not any(np.array_equal(made[name], fitted[name]) for name in names)


# ---- beside the contract ----


def quern(*arguments, fails=0):
    program = os.environ.get("QUERN")
    if not program or not Path(program).exists():
        pytest.skip("QUERN does not name the program")
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == fails, done.stderr
    return done.stdout + done.stderr


SMALL = ("--model", "dense 3 softmax", "--epochs", "2", "--batch", "200", "--missing", "zero")


def recipe_of(path):
    return json.loads(json.loads(tensors(path.read_bytes())[0])["__metadata__"]["recipe"])


def test_whole_weights_are_repeated_items(tmp_path):
    """With all items in one batch the models are equal but for roundings; so are the fits."""
    head, *items = rows()
    draw = np.random.default_rng(3)
    times = draw.integers(0, 4, ITEMS)
    weighed = [[*item[:3], str(n), item[4]] for item, n in zip(items, times)]
    repeated = [[*item[:3], item[4]] for item, n in zip(items, times) for _ in range(n)]
    write(tmp_path / "w.csv", [head, *weighed])
    write(tmp_path / "r.csv", [[*head[:3], head[4]], *repeated])
    for rule in "mean", "median":
        common = ["--label", "town", "--batch", "1000", "--epochs", "5", "--lr", "0.3", "--missing",
                  rule, "--model", "dense 3 softmax"]
        quern("train", "--data", tmp_path / "w.csv", "--weight", "weight", *common, "-o",
              tmp_path / "w.st")
        quern("train", "--data", tmp_path / "r.csv", *common, "-o", tmp_path / "r.st")
        one, other = (tensors((tmp_path / name).read_bytes())[1] for name in ("w.st", "r.st"))
        for name in "scale.mean", "scale.deviation", "table.fill":
            assert np.array_equal(one[name], other[name]), name
        assert np.allclose(one["layer0.weight"], other["layer0.weight"], rtol=1e-4, atol=1e-6)


def test_other_files_need_no_weights(tmp_path):
    """Validation, test and prediction: the column may be there, hold texts, or be missing."""
    head, *items = rows()
    table = write(tmp_path / "t.csv", [head, *items])
    without = write(tmp_path / "without.csv", [[*line[:3], line[4]] for line in [head, *items]])
    texts = write(tmp_path / "texts.csv", [head, *([*line[:3], "x", line[4]] for line in items)])
    common = ["train", "--data", table, "--label", "town", "--weight", "weight", *SMALL]
    digests = set()
    for other in table, without, texts:
        said = quern(*common, "--test", other, "--valid", other, "-o", tmp_path / "m.st")
        assert "weights of column \"weight\"" in said
        assert "does not use" not in said
        digests.add(said.split()[-2])
        assert "test accuracy" in said and "weighted loss" not in said
    assert len(digests) == 1
    answers = set()
    for other in table, without, texts:
        said = quern("predict", tmp_path / "m.st", "--data", other, "-o", tmp_path / "p.csv")
        assert "does not use" not in said
        answers.add((tmp_path / "p.csv").read_text())
    assert len(answers) == 1


def test_losses_are_said_to_be_weighted(tmp_path):
    table = write(tmp_path / "t.csv", rows())
    common = ["train", "--data", table, "--label", "town", *SMALL, "-o", tmp_path / "m.st"]
    by_item = ["--weight", "weight"]
    for words, said in (([], "training"), (["--valid", "0.2"], "validation")):
        for how in by_item, ["--class-weight", "balanced"], [*by_item, "--class-weight", "Ulm=2"]:
            told = quern(*common, *words, *how)
            assert f"{said} accuracy" in told and "), weighted loss " in told
            assert ("class weights" in told) == (how != by_item)
    assert "), loss " in quern(*common, *by_item, "--valid", table)
    start = json.loads(quern(*common, *by_item, "--class-weight", "Ulm=2.0", "--json").split("\n")[0])
    assert (start["weight"], start["class_weight"]) == ("weight", "Ulm=2")


def test_a_run_goes_on(tmp_path):
    """Checkpoints hold the recipe: with its weights a run goes on, with others it does not."""
    table, state = write(tmp_path / "t.csv", rows()), tmp_path / "state"
    common = ["train", "--data", table, "--label", "town", "--weight", "weight", *SMALL[:2],
              *SMALL[4:], "--schedule", "constant", "--class-weight", "balanced"]
    quern(*common, "--epochs", "6", "-o", tmp_path / "whole.st")
    quern(*common, "--epochs", "3", "--checkpoint", state, "-o", tmp_path / "part.st")
    quern(*common, "--epochs", "6", "--checkpoint", state, "--resume", "-o", tmp_path / "on.st")
    assert (tmp_path / "on.st").read_bytes() == (tmp_path / "whole.st").read_bytes()
    other = [*common[:-1], "Ulm=2"]
    told = quern(*other, "--epochs", "7", "--checkpoint", state, "--resume", "-o",
                 tmp_path / "other.st", fails=1)
    assert "class_weight \"balanced\" and \"Ulm=2\"" in told


def test_replay_finds_the_weights(tmp_path):
    head, *items = rows()
    table = write(tmp_path / "t.csv", [head, *items])
    model = tmp_path / "m.st"
    quern("train", "--data", table, "--label", "town", "--weight", "weight", "--class-weight",
          "balanced", *SMALL, "-o", model)
    recipe = recipe_of(model)
    assert (recipe["contract"], recipe["weight"], recipe["class_weight"]) == (3, "weight", "balanced")
    assert "replay: identical" in quern("replay", model, "--data", table)
    moved = write(tmp_path / "moved.csv",
                  [[line[i] for i in (3, 4, 1, 0, 2)] for line in [head, *items]])
    assert "replay: identical" in quern("replay", model, "--data", moved)
    renamed = write(tmp_path / "renamed.csv", [[*head[:3], "w", head[4]], *items])
    assert "no column of weights \"weight\"" in quern("replay", model, "--data", renamed, fails=1)
    assert "replay: identical" in quern("replay", model, "--data", renamed, "--weight", "w")
    other = ["train", "--data", renamed, "--label", "town", "--weight", "w", *SMALL]
    quern(*other, "--init-from", model, "-o", tmp_path / "next.st")
    assert recipe_of(tmp_path / "next.st")["weight"] == "w"
    assert "replay: identical" in quern("replay", tmp_path / "next.st", "--data", renamed,
                                        "--init-from", model)
    quern(*other[:5], *SMALL, "--drop", "w", "-o", tmp_path / "plain.st")
    assert "had no weights" in quern("replay", tmp_path / "plain.st", "--data", renamed, "--weight",
                                     "w", fails=1)
    items[3][3] = "5"
    changed = write(tmp_path / "changed.csv", [head, *items])
    assert "not the data that the model was trained on" in quern("replay", model, "--data", changed,
                                                                 fails=1)


def test_weights_without_a_name(tmp_path):
    head, *items = rows()
    table = write(tmp_path / "t.csv", [[line[i] for i in (0, 2, 3, 4)] for line in items])
    common = ["--data", table, "--label", "last", "--missing", "zero", "--epochs", "1"]
    model = tmp_path / "m.st"
    quern("train", *common, "--weight", "3", "-o", model)
    assert recipe_of(model)["weight"] == ""
    assert "--weight" in quern("replay", model, "--data", table, "--label", "last", fails=1)
    assert "replay: identical" in quern("replay", model, "--data", table, "--label", "last",
                                        "--weight", "3")


def test_npz_arrays_hold_weights(tmp_path):
    draw = np.random.default_rng(4)
    x, y = draw.normal(size=(60, 4)).astype("f4"), draw.integers(0, 2, 60)
    for dtype in "f4", "f8", "u1", "i8":
        w = draw.integers(0, 5, 60).astype(dtype)
        np.savez(tmp_path / "t.npz", x=x, y=y, w=w)
        lines = [["y", "w", *"abcd"], *([str(b), f"{c:.9g}", *(f"{v:.9g}" for v in a)]
                                        for a, b, c in zip(x, y, w))]
        write(tmp_path / "t.csv", lines)
        said = [quern("data", "info", path, "--weight", "w", "--json")
                for path in (tmp_path / "t.npz", tmp_path / "t.csv")]
        assert len({json.loads(text)["digest"] for text in said}) == 1
    quern("train", "--data", tmp_path / "t.npz", "--weight", "w", *SMALL, "-o", tmp_path / "m.st")
    assert recipe_of(tmp_path / "m.st")["weight"] == "w"
    assert "replay: identical" in quern("replay", tmp_path / "m.st", "--data", tmp_path / "t.npz")
    np.savez(tmp_path / "u.npz", x=x, y=y, w=w[1:], t=w.astype(str), z=w * 0)
    for name, what in (("w", "59 x 1 weights for 60 items"), ("t", "holds texts"),
                       ("z", "every item is 0"), ("v", "no array \"v\"")):
        assert what in quern("data", "info", tmp_path / "u.npz", "--weight", name, fails=1)


def test_balanced_classes_weigh_alike(tmp_path):
    """The shares of 7.7 by fractions, against a network that only counts: one bias a class."""
    lines = [["kind", "x"], *([kind, "0"] for kind in "a" * 6 + "b" * 3 + "c")]
    write(tmp_path / "t.csv", lines)
    common = ["--data", tmp_path / "t.csv", "--scale", "none", "--model", "dense 3 softmax",
              "--epochs", "400", "--batch", "10", "--lr", "1"]
    shares = {}
    for words, name in ([], "plain"), (["--class-weight", "balanced"], "balanced"), (
            ["--class-weight", "a=1,b=2,c=18"], "list"):
        quern("train", *common, *words, "-o", tmp_path / "m.st")
        bias = tensors((tmp_path / "m.st").read_bytes())[1]["layer0.bias"].astype(float)
        shares[name] = np.exp(bias) / np.exp(bias).sum()
    assert np.allclose(shares["plain"], [0.6, 0.3, 0.1], atol=1e-3)
    assert np.allclose(shares["balanced"], [1 / 3] * 3, atol=1e-3)
    assert np.allclose(shares["list"], [float(Fraction(n, 30)) for n in (6, 6, 18)], atol=1e-3)


@pytest.mark.parametrize("column, what", [
    ("-1", "the weight \"-1\" is not a finite number from 0"),
    ("", "the weight \"\" is not a finite number from 0"),
    ("inf", "the weight \"inf\" is not a finite number from 0"),
    ("much", "the weight \"much\" is not a finite number from 0"),
    ("1e39", "beyond the range"),
])
def test_cells_that_are_no_weights(column, what, tmp_path):
    head, *items = rows()
    items[70][3] = column
    write(tmp_path / "t.csv", [head, *items])
    said = quern("data", "info", tmp_path / "t.csv", "--label", "town", "--weight", "weight", fails=1)
    assert what in said and "line 72, column 4 (weight)" in said


@pytest.mark.parametrize("words, what, code", [
    (("--weight", "town"), "one column is named as the label and as the weights", 1),
    (("--weight", "weigth"), "did you mean --weight weight?", 1),
    (("--weight", "weight", "--drop", "weight"), "the column of weights cannot be in the list", 1),
    (("--weight", "weight", "--features", "a,weight"), "the column of weights cannot be in the", 1),
    (("--class-weight", "Ulm=-1"), "is not a finite number from 0", 2),
    (("--class-weight", "Berlin=2"), "the classes are Bern, Wabern, Ulm, Zug", 2),
    (("--class-weight", "Ulm=0,Zug=0,\"Bern, Wabern\"=0"), "the weight of every item is 0", 1),
    (("--init-scale", "keep"), "--init-scale needs --init-from", 2),
    (("--init-scale", "fit"), "--init-scale needs --init-from", 2),
])
def test_options_that_are_refused(words, what, code, tmp_path):
    table = write(tmp_path / "t.csv", rows())
    assert what in quern("train", "--data", table, "--label", "town", *SMALL, *words, "-o",
                         tmp_path / "m.st", fails=code)
    assert not (tmp_path / "m.st").exists()


def test_class_weights_need_classes(tmp_path):
    table = write(tmp_path / "t.csv", rows())
    said = quern("train", "--data", table, "--label", "size", "--task", "regress", "--missing", "zero",
                 "--class-weight", "balanced", "-o", tmp_path / "m.st", fails=2)
    assert "real labels have no classes" in said


def test_weights_that_are_all_0(tmp_path):
    lines = rows()
    for line in lines[1:]:
        line[3] = "0"
    table = write(tmp_path / "t.csv", lines)
    said = quern("data", "info", table, "--label", "town", "--weight", "weight", fails=1)
    assert "the weight of every item is 0" in said and str(table) in said


def test_what_is_kept_must_fit(tmp_path):
    table, start = write(tmp_path / "t.csv", rows()), tmp_path / "start.st"
    common = ["train", "--data", table, "--label", "town", *SMALL, "--init-from", start]
    quern(*common[:-2], "-o", start)
    kept = [*common, "--init-scale", "keep", "-o", tmp_path / "m.st"]
    quern(*kept)
    assert recipe_of(tmp_path / "m.st")["init_scale"] == "keep"
    assert "has another scaling" in quern(*kept, "--scale", "none", fails=1)
    kept[kept.index("zero")] = "mean"
    assert "has another rule for missing values" in quern(*kept, fails=1)
    assert "replay: identical" in quern("replay", tmp_path / "m.st", "--data", table, "--init-from",
                                        start)

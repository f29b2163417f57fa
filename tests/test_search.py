"""Cross validation and search: folds as the contract says, the numbers of each training by itself, the
same with any number of threads and after an interruption."""

import json
import sys
from pathlib import Path

import pytest

import python_package

sys.path.insert(0, str(Path(__file__).resolve().parent / "oracle"))
from order import permutation  # noqa: E402
from philox import SPLIT  # noqa: E402

np = pytest.importorskip("numpy")

GRID = ["--grid", "lr 0.05,0.3 batch 8,32", "--folds", 3]
MODEL = "dense 5 tanh; dense 3 softmax"


def folds_of(labels, folds, seed):
    """2.11, as lists of items."""
    order = permutation(seed, len(labels), SPLIT, 0)
    row = sorted(order, key=lambda i: labels[i])  # stable
    return [sorted(int(i) for i in row[k::folds]) for k in range(folds)]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("search")
    random = np.random.default_rng(8)
    x = random.normal(size=(70, 3)).astype(np.float32).round(3)
    labels = (x[:, 0] > 0) + 0 + (x[:, 1] > 0.8)
    np.savetxt(folder / "t.csv", np.column_stack([x, labels]), "%.3f,%.3f,%.3f,%d", header="a,b,c,kind",
               comments="")
    return folder, x, labels


def search(run_quern, folder, *more, **how):
    return run_quern("search", "--data", folder / "t.csv", "--label", "kind", "--model", MODEL,
                     "--epochs", 2, "--seed", 4, *more, **how)


def without_times(said):
    event = json.loads(said)
    for setting in event["settings"]:
        del setting["command"]
        for fold in setting["folds"]:
            del fold["seconds"]
    return event


def test_each_fold_is_a_training_of_its_own(run_quern, table):
    python_package.folder()
    import quern

    folder, x, labels = table
    found = without_times(search(run_quern, folder, *GRID, "--json", "--threads", 3).stdout)
    assert len(found["settings"]) == 4
    best = [s["mean"]["accuracy"] for s in found["settings"]]
    assert best == sorted(best, reverse=True)
    first = found["settings"][0]
    lr, batch = first["setting"].split()[1::2]
    data = quern.open(folder / "t.csv", label="kind")
    sums = 0
    for fold, valid, (others, own) in zip(first["folds"], folds_of(labels, 3, 4), data.folds(3, 4)):
        assert np.array_equal(own.values, x[valid]) and len(others) + len(own) == 70
        assert np.array_equal(others.values, np.delete(x, valid, 0))
        model = quern.train(others, valid=own, model=MODEL, epochs=2, seed=4, lr=float(lr),
                            batch=int(batch), threads=1)
        assert model.digest == fold["model"] and fold["items"] == len(valid)
        assert fold["accuracy"] == model.report.valid.accuracy
        assert fold["f1"] == model.report.valid_evaluation["f1"]
        sums += fold["accuracy"]
    assert first["mean"]["accuracy"] == sums / 3


def test_an_interrupted_search_goes_on(run_quern, table):
    folder, _, _ = table
    whole = search(run_quern, folder, *GRID, "--json", "--threads", 1).stdout
    search(run_quern, folder, *GRID, "--quiet", "--run-dir", folder / "run")
    file = folder / "run" / "search.csv"
    lines = file.read_text().splitlines(keepends=True)
    assert len(lines) == 2 + 12
    file.write_text("".join(lines[:7]) + lines[7][:20])
    again = search(run_quern, folder, *GRID, "--json", "--run-dir", folder / "run").stdout
    assert without_times(again) == without_times(whole)
    kept = file.read_text().splitlines(keepends=True)
    assert kept[:7] == lines[:7] and len(kept) == 14
    done = search(run_quern, folder, "--grid", "lr 0.1", "--run-dir", folder / "run", status=1)
    assert "another search" in done.stderr


def test_the_command_trains_the_best(run_quern, table):
    folder, _, _ = table
    said = search(run_quern, folder, *GRID, "--quiet").stdout.splitlines()
    words = said[-1].split(" train ")[1]
    assert words.endswith("-o best.safetensors") and "--grid" not in words and "--folds" not in words
    assert f"--lr {said[1].split('lr ')[1].split()[0]} " in words


@pytest.mark.parametrize("more,status,what", [
    (["--grid", "lr"], 2, "lacks a value"), (["--grid", "data a"], 2, "no option that a grid can have"),
    (["--grid", "lr 1 lr 2"], 2, "stands there twice"), (["--grid", "model 'a"], 2, "open quotes"),
    (["--grid", "lr x"], 2, "--lr cannot be"), (["--valid", "0.1"], 2, "does nothing in a search"),
    (["--runs", "r"], 2, "--runs does nothing in a search"),
    (["--by", "x"], 2, "--by cannot be"), (["--by", "rmse"], 2, "--by rmse is not for classes"), (["--folds", "71"], 1, "too few for 71 folds"),
    (["--grid", "lr 3e38"], 1, "no setting could be trained"),
    (["--grid", "loss mse,binary"], 2, "setting loss binary")])
def test_refused(run_quern, table, more, status, what):
    done = search(run_quern, table[0], "--quiet", *more, status=status)
    assert what in done.stderr


def test_a_search_without_a_result_leaves_no_file(run_quern, table, tmp_path):
    search(run_quern, table[0], "--quiet", "--run-dir", tmp_path, "--grid", "loss mse,binary", "--folds", 2, status=2)
    search(run_quern, table[0], "--quiet", "--run-dir", tmp_path, "--grid", "loss mse", "--folds", 2)

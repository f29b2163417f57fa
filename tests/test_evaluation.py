"""Evaluation: exact to the last bit against long fractions, close to scikit-learn, the same in the
command, in records of runs and in Python."""

import json
import math
import sys
from pathlib import Path

import pytest

import python_package
from machine import LONG

sys.path.insert(0, str(Path(__file__).resolve().parent / "oracle"))
import evaluation as oracle  # noqa: E402

np = pytest.importorskip("numpy")


@pytest.fixture(scope="module")
def q():
    python_package.folder()
    import quern

    return quern


def same(got, wanted, where):
    if isinstance(wanted, int):
        assert got == wanted, (where, got, wanted)
    else:
        assert (math.isnan(got) and math.isnan(wanted)) or got.hex() == wanted.hex(), (
            where, got, wanted)


def compare(got, wanted):
    for name, number in wanted.items():
        if name == "by_class":
            for k, row in enumerate(number):
                for key, each in row.items():
                    same(got[name][key][k], each, (name, key, k))
        elif name == "calibration":
            for key, column in number.items():
                for b, each in enumerate(column):
                    same(got[name][key][b], each, (name, key, b))
        else:
            same(got[name], number, name)


def made_up(seed, items, classes, outputs):
    """Outputs with many ties, probabilities of 0 and 1 among them, and labels."""
    random = np.random.default_rng(seed)
    values = random.integers(0, 8, (items, outputs)).astype(np.float32) / np.float32(7)
    if outputs > 1:
        values += random.random((items, outputs), np.float32) * (random.random((items, 1)) < 0.5)
        values /= np.maximum(values.sum(1, keepdims=True), np.float32(1e-3))
    return random.integers(0, classes, items), np.clip(values, 0, 1).astype(np.float32)


WEIGHTS = {"none": None, "plain": lambda r, n: r.integers(0, 5, n) * 0.5 + (np.arange(n) == 0),
           "any": lambda r, n: r.random(n) + 1e-3, "wide": lambda r, n: np.exp(40 * r.random(n))}


@pytest.mark.parametrize("classes,outputs,weights", [
    (2, 1, "none"), (2, 1, "any"), (2, 2, "plain"), (4, 4, "none"), (4, 4, "any"), (4, 4, "wide"), (8, 8, "none"), (8, 8, "any")])
def test_classes(q, classes, outputs, weights):
    labels, values = made_up(classes + outputs, 60, classes, outputs)
    if classes > 2:
        labels[labels == 3] = 0  # a class that no item has
        labels[:2] = [-1, 9]     # and labels that are not a class
    random = np.random.default_rng(1)
    w = WEIGHTS[weights] and WEIGHTS[weights](random, len(labels)).astype(np.float32)
    counts = None if w is None else oracle.counts_of(w)
    got = q.evaluate(labels, values, weights=w)
    compare(got, oracle.classes(labels, values, classes, counts))
    order = random.permutation(len(labels))
    again = q.evaluate(labels[order], values[order], weights=None if w is None else w[order])
    assert repr(again) == repr(got)


@pytest.mark.parametrize("weights", ["none", "any"])
def test_errors_of_real_labels(q, weights):
    random = np.random.default_rng(7)
    labels = np.exp(10 * random.normal(size=99)).astype(np.float32)
    predictions = (labels * (1 + 0.1 * random.normal(size=99))).astype(np.float32)
    predictions[5] = np.nan
    w = WEIGHTS[weights] and WEIGHTS[weights](random, 99).astype(np.float32)
    counts = [1] * 99 if w is None else oracle.counts_of(w)
    got = q.evaluate(labels, predictions, weights=w)
    there = np.flatnonzero(~np.isnan(predictions))
    compare(got, {"items": 98, **oracle.errors(labels[there], predictions[there],
                                               [counts[i] for i in there])})
    assert math.isnan(q.evaluate(np.full(3, 2.5), [1, 2, 3])["r2"])


@LONG  # scikit-learn takes seconds to load
def test_close_to_scikit_learn(q):
    metrics = pytest.importorskip("sklearn.metrics")
    labels, values = made_up(3, 500, 3, 3)
    values += np.float32(1e-3)
    values /= values.sum(1, keepdims=True)
    w = np.random.default_rng(1).random(500).astype(np.float32)
    got = q.evaluate(labels, values, weights=w)
    found = values.argmax(1)
    for mean, before in (("macro", ""), ("weighted", "weighted_")):
        scores = metrics.precision_recall_fscore_support(labels, found, average=mean, sample_weight=w)
        for name, score in zip(("precision", "recall", "f1"), scores):
            assert got[before + name] == pytest.approx(score, rel=1e-12)
    for c in range(3):
        assert got["by_class"]["auc"][c] == pytest.approx(
            metrics.roc_auc_score(labels == c, values[:, c], sample_weight=w), rel=1e-9)
    assert got["log_loss"] == pytest.approx(
        metrics.log_loss(labels, values.astype(np.float64) / values.sum(1, keepdims=True, dtype=float),
                         sample_weight=w), rel=1e-6)


def test_top5_is_that_of_scikit_learn(q):
    metrics = pytest.importorskip("sklearn.metrics")
    random = np.random.default_rng(4)
    labels, values, w = random.integers(0, 12, 300), random.random((300, 12), np.float32), random.random(300)
    w = w.astype(np.float32)
    got = q.evaluate(labels, values, weights=w)
    assert 0.2 < got["top5_accuracy"] < 0.6 and got["top5_accuracy"] == pytest.approx(
        metrics.top_k_accuracy_score(labels, values, k=5, sample_weight=w, labels=range(12)), rel=1e-12)
    assert np.isnan(q.evaluate(labels % 5, values[:, :5])["top5_accuracy"])


@pytest.mark.parametrize("labels,outputs,more,what", [
    ([0, 1], [[0.5, np.inf], [0, 1]], {}, "not a number"),
    ([0, 1], [[0.5, 2], [0, 1]], {"probabilities": True}, "not a probability"),
    ([0, 1], [[0.5, 0.5], [0, 1]], {"weights": [0, 0]}, "all weights are 0"),
    ([0, 1], [[0.5, 0.5], [0, 1]], {"weights": [1, -1]}, "a weight"),
    ([0, 1], [[0.5, 0.5]], {}, "a row for each label"),
    (np.empty(0, int), np.empty((0, 2)), {}, "items"),
    ([0.5, np.nan], [1, 2], {}, "a target")])
def test_refused(q, labels, outputs, more, what):
    with pytest.raises(q.QuernError, match=what):
        q.evaluate(np.array(labels), outputs, **more)


def numbers(found):
    return json.dumps(found, sort_keys=True)


@pytest.fixture(scope="module")
def small(run_quern, tmp_path_factory):
    """A small training with a record, its data and its test set."""
    folder = tmp_path_factory.mktemp("evaluation")
    random = np.random.default_rng(5)
    for name, items in (("train", 120), ("test", 70)):
        x = random.normal(size=(items, 3))
        label = np.array(["no", "may\tbe", "yes"])[np.digitize(x[:, 0] + 0.3 * x[:, 1], [-0.5, 0.5])]
        rows = [f"{a:.3f},{b:.3f},{c:.3f},{t}" for (a, b, c), t in zip(x, label)]
        (folder / f"{name}.csv").write_text("\n".join(["a,b,c,kind", *rows]) + "\n")
    done = run_quern("train", "--data", folder / "train.csv", "--label", "kind", "--valid", 0.25, "--test",
                     folder / "test.csv", "--model", "dense 4 tanh; dense 3 softmax", "--epochs", 3,
                 "--class-weight", "balanced", "--run-dir", folder / "run", "-o", folder / "m",
                 "--threads", 1, "--verbose")
    return folder, done.stdout


def test_train_evaluate_and_predict_agree(q, run_quern, small):
    folder, report = small
    record = json.loads((folder / "run" / "run.json").read_text())["evaluation"]
    assert record["valid"]["items"] == 30 and record["valid"]["weighted"]
    assert record["test"]["items"] == 70 and not record["test"]["weighted"]
    found = run_quern("evaluate", folder / "m", "--data", folder / "test.csv", "--json", "--threads", 2)
    event = json.loads(found.stdout)
    assert event["event"] == "evaluation" and numbers(event["evaluation"]) == numbers(record["test"])
    done = run_quern("predict", folder / "m", "--data", folder / "test.csv", "--json", "-o", folder / "p")
    assert numbers(json.loads(done.stdout)["evaluation"]) == numbers(record["test"])
    own = q.load(folder / "m").evaluate(folder / "test.csv")
    # The JSON text against the members that Python reads.
    tables = {"by_class": "classes", "calibration": "calibration"}
    assert set(record["test"]) == {tables.get(key, key) for key in own}
    for key, value in own.items():
        told = record["test"][tables.get(key, key)]
        if key in tables:
            told = {name: [row[name] for row in told] for name in told[0]}
        assert told == json.loads(json.dumps(value).replace("NaN", "null"))
    line = f"macro F1 {own['f1']:.4f}, AUC {own['auc']:.4f}"
    assert line in report and "may?be" in report and "may\tbe" not in report.split("macro F1")[1]
    shown = run_quern("evaluate", folder / "m", "--data", folder / "test.csv").stdout
    assert shown.count(line) == 1 and f"log loss {own['log_loss']:.4f}" in shown


def test_evaluation_needs_labels(run_quern, small):
    folder, _ = small
    lines = (folder / "test.csv").read_text().splitlines()
    (folder / "bare.csv").write_text("\n".join(line.rpartition(",")[0] for line in lines) + "\n")
    done = run_quern("evaluate", folder / "m", "--data", folder / "bare.csv", status=None)
    assert done.returncode > 0 and "has no labels" in done.stderr and "--label" in done.stderr
    assert run_quern("predict", folder / "m", "--data", folder / "bare.csv").stdout

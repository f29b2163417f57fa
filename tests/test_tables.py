"""Tables with missing values and columns of texts, from the file to the predictions, against NumPy:
what is fitted, what the network is given, what comes out; and the same bytes however it is done."""

import csv
import json
import random
from fractions import Fraction

import numpy as np
import pytest

import ranks
import recipes

NAMES = ["age", "city", "height", "grade", "rooms"]
CITIES = ["Bern", "Bonn", "Ulm", "Wien"]
RULES = ["mean", "median", "zero"]


def draw(count, seed, cities=CITIES):
    """Rows of texts; empty cells are missing. `rooms` has none."""
    rng = random.Random(seed)
    rows = []
    for i in range(count):
        age, city = rng.randrange(18, 91), rng.choice(cities)
        height, grade = f"{rng.gauss(170, 10):.1f}", rng.choice(["a", "b", "c"])
        label = "yes" if (age > 50) != (city in ("Bonn", "Ulm")) else "no"
        cells = [str(age), city, height, grade, str(rng.randrange(1, 9))]
        for column, every in ((0, 11), (1, 17), (2, 7), (3, 23)):
            if i % every == every - 1:
                cells[column] = rng.choice(["", "NA"])
        rows.append([*cells, label])
    return rows


def write(path, rows):
    with open(path, "w", newline="") as f:
        csv.writer(f).writerows([[*NAMES, "bought"], *rows])
    return path


def is_missing(cell):
    return cell in ("", "NA")


def fill_of(rows, rule):
    """By fractions, so that each is rounded once; the columns of texts have 0."""
    fills = []
    for k in range(len(NAMES)):
        values = sorted(Fraction(r[k]) for r in rows if not is_missing(r[k]) and k not in (1, 3))
        half = len(values) // 2
        if rule == "zero" or not values:
            fills.append(Fraction(0))
        elif rule == "mean":
            fills.append(sum(values) / len(values))
        else:
            fills.append(values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2)
    return fills


def encode(rows, fill):
    """Numbers, and a 1 for the category."""
    columns = []
    for k in range(len(NAMES)):
        if k not in (1, 3):
            columns.append([float(fill[k]) if is_missing(r[k]) else float(r[k]) for r in rows])
            continue
        for category in (CITIES if k == 1 else ["a", "b", "c"]):
            columns.append([float(r[k] == category) for r in rows])
    return np.array(columns).T


def tensors_of(path):
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    body = content[8 + length :]
    own = {n: np.frombuffer(body[slice(*t["data_offsets"])], "<f4").reshape(t["shape"])
           for n, t in header.items() if n != "__metadata__"}
    return json.loads(header["__metadata__"]["recipe"]), own


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    rows = draw(260, 1)
    return {"rows": rows, "train": write(folder / "train.csv", rows),
            "test": write(folder / "test.csv", draw(60, 2, [*CITIES, "Rom"])),
            "tests": draw(60, 2, [*CITIES, "Rom"])}


def words(files, out, rule, *more):
    return ["train", "--data", files["train"], "--label", "bought", "--missing", rule, "--model",
            "dense 16 tanh; dense 2 softmax", "--epochs", "40", "--lr", "0.3", "--optimizer", "sgd", "--batch", "64", *more, "-o", out]


@pytest.mark.parametrize("rule", RULES)
def test_against_numpy(rule, files, run_quern, tmp_path):
    model, told = tmp_path / "m.st", tmp_path / "p.csv"
    done = run_quern(*words(files, model, rule), "--test", files["test"])
    fill = fill_of(files["rows"], rule)
    recipe, tensors = tensors_of(model)
    assert recipe["features"] == 5 and recipe["missing"] == rule and recipe["scale"] == "standard"
    assert ("table.fill" in tensors) == (rule != "zero")
    if rule != "zero":
        assert tensors["table.fill"].tolist() == [np.float32(float(f)) for f in fill]
    x = encode(files["rows"], fill)
    assert tensors["layer0.weight"].shape == (16, 10) == (16, x.shape[1])
    hot = np.array([False, True, True, True, True, False, True, True, True, False])
    mean, deviation = np.where(hot, 0, x.mean(axis=0)), np.where(hot, 1, x.std(axis=0))
    np.testing.assert_allclose(tensors["scale.mean"], mean, rtol=1e-6)
    np.testing.assert_allclose(tensors["scale.deviation"], deviation, rtol=1e-6)
    # What the network is given shows in what it gives.
    run_quern("predict", model, "--data", files["test"], "--label", "bought", "--outputs", "-o", told)
    a = (encode(files["tests"], fill) - mean) / deviation
    a = np.tanh(a @ tensors["layer0.weight"].T + tensors["layer0.bias"])
    z = a @ tensors["layer1.weight"].T + tensors["layer1.bias"]
    wanted = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    with open(told) as f:
        rows = list(csv.DictReader(f))
    outputs = [key for key in rows[0]][-2:]
    np.testing.assert_allclose([[float(r[o]) for o in outputs] for r in rows], wanted, atol=2e-5)
    right = sum(r["label"] == r["prediction"] for r in rows)
    assert f"test accuracy {100 * right / 60:.2f} %" in done.stdout and right > 45
    strange = sum(r[1] == "Rom" for r in files["tests"])
    assert strange > 1 and (f'note: the test set: {strange} values of column "city" are not categories of'
                            " the model") in done.stderr


@pytest.mark.parametrize("rule", [*RULES, "drop"])
def test_the_same_bytes(rule, quern, files, run_quern, tmp_path):
    """Of threads, ranks, and the recipe alone; with validation items, which are not fitted to."""
    model, other = tmp_path / "m.st", tmp_path / "o.st"
    more = ["--valid", "0.3", "--epochs", "3"]
    own = [w for w in words(files, model, rule) if w not in ("--epochs", "40")]
    run_quern(*own, *more, "--threads", "1")
    wanted = recipes.sha256(model)
    run_quern(*own[:-1], other, *more, "--threads", "2")
    assert recipes.sha256(other) == wanted
    other.unlink()
    for from_first in ([], ["--data-from-rank0"]):
        ranks.run(quern, 2, *own[:-1], other, *more, "--threads", "1", *from_first)
        assert recipes.sha256(other) == wanted
    done = run_quern("replay", model, "--data", files["train"], "--label", "bought")
    assert done.stdout.splitlines()[-1] == f"replay: identical, {wanted}"


def test_dropped_items(files, run_quern, tmp_path):
    """Two files with the same complete items give the same tensors."""
    complete = [r for r in files["rows"] if not any(map(is_missing, r))]
    done = run_quern(*words(files, tmp_path / "a.st", "drop"))
    assert (f"note: the training data: {260 - len(complete)} of 260 items lack a value and are left "
            "out") in done.stderr
    assert (f"        {len(complete)} items of 5 features, 2 classes of column \"bought\"; "
            f"{260 - len(complete)} more left out\n") in done.stderr
    assert f"run     40 epochs of {-(-len(complete) // 64)} steps" in done.stderr
    less = {**files, "train": write(tmp_path / "less.csv", complete)}
    run_quern(*words(less, tmp_path / "b.st", "drop"))
    (recipe, a), (other, b) = tensors_of(tmp_path / "a.st"), tensors_of(tmp_path / "b.st")
    assert recipe["items"] == 260 and other["items"] == len(complete)
    assert all(np.array_equal(a[n], b[n]) for n in a) and a.keys() == b.keys()


def test_prediction_of_items_that_lack_values(files, run_quern, tmp_path):
    """Predicted is what is complete, as in a file of these items alone; the others stay empty."""
    run_quern(*words(files, tmp_path / "a.st", "drop"))
    lacks = [any(map(is_missing, r)) for r in files["tests"]]
    whole = write(tmp_path / "whole.csv", [r for r, bad in zip(files["tests"], lacks) if not bad])
    told = {}
    for name, path in (("all", files["test"]), ("whole", whole)):
        done = run_quern("predict", tmp_path / "a.st", "--data", path, "--label", "bought",
                         "--outputs", "-o", tmp_path / "p.csv")
        with open(tmp_path / "p.csv") as f:
            told[name] = done, list(csv.DictReader(f))
    done, rows = told["all"]
    assert 0 < sum(lacks) < 60 and len(rows) == 60
    assert f"note: the data: {sum(lacks)} of 60 items lack a value and have no prediction" in done.stderr
    for row, bad in zip(rows, lacks):
        assert row["label"] and all((row[k] == "") == bad for k in ("prediction", "score", "p0", "p1"))
    complete = [{k: v for k, v in r.items() if k != "item"} for r, bad in zip(rows, lacks) if not bad]
    assert complete == [{k: v for k, v in r.items() if k != "item"} for r in told["whole"][1]]
    right = sum(r["label"] == r["prediction"] for r in complete)
    assert f"({right} of {len(complete)})" in done.stdout
    assert f"{len(complete)} predictions in " in done.stdout
    nothing = write(tmp_path / "none.csv", [r for r, bad in zip(files["tests"], lacks) if bad])
    done = run_quern("predict", tmp_path / "a.st", "--data", nothing, "--label", "bought", status=1)
    assert "every one of the" in done.stderr and "--missing mean" in done.stderr


def test_numbers_that_lack_values(run_quern, tmp_path):
    """Errors of real labels are those of the items that have a prediction."""
    rows = [(3 * i % 17 + 0.5, "" if i % 5 == 0 else i % 17, i % 3) for i in range(60)]
    path = tmp_path / "t.csv"
    path.write_text("y,a,b\n" + "".join(f"{y},{a},{b}\n" for y, a, b in rows))
    run_quern("train", "--data", path, "--missing", "drop", "--epochs", "2", "-o", tmp_path / "m.st")
    done = run_quern("predict", tmp_path / "m.st", "--data", path, "-o", tmp_path / "p.csv")
    with open(tmp_path / "p.csv") as f:
        told = [(float(r["label"]), r["prediction"]) for r in csv.DictReader(f)]
    assert [p == "" for _, p in told] == [a == "" for _, a, _ in rows]
    error = np.mean([abs(float(p) - y) for y, p in told if p])
    assert f"MAE {error:.6g}, " in done.stdout and "48 labels" in done.stdout


def test_refused(files, run_quern, tmp_path):
    done = run_quern(*words(files, tmp_path / "m.st", "error"), status=1)
    lines = done.stderr.splitlines()
    incomplete = sum(any(map(is_missing, r)) for r in files["rows"])
    assert lines[0] == ('quern train: column "height" has 37 missing values, and 3 other columns some;'
                        f" {incomplete} of 260 items lack one or more")
    assert lines[1].startswith("  at the training data, item 6")
    assert "--missing mean, median, zero or drop" in lines[2]


def test_small_integers_are_no_picture(run_quern, tmp_path):
    """Answers from 1 to 5: divided by 255 they hardly differ."""
    rng = random.Random(3)
    rows = []
    for _ in range(600):
        answers = [rng.randrange(1, 6) for _ in range(8)]
        rows.append([int(answers[0] + answers[1] > answers[2] + answers[3]), *answers])
    path = tmp_path / "t.csv"
    path.write_text("".join(",".join(map(str, r)) + "\n" for r in rows))
    accuracy = {}
    for scale in (None, "unit"):
        more = ["--scale", scale] if scale else []
        done = run_quern("train", "--data", path, "--valid", "0.2", "--optimizer", "sgd", "--epochs", "10",
                         *more, "--json", "-o", tmp_path / "m.st")
        end = json.loads(done.stdout.splitlines()[-1])
        accuracy[scale] = end["accuracy"]
        assert tensors_of(tmp_path / "m.st")[0]["scale"] == (scale or "standard")
    assert accuracy[None] > 0.9 > 0.75 > accuracy["unit"], accuracy


def test_a_column_of_names_is_refused(run_quern, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("who,a,y\n" + "".join(f"person {i},{i % 7},{i % 2}\n" for i in range(120)))
    words = ["train", "--data", path, "--label", "y", "--epochs", "1", "-o", tmp_path / "m.st"]
    lines = run_quern(*words, status=1).stderr.splitlines()
    assert lines[0] == 'quern train: column "who" has 120 different texts in 120 items'
    assert "--drop" in lines[1]
    run_quern(*words, "--drop", "who")


def test_small_inputs_are_told_by_name(run_quern, tmp_path):
    """With integers, an input of a category may be too small beside the others."""
    path = tmp_path / "t.csv"
    path.write_text("town,pay,y\n" + "".join(
        f"{'Ulm' if i % 3 else 'Bern'},{50000 + i * 37 % 900},{i % 2}\n" for i in range(120)))
    done = run_quern("train", "--data", path, "--label", "y", "--epochs", "1", "--optimizer", "sgd", "--batch", "64",
                     "--model", "dense 500 tanh; dense 2 softmax", "--arith", "i14",
                     "--scale", "none", "-o", tmp_path / "m.st")
    assert "(2 of 3): town=Bern, town=Ulm;" in done.stderr


def test_a_plan_counts_inputs(files, run_quern):
    done = run_quern("plan", "--data", files["train"], "--label", "bought", "--model",
                     "dense 2 softmax", "--team", "host(cpu 60k)", "--json")
    assert '"parameters":22' in done.stdout.replace(" ", "")

"""Real labels: what is learned, how it is scored and written; and two classes with one output.

What the numbers should be comes from NumPy."""

import csv
import json

import numpy as np
import pytest

import ranks

COLUMNS = ["price", "size", "rooms", "age"]


def houses(path, count, seed, whole=False):
    """Prices around 200,000 that follow from the other columns, but for a little noise."""
    draw = np.random.default_rng(seed)
    size, rooms, age = draw.uniform(40, 220, count), draw.integers(1, 8, count), draw.integers(0, 90, count)
    price = 40000 + 1400 * size + 6000 * rooms - 700 * age + draw.normal(0, 9000, count)
    with open(path, "w", newline="") as out:
        table = csv.writer(out)
        table.writerow(COLUMNS)
        for row in zip(price, size, rooms, age):
            table.writerow([f"{row[0]:.{0 if whole else 2}f}", f"{row[1]:.1f}", row[2], row[3]])
    return path


@pytest.fixture(scope="module")
def made(quern, tmp_path_factory):
    folder = tmp_path_factory.mktemp("houses")
    return houses(folder / "train.csv", 900, 1), houses(folder / "test.csv", 200, 2)


def predictions(run_quern, model, data, *more):
    done = run_quern("predict", model, "--data", data, *more)
    return list(csv.DictReader(done.stdout.splitlines())), done.stderr


def test_options_of_the_optimizer_that_regress_takes(run_quern, made, tmp_path):
    """Without --optimizer it is adamw, whose options then mean something."""
    digests = []
    said = ["--optimizer", "adamw", "--lr", "0.01", "--schedule", "cosine", "--weight-decay"]
    items = sum(1 for _ in open(made[0])) - 1
    for more in ([], [*said, "1" if items < 1000 else "0.3"]):
        run_quern("train", "--data", made[0], "--task", "regress", "--beta1", "0.7", "--epochs", "2",
                  "--quiet", *more, "-o", tmp_path / "m", cwd=tmp_path)
        digests.append((tmp_path / "m").read_bytes())
    assert digests[0] == digests[1]


def metadata(model):
    header = model.read_bytes()
    return json.loads(header[8:8 + int.from_bytes(header[:8], "little")])


def tensor(model, name):
    header, content = metadata(model), model.read_bytes()
    begin, end = header[name]["data_offsets"]
    start = 8 + int.from_bytes(content[:8], "little")
    return np.frombuffer(content[start + begin:start + end], "<f4")


def errors(labels, predicted):
    wrong = predicted - labels
    return {"mae": np.abs(wrong).mean(), "rmse": np.sqrt((wrong ** 2).mean()),
            "r2": 1 - (wrong ** 2).sum() / ((labels - labels.mean()) ** 2).sum()}


def test_prices_with_the_defaults(made, run_quern, tmp_path):
    """A table as it is, without any option but its name, gives a model that knows most of it."""
    train, test = made
    model, run = tmp_path / "m", tmp_path / "run"
    done = run_quern("train", "--data", train, "--test", test, "--run-dir", run, "--json", "-o", model)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    end = events[-1]
    table, _ = predictions(run_quern, model, test)
    assert list(table[0]) == ["item", "label", "prediction"]
    labels, predicted = (np.array([float(r[k]) for r in table]) for k in ("label", "prediction"))
    for key, value in errors(labels, predicted).items():
        assert end[key] == pytest.approx(value, rel=1e-6), key
    assert end["r2"] > 0.9 and end["errors_of"] == "test" and "accuracy" not in end
    # Every number reads back as the same float, and is the shortest text that does.
    for r in table:
        assert len(r["prediction"]) <= len(f"{np.float32(r['prediction']):.9g}")
    # The record of the run, and the events, say the same.
    with open(run / "metrics.csv", newline="") as file:
        last = list(csv.DictReader(file))[-1]
    assert list(last)[4:8] == ["train_loss", "train_mae", "train_rmse", "train_r2"]
    epoch = [e for e in events if e["event"] == "epoch"][-1]
    for key in ("mae", "rmse", "r2"):
        assert float(last[f"test_{key}"]) == pytest.approx(epoch[f"test_{key}"], rel=1e-6)
    assert last["train_mae"] == "" and last["valid_rmse"] == "" and epoch["train_mae"] is None
    assert json.loads((run / "run.json").read_text())["test"].keys() == {"items", "loss", "mae",
                                                                         "rmse", "r2"}


def test_labels_are_scaled(made, run_quern, tmp_path):
    """The model holds mean and deviation of the training labels; the training's scores follow from
    its loss."""
    train, _ = made
    model = tmp_path / "m"
    done = run_quern("train", "--data", train, "--valid", "0.25", "--json", "--epochs", "2", "-o", model)
    labels = np.loadtxt(train, delimiter=",", skiprows=1, usecols=0)
    assert tensor(model, "target.mean").shape == (1,)
    mean, deviation = tensor(model, "target.mean")[0], tensor(model, "target.deviation")[0]
    assert abs(mean - labels.mean()) < 0.1 * labels.std() and 0.9 < deviation / labels.std() < 1.1
    whole = tmp_path / "whole"
    run_quern("train", "--data", train, "--epochs", "1", "-o", whole)
    assert tensor(whole, "target.mean")[0] == np.float32(labels.mean())
    assert tensor(whole, "target.deviation")[0] == np.float32(labels.std())
    epoch = json.loads([line for line in done.stdout.splitlines() if '"epoch"' in line][-1])
    assert epoch["train_rmse"] == pytest.approx(np.sqrt(epoch["train_loss"]) * deviation, rel=1e-5)
    assert epoch["train_r2"] == pytest.approx(1 - epoch["train_loss"], rel=1e-5)


@pytest.mark.parametrize("loss", ["mse", "mae", "huber"])
def test_a_layer_learns_a_line(loss, run_quern, tmp_path):
    """One weight and one bias: the best line is known, whatever the loss."""
    x = np.linspace(-3, 5, 200)
    data = tmp_path / "line.csv"
    data.write_text("y,x\n" + "".join(f"{-70.5 + 12.25 * v:.4f},{v:.4f}\n" for v in x))
    more = ["--delta", "0.2"] if loss == "huber" else []
    model = tmp_path / "m"
    run_quern("train", "--data", data, "--model", "dense 1", "--loss", loss, *more, "--epochs", "60",
              "--optimizer", "sgd", "--lr", "0.05", "--schedule", "cosine", "-o", model)
    table, told = predictions(run_quern, model, data)
    assert max(abs(float(r["prediction"]) - float(r["label"])) for r in table) < 0.6
    assert "MAE" in told and "R2 1.0000" in told
    recipe = json.loads(metadata(model)["__metadata__"]["recipe"])
    assert (recipe["contract"], recipe["task"], recipe["loss"]) == (2, "regress", loss)
    assert recipe["delta"] == (0.2 if loss == "huber" else 0)


def test_whole_numbers_as_labels(run_quern, tmp_path):
    """They ask what is meant; once it was said, other tables are read alike."""
    train = houses(tmp_path / "train.csv", 300, 3, whole=True)
    test = houses(tmp_path / "test.csv", 20, 4, whole=True)
    model = tmp_path / "m"
    done = run_quern("train", "--data", train, "-o", model, status=1)
    assert "--task" in done.stderr and "different whole numbers" in done.stderr
    words = ["--data", train, "--test", test, "--epochs", "3"]
    run_quern("train", *words, "--task", "regress", "-o", model)
    assert "replay: identical" in run_quern("replay", model, "--data", train, "--test", test).stdout
    table, told = predictions(run_quern, model, test)
    assert "20 labels" in told
    assert [r["label"] for r in table] == [r.split(",")[0] for r in test.read_text().split()[1:]]
    decimals = houses(tmp_path / "decimals.csv", 300, 3)
    assert "RMSE" in run_quern("train", "--data", decimals, "--test", test, "-o", model).stdout


def test_equal_labels(run_quern, tmp_path):
    data = tmp_path / "equal.csv"
    data.write_text("y,x\n" + "".join(f"0.1,{k}\n" for k in range(50)))
    done = run_quern("train", "--data", data, "--epochs", "2", "-o", tmp_path / "m")
    table, told = predictions(run_quern, tmp_path / "m", data)
    assert {r["prediction"] for r in table} == {"0.1"} and "MAE 0, RMSE 0, 50 labels" in told
    assert "R2" not in done.stdout


def test_ranks_and_checkpoints(made, quern, run_quern, tmp_path):
    train, test = made
    words = ["train", "--data", train, "--test", test, "--epochs", "3", "--loss", "huber", "--schedule", "constant"]
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    run_quern(*words, "-o", alone)
    ranks.run(quern, 3, *words, "--quiet", "-o", shared)
    assert shared.read_bytes() == alone.read_bytes()
    ranks.run(quern, 2, *words, "--quiet", "--data-from-rank0", "-o", shared)
    assert shared.read_bytes() == alone.read_bytes()
    ranks.run(quern, 2, "predict", alone, "--data", test, "-o", tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text() == run_quern("predict", alone, "--data", test).stdout
    points = tmp_path / "points"
    first = [w if w != "3" else "1" for w in words]
    run_quern(*first, "--checkpoint", points, "-o", shared)
    run_quern(*words, "--checkpoint", points, "--resume", "-o", shared)
    assert shared.read_bytes() == alone.read_bytes()


# ---------------------------------------------------------------- one output for two classes

@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    draw = np.random.default_rng(5)
    x = draw.normal(size=(400, 3))
    kind = np.where(x[:, 0] * 2 - x[:, 1] + draw.normal(0, 0.4, 400) > 0, "yes", "no")
    path = tmp_path_factory.mktemp("pair") / "pair.csv"
    path.write_text("a,b,c,kind\n" + "".join(
        ",".join(f"{v:.4f}" for v in row) + f",{k}\n" for row, k in zip(x, kind)))
    return path


def test_two_classes(pair, run_quern, tmp_path):
    model = tmp_path / "m"
    words = ["--data", pair, "--label", "kind", "--loss", "binary", "--epochs", "5"]
    done = run_quern("train", *words, "--test", pair, "--json", "-o", model)
    end = json.loads(done.stdout.splitlines()[-1])
    assert json.loads(metadata(model)["__metadata__"]["recipe"])["model"] == "dense 64 relu; dense 32 relu; dense 1 sigmoid"
    table, told = predictions(run_quern, model, pair, "--outputs")
    output = np.array([float(r["p0"]) for r in table])
    score = np.array([float(r["score"]) for r in table])
    yes = np.array([r["label"] == "yes" for r in table])
    assert [r["prediction"] for r in table] == [("no", "yes")[int(v)] for v in output > 0.5]
    exact = output.astype("f4")
    assert np.array_equal(score.astype("f4"), np.where(output > 0.5, exact, np.float32(1) - exact))
    right = (output > 0.5) == yes
    assert end["accuracy"] == pytest.approx(right.mean()) and end["accuracy"] > 0.9
    assert end["loss"] == pytest.approx(-np.log(np.where(yes, output, 1 - output)).mean(), rel=1e-4)
    assert np.array(end["confusion"]).tolist() == [
        [int((~yes & (output <= 0.5)).sum()), int((~yes & (output > 0.5)).sum())],
        [int((yes & (output <= 0.5)).sum()), int((yes & (output > 0.5)).sum())]]
    assert f"({right.sum()} of 400)" in told


# ---------------------------------------------------------------- what is refused

@pytest.mark.parametrize("more, what, remedy", [
    (["--loss", "cross-entropy"], 'the loss "cross-entropy" is for classes', "--loss mse, mae or huber"),
    (["--loss", "binary"], 'the loss "binary" is for classes', "--loss mse, mae or huber"),
    (["--model", "dense 2"], 'the last layer is "dense 2 none"', 'end the model with "dense 1"'),
    (["--model", "dense 1 softmax"], 'the last layer is "dense 1 softmax"', "dense 1"),
    (["--loss", "huber", "--delta", "0"], 'delta of the loss "huber" is 0', "greater than 0"),
    (["--delta", "2"], "--delta does nothing", "--loss huber"),
])
def test_refused_with_real_labels(more, what, remedy, made, run_quern, tmp_path):
    done = run_quern("train", "--data", made[0], *more, "-o", tmp_path / "m", status=2)
    assert what in done.stderr and remedy in done.stderr and not (tmp_path / "m").exists()


def test_refused_with_classes(pair, run_quern, tmp_path):
    three = tmp_path / "three.csv"
    three.write_text("kind,x\n" + "".join(f"{'abc'[k % 3]},{k}\n" for k in range(30)))
    words = ["--loss", "binary", "-o", tmp_path / "m"]
    done = run_quern("train", "--data", three, *words, status=2)
    assert 'the loss "binary" is for two classes, and the data has 3' in done.stderr
    done = run_quern("train", "--data", pair, "--label", "kind", "--model", "dense 2 softmax", *words,
                     status=2)
    assert 'needs one sigmoid output, the last layer is "dense 2 softmax"' in done.stderr


def test_sets_of_another_kind(made, pair, run_quern, tmp_path):
    """A test set with names as labels for a model of prices."""
    other = tmp_path / "other.csv"
    rows = made[1].read_text().splitlines()
    other.write_text("\n".join([rows[0]] + ["cheap" + r[r.index(","):] for r in rows[1:]]) + "\n")
    done = run_quern("train", "--data", made[0], "--test", other, "-o", tmp_path / "m", status=1)
    assert 'the label "cheap" is not a number' in done.stderr and not (tmp_path / "m").exists()


@pytest.mark.parametrize("option, what", [("--valid", "the validation set"), ("--test", "the test set")])
def test_a_label_out_of_range_ends_no_epoch(option, what, run_quern, tmp_path):
    """A label that scaling takes beyond float32 is refused before any epoch is trained."""
    near, far = tmp_path / "near.csv", tmp_path / "far.csv"
    near.write_text("y,x\n" + "".join(f"{0.001 * i:.3f},{i}\n" for i in range(1, 20)))
    far.write_text("y,x\n0.5,1\n3e38,2\n")
    done = run_quern("train", "--data", near, option, far, "--run-dir", tmp_path / "run",
                     "--task", "regress", "-o", tmp_path / "m", status=1)
    assert "the label of item 1 is too far from the others" in done.stderr and what in done.stderr
    assert not (tmp_path / "run" / "metrics.csv").exists() and not (tmp_path / "m").exists()


def test_large_numbers_have_no_exponent(run_quern, tmp_path):
    data, model = tmp_path / "d.csv", tmp_path / "m"
    draw = np.random.default_rng(5)
    rows = [(30_000_000 + 500_000 * x, f"{x:.3f}") for x in draw.integers(0, 40, 60)]
    data.write_text("price,x\n" + "".join(f"{p},{x}\n" for p, x in rows))
    run_quern("train", "--data", data, "--task", "regress", "--epochs", "3", "--quiet", "-o", model)
    table, said = predictions(run_quern, model, data)
    assert [r["label"] for r in table] == [str(p) for p, _ in rows]
    assert not any("e" in r["prediction"] for r in table)
    assert "MAE" in said and not any("e+" in word for word in said.split())
    least, greatest = min(rows)[0], max(rows)[0]
    assert f"real numbers from {least} to {greatest}" in run_quern("data", "info", data, "--task",
                                                                   "regress").stdout

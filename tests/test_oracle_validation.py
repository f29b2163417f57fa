"""A validation file that decides on the best epoch, by both programs (docs/exactness.md 2.8, 7.5)."""

import numpy as np
import pytest

from test_oracle import train


def judged(folder, name, rows, header=None):
    path = folder / name
    lines = ([header] if header else []) + [",".join(str(cell) for cell in row) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("more", [
    ["--missing", "median", "--early-stopping", "2"],
    ["--missing", "drop", "--keep", "best"],
    ["--missing", "mean", "--early-stopping", "3", "--keep", "last", "--class-weight", "balanced"],
    ["--missing", "zero"],  # the file decides on nothing
])
def test_a_validation_file(more, tmp_path):
    """Columns in another order, categories of its own, codes as floats, labels that are numbers alone:
    what decides is the table as the model has it."""
    generator = np.random.default_rng(8)

    def draw(count, cities, codes, labels):
        for _ in range(count):
            city, code, x = generator.choice(cities), generator.choice(codes), generator.normal()
            x = "" if generator.random() < 0.2 else f"{x:.3f}"
            yield city, code, x, generator.choice(labels), f"{generator.normal():.2f}"

    train_rows = [*draw(90, ["Bern", "Ulm", "Wien"], ["1", "2", "7", "10"], ["2", "1.5", "b", "c"])]
    valid_rows = [*draw(50, ["Ulm", "Rom", "Wien"], ["1.0", "7.00", "1e1", "3"], ["2", "1.5"])]
    data = judged(tmp_path, "d.csv", train_rows, "city,code,x,kind,z")
    valid = judged(tmp_path, "v.csv", [(z, kind, code, city, x) for city, code, x, kind, z in valid_rows],
                   "z,kind,code,city,x")
    train(["--data", data, "--label", "kind", "--category", "code", "--valid", valid, "--scale",
                  "standard", "--model", "dense 6 tanh; dense 4 softmax", "--loss", "cross-entropy",
                  "--lr", "0.3", "--batch", "20", "--grain", "7", "--epochs", "12", "--seed", "5",
                  "--task", "classify", *more], tmp_path / "m.st")
    assert (b"valid_data" in (tmp_path / "m.st").read_bytes()) == (len(more) > 2)


@pytest.mark.parametrize("scale", ["unit", "fraction", "standard"])
def test_a_validation_file_with_other_columns(scale, tmp_path):
    """The model's columns hold bytes, and others that the file has hold floats, texts and gaps."""
    generator = np.random.default_rng(10)

    def draw(count):
        return [(*generator.integers(0, 256, 2), generator.choice(["u", "v"]),
                 f"{generator.normal():.2f}", "") for _ in range(count)]

    data = judged(tmp_path, "d.csv", [row[:3] for row in draw(80)], "a,b,kind")
    valid = judged(tmp_path, "v.csv", [(x, b, gap, kind, kind, a) for a, b, kind, x, gap in draw(40)],
                   "x,b,gap,kind,twin,a")
    train(["--data", data, "--label", "kind", "--valid", valid, "--scale", scale, "--model",
           "dense 6 tanh; dense 2 softmax", "--loss", "cross-entropy", "--lr", "0.3", "--batch", "20",
           "--grain", "7", "--epochs", "9", "--seed", "5", "--keep", "best"], tmp_path / "m.st")


def test_categories_that_the_model_does_not_list_are_not_missing(tmp_path):
    """2.6: `drop` keeps their items, which alone decide here."""
    data = judged(tmp_path, "d.csv", [("abc"[i % 3], i * i % 7, i % 2) for i in range(30)], "c,x,y")
    valid = judged(tmp_path, "v.csv", [("z", i, i % 2) for i in range(6)] + [("a", "", 1)], "c,x,y")
    train(["--data", data, "--label", "y", "--valid", valid, "--scale", "standard", "--model", "dense 2 softmax",
           "--loss", "cross-entropy", "--lr", "0.9", "--batch", "4", "--grain", "7", "--epochs", "5", "--seed", "5",
           "--missing", "drop", "--keep", "best"], tmp_path / "m.st")


@pytest.mark.parametrize("header", ["y,a,b", None])
def test_a_validation_file_of_real_labels(header, tmp_path):
    generator = np.random.default_rng(9)
    rows = [(f"{generator.normal():.3f}", *generator.integers(0, 300, 2)) for _ in range(130)]
    data, valid = judged(tmp_path, "d.csv", rows[:90], header), judged(tmp_path, "v.csv", rows[90:], header)
    said = train(["--data", data, "--valid", valid, "--scale", "standard", "--model",
                  "dense 8 relu; dense 1", "--loss", "mse", "--lr", "0.05", "--batch", "16", "--grain",
                  "16", "--epochs", "20", "--seed", "5", "--keep", "best", "--optimizer", "sgd"],
                 tmp_path / "m.st")
    assert "the model is that of epoch" in said

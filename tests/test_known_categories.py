"""A column that a model knows as a category is one in other files, whatever stands in them."""

import csv
import os
import subprocess
from pathlib import Path

QUERN = os.environ.get("QUERN", str(Path(__file__).parent.parent / "build" / "quern"))
CODES = ["01", "02", "none", "A", "B", "C"]


def quern(folder, *words):
    done = subprocess.run([QUERN, *words], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stderr


def write(path, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([["y", 'the "code", short', "x"], *rows])


def outputs(folder, name):
    quern(folder, "predict", "m.safetensors", "--data", name, "--outputs", "-o", "out.csv")
    with open(folder / "out.csv", newline="") as file:
        return [row[1:] for row in csv.reader(file)][1:]


def test_a_prediction_depends_on_its_item_alone(tmp_path):
    rows = [["p" if i % 6 < 3 else "n", CODES[i % 6], i * 7 % 11 / 10] for i in range(180)]
    write(tmp_path / "all.csv", rows)
    quern(tmp_path, "train", "--data", "all.csv", "--model", "dense 4 tanh; dense 2 softmax",
          "--epochs", "2", "--quiet", "-o", "m.safetensors")
    together = outputs(tmp_path, "all.csv")
    for chosen in (["01", "02"], ["none"], ["02", "01", "A"]):
        some = [i for i in range(180) if rows[i][1] in chosen]
        write(tmp_path / "some.csv", [rows[i] for i in some])
        assert outputs(tmp_path, "some.csv") == [together[i] for i in some]
        said = quern(tmp_path, "train", "--data", "all.csv", "--test", "some.csv", "--valid",
                     "some.csv", "--epochs", "1", "--model", "dense 2 softmax", "-o", "t.safetensors")
        assert "category" not in said and "missing" not in said

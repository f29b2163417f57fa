"""A column that a model knows as a category is one in other files, whatever stands in them."""

import csv
import os
import resource
import subprocess
from pathlib import Path

QUERN = os.environ.get("QUERN", str(Path(__file__).parent.parent / "build" / "quern"))
CODES = ["01", "02", "nil", "A", "B", "C"]


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
    for chosen in (["01", "02"], ["nil"], ["02", "01", "A"]):
        some = [i for i in range(180) if rows[i][1] in chosen]
        write(tmp_path / "some.csv", [rows[i] for i in some])
        assert outputs(tmp_path, "some.csv") == [together[i] for i in some]
        said = quern(tmp_path, "train", "--data", "all.csv", "--test", "some.csv", "--valid",
                     "some.csv", "--epochs", "1", "--model", "dense 2 softmax", "-o", "t.safetensors")
        assert "category" not in said and "missing" not in said


def bare(path, rows):
    """A file without a header."""
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))


def test_columns_without_names(tmp_path):
    """They are known by their places: the second feature is a category, whatever stands in it."""
    rows = [["pn"[i % 6 < 3], i * 7 % 11 / 10, CODES[i % 6]] for i in range(180)]
    bare(tmp_path / "all.csv", rows)
    quern(tmp_path, "train", "--data", "all.csv", "--model", "dense 4 tanh; dense 2 softmax",
          "--epochs", "2", "--quiet", "-o", "m.safetensors")
    together = outputs(tmp_path, "all.csv")
    some = [i for i in range(180) if rows[i][2] in ("01", "02")]
    bare(tmp_path / "some.csv", [rows[i] for i in some])
    assert outputs(tmp_path, "some.csv") == [together[i] for i in some]
    said = quern(tmp_path, "train", "--data", "all.csv", "--test", "some.csv", "--epochs", "1",
                 "--model", "dense 2 softmax", "-o", "t.safetensors")
    assert "category" not in said


def test_numbers_by_their_value(tmp_path):
    """pandas writes whole numbers beside gaps as 1.0: they are the categories they were."""
    rows = [["pn"[i % 3 == 0], i % 3, i % 5] for i in range(60)]
    write(tmp_path / "all.csv", rows)
    quern(tmp_path, "train", "--data", "all.csv", "--category", "2", "--epochs", "2", "--model", "dense 2 softmax", "-o", "m.safetensors")
    together = outputs(tmp_path, "all.csv")
    write(tmp_path / "floats.csv", [[y, f"{code}.0", x] for y, code, x in rows])
    assert outputs(tmp_path, "floats.csv") == together
    assert "replay: identical" in subprocess.run(
        [QUERN, "replay", "m.safetensors", "--data", "all.csv"], cwd=tmp_path, capture_output=True,
        text=True).stdout
    write(tmp_path / "others.csv", [[y, code + 0.5, x] for y, code, x in rows])
    said = quern(tmp_path, "predict", "m.safetensors", "--data", "others.csv", "-o", "out.csv")
    assert "60 values of column" in said and "not categories of the model" in said


def test_labels_are_those_of_the_model(tmp_path):
    """Classes of numbers and texts: a file with numbers alone has the same classes."""
    names = ["1.5", "2", "x", "y", "z"]
    rows = [[names[i % 5], i % 5, i % 3] for i in range(100)]
    write(tmp_path / "all.csv", rows)
    quern(tmp_path, "train", "--data", "all.csv", "--category", "2", "--epochs", "30", "--optimizer", "sgd", "--lr", "0.5",
          "-o", "m.safetensors")
    for chosen in (["1.5", "2"], ["1.5"], ["2"], ["2", "x"]):
        write(tmp_path / "some.csv", [row for row in rows if row[0] in chosen])
        quern(tmp_path, "predict", "m.safetensors", "--data", "some.csv", "-o", "out.csv")
        with open(tmp_path / "out.csv", newline="") as file:
            told = list(csv.DictReader(file))
        assert {r["label"] for r in told} == set(chosen)
        assert all(r["label"] == r["prediction"] for r in told)
        said = quern(tmp_path, "train", "--data", "all.csv", "--category", "2", "--test", "some.csv",
                     "--epochs", "30", "--optimizer", "sgd", "--lr", "0.5", "-o", "t.safetensors")
        assert "100.00 %" in said.splitlines()[-1]


def test_memory_of_the_inputs(tmp_path):
    """What does not fit is refused before it is made, and the column is named."""
    with open(tmp_path / "wide.csv", "w") as file:
        file.write("y,zip,b,c,d,e\n")
        for i in range(20000):
            file.write(f"{i % 2}," + ",".join(f"k{(i + k) % (9999 - k)}" for k in range(5)) + "\n")
    limit = (resource.RLIMIT_AS, (3 << 30, 3 << 30))
    done = subprocess.run([QUERN, "train", "--data", "wide.csv", "--epochs", "1", "--threads", "1",
                           "-o", "m.safetensors"], cwd=tmp_path, capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(*limit), timeout=300)
    assert done.returncode == 1, done.stderr
    lines = done.stderr.splitlines()
    assert lines[0].startswith("quern train: the inputs take 3.7 GiB, and ") and "--drop" in lines[-1]
    assert 'column "zip" gives 9999 of 49985 inputs' in lines[0]


def test_dates_are_noted(tmp_path):
    (tmp_path / "d.csv").write_text("y,when,at\n" + "".join(
        f"{i % 2},11/{i % 12 + 1:02}/2024,{i % 24}:30\n" for i in range(60)))
    note = 'the columns "when", "at" hold dates or times, which are read as categories; say how they are'
    said = quern(tmp_path, "train", "--data", "d.csv", "--epochs", "1", "-o", "m.safetensors")
    assert note in said and "--date-format" in said and "--drop" in said
    done = subprocess.run([QUERN, "data", "info", "d.csv"], cwd=tmp_path, capture_output=True, text=True)
    assert note in done.stderr + done.stdout
    assert "dates" not in quern(tmp_path, "predict", "m.safetensors", "--data", "d.csv", "-o", "p.csv")
    assert "dates" not in quern(tmp_path, "data", "info", "d.csv", "--category", "when,at")

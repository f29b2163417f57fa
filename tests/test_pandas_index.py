"""The index of pandas, which names rows and is not a feature. The samples were written by pandas and pyarrow
from the frame of `rows`, of which it left every third row out; the old model was trained on one of them
before the rule `index`, and has the index as its third feature."""

import json
import os
import struct

import pytest

from builds import ROOT

SAMPLES = ROOT / "tests" / "fuzz" / "corpus" / "typed"
ONE = ["pandas-index.parquet", "pandas-index.arrow", "pandas-stream.arrow"]
OLD = ROOT / "tests" / "old_models" / "pandas-index.safetensors"


def rows():
    return [(i % 2, i * 7 % 13, i * 0.25 - 3, i) for i in range(40) if i % 3 != 1]


@pytest.fixture
def info(run_quern, tmp_path):
    (tmp_path / "t.csv").write_text("y,a,b,i\n" + "".join(f"{y},{a},{b},{i}\n" for y, a, b, i in rows()))
    def ask(path, *more):
        return json.loads(run_quern("data", "info", path, "--json", *more).stdout)
    return lambda path, *more: ask(tmp_path / path if path == "t.csv" else SAMPLES / path, *more)


def recipe(path):
    data = path.read_bytes()
    head = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
    return json.loads(head["__metadata__"]["recipe"])


def test_it_is_left_out(info):
    wanted = info("t.csv", "--drop", "i")
    for name in ONE:
        told = info(name)
        assert told["digest"] == wanted["digest"] and told["table"] == wanted["table"]
        assert '"__index_level_0__" its index' in told["note"] and "--features" in told["note"]
    told = info("pandas-levels.parquet")
    assert told["digest"] == info("t.csv", "--drop", "b,i")["digest"]
    assert '"__index_level_0__", "b" its index' in told["note"]


def test_who_names_it_has_it(info):
    for more, same in (
            (["--features", "a,__index_level_0__"], ["--features", "a,i"]),
            (["--features", "2-last"], ["--features", "2-3"]),
            (["--label", "__index_level_0__", "--task", "regress"], ["--label", "i", "--task", "regress"]),
            (["--label", "4", "--task", "regress"], ["--label", "i", "--task", "regress"]),
            (["--label", "last"], ["--label", "b", "--drop", "i"]),
            (["--weight", "__index_level_0__"], ["--weight", "i"]),
            (["--category", "__index_level_0__"], ["--category", "i"]),
            (["--drop", "a"], ["--drop", "a,i"]),
            (["--drop", "__index_level_0__"], ["--drop", "i"])):
        assert info(ONE[0], *more)["digest"] == info("t.csv", *same)["digest"], more


def test_recipes(run_quern, tmp_path):
    """A model knows the rule where it changed something, and one that knows it not reads the index."""
    index, plain, old = tmp_path / "index", tmp_path / "plain", SAMPLES / ONE[0]
    for out, more in (index, []), (plain, ["--drop", "__index_level_0__"]):
        run_quern("train", "--data", old, "--label", "y", "--epochs", 1, "--model", "dense 2 softmax",
                  "--quiet", "-o", out, *more)
    assert recipe(index)["rules"] == "index" and "rules" not in recipe(plain)
    for model in index, OLD:
        done = run_quern("replay", model, "--data", old)
        assert "replay: identical" in done.stdout
    assert recipe(OLD)["features"] == 3 and recipe(index)["features"] == 2
    lines = run_quern("predict", OLD, "--data", old).stdout.splitlines()
    assert len(lines) == 28
    # A frame that was not filtered has no index column, and a CSV file does not tell.
    (tmp_path / "t.csv").write_text("y,a,b\n" + "".join(f"{y},{a},{b}\n" for y, a, b, _ in rows()))
    same = run_quern("predict", index, "--data", old).stdout
    assert same == run_quern("predict", index, "--data", tmp_path / "t.csv").stdout
    assert same == run_quern("predict", plain, "--data", old).stdout


@pytest.mark.parametrize("header, words, noted", [
    (",y,a", ["--label", "y"], "column 1 has no name and numbers the rows; leave it out with --drop 1"),
    ("id,y,a", ["--label", "y"], "column 1 (id) numbers the rows; leave it out with --drop 1"),
    ("id,y,a", [], "column 1 (id), the label, numbers the rows; leave it out with --drop 1"),
    (None, ["--label", "2"], "column 1 numbers the rows; leave it out with --drop 1"),
    ("id,y,a", ["--drop", "id"], None), ("id,y,a", ["--label", "id"], None)])
@pytest.mark.parametrize("first", [0, 1, 2])
def test_row_numbers_in_csv(run_quern, tmp_path, header, words, noted, first):
    path = tmp_path / "t.csv"
    path.write_text((header + "\n" if header else "") +
                    "".join(f"{i + first},{i % 2},{i * 7 % 13}\n" for i in range(20)))
    note = json.loads(run_quern("data", "info", path, *words, "--json").stdout)["note"] or ""
    if noted and header == ",y,a" and first == 2:
        noted = "column 1 has no name; where it only names the rows, leave it out with --drop 1"
    elif first == 2:
        noted = None
    assert (noted in note) if noted else "column 1" not in note.replace("label is column 1", "")


def test_tables_in_memory(tmp_path):
    """Of pyarrow, with the index as a column; pandas itself is read without it."""
    pyarrow = pytest.importorskip("pyarrow")
    import pandas  # noqa: PLC0415

    import python_package  # noqa: PLC0415
    python_package.folder()
    import quern  # noqa: PLC0415
    frame = pandas.DataFrame(rows(), columns=["y", "a", "b", "i"]).set_index("i")
    table = pyarrow.Table.from_pandas(frame)
    wanted = quern.Data(frame, label="y")
    given = quern.Data(table, label="y")
    assert given.digest == wanted.digest and given._rules == "index" and wanted._rules == ""
    assert quern.Data(table.drop_columns("y"), frame.y.to_numpy())._rules == "index"
    model = quern.train(given, model="dense 2 softmax", epochs=1)
    assert model.recipe["rules"] == "index"
    assert (model.predict(table) == model.predict(frame)).all()
    old = quern.load(os.fspath(OLD))
    assert len(old.predict(pyarrow.parquet.read_table(SAMPLES / ONE[0]))) == len(frame)
    made = quern.Classifier(model="dense 2 softmax", epochs=1).fit(table.drop_columns("y"), frame.y)
    assert list(made.feature_names_in_) == ["a", "b"]

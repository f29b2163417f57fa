"""Several columns of a table as the labels of one network (docs/exactness.md 24.15)."""

import csv
import json
import sqlite3
import subprocess

import pytest

import python_package
import ranks
from test_oracle import train as train_both

np = pytest.importorskip("numpy")

HEADER = ["w", "x", "news", "y", "happy", "is, new"]
LABELS = 'news,happy,"is, new"'
WORDS = ["--model", "dense 5 tanh; dense 3 sigmoid", "--scale", "standard", "--loss", "binary", "--lr", "0.1", "--batch", "16",
         "--grain", "4", "--epochs", "2", "--seed", "5", "--optimizer", "sgd", "--valid", "0.25"]


def write(path, rows, header=HEADER):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table whose features are bytes, and the targets that its labels are."""
    rng = np.random.default_rng(4)
    x = rng.integers(0, 256, (60, 3))
    targets = np.stack([x[:, 0] > 120, x[:, 1] + x[:, 2] > 240, x[:, 2] < 90], axis=1).astype(np.uint8)
    targets[rng.random(targets.shape) < 0.1] = 255
    texts = [["0", "1"], ["no", "yes"], ["False", "True"]]
    cells = [[texts[k][v] if v < 2 else "" for k, v in enumerate(row)] for row in targets.tolist()]
    folder = tmp_path_factory.mktemp("label_columns")
    write(folder / "t.csv", [[w, z, a, y, b, c] for (w, z, y), (a, b, c) in zip(x.tolist(), cells)])
    return folder, x.astype(np.uint8), targets


def run(quern, *words, status=0):
    done = subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status == 0 else done.stderr


def info(quern, path, *words):
    return json.loads(run(quern, "data", "info", path, "--json", *words))


@pytest.fixture(scope="module")
def model(quern, table):
    """Trained by both programs."""
    folder = table[0]
    train_both(["--data", folder / "t.csv", "--label", LABELS, *WORDS], folder / "m.st")
    return folder / "m.st"


def test_ranks_and_formats_give_the_same(quern, table, model, tmp_path):
    folder, x, targets = table
    given = ["--label", LABELS, *WORDS]
    ranks.run(quern, 2, "train", "--data", folder / "t.csv", *given, "--quiet", "-o", tmp_path / "ranks")
    assert (tmp_path / "ranks").read_bytes() == model.read_bytes()
    about = info(quern, folder / "t.csv", "--label", LABELS)
    assert about["type"] == "u8" and about["target"] == "several" and about["label"] == LABELS
    assert about["class_names"] == ["news", "happy", "is, new"] and about["ignored"] == (targets == 255).sum()
    assert about["counts"] == (targets == 1).sum(axis=0).tolist()
    for ending in "parquet", "arrow", "json":
        run(quern, "data", "convert", folder / "t.csv", "--unlabelled", "--quiet", "-o", tmp_path / f"t.{ending}")
        assert info(quern, tmp_path / f"t.{ending}", "--label", LABELS)["digest"] == about["digest"]
    with open(folder / "t.csv", newline="") as file, sqlite3.connect(tmp_path / "t.db") as base:
        rows = [[cell or None for cell in row] for row in csv.reader(file)]
        base.execute('CREATE TABLE t (w INT, x INT, news INT, y INT, happy TEXT, "is, new" TEXT)')
        base.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", rows[1:])
    assert info(quern, tmp_path / "t.db", "--label", LABELS)["digest"] == about["digest"]
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", targets)
    assert info(quern, tmp_path / "x.npy", "--labels", tmp_path / "y.npy")["digest"] == about["digest"]
    for words in "3,5-6", "3,5,last":
        assert info(quern, folder / "t.csv", "--label", words)["label"] == LABELS
    (tmp_path / "bare.csv").write_text("".join((folder / "t.csv").read_text().splitlines(True)[1:]))
    bare = info(quern, tmp_path / "bare.csv", "--label", "3,5,6")
    assert bare["class_names"] == ["3", "5", "6"] and bare["digest"] == about["digest"]


def test_names_travel(quern, table, model, tmp_path):
    folder, x, targets = table
    lines = run(quern, "predict", model, "--data", folder / "t.csv").splitlines()
    assert lines[0] == "item,news,happy,\"is, new\"" and len(lines) == 61
    said = run(quern, "evaluate", model, "--data", folder / "t.csv")
    assert "exact match" in said and "micro F1" in said and "is, new  " in said
    assert run(quern, "evaluate", model, "--data", folder / "t.csv", "--label", "is, new,5,3", status=1)
    assert run(quern, "evaluate", model, "--data", folder / "t.csv", "--label", "6,5,3") == said
    run(quern, "train", "--data", folder / "t.csv", "--label", LABELS, *WORDS, "--quiet", "-o", tmp_path / "m", "--report",
        tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<h3>Labels" in page and ">happy<" in page
    bare = tmp_path / "bare.csv"
    bare.write_text("".join((folder / "t.csv").read_text().splitlines(True)[1:]))
    assert run(quern, "evaluate", model, "--data", bare, "--label", "3,5,6") == said
    assert "identical" in run(quern, "replay", model, "--data", folder / "t.csv")
    without = write(tmp_path / "without.csv", x.tolist(), ["w", "x", "y"])
    assert run(quern, "predict", model, "--data", without).splitlines() == lines
    told = run(quern, "evaluate", model, "--data", without, status=1)
    assert "no labels to compare" in told and f"a column for each label of the model: {LABELS}" in told
    # A column has one of the two texts alone, and the columns are in another order.
    rows = [["True", *row, 1, "no"] for row in x[:4].tolist()]
    json_of = json.loads(run(quern, "evaluate", model, "--json", "--data", write(
        tmp_path / "few.csv", rows, ["is, new", "w", "x", "y", "news", "happy"])).splitlines()[-1])
    assert [row["targets"] for row in json_of["evaluation"]["labels"]] == [4, 0, 4]
    rows[0][-1] = "maybe"
    told = run(quern, "evaluate", model, "--data", write(tmp_path / "few.csv", rows, ["is, new", "w", "x", "y", "news", "happy"]),
               status=1)
    assert 'the label "happy"' in told and '"maybe"' in told and '"yes" is 1' in told


def test_python(table, model):
    python_package.folder()
    import quern

    folder, x, targets = table
    data = quern.open(folder / "t.csv", label=["news", "happy", "is, new"])
    assert data.class_names == ["news", "happy", "is, new"] and (data.several == targets).all()
    loaded = quern.load(model)
    assert loaded.classes == data.class_names
    outputs = loaded.predict(str(folder / "t.csv"), outputs=True)
    assert np.abs(outputs - loaded.predict(x, outputs=True)).max() == 0
    found = loaded.evaluate(str(folder / "t.csv"))
    answers, counts = outputs > 0.5, targets != 255
    assert found["by_label"]["name"] == data.class_names
    assert found["exact_match"] == ((answers == targets) | ~counts)[counts.any(axis=1)].all(axis=1).mean()
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(folder / "t.csv")
    assert (quern.Data(frame, label=["news", "happy", "is, new"]).several == targets).all()
    assert loaded.evaluate(frame) == found
    assert (loaded.predict(frame, outputs=True) == outputs).all()
    named = quern.Data(x, pandas.DataFrame(targets, columns=["a", "b", "c"]))
    assert named.class_names == ["a", "b", "c"] and named.digest == data.digest
    with pytest.raises(quern.QuernError, match="names for labels of the shape"):
        quern.Data(x, targets, classes=["a", "b"])


REFUSED = (
    ("news,hapy", "", 'no label column "hapy"', "did you mean --label happy?"),
    ("news,news", "", "named twice", "column 3 (news)"),
    ("news,y", "", "neither 0 nor 1", "item 0 (from 0), column y"),
    ("news,kind", ",a\n,b\n,c", "3 different texts", "item 2 (from 0), column kind"),
    ("news,kind", ",a\n,\n,a", 'the only text in the column of a label is "a"', "write 0 and 1"),
    ("news,when", ",2026-01-02\n,2026-01-03\n,2026-01-04", "has dates", "leave it out"),
    ("1-last", "", "no column is left", "at"),
)


@pytest.mark.parametrize("label, more, said, place", REFUSED)
def test_refusals(quern, tmp_path, label, more, said, place):
    rows = [f"w,x,news,y,happy{',' + label.split(',')[1] if more else ''}", "1,2,1,5,yes", "3,4,0,6,no", "3,4,,7,"]
    lines = [row + end for row, end in zip(rows, ["", *more.splitlines()] if more else [""] * 4)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    told = run(quern, "data", "info", tmp_path / "t.csv", "--label", label, status=1)
    assert said in told and place in told, told


def test_other_options(quern, table, tmp_path):
    path = table[0] / "t.csv"
    told = run(quern, "train", "--data", path, "--label", "news,happy", "--task", "regress", "-o", tmp_path / "m", status=1)
    assert "2 columns are labels" in told and "need no --task" in told
    for words, said in ((["--drop", "happy"], "cannot be in the list"), (["--weight", "news"], "and as the weights")):
        assert said in run(quern, "data", "info", path, "--label", "news,happy", *words, status=1)
    about = info(quern, path, "--label", "news,happy", "--features", "x,w")
    assert about["features"] == 2 and about["class_names"] == ["news", "happy"]
    assert "3 labels, and the last layer has 4 outputs" in run(
        quern, "train", "--data", path, "--label", LABELS, "--model", "dense 4 sigmoid", "-o", tmp_path / "m", status=2)


def test_one_text_alone_in_data_for_a_model(quern, tmp_path):
    """It is one of the model's two, also where it is one of a usual pair; a training refuses it."""
    rows = [[i % 7, "fm"[i % 2], ("low", "top")[i // 2 % 2]] for i in range(24)]
    train = ["train", "--label", "sex,grade", "--model", "dense 2 sigmoid", "--loss", "binary", "--epochs", "1"]
    run(quern, *train, "--data", write(tmp_path / "t.csv", rows, ["x", "sex", "grade"]), "-o", tmp_path / "m")
    few = write(tmp_path / "few.csv", [[1, "f", "top"], [2, "f", "top"]], ["x", "sex", "grade"])
    for data in (few, few):  # the second time from the cache
        told = run(quern, "evaluate", tmp_path / "m", "--data", data)
        assert [line.split()[:2] for line in told.splitlines() if line[:3] in ("sex", "gra")] == [["sex", "0"], ["grade", "2"]], told
    said = run(quern, *train, "--data", few, "--init-from", tmp_path / "m", "--new-last", "-o", tmp_path / "n", status=1)
    assert 'the only text' in said and not (tmp_path / "n").exists(), said
    for steps in ("-5", "abc", " 50", ""):
        assert "cannot be" in run(quern, "search", "--lr-range", f"1e-6,10,{steps}", status=2)


def test_files_that_are_written(quern, table, tmp_path):
    """Each format that holds several labels gives the same data, whole and in parts; labels are its first columns."""
    folder, x, targets = table
    about = info(quern, folder / "t.csv", "--label", LABELS)
    for name, read in (("t.csv", ["--label", LABELS]), ("t.parquet", ["--label", LABELS]), ("t.arrow", ["--label", LABELS]),
                       ("t.json", ["--label", LABELS]), ("t.npz", []), ("t.npy", ["--labels", tmp_path / "y.npy"])):
        apart = ["--output-labels", tmp_path / "y.npy"] if name == "t.npy" else []
        told = json.loads(run(quern, "data", "convert", folder / "t.csv", "--label", LABELS, "-o", tmp_path / name, *apart, "--json"))
        assert told["digest"] == about["digest"] and info(quern, tmp_path / name, *read)["digest"] == about["digest"]
        assert str(told["note"]) in ("None", "read it with --label 'news,happy,\"is, new\"'", "read it with --labels FILE")
    assert (np.load(tmp_path / "t.npz")["y"] == targets).all() and (np.load(tmp_path / "y.npy") == targets).all()
    with open(folder / "t.csv", newline="") as one, open(tmp_path / "t.csv", newline="") as other:
        rows = [[row[k] for k in (2, 4, 5, 0, 1, 3)] for row in csv.reader(one)]
        assert list(csv.reader(other)) == rows
    run(quern, "data", "split", folder / "t.csv", "--label", LABELS, "--parts", "a=0.4,b=0.6", "-o", tmp_path / "p-%.csv", "--quiet")
    parts = [list(csv.reader(open(tmp_path / f"p-{part}.csv", newline=""))) for part in "ab"]
    assert [len(part) for part in parts] == [25, 37] and sorted(parts[0][1:] + parts[1][1:]) == sorted(rows[1:])
    for name, said in (("t.libsvm", "LIBSVM cannot hold several labels"), ("t.tar", "cannot hold several labels")):
        assert said in run(quern, "data", "convert", folder / "t.csv", "--label", LABELS, "-o", tmp_path / name, status=1)
    said = run(quern, "data", "split", folder / "t.csv", "--label", LABELS, "--parts", "a=0.4,b=0.6", "--stratify",
               "-o", tmp_path / "q-%.csv", status=2)
    assert "items have several labels" in said and "--stratify" in said
    np.save(tmp_path / "masks.npy", np.arange(60 * 3, dtype=np.uint8).reshape(60, 1, 3) % 5)
    np.save(tmp_path / "x.npy", x)
    masked = ["data", "convert", tmp_path / "x.npy", "--labels", tmp_path / "masks.npy", "-o"]
    run(quern, *masked, tmp_path / "m.npz", "--quiet")
    assert info(quern, tmp_path / "m.npz")["digest"] == info(quern, *masked[2:-1])["digest"]
    assert "write it as NPY or NPZ" in run(quern, *masked, tmp_path / "m.csv", status=1)


def test_what_a_reader_of_a_part_is_told(quern, tmp_path):
    """Numbers that are categories, names that are numbers, and a text that is alone in its part."""
    rows = [[i, "cat" if i == 7 else "dog", 1 + i % 2, i % 2] for i in range(12)]
    file = write(tmp_path / "t.csv", rows, ["x", "3", "kind", "pair"])
    given = ["--label", "3,pair", "--category", "kind"]
    told = json.loads(run(quern, "data", "convert", file, *given, "-o", tmp_path / "o.csv", "--json"))
    assert told["note"] == "read it with --label '3,pair' --category 4"
    assert info(quern, tmp_path / "o.csv", "--label", "3,pair", "--category", "4")["digest"] == told["digest"]
    told = run(quern, "data", "split", file, *given, "--parts", "a=0.5,b=0.5", "-o", tmp_path / "p-%.csv", "--json")
    notes = [json.loads(line)["note"] for line in told.splitlines()]
    assert sorted("one of its two texts alone" in note for note in notes) == [False, True]
    (tmp_path / "t.json").write_text("".join(json.dumps({"x": i, "a": str(1 + i % 2), "b": i % 2}) + "\n" for i in range(6)))
    given = ["data", "convert", tmp_path / "t.json", "--label", "a,b", "-o"]
    assert 'text of a label "1" cannot be written as CSV: there it means a number' in run(quern, *given, tmp_path / "q.csv", status=1)
    run(quern, *given, tmp_path / "q.parquet", "--quiet")
    assert len({info(quern, tmp_path / name, "--label", "a,b")["digest"] for name in ("t.json", "q.parquet")}) == 1


def test_one_column_with_the_name_of_a_list(quern, tmp_path):
    """The name goes first, which a note says; names in quotes are a list."""
    file = write(tmp_path / "t.csv", [[i % 2, i // 2 % 2, i // 4 % 2, i] for i in range(8)], ["a,b", "a", "b", "x"])
    one, several = info(quern, file, "--label", "a,b"), info(quern, file, "--label", '"a","b"')
    assert one["label"] == "a,b" and one["target"] == "index" and 'one column "a,b"' in one["note"] and one["features"] == 3
    assert several["class_names"] == ["a", "b"] and not several["note"]
    assert not info(quern, file, "--label", '"a,b"')["note"]
    told = json.loads(run(quern, "data", "convert", file, "--label", '"a","b"', "-o", tmp_path / "o.csv", "--json"))
    assert told["note"] == "read it with --label '\"a\",\"b\"'"
    run(quern, "train", "--data", file, "--label", '"a","b"', "--drop", '"a,b"', "--model", "dense 2 sigmoid", "--epochs", "1", "-o", tmp_path / "m")
    said = run(quern, "evaluate", tmp_path / "m", "--data", file, status=2)
    assert "the model has several" in said and "--label" in said and "an array needs a column for each" in said
    assert "exact match" in run(quern, "evaluate", tmp_path / "m", "--data", file, "--label", '"a","b"')


def test_one_text_alone_in_memory(tmp_path):
    python_package.folder()
    import quern
    pandas = pytest.importorskip("pandas")

    frame = pandas.DataFrame([[i % 7, "fm"[i % 2], ("low", "top")[i // 2 % 2]] for i in range(24)], columns=["x", "sex", "grade"])
    few = frame[frame.sex.eq("f") & frame.grade.eq("top")]
    model = quern.train(frame, label=["sex", "grade"], valid=few, model="dense 2 sigmoid", loss="binary", epochs=1)
    for more in ({}, {"label": ["sex", "grade"]}):
        assert model.evaluate(few, **more)["by_label"]["items"] == [0, len(few)]
    with pytest.raises(quern.InputError, match='only text in the column of a label is "top"'):
        quern.Data(few, label=["sex", "grade"])


def test_head_shows_several_labels(quern, tmp_path):
    file = write(tmp_path / "t.csv", [[i, *(int(j < i) for j in range(9)), ["no", "yes", ""][i % 3]] for i in range(4)],
                 ["x", *(f"l{j}" for j in range(9)), "w"])
    given = ["data", "head", file, "--label", "w,2-10", "-n", "3"]
    lines = run(quern, *given).splitlines()
    assert lines[0].split() == ["w", *(f"l{j}" for j in range(7)), "x"] and lines[-1] == "and 2 more labels"
    assert [line.split()[0] for line in lines[2:5]] == ["0", "1", "-"] and lines[4].split()[1:4] == ["1", "1", "0"]
    told = json.loads(run(quern, *given, "--json"))
    assert [c["name"] for c in told["columns"]] == ["w", *(f"l{j}" for j in range(9)), "x"]
    assert [row[0] for row in told["items"]] == [0, 1, None] and told["items"][2][1:4] == [1, 1, 0]
    np.save(tmp_path / "x.npy", np.zeros((2, 4), np.uint8))
    np.save(tmp_path / "m.npy", np.zeros((2, 3, 2), np.uint8))
    assert "and a mask of 3x2 pixels" in run(quern, "data", "head", tmp_path / "x.npy", "--labels", tmp_path / "m.npy")

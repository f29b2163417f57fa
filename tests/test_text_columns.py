"""Columns of texts: found, said, trained on, and read for a model (docs/exactness.md 25.60)."""

import csv
import json
import re

import pytest

import python_package

GOOD, BAD = "a warm and funny film", "a dull and empty film"


def rows(count=40, first=0):
    """Reviews of several words, a length and a class."""
    return [[f"{(GOOD, BAD)[i % 2]} of the year {1900 + i}", 80 + i, "ny"[i % 2]] for i in range(first, first + count)]


def write(path, lines, head=("review", "minutes", "kind")):
    with open(path, "w", newline="") as out:
        csv.writer(out).writerows([head, *lines])
    return path


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "t.csv", rows())


@pytest.fixture
def info(run_quern):
    return lambda *words: json.loads(run_quern("data", "info", *words, "--label", "kind", "--json").stdout)


def train(run_quern, path, *words):
    return run_quern("train", "--data", path, "--label", "kind", *words, "-o", path.parent / "m.st")


def predictions(run_quern, path):
    return [line.split(",")[-2] for line in run_quern("predict", path.parent / "m.st", path).stdout.split()[1:]]


def test_found_and_said(run_quern, table, info, tmp_path):
    found = info(table)
    assert found["table"][0] == {"name": "review", "type": "text", "missing": 0, "texts": 40, "inputs": 2048,
                                 "features": "words:1..2"}
    assert found["rules"] == "text"
    assert "40 different, 2,048 inputs" in run_quern("data", "info", table, "--label", "kind").stdout
    assert "features  2, 32-bit floats, from 80 to 119\n" in run_quern("data", "info", table, "--label", "kind").stdout
    assert "features  1, texts\n" in run_quern("data", "info", table, "--label", "kind", "--drop", "minutes").stdout
    none = info(table, "--text", "none")
    assert none["table"][0]["type"] == "category" and none["digest"] != found["digest"]
    assert info(table, "--category", "review")["digest"] == none["digest"]
    said = info(write(tmp_path / "s.csv", [["Ulm", 1, "a"], ["Bern", 2, "b"]]), "--text", "review")
    assert said["table"][0]["inputs"] == 1024
    # Few words, and few different ones: categories.
    assert info(write(tmp_path / "f.csv", [[f"item {i}", 1, "a"] for i in range(40)]))["table"][0]["type"] == "category"
    same = [[f"the same words {i % 20} again", 1, "a"] for i in range(40)]
    assert info(write(tmp_path / "g.csv", same))["table"][0]["type"] == "category"


@pytest.mark.parametrize("kind", ["0fe1-{0}-ab-cd-ef", "https://example.com/a/{0}/b.html", "192.168.{0}.1",
                                  "{0} March 2001 at 3:10:11", "+49 30 {0} 12 34", "DE10 3704 0044 0532 {0}",
                                  "12.{0} N, 4.{0} E"])
def test_identifiers_are_no_texts(table, info, tmp_path, kind):
    """They have parts, but hardly a word after a space."""
    table = write(tmp_path / "i.csv", [[kind.format(i), 1, "a"] for i in range(40)])
    assert info(table)["table"][0]["type"] == "category"
    assert info(table, "--text", "review")["table"][0]["type"] == "text"


@pytest.mark.parametrize("of", ["东京都是一个城市{0}", "Ёлка и ёж {0} вместе"])
def test_letters_of_other_scripts_are_texts(info, tmp_path, of):
    assert info(write(tmp_path / "i.csv", [[of.format(i), 1, "a"] for i in range(40)]))["table"][0]["type"] == "text"


def test_texts_without_words(run_quern, tmp_path):
    """All their inputs are 0."""
    table = write(tmp_path / "p.csv", [["!" * (i + 1), i % 2, "ny"[i % 2]] for i in range(20)])
    train(run_quern, table, "--text", "review", "--epochs", "1")


def test_the_digest_depends_on_the_texts(table, info, tmp_path):
    """Their numbers are the same: only the words differ."""
    other = write(tmp_path / "o.csv", [[row[0].replace("film", "filn"), *row[1:]] for row in rows()])
    assert info(table)["digest"] != info(other)["digest"]


def test_by_default_a_linear_model(run_quern, table):
    done = train(run_quern, table)
    assert "dense 2 softmax" in done.stderr and "lbfgs" in done.stderr
    assert predictions(run_quern, table) == [kind for _, _, kind in rows()]
    unseen = write(table, [[f"{text} 2000", minutes, kind] for text, minutes, kind in rows(2, 90)] + [["", 90, "n"]])
    refused = run_quern("predict", table.parent / "m.st", unseen, status=1)
    assert 'column "review" has 1 missing value' in refused.stderr
    # A file of few items, in which nothing tells that the column holds texts.
    alone = write(table, [row[:2] for row in rows(2, 90)], ("review", "minutes"))
    assert [line.split(",")[1] for line in run_quern("predict", table.parent / "m.st", alone).stdout.split()[1:]] == ["n", "y"]


def test_missing_texts_are_empty(run_quern, table):
    write(table, [[text if i % 4 else "", minutes, kind] for i, (text, minutes, kind) in enumerate(rows())])
    assert "missing" in train_fails(run_quern, table)
    done = train(run_quern, table, "--missing", "mean")
    assert "10 texts of column" in done.stderr and "count as empty" in done.stderr


def train_fails(run_quern, path, *words):
    return run_quern("train", "--data", path, "--label", "kind", *words, "-o", path.parent / "m.st", status=1).stderr


def test_replay_validation_and_hidden_layers(run_quern, table, tmp_path):
    valid = write(tmp_path / "v.csv", rows(8, 60))
    done = train(run_quern, table, "--model", "dense 4 tanh; dense 2 softmax", "--valid", valid, "--early-stopping", "50",
                 "--epochs", "60")
    assert "adamw" in done.stderr
    assert "replay: identical" in run_quern("replay", tmp_path / "m.st", "--data", table, "--valid", valid).stdout
    assert predictions(run_quern, valid) == [kind for _, _, kind in rows(8, 60)]


def test_what_cannot_be(run_quern, table, tmp_path):
    done = run_quern("train", "--data", table, "--label", "kind", "--optimizer", "adam", "--mixup", "0.2", "-o",
                     tmp_path / "m.st", status=2)
    assert "texts, which cannot be mixed" in done.stderr
    train(run_quern, table, "--epochs", "1")
    done = run_quern("model", "export", tmp_path / "m.st", "-o", tmp_path / "m.onnx", status=1)
    assert 'column "review" holds texts' in done.stderr


def test_texts_of_several_lines(run_quern, tmp_path):
    """The cell of a CSV file is in quotes, and is the text of the line of JSON."""
    texts = [f"{GOOD}\nand the year {i}" for i in range(20)]
    write(tmp_path / "l.csv", [[text, 1, "a"] for text in texts])
    lines = [json.dumps({"review": text, "minutes": 1, "kind": "a"}) for text in texts]
    (tmp_path / "l.jsonl").write_text("\n".join(lines))
    told = [run_quern("data", "info", tmp_path / name, "--label", "kind").stdout for name in ("l.csv", "l.jsonl")]
    assert all("review   text" in one for one in told)
    assert len({re.search(r"digest +(\w+)", one)[1] for one in told}) == 1


def test_formats_agree(run_quern, table, info, tmp_path):
    """Written as typed columns and as lines of JSON, it is the same table, with the same columns of texts."""
    for name in "t.parquet", "t.jsonl", "t.arrow":
        run_quern("data", "convert", table, "--label", "kind", "-o", tmp_path / name)
        assert info(tmp_path / name)["digest"] == info(table)["digest"]
        found = info(tmp_path / name, "--text-features", "chars, words:1")
        assert found["digest"] == info(table)["digest"] and found["table"][0]["features"] == "chars:3..5,words:1..1"
        assert found["table"][0]["inputs"] == 2 ** 13 + 2 ** 10


@pytest.mark.parametrize("words, said", [
    (["--text-features", "char_wb"], '"char_wb" is not a feature of texts'),
    (["--text-features", "chars:0..3"], "write chars:A..B with numbers from 1 to 16"),
    (["--text-features", "words,words:3"], '"words:3" stands twice'),
    (["--text-features", "chars", "--text", "none"], "none was found"),
    (["--text-features", "chars", "--tokens", "bytes", "--context", "8"], "tokens of texts stand in the place"),
], ids=["word", "range", "twice", "none", "tokens"])
def test_features_that_cannot_be(run_quern, table, words, said):
    assert said in run_quern("data", "info", table, "--label", "kind", *words, status=None).stderr


def test_features_are_those_of_the_model(run_quern, table, tmp_path):
    """In a replay, and in a prediction of one text, which would have fewer inputs by itself."""
    train(run_quern, table, "--text-features", "chars-across:2..3", "--epochs", "4")
    assert b'\\"grams\\":\\"chars-across\\",\\"least\\":2,' in (tmp_path / "m.st").read_bytes()
    assert "replay: identical" in run_quern("replay", tmp_path / "m.st", "--data", table).stdout
    assert predictions(run_quern, write(table, rows(1, 90))) == ["n"]
    assert "knows the features" in run_quern("predict", tmp_path / "m.st", table, "--text-features", "chars",
                                             status=None).stderr


@pytest.mark.parametrize("name", ["o.csv", "o.parquet", "o.jsonl"])
@pytest.mark.parametrize("words", [["--category", "review"], ["--text", "review"]])
def test_what_a_file_does_not_show_is_told(run_quern, table, tmp_path, words, name):
    """Texts read as categories, and texts too short to be found, some of them numbers."""
    if words[0] == "--text":
        write(table, [[1900 + i, i, "ny"[i % 2]] for i in range(20)] + [["Ulm", 1, "n"]] * 30)
    told = json.loads(run_quern("data", "convert", table, "--label", "kind", *words, "-o", tmp_path / name, "--json").stdout)
    assert told["note"] == f"read it with {words[0]} 2"
    read = json.loads(run_quern("data", "info", tmp_path / name, "--label", "kind", words[0], "2", "--json").stdout)
    assert read["digest"] == told["digest"]


def test_from_python(table):
    """A frame with labels of its own is the table of the file, and its model takes other frames."""
    pytest.importorskip("pandas")
    said = python_package.python("""
import sys
import pandas as pd
import quern
frame = pd.read_csv(sys.argv[1])
x, y = frame[["review", "minutes"]], frame["kind"]
assert quern.Data(x, y).digest == quern.open(sys.argv[1], label="kind").digest
model = quern.Classifier().fit(x, y)
assert model.score(x, y) == 1 and list(model.predict(x[:2])) == ["n", "y"]
own = quern.Classifier(text_features=["chars:2..4", "words"]).fit(x, y)
assert own.score(x, y) == 1 and list(own.predict(x[:2])) == ["n", "y"]
parts = own.model_.recipe["table"]["features"][0]["text"]
assert [(p["grams"], p["least"], p["most"]) for p in parts] == [("chars", 2, 4), ("words", 1, 2)]
assert quern.replay(own.model_, own.data(x, y)).digest == own.model_.digest
none = quern.Data(frame, label="kind", text="none")
assert none.digest != quern.Data(x, y).digest and none.digest == quern.Data(frame, label="kind", category="review").digest
print("done")
""", table)
    assert said == "done\n"

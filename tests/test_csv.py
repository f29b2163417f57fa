"""Typed CSV: `quern data info` against Python's csv module, and against a second reader that was
written from section 2 of docs/exactness.md (tests/oracle/tables.py)."""

import csv
import hashlib
import json
import os
import random
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "oracle"))

import data  # noqa: E402
import tables  # noqa: E402


@pytest.fixture
def info(run_quern):
    """What is told of a file; None when it is refused."""
    def ask(path, *flags):
        done = run_quern("data", "info", path, "--json", *flags, status=None)
        if done.returncode == 1:
            lines = done.stderr.splitlines()
            assert len(lines) >= 2 and path.name in done.stderr, done.stderr
            return None
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    return ask


def digest(values, labels):
    """2.2, targets included."""
    kind = 0 if labels is None else 2 if labels.dtype == np.float32 else 1
    bits = values if values.dtype == np.uint8 else values.astype("<f4")
    text = b"quern data 1\n" + bytes([1 if values.dtype == np.uint8 else 2])
    text += values.shape[0].to_bytes(8, "little") + values.shape[1].to_bytes(8, "little")
    text += bytes([kind]) + data.block_digest(bits.tobytes())
    if kind:
        text += data.block_digest(labels.astype("<f4" if kind == 2 else "<u4").tobytes())
    return hashlib.sha256(text).hexdigest()


# ---------------------------------------------------------------- tables of known cells

NAMES = ["plain", "with blank", "co,mma", 'qu"ote', "semi;colon", "größe", "7th", "x" * 60]
TEXTS = ["Bern", "La Chaux-de-Fonds", "a,b", 'say "hi"', "Zürich", "x;y", "tab\there", "-", "1a",
         "True", " inner ", "two\nlines", '\n"a",\r\n\n']


def column(draw, items):
    """(cells as written, what they are): numbers, texts, or either with gaps."""
    what = draw.choice(["bytes", "floats", "texts"])
    if what == "bytes":
        cells = [str(draw.randrange(256)) for _ in range(items)]
    elif what == "floats":
        cells = [repr(round(draw.gauss(0, 100), draw.randrange(1, 6))) for _ in range(items)]
    else:
        chosen = draw.sample([t for t in TEXTS if t != "-"], draw.randrange(1, 6))
        cells = [draw.choice(chosen) for _ in range(items)]
    if draw.random() < 0.4 and what != "bytes":
        cells = ["" if draw.random() < 0.2 else cell for cell in cells]
    return what, cells


@pytest.mark.parametrize("seed", range(40))
def test_against_the_csv_module(info, tmp_path, seed):
    draw = random.Random(seed)
    items = draw.randrange(3, 200)
    columns = [column(draw, items) for _ in range(draw.randrange(1, 7))]
    names = draw.sample(NAMES, len(columns))
    labels = [draw.choice(["cat", "dog", "emu, big"]) for _ in range(items)]
    path = tmp_path / "t.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, delimiter=draw.choice(",;\t"),
                         quoting=draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
                         lineterminator=draw.choice(["\n", "\r\n"]))
        out.writerow([*names, "the kind"])
        out.writerows(zip(*(cells for _, cells in columns), labels))
    told = info(path, "--label", "the kind")
    assert told["class_names"] == sorted(set(labels))
    assert told["counts"] == [labels.count(name) for name in sorted(set(labels))]
    assert [c["name"] for c in told["table"]] == names
    matrix = []
    for (what, cells), said in zip(columns, told["table"]):
        assert said["missing"] == cells.count("")
        present = [cell for cell in cells if cell]
        if what == "texts" and present:
            # A writer that quotes little lets blanks around a text be lost.
            cells = [cell.strip() if cell not in said["categories"] else cell for cell in cells]
            categories = sorted({cell for cell in cells if cell}, key=str.encode)
            assert said["categories"] == categories
            matrix.append([categories.index(cell) if cell else np.nan for cell in cells])
        else:
            matrix.append([float(cell) if cell else np.nan for cell in cells])
            assert said["type"] == ("empty" if not present else
                                    "whole number" if all(float(c).is_integer() for c in present)
                                    else "number")
    values = np.array(matrix, dtype=np.float32).T
    if all(what == "bytes" for what, _ in columns):
        values = values.astype(np.uint8)
    classes = np.array([sorted(set(labels)).index(label) for label in labels], np.uint32)
    assert told["digest"] == digest(values, classes)


# ---------------------------------------------------------------- anything that looks like CSV

PIECES = ["0", "1", "2", "3", "7", "12", "255", "256", "-1", "0.5", "1.0", "3e0", "1e2", "-0", "+4",
          "", "", "NaN", "na", "N/A", "NULL", "?", "#N/A", "<NA>", "-", "none", "None", "inf",
          "-Infinity", "a", "b", "cat", "dog", "True", '"q"', '"a,b"', '"a""b"', '""', '" x "',
          'x"y', '"open', '"x"y', " 5 ", "\t6", "é", "2147483648", "1e39", "0x10", "#c", "1 2",
          "--", '"p\nq"', '"\n"', '"2""\n,;\t\n"', ".", "-.", "\\N", "–", "#NA", "+none", "1.#ind", "1,5", "-0,25", "1.234,5", "1.234", "1,500",
          ",5", "7,", "1,5e2", "12.345e1", "1.23,4", "1,2,3"]
COMMAS = [["1,5", "0,25", "-3,0", "7"], ["1.234,5", "1.234", "12,5"], ["1,500", "2,250"], ["1,5", "2.5"],
          ["1,0", "2,0"], ["1.234", "0,5"], ["0,500", "1,250", "--", ""], ["3,5", "None"]]


def messy(draw):
    """A file of few columns of few kinds of cells, now and then with something odd."""
    separator = draw.choice([",", ",", ";", "\t"])
    width, height = draw.randrange(1, 5), draw.randrange(1, 14)
    numbers = ["1", "2", "0", "3", "4.5", "17"]
    kinds = [draw.choice([numbers, numbers, ["a", "b", "c"], ["0", "1"], draw.sample(PIECES, 4),
                          draw.choice(COMMAS)]) for _ in range(width)]
    rows = [[draw.choice(kind) for kind in kinds] for _ in range(height)]
    if draw.random() < 0.5:
        rows.insert(0, [draw.choice(["x", "name", "2", "0", "1", '"y z"', "", "é", "none"])
                        for _ in range(width)])
    if draw.random() < 0.2:
        rows.insert(0, [str(k) for k in range(width)])
    if draw.random() < 0.3:
        row = draw.randrange(len(rows))
        rows[row][draw.randrange(width)] = draw.choice(PIECES)
    if draw.random() < 0.1:
        rows[draw.randrange(len(rows))].append("1")
    end = draw.choice(["\n", "\n", "\r\n"])
    text = draw.choice(["", "", "", "\n", "# note\n", "#" + separator.join("pqrs"[:width]) + "\n"])
    text += end.join(separator.join(row) for row in rows)
    return (text + draw.choice(["", end, end + end])).encode(draw.choice(["utf-8", "utf-8-sig"]))


def same(told, values, labels, table):
    assert [c["name"] for c in told["table"]] == [
        f["name"] if isinstance(f, dict) else f for f in table["features"]]
    assert [c.get("categories", []) for c in told["table"]] == [
        f["categories"] if isinstance(f, dict) else [] for f in table["features"]]
    assert told["class_names"] == table["classes"]
    assert (told["target"], told["label"]) == (table["target"], table["label"])
    assert told["digest"] == digest(values, labels)
    assert told["rules"] == table.rules


@pytest.mark.parametrize("seed", range(8))
def test_against_the_second_reader(info, tmp_path, seed):
    draw = random.Random(1000 + seed)
    taken = 0
    for trial in range(60):
        content = messy(draw)
        path = tmp_path / "m.csv"
        path.write_bytes(content)
        label = draw.choice([None, None, "last", ""])
        task = draw.choice(["auto", "auto", "auto", "classify", "regress"])
        header = draw.choice(["auto", "auto", "auto", "yes", "no"])
        flags = ["--task", task, "--header", header]
        flags += ["--unlabelled"] if label == "" else [] if label is None else ["--label", label]
        told = info(path, *flags)
        try:
            known = tables.read(content, label, task, header)
        except tables.Refused as refusal:
            assert told is None, (seed, trial, content, flags, str(refusal))
            continue
        assert told is not None, (seed, trial, content, flags)
        same(told, *known)
        taken += 1
    assert taken > 10  # else nothing is tested


def test_texts_of_several_lines(run_quern, tmp_path):
    """Files of several pieces, which begin within quotes or not: the rows of the csv module, whatever
    the threads. What is written is read again, and files with other orders of columns are one table."""
    draw = random.Random(5)
    texts = ["".join(draw.choices(['"', ",", "\n", "a", " b"], (3, 3, 3, 5, 3), k=draw.randrange(3, 997))) * draw.choice([1, 60]) + "."
             for _ in range(60)] + [", \n." * 600_000]
    rows = [(text, draw.random(), draw.randrange(3)) for text in [*draw.choices(texts[:-1], k=99), *texts]]
    order = {"t": lambda t, x, y: (t, x, y), "u": lambda t, x, y: (y, t, x)}
    for name, ordered in order.items():
        with open(tmp_path / f"{name}.csv", "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(ordered(*row) for row in [("text", "x", "y"), *rows])
    t = tmp_path / "t.csv"
    assert t.stat().st_size > 4 << 20
    known = [json.loads(run_quern("data", "info", *files, "--label", "y", "--json", preexec_fn=alone).stdout)["digest"]
             for files, alone in (([t], lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})), ([t], None),
                                  ([t, t], None), ([t, tmp_path / "u.csv"], None))]
    names = sorted({text for text, _, _ in rows})
    values = np.array([[names.index(t), np.float32(x)] for t, x, _ in rows], np.float32)
    classes = np.array([y for _, _, y in rows], np.uint32)
    assert known[:2] == [digest(values, classes)] * 2
    assert known[2:] == [digest(np.tile(values, (2, 1)), np.tile(classes, 2))] * 2
    assert known[0] in run_quern("data", "convert", t, "--label", "y", "-o", tmp_path / "v.csv").stdout
    csv.field_size_limit(4 << 20)
    with open(tmp_path / "v.csv", newline="") as file:
        assert sorted(row[1] for row in csv.reader(file)) == sorted(["text", *(text for text, _, _ in rows)])
    t.write_text(t.read_text() + 'a,1,"c\n')
    done = run_quern("data", "info", t, "--label", "y", status=1)
    line = t.read_text().count("\n")
    assert f"line {line}, column 3" in done.stderr and "close the quote" in done.stderr, done.stderr


def test_missing_texts(run_quern, tmp_path):
    """2.1.4: words such as NA are missing in CSV whatever the column is, quotes or not; in JSON they are texts."""
    cells = ["NA", "n/a", "null", "None", "", "so it is", "?", "what was that"]
    (tmp_path / "t.csv").write_text("y,text\n" + "".join(f'{k % 2},"{cell}"\n' for k, cell in enumerate(cells)))
    (tmp_path / "t.json").write_text("".join(json.dumps({"y": k % 2, "text": cell}) + "\n" for k, cell in enumerate(cells)))
    named = ["--text", "text", "--label", "y"]
    items = [*named, "--tokens", "bytes", "--context", 16]
    documents = ["--tokens", "bytes", "--text", "text", "--context", 4, "--task", "next"]
    for name, missing in ("t.csv", 6), ("t.json", 1):
        for words, note in ([], ""), (named, ""), (items, f"{missing} of 8 items have no text"), (
                documents, f"{missing} of 8 rows have no text, and are left out"):
            told = json.loads(run_quern("data", "info", tmp_path / name, *words, "--json").stdout)
            assert note in (told.get("note") or "") if note else told["table"][0]["missing"] == missing


def test_quotes_behind_quotes(info, tmp_path):
    """2.1.2: the count of separators takes a quote after any other for a beginning."""
    path = tmp_path / "q.csv"
    path.write_bytes(b'a" "b,c,d" ;e;f\n0;1;2\n1;3;4\n')
    told = info(path)
    same(told, *tables.read(path.read_bytes()))
    assert [c["name"] for c in told["table"]] == ["e", "f"]


@pytest.mark.parametrize("comment, names", [
    ("y,x", ["x"]), ("y,x,z", [None]), ("1,2", [None]), ('y,"x', [None]), ('y,"x"z', [None])])
def test_names_in_a_comment(info, tmp_path, comment, names):
    """2.1.7: as many cells, of which one is a text, and no quote that is left open."""
    path = tmp_path / "n.csv"
    path.write_text(f"# {comment}\n0,2\n1,3\n1,4\n")
    told = info(path)
    same(told, *tables.read(path.read_bytes()))
    assert [c["name"] for c in told["table"]] == names


@pytest.mark.parametrize("keep, drop, chosen", [
    (["b", "4"], None, ["b", "d"]), (["2-last"], None, ["b", "c", "d"]),
    (None, ["a", "c"], ["d"]), (None, ["3-4"], ["b"])])
def test_columns(info, tmp_path, keep, drop, chosen):
    path = tmp_path / "c.csv"
    path.write_bytes(b"a,b,c,d\n1,x,2,7\n0,y,3,8\n1,x,4,9.5\n")
    flags = ["--features", ",".join(keep)] if keep else ["--drop", ",".join(drop)]
    told = info(path, *flags)
    same(told, *tables.read(path.read_bytes(), keep=keep, drop=drop))
    assert [c["name"] for c in told["table"]] == chosen


def test_columns_are_shown(run_quern, tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("city,age,size,fine\nBern,31,1.5,yes\nBasel,,2.25,no\n,33,0.5,yes\n")
    text = run_quern("data", "info", path, "--label", "fine").stdout
    rows = [line.split() for line in text.splitlines()]
    assert ["label", "fine"] in rows
    assert ["2", "yes"] in rows and ["1", "no"] in rows
    assert ["1", "city", "category", "1", "Basel,", "Bern"] in rows
    assert ["2", "age", "whole", "number", "1", "31", "to", "33"] in rows
    assert ["3", "size", "number", "0", "0.5", "to", "2.25"] in rows


def test_class_numbers_with_gaps(run_quern, tmp_path):
    """They have names, unless the network has an output for each; a replay knows which it was."""
    path = tmp_path / "gaps.csv"
    path.write_text("y,x\n" + "".join(f"{k % 2 * 8},{k}.5\n" for k in range(40)))
    for network, classes in (("dense 4 tanh; dense 9 softmax", 9), ("dense 2 softmax", 2)):
        model = tmp_path / f"model-{classes}"
        told = run_quern("train", "--data", path, "--model", network, "--epochs", 1, "--json",
                         "-o", model).stdout
        events = [json.loads(line) for line in told.splitlines()]
        assert [e["classes"] for e in events if e["event"] == "start"] == [classes]
        named = b'\\"classes\\":[\\"0\\",\\"8\\"]' in model.read_bytes()
        assert named == (classes == 2)
        run_quern("replay", model, "--data", path)


def test_a_guess_is_told(run_quern, tmp_path):
    path = tmp_path / "g.csv"
    path.write_text("0,1,2\n1,0.5,0.25\n0,1.5,2.5\n")
    assert "--header no" in run_quern("data", "info", path).stderr
    assert run_quern("data", "info", path, "--header", "yes").stderr == ""


@pytest.mark.parametrize("first, second", [("0", "-1e-60"), ("-1e-60", "0")])
def test_class_names_of_equal_value(run_quern, tmp_path, first, second):
    """Their order is that of their bytes, whichever stands first in the file."""
    rows = [first] * 3 + [second] * 2 + ["2.5"]
    (tmp_path / "t.csv").write_text("l,x\n" + "".join(f"{c},{i}\n" for i, c in enumerate(rows)))
    done = run_quern("data", "info", tmp_path / "t.csv", "--task", "classify", "--json")
    assert json.loads(done.stdout)["class_names"] == ["-0", "0", "2.5"]


@pytest.mark.parametrize("header, words, noted", [
    ("a,x,Label", [], True), ("a,x,target", [], True), ("y,x,label", [], False), ("a,x,z", [], False),
    ("a,x,label", ["--label", "a"], False), ("a,x,label", ["--label", "label"], False)])
def test_a_feature_called_label_is_told(run_quern, tmp_path, header, words, noted):
    """The first column is the label where no other is named."""
    (tmp_path / "t.csv").write_text(header + "\n" + "".join(f"{i % 2},{i},{i % 3}\n" for i in range(9)))
    note = json.loads(run_quern("data", "info", tmp_path / "t.csv", *words, "--json").stdout)["note"]
    assert (note is not None) == noted
    if noted:
        assert note.startswith("the label is column 1, a, and the column ") and "--label" in note


def test_a_run_names_its_label(run_quern, tmp_path):
    (tmp_path / "t.csv").write_text("sick,x\n" + "".join(f"{i % 2},{i}\n" for i in range(9)))
    done = run_quern("train", "--data", tmp_path / "t.csv", "--epochs", "1", "-o", tmp_path / "m")
    assert '9 items of 1 feature, 2 classes of column "sick"' in done.stderr

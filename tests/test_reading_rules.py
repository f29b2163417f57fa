"""Rules of reading of CSV files (docs/exactness.md 23.21, 23.22): marks of missing values and decimal commas,
against pandas; and labels that may be quantities. The old model was trained by a program without these
rules (commit f7574f3b) on the table of `old_table`:

    quern train --data old.csv --label y --category d --epochs 1 --model "dense 2 softmax" -o csv-rules.safetensors
"""

import io
import json
import struct

import numpy as np
import pandas
import pytest

from builds import ROOT

OLD = ROOT / "tests" / "old_models" / "csv-rules.safetensors"


def old_table():
    """Categories that are missing by the rule `none`, and numbers with commas that a user calls categories."""
    return "y;c;d;x\n" + "".join(f"{i % 2};{('None', '--', 'a', '.')[i * 7 % 4]};{i % 3},5;{i * 5 % 7}\n"
                                 for i in range(40))


def recipe(path):
    data = path.read_bytes()
    head = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
    return json.loads(head["__metadata__"]["recipe"])


@pytest.fixture
def info(run_quern, tmp_path):
    def ask(text, *more):
        (tmp_path / "t.csv").write_text(text)
        return json.loads(run_quern("data", "info", tmp_path / "t.csv", "--json", *more).stdout)
    return ask


def train(run_quern, folder, text, *more, status=0, out="m"):
    (folder / "t.csv").write_text(text)
    return run_quern("train", "--data", folder / "t.csv", "--epochs", 1, "--quiet", "-o", folder / out, *more,
                     status=status)


def test_an_old_model_reads_as_it_did(run_quern, tmp_path):
    (tmp_path / "old.csv").write_text(old_table())
    assert "rules" not in recipe(OLD)
    features = recipe(OLD)["table"]["features"]
    assert features[0]["categories"] == ["--", ".", "None", "a"]
    assert features[1]["categories"] == ["0,5", "1,5", "2,5"]
    assert "replay: identical" in run_quern("replay", OLD, "--data", tmp_path / "old.csv").stdout
    done = run_quern("predict", OLD, "--data", tmp_path / "old.csv")
    assert len(done.stdout.splitlines()) == 41 and "not a category" not in done.stderr
    # A new model takes them for missing values, and a file without marks has no rule.
    train(run_quern, tmp_path, old_table(), "--category", "d", "--model", "dense 2 softmax", "--missing", "zero")
    assert recipe(tmp_path / "m")["rules"] == "none"
    run_quern("replay", tmp_path / "m", "--data", tmp_path / "t.csv")
    plain = old_table().replace("None", "a").replace("--", "b").replace(";.;", ";b;")
    train(run_quern, tmp_path, plain, "--category", "d", "--model", "dense 2 softmax")
    assert "rules" not in recipe(tmp_path / "m")


# Those of pandas, in its documentation of read_csv, and others that programs write.
PANDAS = ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>",
          "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]
OTHERS = ["-", "--", "---", "–", "—", ".", "?", "\\N", "NaT"]


@pytest.mark.parametrize("marks", [PANDAS, OTHERS])
def test_marks(info, marks):
    """In a column of numbers and in one of categories."""
    text = "y,n,c\n" + "".join(f"{i % 2},{i % 9}.5,{'ab'[i % 2]}\n" for i in range(60))
    for word in marks:
        text += f"0,{word},a\n1,1.5,{word}\n"
    told = info(text)
    assert [c["missing"] for c in told["table"]] == [len(marks)] * 2
    assert told["table"][1]["categories"] == ["a", "b"]
    assert told["rules"] == "none"
    if marks is PANDAS:
        frame = pandas.read_csv(io.StringIO(text))
        assert frame.n.isna().sum() == frame.c.isna().sum() == len(marks)


def test_categories_that_csv_cannot_hold(run_quern, tmp_path):
    (tmp_path / "t.jsonl").write_text('{"y":0,"c":"None"}\n{"y":1,"c":"a"}\n')
    done = run_quern("data", "convert", tmp_path / "t.jsonl", "-o", tmp_path / "t.csv", status=1)
    assert '"None" cannot be written as CSV: there it means a missing value' in done.stderr


def test_a_label_none_is_a_class(info):
    told = info("disorder,x\n" + "None,1\nApnea,2\nInsomnia,3\n" * 5)
    assert told["class_names"] == ["Apnea", "Insomnia", "None"] and told["rules"] == ""


@pytest.mark.parametrize("separator", [";", "\t"])
def test_commas_against_pandas(info, separator):
    draw = np.random.default_rng(1)
    frame = pandas.DataFrame({"y": draw.normal(0, 5000, 80).round(2), "a": draw.normal(0, 50, 80).round(3),
                              "b": draw.integers(0, 9, 80), "c": draw.normal(0, 1e6, 80).round(2)})
    frame.loc[3, "a"] = np.nan
    text = frame.to_csv(index=False, sep=separator, decimal=",")
    for thousands, rows in (None, text), (".", "\n".join(
            [text.split("\n", 1)[0]] + [separator.join([*map(german, row[:2]), str(row[2]), german(row[3])])
                                        for row in frame.itertuples(index=False, name=None)]) + "\n"):
        wanted = pandas.read_csv(io.StringIO(rows), sep=separator, decimal=",", thousands=thousands)
        assert np.allclose(wanted, frame, equal_nan=True)
        told = info(rows)
        plain = info(frame.to_csv(index=False))
        assert told["digest"] == plain["digest"] and told["target"] == "real"
        assert told["rules"] == "commas" and "decimal comma: 1,5 is read as 1.5" in told["note"]
        assert plain["rules"] == ""


def german(value):
    """1234.5 as 1.234,5"""
    if np.isnan(value):
        return ""
    return f"{value:,.3f}".replace(",", "_").replace(".", ",").replace("_", ".")


@pytest.mark.parametrize("cells, read", [
    (["1,5", "-2,25", "0,1"], True), (["1,5", "2", "3,75"], True), (["1,5e3", ",5", "7,"], True),
    (["0,500", "1,250"], True), (["1.234,5", "1.234", "2"], True), (["1,5", "None", "--", "?"], True),
    (["1,500", "2,250"], None), (["1.234", "0,5", "0,7"], None), (["1.234", "2.500,5", "1.5"], False),
    (["1,5", "x"], False), (["1,2,3", "4,5"], False), (["1,5", "2.5"], False), (["1,5", "inf"], False)])
def test_which_columns_have_commas(run_quern, tmp_path, info, cells, read):
    """None: in doubt, and asked about."""
    text = "y;p;b\n" + "".join(f"{i % 2};{cells[i % len(cells)]};{i % 7}\n" for i in range(60))
    words = ["--model", "dense 2 softmax"]
    if read:
        told = info(text)
        assert "categories" not in told["table"][0] and "commas" in told["rules"].split()
    elif read is None:
        done = train(run_quern, tmp_path, text, *words, status=1)
        assert 'column "p" holds texts such as' in done.stderr and "which may be numbers" in done.stderr
        label = "p;y\n" + "".join(f"{cells[i % len(cells)]};{i % 2}\n" for i in range(60))
        done = train(run_quern, tmp_path, label, *words, status=1)
        assert 'the label "p" holds texts such as' in done.stderr and "--task" in done.stderr
        train(run_quern, tmp_path, label, "--task", "classify")
        train(run_quern, tmp_path, text, *words, "--category", "p")
    else:
        (tmp_path / "t.csv").write_text(text)
        done = run_quern("data", "info", tmp_path / "t.csv", "--json", status=None)
        assert done.returncode == 1 or json.loads(done.stdout)["rules"] == ""


def test_a_model_of_commas(run_quern, tmp_path):
    """Its files are read as its own was, also where a column is in doubt by itself."""
    text = "".join(f"{i * 7 % 11},{i % 10};{i % 3},{i * 37 % 100:02}\n" for i in range(90))
    plain = text.replace(",", ".").replace(";", ",")
    for header in ["y;x\n", ""]:  # without a header the first line has as many commas as semicolons
        words = ["--model", "dense 1", "--label", "1"]
        train(run_quern, tmp_path, header + text, *words)
        assert recipe(tmp_path / "m")["rules"] == "commas" and recipe(tmp_path / "m")["loss"] == "mse"
        assert "replay: identical" in run_quern("replay", tmp_path / "m", "--data", tmp_path / "t.csv").stdout
        train(run_quern, tmp_path, header.replace(";", ",") + plain, *words, out="n")
        (tmp_path / "p.csv").write_text(header + "1,000;1,250\n2,000;2,125\n")
        (tmp_path / "q.csv").write_text(header.replace(";", ",") + "1.000,1.250\n2.000,2.125\n")
        same = run_quern("predict", tmp_path / "m", "--data", tmp_path / "p.csv").stdout
        assert same == run_quern("predict", tmp_path / "m", "--data", tmp_path / "q.csv").stdout
        assert same == run_quern("predict", tmp_path / "n", "--data", tmp_path / "q.csv").stdout


def labels(count, items):
    return "pulse,x\n" + "".join(f"{60 + i % count},{i * 3 % 17}\n" for i in range(items))


@pytest.mark.parametrize("count, items, asks", [
    (39, 90, True), (21, 167, True), (21, 168, False), (20, 40, False), (12, 24, False), (100, 799, True),
    (100, 800, False)])
def test_labels_in_few_items(run_quern, tmp_path, count, items, asks):
    done = train(run_quern, tmp_path, labels(count, items), status=1 if asks else 0)
    if asks:
        assert f'the label "pulse" has {count} different whole numbers in few items each' in done.stderr
        assert "--task" in done.stderr and "classify" in done.stderr and "regress" in done.stderr
        for task in "classify", "regress":
            train(run_quern, tmp_path, labels(count, items), "--task", task)
            run_quern("replay", tmp_path / "m", "--data", tmp_path / "t.csv")
            run_quern("predict", tmp_path / "m", "--data", tmp_path / "t.csv")
    run_quern("data", "info", tmp_path / "t.csv")


def test_a_label_of_the_field(run_quern, tmp_path):
    done = run_quern("train", "--data", ROOT / "shared" / "data" / "tables" / "exercise.csv", "--label", "pulse",
                     "-o", tmp_path / "m", status=1) if (ROOT / "shared").exists() else None
    assert done is None or "39 different whole numbers in few items each" in done.stderr


@pytest.mark.parametrize("cells, noted", [
    (["$0.50", "$1.00", "$12.25"], True), (["-$5", "$1,234.50"], True), (["12 %", "7 %"], True),
    (["€ 5", "€ 7,25"], True), (["5kg", "7.5kg"], True), (["1 234", "2 345"], True), (["1'234", "5'100"], True),
    (["3:30", "4:15"], False), (["Q1", "Q2"], False), (["1st", "2nd"], False), (["A1", "A2"], False),
    (["10-20", "20-30"], False), (["a", "b"], False), (["$5"], False)])
def test_quantities_with_signs(info, cells, noted):
    text = "y,p\n" + "".join(f'{i % 2},"{cells[i % len(cells)]}"\n' for i in range(90))
    note = info(text, "--label", "y")["note"] or ""
    assert ('the column "p" holds texts such as' in note and "plain numbers" in note) == noted
    note = info(text, "--label", "p", "--features", "y")["note"] or ""
    assert ("the label holds texts such as" in note) == noted
    assert "texts such as" not in (info(text, "--category", "p", "--label", "y")["note"] or "")

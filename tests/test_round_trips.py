"""Special values through each format that Quern reads and writes. The format's own reader in Python says what a
file holds. docs/formats.md says what a format cannot hold; that is asserted as well."""

import csv
import datetime
import json
import sqlite3
import struct

import numpy as np
import pytest

from machine import LONG
from test_postgres import server  # noqa: F401  (a fixture)

DOUBLES = [-0.0, 5e-324, -2.2250738585072014e-308, 1e-40, 3.4028234663852886e38, -3.4028234663852886e38, None, 0.1,
           -1 / 3, 16777217.0, 1.0000000000000002, 1e-5]
WHOLE = [2**63 - 1, -2**63 + 1, 2**53 - 1, 2**53 + 1, -2**53 - 1, None, 0, 1, 2**24 + 1, -1, 2**31, 2**32 + 1]
ROUNDED = [-2**63, *WHOLE[1:]]  # a magnitude of 2^63 is beyond an exact column
TEXTS = ['q"u,o', "l\nb\r\nc", "t\tb;", "007", "true", "1e5", " b ", "\ufeffx", "\U0001f600", "e\u0301", "#h", None]
DATES = ["1969-12-31", "0001-01-01", "9999-12-31", "1582-10-15", "1900-02-28", "2000-02-29", None, "1970-01-01",
         "1970-01-02", "1969-12-30", "2026-11-30", "0999-06-07"]
TIMES = ["1969-12-31T23:59:59.999999", "0001-01-01T00:00:00", "9999-12-31T23:59:59.999999", None, *(
    f"19{i}0-01-01T00:00:00.00000{i}" for i in range(1, 9))]
ZONES = ["1969-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", None, *(
    f"19{i}0-01-01T00:30:00+0{i}:30" for i in range(1, 9))]
COLUMNS = {"y": ["u", "v"] * 6, "d": DOUBLES, "i": WHOLE, "r": ROUNDED, "t": TEXTS, "w": DATES, "s": TIMES, "z": ZONES}
ROWS = [dict(zip(COLUMNS, row)) for row in zip(*COLUMNS.values(), strict=True)]


def utc(text):
    """How Quern writes an instant: without an offset."""
    instant = datetime.datetime.fromisoformat(text).astimezone(datetime.timezone.utc)
    return instant.isoformat().replace("+00:00", "Z")


def single(value):
    return None if value is None else float(np.float32(value))


def bits(value):
    """Tells -0 from 0, and a float from a whole number."""
    return struct.pack("<d", value) if isinstance(value, float) else value


def same(found, wanted, column):
    assert list(map(bits, found)) == list(map(bits, wanted)), column


def write_json(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_csv(path, rows):
    with open(path, "w", newline="", encoding="utf-8-sig") as out:
        table = csv.DictWriter(out, COLUMNS, quoting=csv.QUOTE_ALL)
        table.writeheader()
        table.writerows(rows)


def write_sqlite(path, rows):
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE t (y TEXT, d REAL, i INTEGER, r INTEGER, t TEXT, w TEXT, s TEXT, z TEXT)")
        base.executemany("INSERT INTO t VALUES (:y, :d, :i, :r, :t, :w, :s, :z)", rows)


WRITERS = {"json": write_json, "csv": write_csv, "sqlite": write_sqlite}


@pytest.fixture
def convert(run_quern):
    """What a file holds, by rows of JSON, after a conversion to `out` where one is given."""
    def read(path, *more, out=None):
        more = ["--category", "t", *more]
        if out:
            run_quern("data", "convert", path, *more, "-o", out)
        text = run_quern("data", "convert", out or path, *more, "-o", "-", "--format", "json").stdout
        return [json.loads(line) for line in text.splitlines()]
    return read


def check(rows, doubles):
    """That `rows` are ROWS: with doubles, or with the nearest 32-bit floats."""
    for name, wanted in COLUMNS.items():
        found = [row[name] for row in rows]
        if name == "r" or name == "d" and not doubles:
            found, wanted = list(map(single, found)), list(map(single, wanted))
        elif name == "d":
            found = [None if value is None else float(value) for value in found]
        elif name == "z":
            wanted = [value and utc(value) for value in wanted]
        same(found, wanted, name)


@pytest.mark.parametrize("source", WRITERS)
def test_reading(convert, tmp_path, source):
    path = tmp_path / f"t.{source}"
    WRITERS[source](path, ROWS)
    if source == "sqlite":  # which stores -0 as 0
        assert bits(sqlite3.connect(path).execute("SELECT d FROM t").fetchone()[0]) == bits(0.0)
    rows = convert(path)
    if source == "sqlite":
        assert bits(float(rows[0]["d"])) == bits(0.0)
        rows[0]["d"] = -0.0
    check(rows, doubles=source != "csv")


@LONG
def test_postgres(run_quern, monkeypatch, server):  # noqa: F811
    monkeypatch.setenv("PGPASSWORD", "hidden word")
    server.psql("CREATE TABLE special (n int, y text, d float8, i int8, r int8, t text, w date, s timestamp, z timestamptz);"
                "INSERT INTO special SELECT * FROM json_populate_recordset(null::special, $$"
                + json.dumps([row | {"n": n} for n, row in enumerate(ROWS)]) + "$$)")
    text = run_quern("data", "convert", server.address, "--query", "SELECT y, d, i, r, t, w, s, z FROM special ORDER BY n",
                     "--category", "t", "-o", "-", "--format", "json").stdout
    check([json.loads(line) for line in text.splitlines()], doubles=True)


def test_writing_csv(convert, tmp_path):
    """Decimals of the file are doubles, but Quern reads 32-bit floats in CSV."""
    write_json(tmp_path / "t.json", ROWS)
    check(convert(tmp_path / "t.json", out=tmp_path / "o.csv"), doubles=False)
    with open(tmp_path / "o.csv", newline="", encoding="utf-8") as text:
        rows = [{k: v or None for k, v in row.items()} for row in csv.DictReader(text)]
    for row in rows:
        row |= {k: row[k] and kind(row[k]) for k, kind in {"d": float, "i": int, "r": float}.items()}
    check(rows, doubles=True)


@pytest.mark.parametrize("kind", ["json", "parquet", "arrow"])
def test_writing(convert, tmp_path, kind):
    write_json(tmp_path / "t.json", ROWS)
    check(convert(tmp_path / "t.json", out=tmp_path / f"o.{kind}"), doubles=True)
    if kind == "json":
        check([json.loads(line) for line in (tmp_path / "o.json").read_text().splitlines()], doubles=True)
        return
    table = pytest.importorskip("pyarrow.feather" if kind == "arrow" else "pyarrow.parquet").read_table(
        tmp_path / f"o.{kind}")
    rows = [{name: value.isoformat() if isinstance(value, datetime.date) else value for name, value in row.items()}
            for row in table.to_pylist()]
    for row in rows:
        row["z"] = row["z"] and row["z"].replace("+00:00", "Z")
    check(rows, doubles=True)


# JSON has these texts, and other formats have something else for them.
ODD = {"": None, "a\0b": "a\ufffdb", "\ud83d": "\ufffd", "NA": "NA", "null": "null", "NaN": "NaN"}


@pytest.mark.parametrize("kind", ["json", "parquet", "arrow", "csv"])
def test_odd_texts(convert, run_quern, tmp_path, kind):
    write_json(tmp_path / "t.json", [{"y": "uv"[i % 2], "t": text} for i, text in enumerate(ODD)])
    if kind != "csv":
        rows = convert(tmp_path / "t.json", out=tmp_path / f"o.{kind}")
        return same([row["t"] for row in rows], list(ODD.values()), "t")
    told = run_quern("data", "convert", tmp_path / "t.json", "--category", "t", "-o", tmp_path / "o.csv", status=1)
    assert 'the category "NA" cannot be written as CSV' in told.stderr and not (tmp_path / "o.csv").exists()


def test_a_zero_byte_in_sqlite(run_quern, tmp_path):
    write_sqlite(tmp_path / "t.sqlite", [{**ROWS[0], "t": "a\0b"}, ROWS[1]])
    told = run_quern("data", "info", tmp_path / "t.sqlite", "--category", "t", status=1)
    assert "a zero byte in it" in told.stderr and "row 1" in told.stderr


@pytest.mark.parametrize("value", [float(2**128), -1.7976931348623157e308])
@pytest.mark.parametrize("source", [*WRITERS, "npy"])
def test_beyond_float32(run_quern, tmp_path, source, value):
    path = tmp_path / f"t.{source}"
    if source == "npy":
        np.save(path, np.array([[value, 1.0], [2.0, 3.0]]))
    else:
        WRITERS[source](path, [{**ROWS[0], "d": value}, ROWS[1]])
    told = run_quern("data", "info", path, "--unlabelled", status=1).stderr
    assert "beyond the range of " in told and ("float32" in told or "32-bit float" in told)


@pytest.mark.parametrize("kind", ["npy", "npz", "json", "csv"])
def test_arrays(run_quern, tmp_path, kind):
    """What NumPy wrote is what NumPy, json or csv reads, with the same bits."""
    doubles = np.array([[x or np.nan for x in DOUBLES[1:]], [-0.0] * 11])
    doubles[0] += (doubles[0] == 16777217) / 2
    for array in doubles, doubles.astype(np.float32), np.array([[x or 0 for x in WHOLE], [1] * 12]):
        np.save(tmp_path / "a.npy", array)
        run_quern("data", "convert", tmp_path / "a.npy", "--unlabelled", "-o", tmp_path / f"o.{kind}")
        if kind[:2] == "np":
            found = np.load(tmp_path / f"o.{kind}")
            found = found["x"] if kind == "npz" else found
            assert found.dtype == array.dtype
        else:
            text = (tmp_path / f"o.{kind}").read_text().splitlines()
            rows = ([list(json.loads(line).values()) for line in text] if kind == "json" else
                    [[cell or None for cell in row] for row in csv.reader(text[1:])])
            to = int if array.dtype.kind == "i" else float
            found = np.array([[np.nan if cell is None else to(cell) for cell in row] for row in rows], array.dtype)
        assert found.tobytes() == array.tobytes()


def test_zeros_beside_whole_numbers(run_quern, tmp_path):
    """A column of doubles that are whole numbers, one of which float32 rounds, is one of integers: without -0."""
    np.save(tmp_path / "a.npy", np.array([[16777217.0, 0.5], [-0.0, -0.0]]))
    run_quern("data", "convert", tmp_path / "a.npy", "--unlabelled", "-o", tmp_path / "o.npy")
    assert np.load(tmp_path / "o.npy").tobytes() == np.array([[16777217.0, 0.5], [0.0, -0.0]]).tobytes()


def test_whole_numbers_beside_floats_in_an_array(run_quern, tmp_path):
    """An array has one type, and doubles have 53 bits."""
    write_json(tmp_path / "t.json", [{"y": i, "a": 2**53 + 1 + i, "b": i / 2} for i in range(2)])
    run_quern("data", "convert", tmp_path / "t.json", "-o", tmp_path / "o.npz")
    assert np.load(tmp_path / "o.npz")["x"].tolist() == [[2.0**53, 0.0], [2.0**53 + 2, 0.5]]


def test_libsvm(run_quern, tmp_path):
    text = "1 1:-0 2:1e-45 3:nan\n-1 1:3.4028235e+38 2:1.1754944e-38 3:-3.4028235e+38\n"
    (tmp_path / "t.svm").write_text(text)
    assert run_quern("data", "convert", tmp_path / "t.svm", "-o", "-", "--format", "libsvm").stdout == text


def test_idx(run_quern, tmp_path):
    pixels = bytes(range(256))
    (tmp_path / "t.idx").write_bytes(b"\0\0\x08\x03" + struct.pack(">III", 2, 8, 16) + pixels)
    run_quern("data", "convert", tmp_path / "t.idx", "--unlabelled", "-o", tmp_path / "a.npy")
    assert np.load(tmp_path / "a.npy").tobytes() == pixels
    run_quern("data", "convert", tmp_path / "a.npy", "--unlabelled", "-o", tmp_path / "o.idx")
    assert (tmp_path / "o.idx").read_bytes() == (tmp_path / "t.idx").read_bytes()


@pytest.mark.parametrize("name", ["\ufeffy", "#y", "y;z", " y "])
def test_first_names_of_csv(run_quern, tmp_path, name):
    """The first name of a file could be taken for a mark, a comment or several names."""
    write_json(tmp_path / "t.json", [{name: i, "a": 0.5} for i in range(2)])
    run_quern("data", "convert", tmp_path / "t.json", "-o", tmp_path / "o.csv")
    again = run_quern("data", "convert", tmp_path / "o.csv", "-o", "-", "--format", "json").stdout
    assert list(json.loads(again.splitlines()[0])) == [name, "a"]


def test_predictions(run_quern, tmp_path):
    """Names of classes in what predict writes."""
    names = [text for text in TEXTS if text and text not in ("007", "1e5")]
    write_json(tmp_path / "t.json", [{"y": name, "a": i, "b": -i} for i, name in enumerate(names)])
    run_quern("train", "--data", tmp_path / "t.json", "--model", "dense 10 softmax", "--epochs", 1, "-o", tmp_path / "m")
    for to in tmp_path / "p.csv", f"sqlite:{tmp_path}/p.db":
        run_quern("predict", tmp_path / "m", "--data", tmp_path / "t.json", "-o", to)
    with open(tmp_path / "p.csv", newline="", encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    with sqlite3.connect(tmp_path / "p.db") as base:
        stored = base.execute("SELECT label, prediction, score FROM predictions ORDER BY item").fetchall()
    assert [row["label"] for row in rows] == [row[0] for row in stored] == names
    assert [(row["prediction"], single(float(row["score"]))) for row in rows] == [row[1:] for row in stored]

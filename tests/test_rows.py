"""Formats of rows beside CSV: LIBSVM text, JSON lines, SQLite, and what PostgreSQL needs
no server for (test_postgres.py has the rest). What other readers make of the same file is the oracle; the
digest is that of the same values as arrays of NumPy."""

import gzip
import json
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest

import data_vectors
import parquet_writer

sys.path.insert(0, str(Path(__file__).parent / "oracle"))
import data as oracle  # noqa: E402

MISSING = np.array([0x7FC00000], "<u4").view("<f4")[0]


@pytest.fixture
def info(run_quern):
    def ask(*args):
        return json.loads(run_quern("data", "info", *args, "--json").stdout)
    return ask


def digest(values, labels=None, wide=None):
    """Of docs/exactness.md 2.2 and 23.5. Labels of floats are targets."""
    values = np.ascontiguousarray(values)
    if values.dtype != np.uint8:
        values = values.astype("<f4")
        values[np.isnan(values)] = MISSING
    real = labels is not None and np.asarray(labels).dtype.kind == "f"
    known = None if labels is None else np.asarray(labels, "<f4" if real else "<i4").tobytes()
    return data_vectors.digest_of(1 if values.dtype == np.uint8 else 2, *values.shape, values.tobytes(),
                                  known, real, wide)


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("kind", ["bytes", "floats"])
def test_libsvm_as_scikit_learn_reads_it(tmp_path, info, kind, zero_based):
    datasets = pytest.importorskip("sklearn.datasets")
    draw = np.random.default_rng(3)
    items = 20_000 if (kind, zero_based) == ("floats", True) else 50  # blocks of 1 MiB, for several threads
    x = np.where(draw.random((items, 9)) < 0.4, 0, draw.integers(1, 256, (items, 9))).astype(float)
    y = draw.integers(0, 3, items)
    if kind == "floats":
        x *= draw.normal(size=x.shape) * 10.0 ** draw.integers(-30, 30, x.shape)
        y = draw.normal(size=items)
    x[0, [0, 8]] = 1
    path = str(tmp_path / "a.svm")
    datasets.dump_svmlight_file(x, y, path, zero_based=zero_based, comment="made here")
    read, labels = datasets.load_svmlight_file(path)
    read = read.toarray()
    told = info(path)
    assert (told["format"], told["items"], told["features"]) == ("libsvm", items, 9)
    expected = (read.astype(np.uint8), labels.astype(int)) if kind == "bytes" else (read, labels)
    assert told["digest"] == digest(*expected)


def test_libsvm_lines(tmp_path, info):
    path = tmp_path / "a.svm.gz"
    path.write_bytes(gzip.compress(b"# two classes\n\n+1 qid:3 1:nan\t4:0.5 # 9:9\r\n-1 2:1e3\n  \n-1"))
    told = info(path)
    assert told["format"] == "libsvm.gz" and told["class_names"] == ["-1", "1"]
    assert told["note"] == "the query ids (qid) are not used"
    assert told["digest"] == digest([[np.nan, 0, 0, 0.5], [0, 1000, 0, 0], [0, 0, 0, 0]], [1, 0, 0])


@pytest.mark.parametrize("text, what, where", [
    ("1 1:2\n1,2 1:3", '"1,2" is a list of labels', "line 2, byte 6"),
    ("1 1:2\ncat 1:3", 'the label "cat" is not a number', "line 2, byte 6"),
    ("1 1:2\n 2:3", 'a label is missing: "2:3"', "line 2, byte 7"),
    ("1 1:2\ninf 1:3", 'the label "inf" is infinite', "line 2, byte 6"),
    ("1 2:3 2:4", 'the index of "2:4" is not greater', "line 1, byte 6"),
    ("1 1:inf", 'the value "inf" is infinite', "line 1, byte 4"),
    ("1 1:1e39", 'the number "1e39" is beyond', "line 1, byte 4"),
    ("1 1:2 z", '"z" is not INDEX:VALUE', "line 1, byte 6"),
    ("1 1:2 3:x", 'the value "x" is not a number', "line 1, byte 8"),
    ("1 1:2 4294967295:1", "is not INDEX:VALUE", "line 1, byte 6"),
    ("1 1:2 400000000:1", "the dense table of 1 items with 400000000 features is too large", "a.svm"),
    ("1 qid:1", "no item has a feature", "a.svm"),
])
def test_libsvm_refusals(tmp_path, run_quern, text, what, where):
    (tmp_path / "a.svm").write_text(text + "\n")
    told = run_quern("data", "info", tmp_path / "a.svm", status=1).stderr
    assert what in told and where in told and len(told.splitlines()) == 3


@pytest.mark.parametrize("text", ["a,b\n1,12:30\n", "1\t12:30\n2\t12:31\n", "5;1:2;3\n"])
def test_times_of_the_day_are_no_libsvm(tmp_path, info, text):
    (tmp_path / "a.csv").write_text(text)
    assert info(tmp_path / "a.csv")["format"] == "csv"


def test_libsvm_of_fewer_features(tmp_path, run_quern):
    (tmp_path / "a.svm").write_text("1 1:2 5:0\n0 2:1\n" * 20)
    (tmp_path / "b.svm").write_text("1 1:2\n0 2:1\n")
    trained = run_quern("train", "--data", tmp_path / "a.svm", "--test", tmp_path / "b.svm", "--epochs",
                        1, "-o", tmp_path / "m", "--devices", "cpu", "--threads", 1)
    assert "the greatest index is 2 of 5, and none is 0, so indices count from 1" in trained.stderr
    run_quern("predict", tmp_path / "m", "--data", tmp_path / "b.svm", "-o", tmp_path / "p.csv")
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 3


def test_json_as_pandas_reads_it(tmp_path, info):
    pandas = pytest.importorskip("pandas")
    draw = np.random.default_rng(4)
    items = 500
    frame = pandas.DataFrame({
        "sick": draw.integers(0, 2, items).astype(bool), "age": draw.integers(-100, 100, items),
        "big": draw.integers(-2**62, 2**62, items), "dose": draw.normal(size=items) * 1e10**draw.integers(-2, 3),
        "gap": np.where(draw.random(items) < 0.3, np.nan, draw.normal(size=items)),
        "city": draw.choice(["Bern", "Z\u00fcrich", "a\"b\\\n\U0001F600"], items)})
    path = tmp_path / "a.json"
    text = frame.to_json(orient="records", lines=True, double_precision=15)
    path.write_text(text.replace('"gap":null,', ""))  # a missing key is a missing value
    read = pandas.read_json(path, lines=True, precise_float=True)
    cities = sorted(set(read.city), key=str.encode)
    columns = [read.age.astype("f4"), read.big.to_numpy("i8").astype("f4"), read.dose, read.gap,
               [cities.index(city) for city in read.city]]
    order = list(range(5)) if '"gap"' in text.split("\n")[0].replace('"gap":null', "") else [0, 1, 2, 4, 3]
    told = info(path)
    assert [c["name"] for c in told["table"]] == [["age", "big", "dose", "gap", "city"][k] for k in order]
    wide = {order.index(1): read.big.to_numpy("<i8")}
    assert told["digest"] == digest(np.stack([columns[k] for k in order], 1), read.sick, wide)
    path.write_text(frame.to_json(orient="records", double_precision=15))
    assert info(path)["digest"] == digest(np.stack(columns, 1), read.sick, {1: read.big.to_numpy("<i8")})  # an array


@pytest.mark.parametrize("text, what, where", [
    ('{"y":1,"a":2}\n{"y":0,"a":[1]}', 'the key "a" holds an array', "line 2, byte 25"),
    ('{"y":1,"a":{"b":1}}', 'the key "a" holds an object', "line 1, byte 11"),
    ('{"y":1,"a":2}\n{"y":0,"a":"t"}', 'the key "a" has numbers, and here a text', "line 2, byte 25"),
    ('{"y":1,"a":true}{"a":1}', 'the key "a" has booleans, and here a number', "line 1, byte 21"),
    ('{"y":1,"a":2,"a":3}', 'the key "a" stands twice', "line 1, byte 13"),
    ('{"y":1,"a":01}', "a number is not written as in JSON", "line 1, byte 11"),
    ('{"y":1,"a":-Infinity}', "infinite", "line 1, byte 11"),
    ('{"y":1,"\\ud83d":"a"}', "half a character", "line 1, byte 8"),
    ('{"y":1,"a":"x', "the text ends too early", "line 1, byte 13"),
    ('{"y":1\n"a":2}', "a '}' is missing", "line 2, byte 7"),
    ('[{"y":1,"a":1},]', "an item is not an object", "line 1, byte 15"),
    ('[{"y":1,"a":1}] 2', "more text follows", "line 1, byte 16"),
    ("".join('{"k%d":1}' % k for k in range(3000)), "different keys", "line 1"),
])
def test_json_refusals(tmp_path, run_quern, text, what, where):
    (tmp_path / "a.json").write_text(text)
    told = run_quern("data", "info", tmp_path / "a.json", status=1).stderr
    assert what in told and where in told and len(told.splitlines()) == 3


def test_zero_characters(tmp_path, run_quern):
    """Texts have none: U+FFFD stands for them, in each format, for features and for tokens."""
    texts, halves = ["x\0y z", "q\U0001f600", "\0\0"], ["x\ude00y z", "q\U0001f600", "\ud83d\0"]  # so do halves of characters
    (tmp_path / "t.json").write_text("".join(json.dumps({"y": k % 2, "a": t}) + "\n" for k, t in enumerate(halves)))
    parquet_writer.write(tmp_path / "t.parquet", {"y": np.array([0, 1, 0], "i4"), "a": texts}, 2)
    for name, place in ("t.json", "line 1"), ("t.parquet", "column 2, a, item 0"):
        told = json.loads(run_quern("data", "info", tmp_path / name, "--json").stdout)
        assert told["table"][0]["categories"] == ["q\U0001f600", "x\ufffdy z", "\ufffd\ufffd"]
        assert "3 characters U+0000 or lone surrogates of texts are read as U+FFFD" in told["note"] and place in told["note"]
        tokens = json.loads(run_quern("data", "info", tmp_path / name, "--label", "y", "--tokens", "bytes", "--text", "a",
                                      "--context", 9, "--json").stdout)
        rows = [list(t.replace("\0", "\ufffd").encode()) for t in texts]
        assert tokens["digest"] == oracle.digest(np.array([row + [65535] * (9 - len(row)) for row in rows], "<u2"),
                                                 np.array([0, 1, 0], "<i4"))


def fill(path, *statements, rows=()):
    base = sqlite3.connect(path)
    for statement in statements:
        base.execute(statement)
    if rows:
        base.executemany("INSERT INTO t VALUES (%s)" % ",".join("?" * len(rows[0])), rows)
    base.commit()
    base.close()


def test_sqlite(tmp_path, info, run_quern):
    """Python's sqlite3 reads the same rows."""
    draw = np.random.default_rng(5)
    rows = [(int(draw.integers(3)), int(draw.integers(-2**62, 2**62)), float(draw.normal()),
             None if draw.random() < 0.3 else int(draw.integers(9)) if draw.random() < 0.5 else draw.random(),
             str(draw.choice(["Bern", "Z\u00fcrich", "\U0001F600"]))) for _ in range(300)]
    path = tmp_path / "a.db"
    fill(path, 'CREATE TABLE t (y, "big one", x REAL, gap, city TEXT)', rows=rows)
    query = "SELECT *, y + 1 AS z FROM t -- ORDER BY nothing\n ORDER BY x DESC"
    read = sqlite3.connect(path).execute(query).fetchall()
    cities = sorted({row[4] for row in read}, key=str.encode)
    table = np.array([[np.float32(row[1]), row[2], np.nan if row[3] is None else row[3],
                       cities.index(row[4]), row[5]] for row in read])
    told = info(path, "--query", query)
    assert told["format"] == "sqlite" and [c["name"] for c in told["table"]] == [
        "big one", "x", "gap", "city", "z"]
    assert told["digest"] == digest(table, [row[0] for row in read], {0: np.array([row[1] for row in read], "<i8")})
    alone = info(path)
    assert alone["note"].splitlines()[0] == 'the rows are those of: SELECT * FROM "t" ORDER BY rowid'
    assert alone["digest"] == info(path, "--query", "select * from t order by rowid;")["digest"]
    model = tmp_path / "m"
    run_quern("train", "--data", path, "--query", query, "--test", path, "--test-query",
              "SELECT * FROM (SELECT *, y + 1 AS z FROM t) ORDER BY 2", "--missing", "mean", "--epochs", 1,
              "--devices", "cpu", "--threads", 1, "-o", model)
    assert "identical" in run_quern("replay", model, "--data", path, "--query", query).stdout


@pytest.mark.parametrize("query, what", [
    ("SELECT * FROM t", "no ORDER BY outside parentheses"),
    ("SELECT * FROM (SELECT * FROM t ORDER BY y)", "no ORDER BY outside parentheses"),
    ("SELECT 'x ORDER BY y' FROM t", "no ORDER BY outside parentheses"),
    ("SELECT [order by], `order by` FROM t /* ORDER BY y */", "no ORDER BY outside parentheses"),
    ("SELECT $a$ ORDER BY y $a$ FROM t", "no ORDER BY outside parentheses"),
    ("SELECT y, row_number() OVER (ORDER BY y) FROM t", "no ORDER BY outside parentheses"),
    ("DELETE FROM t", "the query is not a SELECT"),
    (" ", "the query is empty"),
    ("SELECT y FROM t ORDER BY y; DROP TABLE t", "the query has several statements"),
    ("SELECT nosuch FROM t ORDER BY y", "SQLite says: no such column: nosuch"),
    ("SELECT y, b FROM t ORDER BY y", 'the column "b" holds bytes (a BLOB)'),
    ("SELECT y, m FROM t ORDER BY y", 'the column "m" holds texts and numbers'),
    ("SELECT y, a FROM t WHERE y > 9 ORDER BY y", "the table has no rows"),
])
def test_sqlite_refusals(tmp_path, run_quern, query, what):
    path = tmp_path / "a.db"
    fill(path, "CREATE TABLE t (y, a, b, m)", rows=[(1, 2, b"x", 1), (2, 3, None, "x")])
    told = run_quern("data", "info", path, "--query", query, status=None).stderr
    assert what in told and len(told.splitlines()) == 3


def test_sqlite_tables(tmp_path, run_quern):
    path = tmp_path / "a.db"
    fill(path, "CREATE TABLE b (y)", 'CREATE TABLE "a ""one""" (y)')
    told = run_quern("data", "info", path, status=1).stderr
    assert 'the SQLite file has 2 tables: a ""one"", b' in told and "--query" in told
    (tmp_path / "a.csv").write_text("y,x\n1,2\n")
    assert "is not a database" in run_quern("data", "info", tmp_path / "a.csv", "--query", "x", status=1).stderr
    path.write_bytes(path.read_bytes()[:5000])
    assert "SQLite says: database disk image is malformed" in run_quern(
        "data", "info", path, status=1).stderr


@pytest.mark.parametrize("address, query, what", [
    ("postgresql://me:hidden@host/base", "SELECT 1 ORDER BY 1", "the address of the server holds a password"),
    ("postgresql://host/base?user=me&pass%77ord=hidden", "SELECT 1 ORDER BY 1", "holds a password"),
    ("postgres://me:hidden/hidden@host:1/base", "SELECT 1 ORDER BY 1", "holds a password"),
    ("postgres://me:hidden?hidden@host:1/base", "SELECT 1 ORDER BY 1", "holds a password"),
    ("postgresql://[me", "SELECT 1 ORDER BY 1", "is not one that libpq takes"),
    ("postgresql://host/base", None, "a server needs a query"),
    ("postgresql://host/base", "SELECT 1", "no ORDER BY outside parentheses"),
    ("postgresql://me@127.0.0.1:1/base", "SELECT 1 ORDER BY 1", "there is no connection to the server"),
])
def test_addresses_of_servers(run_quern, address, query, what):
    if "PostgreSQL              none" in run_quern("version").stdout:
        pytest.skip("there is no libpq")
    given = ["--query", query] if query else []
    told = run_quern("data", "info", address, *given, status=None).stderr
    assert what in told and "hidden" not in told and len(told.splitlines()) == 3


@pytest.mark.parametrize("command", [["train"], ["submit", "--slurm", "--dry-run", "train"]])
@pytest.mark.parametrize("address", ["postgresql://me:hidden@host/base", "postgres://host/base?password=hidden"])
def test_no_command_keeps_a_password(run_quern, tmp_path, command, address):
    done = run_quern(*command, "--data", address, "--query", "SELECT 1 ORDER BY 1", "-o", tmp_path / "m", status=2)
    assert "the address of --data holds a password" in done.stderr
    assert "hidden" not in done.stdout + done.stderr and not list(tmp_path.iterdir())

"""Parquet, Arrow IPC and JSON lines that Quern writes: it reads them back to the same digest, and pyarrow, pandas
and Python's json to the same names, types, categories, missing values and numbers."""

import json
import math

import numpy as np
import pytest

ENDINGS = ["parquet", "arrow", "jsonl"]


def number(text):
    return None if text == "" else float(np.float32(float(text)))


@pytest.fixture
def table(tmp_path):
    """A CSV file, and its columns as they should come back."""
    rng, n = np.random.default_rng(1), 3000
    some = lambda texts, share: ["" if rng.random() < share else t for t in texts]
    columns = {
        "sp ecies": [["a", "b", 'ß "q"\\'][k] for k in rng.integers(0, 3, n)],
        "whole": some([str(k) for k in rng.integers(-5, 300, n)], 0.1),
        "real": some([repr(float(v)) for v in rng.standard_normal(n).astype("f4")], 0.1),
        "text": some([["x", "yy", "a longer text, with commas"][k] for k in rng.integers(0, 3, n)], 0.1),
        "zero": [["-0.0", "1.5"][k] for k in rng.integers(0, 2, n)],
        "small": ["1e-40" if k else "1e+20" for k in rng.integers(0, 2, n)],
        "id": [str(k) for k in rng.integers(1 << 40, 1 << 60, n)],
        "day": some([str(np.datetime64("1969-12-25") + int(k)) for k in rng.integers(0, 900, n)], 0.05),
        "": [str(k) for k in rng.integers(0, 2, n)],
    }
    lines = [",".join(f'"{t}"' if set(t) & set(',"\\') else t for t in (c.replace('"', '""') for c in row))
             for row in zip(*columns.values())]
    path = tmp_path / "t.csv"
    path.write_text(",".join(columns) + "\n" + "\n".join(lines) + "\n")
    return path, columns


def written(run_quern, path, out, *words):
    return json.loads(run_quern("data", "convert", path, *words, "-o", out, "--json").stdout.splitlines()[0])


def info(run_quern, *words):
    return json.loads(run_quern("data", "info", *words, "--json").stdout)


def test_quern_reads_them_back(run_quern, table, tmp_path):
    path, _ = table
    for words, again in (["--label", "sp ecies"], []), (["--label", "zero"], []), (["--unlabelled"], ["--unlabelled"]):
        words = [*words, "--drop", "day"]
        digests = {}
        for ending in ENDINGS:
            told = written(run_quern, path, tmp_path / f"o.{ending}", *words)
            digests[ending] = told["digest"]
            assert info(run_quern, tmp_path / f"o.{ending}", *again)["digest"] == told["digest"], (ending, words)
        assert len(set(digests.values())) == 1
    for ending in ENDINGS:  # bytes, weights, and real labels that are whole
        (tmp_path / "b.csv").write_text("y,a,b,w\n" + "".join(f"{i % 7},{i % 256},{i % 5},{i % 3 + 0.5}\n" for i in range(999)))
        for more in [], ["--task", "regress"]:
            told = written(run_quern, tmp_path / "b.csv", tmp_path / f"o.{ending}", "--weight", "w", *more)
            assert "--weight w" in told["note"] and ("--task regress" in told["note"]) == bool(more)
            assert info(run_quern, tmp_path / f"o.{ending}", "--weight", "w", *more)["digest"] == told["digest"]
        # floats that look like bytes stay floats
        (tmp_path / "f.csv").write_text("y,a\n0,1.0\n1,2\n")
        told = written(run_quern, tmp_path / "f.csv", tmp_path / f"o.{ending}")
        assert info(run_quern, tmp_path / f"o.{ending}")["digest"] == told["digest"]


def test_parts_of_a_split(run_quern, table, tmp_path):
    """Views are written with their own items."""
    path, columns = table
    counts = []
    for ending in ENDINGS:
        run_quern("data", "split", path, "--parts", "a=0.7,b=0.3", "--seed", 3, "--drop", "day", "-o", tmp_path / f"%.{ending}")
        parts = [info(run_quern, tmp_path / f"{p}.{ending}") for p in "ab"]
        counts.append([(p["items"], p["digest"]) for p in parts])
    assert counts[0] == counts[1] == counts[2] and sum(c[0] for c in counts[0]) == len(columns["text"])


def check_columns(read, columns):
    """`read`: {name: values with None for missing ones}."""
    assert list(read) == [name or "f7" for name in columns]  # as in CSV files: the eighth feature
    for name, wanted in columns.items():
        got = read[name or "f7"]
        if name in ("sp ecies", "text"):
            assert got == [t or None for t in wanted], name
        elif name == "day":
            assert [None if g is None else str(g)[:10] for g in got] == [t or None for t in wanted]
        elif name == "id":
            assert got == [int(t) for t in wanted]
        else:
            same = [(g is None) == (w is None) and (g is None or (float(np.float32(g)) == w and
                    math.copysign(1, g) == math.copysign(1, w))) for g, w in zip(got, map(number, wanted))]
            assert all(same), name


def test_json(run_quern, table, tmp_path):
    path, columns = table
    written(run_quern, path, tmp_path / "o.jsonl")
    items = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    check_columns({name: [item[name] for item in items] for name in items[0]}, columns)
    (tmp_path / "two.csv").write_text("y,a,a\n0,1,2\n1,2,3\n")
    done = run_quern("data", "convert", tmp_path / "two.csv", "-o", tmp_path / "two.jsonl", status=None)
    assert done.returncode == 1 and '"a"' in done.stderr and not (tmp_path / "two.jsonl").exists()


def test_pyarrow(run_quern, table, tmp_path):
    """Types, dictionaries, check sums of pages, row groups; both files have the same table."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet
    path, columns = table
    for ending in "parquet", "arrow":
        written(run_quern, path, tmp_path / f"o.{ending}")
    one = parquet.read_table(tmp_path / "o.parquet", page_checksum_verification=True)
    other = pa.ipc.open_file(tmp_path / "o.arrow").read_all()
    other.validate(full=True)
    assert one.equals(other)
    types = dict(zip(one.column_names, map(str, one.schema.types)))
    assert types["sp ecies"] == types["text"] == "dictionary<values=string, indices=int32, ordered=0>"
    assert (types["whole"], types["real"], types["id"], types["day"]) == ("int32", "float", "int64", "date32[day]")
    check_columns({name: one[name].to_pylist() for name in one.column_names}, columns)
    frame = one.to_pandas()
    assert str(frame["text"].dtype) == "category" and list(frame["text"].cat.categories) == ["a longer text, with commas", "x", "yy"]
    # many items: several groups of rows, none of which is large
    rng = np.random.default_rng(2)
    np.save(tmp_path / "x.npy", rng.integers(0, 256, (60000, 300), "u1"))
    for ending in "parquet", "arrow":
        written(run_quern, tmp_path / "x.npy", tmp_path / f"x.{ending}", "--unlabelled")
    x = np.load(tmp_path / "x.npy")
    told = parquet.ParquetFile(tmp_path / "x.parquet", page_checksum_verification=True)
    assert told.metadata.num_row_groups == 2 and told.schema.column(0).logical_type.to_json().count("8")
    assert np.array_equal(np.stack([c.to_numpy() for c in told.read().columns], 1), x)
    assert np.array_equal(np.stack([c.to_numpy() for c in pa.ipc.open_file(tmp_path / "x.arrow").read_all().columns], 1), x)

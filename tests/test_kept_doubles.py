"""data convert, split and head keep 64-bit floats that no other command uses: NumPy, csv and sqlite3 read what is
written. The digest, which is that of the 32-bit floats, stays."""

import csv
import json
import sqlite3

import numpy as np
import pytest

ITEMS = 400


def between(near):
    """The doubles between floats and the next ones, which a text may miss on either side."""
    near = near.astype(np.float32)
    return (near.astype(np.float64) + np.nextafter(near, np.float32(np.inf)).astype(np.float64)) / 2


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(1)
    plain = rng.normal(size=ITEMS)
    made = {"y": rng.integers(0, 3, ITEMS), "plain": plain, "mid": between(plain), "tiny": between(plain) * 2.0**-100,
            "large": between(np.abs(plain) * 1e30), "float": plain.astype(np.float32).astype(np.float64),
            "range": 10.0**rng.uniform(-36, 36, ITEMS) * rng.choice([-1, 1], ITEMS),
            # One row is not whole, and parts without it are whole; one is small, and parts without it span little.
            "whole": rng.integers(2**30, 2**40, ITEMS) + (np.arange(ITEMS) == 3) * 0.5,
            "near": np.where(np.arange(ITEMS) == 3, 0.1, 1.7e9 + rng.integers(0, 999, ITEMS) / 1000),
            "gone": np.where(np.arange(ITEMS) % 7 == 3, np.nan, plain * 3), "byte": np.where(np.arange(ITEMS) == 3, 5 + 1e-9, np.arange(ITEMS) % 9),
            "int": rng.integers(0, 9, ITEMS)}
    return made


@pytest.fixture(scope="module")
def base(columns, tmp_path_factory):
    path = tmp_path_factory.mktemp("kept") / "t.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE t (" + ", ".join(
            f'"{name}" {"REAL" if values.dtype == float else "INTEGER"}' for name, values in columns.items()) + ")")
        db.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})",
                       [[None if v != v else v for v in row] for row in zip(*(c.tolist() for c in columns.values()))])
    db.close()
    return path


def read(path):
    """The columns of a CSV file as Python reads them."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name] or "nan") for row in rows]) for name in rows[0]}


def digest(run_quern, path, *words):
    return json.loads(run_quern("data", "info", path, "--label", "y", *words, "--json").stdout)["digest"]


def test_every_format_keeps_them(run_quern, tmp_path, columns, base):
    wanted = digest(run_quern, base)
    for ending in ("parquet", "arrow", "jsonl", "csv"):
        path = tmp_path / f"t.{ending}"
        told = json.loads(run_quern("data", "convert", base, "--label", "y", "-o", path, "--json").stdout)
        assert told["digest"] == wanted == digest(run_quern, path), ending
        again = path if ending == "csv" else tmp_path / "again.csv"
        if ending != "csv":
            run_quern("data", "convert", path, "--label", "y", "-o", again)
        found = read(again)
        for name, values in columns.items():
            np.testing.assert_array_equal(found[name], values, err_msg=f"{ending} {name}")
    # JSON has its own reader, and so has NumPy.
    items = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert [item["mid"] for item in items] == columns["mid"].tolist()
    run_quern("data", "convert", base, "--label", "y", "-o", tmp_path / "t.npy", "--output-labels", tmp_path / "y.npy")
    array = np.load(tmp_path / "t.npy")
    assert array.dtype == np.float64
    np.testing.assert_array_equal(array.T, [v for name, v in columns.items() if name != "y"])
    head = json.loads(run_quern("data", "head", base, "--label", "y", "-n", 5, "--json").stdout)
    assert [item[2] for item in head["items"]] == columns["mid"][:5].tolist()
    # A model knows nothing of them.
    models = [tmp_path / "a", tmp_path / "b"]
    for model, path in zip(models, (base, tmp_path / "t.parquet")):
        run_quern("train", "--data", path, "--label", "y", "--missing", "zero", "--features", "plain,mid,byte", "--epochs", 1,
                  "--model", "dense 3 softmax", "--quiet", "-o", model)
    assert models[0].read_bytes() == models[1].read_bytes()


def test_parts(run_quern, tmp_path, columns, base):
    """A part has the digest of its own file, in which a column may be whole or span little."""
    for ending in ("parquet", "jsonl"):
        done = run_quern("data", "split", base, "--label", "y", "--parts", "a=0.5,b=0.49,c=0.01", "-o",
                         tmp_path / f"%.{ending}", "--json")
        told = [json.loads(line) for line in done.stdout.splitlines()]
        assert [part["digest"] for part in told] == [digest(run_quern, part["file"]) for part in told]
        types = [[c["type"] for c in json.loads(run_quern("data", "info", part["file"], "--label", "y", "--json").stdout)["table"]
                  if c["name"] == "whole"] for part in told]
        assert ["whole number"] in types
    found = []
    for name in "abc":
        run_quern("data", "convert", tmp_path / f"{name}.parquet", "--label", "y", "-o", tmp_path / f"{name}.csv")
        found.append(read(tmp_path / f"{name}.csv"))
    for name, values in columns.items():
        both = np.concatenate([part[name] for part in found])
        np.testing.assert_array_equal(np.sort(both), np.sort(values), err_msg=name)


def test_arrays(run_quern, tmp_path):
    """NPY files, with zeros of both signs; a file of whole doubles stays one of doubles."""
    values = np.random.default_rng(3).normal(size=(50, 4))
    values[::3, 1], values[1::3, 1] = -0.0, 1 / 3
    values[:, 2] = np.arange(50) % 5
    np.save(tmp_path / "t.npy", values)
    wanted = json.loads(run_quern("data", "info", tmp_path / "t.npy", "--json").stdout)["digest"]
    for ending in ("npy", "parquet", "csv", "jsonl", "arrow"):
        path = tmp_path / f"u.{ending}"
        run_quern("data", "convert", tmp_path / "t.npy", "-o", path)
        words = [] if ending == "npy" else ["--unlabelled"]
        assert json.loads(run_quern("data", "info", path, *words, "--json").stdout)["digest"] == wanted, ending
        run_quern("data", "convert", path, *words, "-o", tmp_path / "v.npy")
        back = np.load(tmp_path / "v.npy")
        if ending != "csv":  # which has no types, so that its decimals are 32-bit floats
            assert back.dtype == np.float64 and back.tobytes() == values.tobytes(), ending
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "u.csv", delimiter=",", skiprows=1), values)
    np.save(tmp_path / "w.npy", values[:, 2:3])
    run_quern("data", "convert", tmp_path / "w.npy", "-o", tmp_path / "x.npy")
    assert np.load(tmp_path / "x.npy").dtype == np.float64

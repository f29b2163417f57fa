"""Columns that float32 cannot hold: whole numbers above 2^24, and seconds with a fraction (docs/exactness.md 23.4).

Every file is made and checked by NumPy, pandas, json or sqlite3. tests/test_oracle_wide.py has the models."""

import hashlib
import json
import sqlite3
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import parquet_writer
import python_package
from data_vectors import blocks

sys.path.insert(0, str(Path(__file__).resolve().parent / "oracle"))
import column_statistics  # noqa: E402

ITEMS = 600


@pytest.fixture
def info(run_quern):
    return lambda *words: json.loads(run_quern("data", "info", *words, "--json").stdout)


@pytest.fixture(scope="module")
def frame():
    generator = np.random.default_rng(7)
    return pd.DataFrame({"day": 20230100 + generator.integers(1, 90, ITEMS),
                         "id": generator.integers(-2**62, 2**62, ITEMS), "small": generator.integers(0, 2**24 + 1, ITEMS),
                         "part": generator.standard_normal(ITEMS).astype(np.float32).astype(float),
                         "y": generator.integers(0, 3, ITEMS)})


def digest_of(frame, wide):
    """docs/exactness.md 23.5, of columns without missing values and the label y."""
    values = frame.drop(columns="y")
    text = b"quern data 2\n\2" + ITEMS.to_bytes(8, "little") + values.shape[1].to_bytes(8, "little") + b"\1"
    text += blocks(np.stack([values[name].to_numpy().astype("<f4") for name in values], axis=1).tobytes())
    text += blocks(frame["y"].to_numpy().astype("<i4").tobytes()) + len(wide).to_bytes(8, "little")
    for name in wide:
        text += values.columns.get_loc(name).to_bytes(8, "little") + b"\1" + blocks(frame[name].to_numpy().astype("<i8").tobytes())
    return hashlib.sha256(text).hexdigest()


def test_formats(frame, info, tmp_path):
    """The same values in every format: one digest, that of NumPy's bytes."""
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True, double_precision=15)
    with sqlite3.connect(tmp_path / "t.sqlite") as base:
        frame.to_sql("t", base, index=False)
    parquet_writer.write(tmp_path / "t.parquet", {name: frame[name].to_numpy() for name in frame}, 250)
    wanted = digest_of(frame, ["day", "id"])
    for name in ("t.csv", "t.jsonl", "t.sqlite", "t.parquet"):
        told = info(tmp_path / name, "--label", "y")
        assert told["digest"] == wanted, name
        table = {column["name"]: column for column in told["table"]}
        for column in ("day", "id"):
            assert (table[column]["min"], table[column]["max"]) == (frame[column].min(), frame[column].max())
        assert table["day"]["type"] == "whole number"


def test_arrays(frame, info, run_quern, tmp_path):
    """Arrays of integers in both orders, and of doubles; converted, they are the same."""
    whole = frame[["day", "id", "small"]]
    wanted = digest_of(frame[["day", "id", "small", "y"]], ["day", "id"])
    for name, order in ("c", np.ascontiguousarray), ("f", np.asfortranarray):
        np.savez(tmp_path / f"{name}.npz", x=order(whole.to_numpy()), y=frame["y"])
        assert info(tmp_path / f"{name}.npz")["digest"] == wanted
    seconds = np.stack([1.7e9 + np.arange(ITEMS) / 8, np.arange(ITEMS) / 7, np.full(ITEMS, 0.1)], axis=1)
    seconds[3, 0] = np.nan
    np.save(tmp_path / "d.npy", seconds)
    table = info(tmp_path / "d.npy")["table"]
    assert (table[0]["min"], table[0]["max"], table[0]["missing"]) == (1.7e9, seconds[-1, 0], 1)
    assert [column["max"] for column in table[1:]] == [float(np.float32(599 / 7)), float(np.float32(0.1))]  # as before
    for name in "c.npz", "d.npy":
        run_quern("data", "convert", tmp_path / name, "-o", tmp_path / f"again-{name}")
        assert info(tmp_path / f"again-{name}")["digest"] == info(tmp_path / name)["digest"]
    assert np.array_equal(np.load(tmp_path / "again-c.npz")["x"], whole.to_numpy())


def test_commands(frame, info, run_quern, tmp_path):
    """head, convert and split show and write existing days and identifiers."""
    (tmp_path / "t.csv").write_text("day,y\n20230109,odd\n20230119,odd\n")
    assert "20230109" in run_quern("data", "head", tmp_path / "t.csv", "--label", "y").stdout
    run_quern("data", "convert", tmp_path / "t.csv", "--label", "y", "-o", tmp_path / "o.csv")
    assert (tmp_path / "o.csv").read_text() == "y,day\nodd,20230109\nodd,20230119\n"
    frame = frame.drop(columns="part")
    frame.loc[4, "y"] = 2
    text = frame.to_csv(index=False).splitlines()
    text[5] = text[5].replace(str(frame["id"][4]), "")  # missing
    (tmp_path / "f.csv").write_text("\n".join(text))
    head = json.loads(run_quern("data", "head", tmp_path / "f.csv", "--label", "y", "-n", 6, "--json").stdout)
    ids = [item[2] for item in head["items"]]
    assert ids == [None if i == 4 else value for i, value in enumerate(frame["id"][:6])]
    run_quern("data", "split", tmp_path / "f.csv", "--label", "y", "--parts", "a=0.7,b=0.3", "-o", tmp_path / "%.csv")
    parts = [pd.read_csv(tmp_path / f"{name}.csv", dtype="string").fillna("") for name in "ab"]
    assert sorted(pd.concat(parts)["id"]) == sorted("" if i == 4 else str(value) for i, value in enumerate(frame["id"]))
    assert info(tmp_path / "a.csv", "--label", "y")["table"][1]["max"] == max(int(x) for x in parts[0]["id"] if x)


def test_statistics(frame, run_quern, tmp_path):
    """Mean, extremes and quantiles by fractions, of all items and of a class."""
    frame.to_csv(tmp_path / "t.csv", index=False)
    quantiles = [0, 0.1, 0.5, 0.75, 1]
    done = run_quern("data", "stats", tmp_path / "t.csv", "--label", "y", "--json", "--by-class", "--quantiles",
                     ",".join(map(str, quantiles)))
    told = {column["name"]: column for column in json.loads(done.stdout)["columns"]}
    for name in ("day", "id"):
        groups = [(told[name], frame[name]), *zip(told[name]["by_class"], (frame[name][frame["y"] == k] for k in range(3)))]
        for numbers, values in groups:
            x = sorted(Fraction(int(v)) for v in values)
            mean = sum(x) / len(x)
            assert (numbers["mean"], numbers["min"], numbers["max"]) == (float(mean), float(x[0]), float(x[-1]))
            assert numbers["variance"] == float(sum((v - mean) ** 2 for v in x) / (len(x) - 1))
            for q, found in zip(quantiles, numbers["quantiles"]):
                h = Fraction(q) * (len(x) - 1)
                i = int(h)
                assert found == float(x[i] if h == i else x[i] + (h - i) * (x[i + 1] - x[i]))


def test_histograms_and_pairs(run_quern, tmp_path):
    """Seconds of 200 in 2023, ids beside 2^53 and of 63 bits, doubles; some are missing. As NumPy has them of int64."""
    rng, items, nan = np.random.default_rng(4), 70, float("nan")
    seconds = 1_700_000_000 + rng.integers(0, 200, items)
    table = {"unix": seconds.tolist(), "near": (2**53 + rng.permutation(items)).tolist(),
             "long": [nan if i % 9 == 2 else int(v) for i, v in enumerate(rng.integers(-2**63 + 1, 2**63, items))],
             "real": (1.7e9 + rng.integers(0, 900, items) / 1000).tolist(), "one": [2**60 + 1] * items,
             "small": [nan if i % 7 == 3 else float(np.float32(v)) for i, v in enumerate(rng.normal(size=items))],
             "y": (np.float32(seconds - seconds[0]) / 8).tolist()}
    base = sqlite3.connect(tmp_path / "t.db")
    base.execute(f"CREATE TABLE t ({', '.join(table)})")
    base.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(table))})",
                     [[None if v != v else v for v in row] for row in zip(*table.values())])
    base.commit()
    words = ["data", "stats", tmp_path / "t.db", "--label", "y", "--task", "regress", "--correlation", "--histograms", "--json"]
    told = json.loads(run_quern(*words).stdout)
    assert [column["name"] for column in told["columns"]] == list(table)
    for k, (column, values) in enumerate(zip(told["columns"], table.values())):
        counts, edges = column_statistics.histogram([v for v in values if v == v])
        assert (column["histogram"], column["edges"]) == (counts, edges), column["name"]
        for m, others in enumerate(table.values()):
            got = told["covariance"][k][m], told["correlation"][k][m]
            wanted = column_statistics.pair(values, others)
            assert got == tuple(None if v != v else v for v in wanted), (column["name"], m)
    unix = told["columns"][0]
    assert unix["histogram"] == np.histogram(seconds, unix["edges"])[0].tolist()
    assert told["correlation"][0][-1] == pytest.approx(1, abs=1e-15)
    # By class the edges stay, and ids beside 2^53 may have several edges of one number.
    few = json.loads(run_quern(*words[:3], "--label", "unix", "--task", "classify", "--features", "near", "--by-class",
                               "--histograms", "--bins", 300, "--json").stdout)["columns"][0]
    assert few["histogram"] == column_statistics.histogram(table["near"], 300)[0]
    assert np.sum([one["histogram"] for one in few["by_class"]], axis=0).tolist() == few["histogram"]


@pytest.mark.parametrize("values", [20230109 + np.arange(6), 1_700_000_000 + 40 * np.arange(6), 2**53 + 1 + np.arange(6)])
def test_learning(values, run_quern, tmp_path):
    """Odd or even days, seconds of 200, identifiers above 2^53: each value has its class, and they are learned."""
    items = np.random.default_rng(1).integers(0, 6, 300)
    kinds = items % 2 if values[0] < 2**30 else items // 3
    pd.DataFrame({"v": values[items], "kind": np.array(["even", "odd"])[kinds]}).to_csv(tmp_path / "t.csv", index=False)
    run_quern("train", "--data", tmp_path / "t.csv", "--label", "kind", "--valid", 0.2, "--epochs", 150, "--model",
              "dense 64 tanh; dense 2 softmax", "--optimizer", "adam", "--lr", 0.02, "--batch", 64, "-o", tmp_path / "m", "--quiet")
    told = run_quern("evaluate", tmp_path / "m", "--data", tmp_path / "t.csv", "--json").stdout
    assert json.loads(told.splitlines()[-1])["evaluation"]["accuracy"] > 0.99
    # A file of one item, whose value is a float32 or not, is predicted in the same way.
    for i, value in enumerate(values):
        (tmp_path / "one.csv").write_text(f"v\n{value}\n")
        done = run_quern("predict", tmp_path / "m", "--data", tmp_path / "one.csv", "--unlabelled")
        assert done.stdout.splitlines()[1].split(",")[1] == ["even", "odd"][i % 2 if values[0] < 2**30 else i // 3]


def test_models_before(run_quern, tmp_path):
    """A model without the rule reads a file as it always did; ONNX and scaling none say what they lose."""
    rows = "".join(f"{20230101 + i},{'ab'[i % 2]}\n" for i in range(40))
    (tmp_path / "t.csv").write_text("day,y\n" + rows)
    words = ["--data", tmp_path / "t.csv", "--label", "y", "--epochs", 1, "-o", tmp_path / "m"]
    run_quern("train", *words)
    done = run_quern("model", "export", tmp_path / "m", "-o", tmp_path / "m.onnx", status=None)
    assert done.returncode != 0 and '"day"' in done.stderr and "float32" in done.stderr
    run_quern("replay", tmp_path / "m", "--data", tmp_path / "t.csv")
    done = run_quern("train", *words, "--scale", "none", "--model", "dense 2 softmax", "--unit", 4, status=None)
    assert "day" in done.stderr and "float32" in done.stderr
    (tmp_path / "d.csv").write_text("t,u,y\n1700000000.125,5,0\n1700000000.5,6,1\n1700000900.25,7,0\n")
    note = json.loads(run_quern("data", "info", tmp_path / "d.csv", "--label", "y", "--json").stdout)["note"]
    assert '"t"' in note and "float32" in note and '"u"' not in note


def test_python(frame, tmp_path):
    """Arrays of integers, frames, and frames whose integers became doubles by a missing one; one item at a time."""
    python_package.folder()
    import quern

    whole = frame[["day", "id", "small"]]
    wanted = digest_of(frame[["day", "id", "small", "y"]], ["day", "id"])
    labels = frame["y"].to_numpy()
    assert quern.Data(frame[["y", "day", "id", "small"]], label="y").digest == wanted
    for values in whole.to_numpy(), np.asfortranarray(whole.to_numpy()), whole:
        assert quern.Data(values, labels).digest == wanted
    mixed = frame[["day", "part", "y"]]
    assert quern.Data(mixed.drop(columns="y"), labels).digest == digest_of(mixed, ["day"])
    days = frame[["day", "y"]].astype({"day": float})
    assert quern.Data(days[["day"]].to_numpy(), labels).digest == digest_of(frame[["day", "y"]], ["day"])
    days.loc[3, "day"] = np.nan
    days.to_csv(tmp_path / "t.csv", index=False)
    data = quern.Data(days, label="y")
    assert data.digest == quern.open(tmp_path / "t.csv", label="y").digest
    seconds = (1.7e9 + np.arange(ITEMS) / 8).reshape(-1, 1)
    late = np.array(["early", "late"])[np.arange(ITEMS) * 2 // ITEMS]
    for values in seconds, pd.DataFrame({"t": seconds[:, 0]}):
        model = quern.train(values, late, epochs=60, model="dense 8 tanh; dense 2 softmax", seed=1)
        assert list(model.predict(values[:1])) == ["early"] and list(model.predict(values[-1:])) == ["late"]
        assert (model.predict(values) == late).mean() > 0.98

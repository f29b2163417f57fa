"""Converting, splitting and showing data files: what is written has the digest of what was read, and
NumPy reads it; the items of a part are those that docs/exactness.md 2.10 names."""

import importlib.util
import json
import os
import re
import resource
import shlex
import subprocess
import sys

import numpy as np
import pytest

from builds import ROOT

CORPUS = ROOT / "tests" / "fuzz" / "corpus"
# One file for each reader, the options it needs, and the formats that can hold it.
READ = {"table/typed.csv": ([], "csv parquet arrow json"), "table/images.idx": (["--labels", "table/labels.idx"], "csv npz libsvm parquet arrow json"),
        "numpy/floats.npy": ([], "csv npz parquet arrow json"), "numpy/pair.npz": ([], "csv npz parquet arrow json"), "rows/signs.svm": ([], "csv npz libsvm parquet arrow json"),
        "rows/lines.json": (["--unlabelled", "--drop", "t"], "csv npz parquet arrow json"), "rows/table.sqlite": ([], "csv parquet arrow json"), "typed/table-file.arrow": ([], "csv parquet arrow json"),
        "typed/table-snappy.parquet": (["--drop", "s,d"], "csv npz libsvm parquet arrow json")}


@pytest.fixture
def info(run_quern):
    def ask(*args):
        return json.loads(run_quern("data", "info", *args, "--json").stdout)
    return ask


def told(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def options(note):
    """The options that a note names, as words."""
    named = re.search(r"read it with (.*?)(;|$)", note or "")
    return shlex.split(named[1]) if named else []


@pytest.mark.parametrize("name", ["c d", "it's", "$(touch a)"])
def test_a_note_can_be_typed(run_quern, info, tmp_path, name):
    (tmp_path / "t.csv").write_text(f"y,{name},b\n0,1,2\n1,2,3\n0,1,4\n")
    written = told(run_quern("data", "convert", tmp_path / "t.csv", "--weight", "2", "-o", tmp_path / "o.csv", "--json"))[0]
    assert options(written["note"])[:2] == ["--weight", name]
    assert info(tmp_path / "o.csv", *options(written["note"]))["digest"] == written["digest"]


def test_numbers_as_people_write_them(run_quern, tmp_path):
    table = "label,a,b\nx,30,2000\ny,0.001,-1500000\nx,1e+20,1e-09\n"
    (tmp_path / "t.csv").write_text(table)
    assert run_quern("data", "convert", tmp_path / "t.csv", "-o", "-", "--format", "csv").stdout == table


@pytest.mark.parametrize("file", READ)
def test_the_digest_stays(run_quern, info, tmp_path, file):
    more, formats = READ[file]
    more = [CORPUS / word if "/" in word else word for word in more]
    wanted = info(CORPUS / file, *more)
    for name in formats.split():
        out = tmp_path / f"out.{name}"
        written = told(run_quern("data", "convert", CORPUS / file, *more, "-o", out, "--json"))[0]
        assert written["digest"] == wanted["digest"] and written["format"] == name
        assert "other numbers" not in (written["note"] or "")
        assert info(out, *options(written["note"]))["digest"] == wanted["digest"], (name, written)


def test_numpy_reads_it(run_quern, tmp_path):
    (tmp_path / "t.csv").write_text("kind,a,b,w\ncat,1,,1\ndög,2.5,-0,0.5\ncat,3,7,2\n")
    run_quern("data", "convert", tmp_path / "t.csv", "--weight", "w", "-o", tmp_path / "t.npz")
    made = np.load(tmp_path / "t.npz")
    assert sorted(made) == ["weight", "x", "y"] and made["y"].tolist() == ["cat", "dög", "cat"]
    assert made["weight"].tolist() == [1, 0.5, 2] and made["x"].dtype == np.float32
    assert np.array_equal(made["x"], [[1, np.nan], [2.5, 0], [3, 7]], equal_nan=True)
    assert np.signbit(made["x"][1, 1])
    run_quern("data", "convert", tmp_path / "t.csv", "--drop", "w", "-o", tmp_path / "x.npy",
              "--output-labels", tmp_path / "y.npy")
    assert np.array_equal(np.load(tmp_path / "x.npy"), made["x"], equal_nan=True)
    assert np.load(tmp_path / "y.npy").tolist() == ["cat", "dög", "cat"]


def test_standard_output(run_quern, tmp_path):
    (tmp_path / "t.csv").write_text("y,a\n0,1\n1,2\n")
    done = run_quern("data", "convert", tmp_path / "t.csv", "--format", "libsvm", "-o", "-")
    assert done.stdout == "0 1:1\n1 1:2\n" and done.stderr == ""
    assert "--format" in run_quern("data", "convert", tmp_path / "t.csv", "-o", "-", status=2).stderr


@pytest.mark.parametrize("file", ["table/typed.csv", "table/header.csv.gz", "numpy/pair.npz", "rows/signs.svm",
                                  "typed/table-file.arrow", "typed/table-snappy.parquet"])
def test_standard_input(quern, info, file):
    """A pipe and a redirected file have the digest of the file, whatever reads them."""
    whole = (CORPUS / file).read_bytes()
    words = [quern, "data", "info", "-", "--json"]
    piped = subprocess.run(words, input=whole, capture_output=True, check=True)
    with open(CORPUS / file) as source:
        given = subprocess.run(words, stdin=source, capture_output=True, check=True)
    wanted = info(CORPUS / file)
    for done in piped, given:
        got = json.loads(done.stdout)
        assert got["digest"] == wanted["digest"] and got["format"] == wanted["format"]


def test_the_standard_input_from_its_middle(quern, tmp_path):
    """What another program has read is not read again."""
    (tmp_path / "t.csv").write_text("y,a\n0,1\n1,2\n0,7\n")
    with open(tmp_path / "t.csv") as source:
        done = subprocess.run(["sh", "-c", f"read x; read x; {quern} data head - --json --header no"],
                              stdin=source, capture_output=True, text=True)
    assert json.loads(done.stdout)["items"] == [[1, 2], [0, 7]]


def test_training_from_the_standard_input(quern, run_quern, tmp_path):
    text = "y,a\n" + "".join(f"{i % 2},{i}\n" for i in range(40))
    (tmp_path / "t.csv").write_text(text)
    more = ["--model", "dense 2 softmax", "--epochs", "1", "--threads", "1", "--quiet", "-o"]
    run_quern("train", "--data", tmp_path / "t.csv", *more, tmp_path / "a")
    subprocess.run([quern, "train", "--data", "-", *more, tmp_path / "b"], input=text.encode(), check=True)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    said = [subprocess.run([quern, "predict", tmp_path / "a", "--data", path, "--quiet"], input=text.encode(),
                           capture_output=True, check=True).stdout for path in (tmp_path / "t.csv", "-")]
    assert said[0] == said[1] and said[0].count(b"\n") == 41


@pytest.mark.parametrize("words, given, wanted", [
    (["data", "info", "-"], b"", "empty"),
    (["data", "info", "-"], (CORPUS / "rows/table.sqlite").read_bytes(), "no name"),
    (["train", "--data", "-", "--test", "-", "-o", "m"], b"", "stands there 2 times"),
    (["submit", "--local", "train", "--data", "-", "-o", "m"], b"", "a job has none")])
def test_no_standard_input(quern, tmp_path, words, given, wanted):
    done = subprocess.run([quern, *words], input=given, capture_output=True, cwd=tmp_path, timeout=60)
    assert done.returncode in (1, 2) and wanted in done.stderr.decode() and not list(tmp_path.iterdir())


@pytest.mark.parametrize("words, wanted", [
    (["convert", "t.csv"], "-o FILE is required"),
    (["convert", "t.csv", "-o", "t.xlsx"], "no known ending"),
    (["convert", "t.csv", "-o", "t.npy"], "holds categories"),
    (["convert", "t.csv", "-o", "t.csv"], "overwrite"),
    (["convert", "t.csv", "-o", "o.npz", "--output-labels", "y.npy"], "leave --output-labels out"),
    (["convert", "t.csv", "-o", "-", "--format", "csv", "--json"], "--json"),
    (["split", "t.csv", "-o", "%.csv"], "--parts LIST is required"),
    (["split", "t.csv", "-o", "%.csv", "--parts", "a=0.5,b=0.4"], "the sum 0.9, not 1"),
    (["split", "t.csv", "-o", "%.csv", "--parts", "a=0.5,a=0.5"], "twice"),
    (["split", "t.csv", "-o", "%.csv", "--parts", "a=0.5,b"], "not a name and share"),
    (["split", "t.csv", "-o", "%.csv", "--parts", "a=1.5,b=-0.5"], "has no share"),
    (["split", "t.csv", "-o", "%.csv", "--parts", "../a=0.5,b=0.5"], "has a /"),
    (["split", "t.csv", "-o", "%-%.csv", "--parts", "a=0.5,b=0.5"], "more than one %"),
    (["split", "t.csv", "-o", "o.csv", "--parts", "a=0.5,b=0.5"], "has no %"),
    (["split", "t.csv", "-o", "-", "--format", "csv", "--parts", "a=0.5,b=0.5"], "no space"),
    (["split", "t.csv", "-o", "%.csv", "--parts", "a=0.001,b=0.999"], "would have no item"),
    (["split", "t.csv", "-o", "%.csv", "--parts", "a=0.5,b=0.5", "--stratify", "--label", "n"], "no classes")])
def test_refusals(run_quern, tmp_path, words, wanted):
    (tmp_path / "t.csv").write_text("y,c,n\n0,x,0.5\n1,y,1\n0,x,2\n1,y,3\n")
    done = run_quern("data", *words, status=None, cwd=tmp_path)
    assert done.returncode in (1, 2) and wanted in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


def order(seed, items):
    """P of 4.3 by the oracle, whose folder has modules of common names."""
    sys.path.insert(0, str(ROOT / "tests" / "oracle"))
    try:
        spec = importlib.util.spec_from_file_location("oracle_order", ROOT / "tests" / "oracle" / "order.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "tests" / "oracle"))
    return module.permutation(seed, items, 4, 0).astype(int)


@pytest.mark.parametrize("stratify", [False, True])
def test_parts_are_those_of_the_text(run_quern, tmp_path, stratify):
    labels = np.random.default_rng(5).integers(0, 3, 101)
    (tmp_path / "t.csv").write_text("y,number\n" + "".join(f"{y},{i}\n" for i, y in enumerate(labels)))
    parts = {"a": 0.333333333, "b": 0.5, "c": 0.166666667}
    done = run_quern("data", "split", "t.csv", "--parts", ",".join(f"{k}={v:.9f}" for k, v in parts.items()),
                     "--seed", 7, "-o", "p-%.csv", "--json", *["--stratify"] * stratify, cwd=tmp_path)
    assert [line["part"] for line in told(done)] == list(parts)
    bounds = np.cumsum([0] + [round(share * 1e9) for share in parts.values()])
    walk = order(7, len(labels))
    groups = [walk[labels[walk] == k] for k in range(3)] if stratify else [walk]
    wanted = {name: [] for name in parts}
    for group in groups:
        at = [(2 * len(group) * int(b) + 10**9) // (2 * 10**9) for b in bounds]
        for name, first, behind in zip(parts, at, at[1:]):
            wanted[name] += group[first:behind].tolist()
    for name in parts:
        rows = np.loadtxt(tmp_path / f"p-{name}.csv", delimiter=",", skiprows=1, dtype=int)
        assert rows[:, 1].tolist() == sorted(wanted[name])
        assert rows[:, 0].tolist() == labels[rows[:, 1]].tolist()


@pytest.mark.parametrize("ending", ["csv", "npy", "npz", "libsvm"])
def test_parts_that_cannot_all_be_written_leave_no_file(run_quern, tmp_path, ending):
    (tmp_path / "t.csv").write_text("y,number\n" + "".join(f"{i % 3},{i}.5\n" for i in range(4000)))
    (tmp_path / f"p-a.{ending}").write_bytes(b"old")
    limit = (1 << 13, 1 << 13)  # more than part a, less than part b
    done = run_quern("data", "split", "t.csv", "--parts", "a=0.1,b=0.8,c=0.1", "-o", f"p-%.{ending}", cwd=tmp_path,
                     status=1, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
    assert f"p-b.{ending}" in done.stderr and not done.stdout
    assert sorted(os.listdir(tmp_path)) == [f"p-a.{ending}", "t.csv"]
    assert (tmp_path / f"p-a.{ending}").read_bytes() == b"old"


def test_head(run_quern, tmp_path):
    (tmp_path / "t.csv").write_text("kind,a,city,w\ncat,1,Bern,1\ndog,,\"a\x1bb\",2\ncat,0.1,,1\n")
    lines = run_quern("data", "head", tmp_path / "t.csv", "--weight", "w", "-n", 2).stdout.splitlines()
    assert [line.split() for line in lines] == [["kind", "a", "city", "w"], ["class", "number", "category", "weight"],
                                                ["cat", "1", "Bern", "1"], ["dog", "-", "a?b", "2"]]
    got = told(run_quern("data", "head", tmp_path / "t.csv", "--json"))[0]
    assert got["items"] == [["cat", 1, "Bern", 1], ["dog", None, "a\x1bb", 2], ["cat", 0.1, None, 1]]
    assert [c["name"] for c in got["columns"]] == ["kind", "a", "city", "w"]


def test_python(tmp_path):
    python_package = pytest.importorskip("python_package")
    python_package.python("""
import sys, os, numpy as np, quern
folder = sys.argv[1]
data = quern.Data(np.arange(40).reshape(20, 2) / 8, ["b", "a"] * 10, weights=np.ones(20))
path = os.path.join(folder, "t.csv")  # the package's build has no zlib, which reads NPZ
assert data.write(path) == "read it with `weight` weight", data.write(path)
assert data.write(os.path.join(folder, "t.npz")) == "read it with `weight` weight"
assert quern.open(path, weight="weight").digest == data.digest
parts = data.split({"x": 0.75, "y": 0.25}, seed=3, stratify=True)
assert [len(p) for p in parts.values()] == [16, 4] and parts["y"].class_names == ["a", "b"]
assert sorted(v for p in data.split([0.5, 0.5]) for v in p.values[:, 0]) == sorted(data.values[:, 0])
for wrong in ([0.5, 0.4], [1.5, -0.5]):
    try:
        data.split(wrong)
    except quern.UsageError as e:
        assert "sum 1" in str(e)
    else:
        raise AssertionError(wrong)
try:
    data.write(os.path.join(folder, "t.npy"))
except quern.InputError as e:
    assert "weight" in str(e)
else:
    raise AssertionError
""", tmp_path)

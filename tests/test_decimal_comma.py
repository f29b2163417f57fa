"""Numbers with a decimal comma that cannot be read for certain are refused; they would be read as
categories. tests/test_reading_rules.py has those that are read."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

import ranks

QUERN = os.environ.get("QUERN", str(Path(__file__).parent.parent / "build" / "quern"))


def train(folder, cells, separator=","):
    quote = '"' if separator == "," else ""
    rows = [separator.join([str(i % 2), f"{quote}{cells[i % len(cells)]}{quote}", str(i % 7)]) for i in range(60)]
    (folder / "t.csv").write_text(f"y{separator}price{separator}b\n" + "\n".join(rows) + "\n")
    return subprocess.run([QUERN, "train", "--data", "t.csv", "--epochs", "1", "--model",
                           "dense 2 softmax", "--quiet", "-o", "m.safetensors"], cwd=folder,
                          capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("cells", [["1,5", "-2,25", "0,1"], ["1,5", "2", "3,75", "4,5"]])
def test_refused(tmp_path, cells):
    done = train(tmp_path, cells)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0].startswith('quern train: column "price" holds texts such as "')
    assert lines[0].endswith('", which may be numbers')
    assert "decimal point" in done.stderr and "--drop" in done.stderr


@pytest.mark.parametrize("cells", [["1,5", "x"], ["1,2,3", "4,5"], ["a,1", "b,2"], [",5", "x"],
                                   ["1.5", "2"]])
def test_taken(tmp_path, cells):
    for separator in ",;":
        done = train(tmp_path, cells, separator)
        assert done.returncode == 0, done.stderr


def test_taken_by_word(tmp_path):
    """Whoever says that a column holds categories is believed, on every rank; of that column alone."""
    (tmp_path / "t.csv").write_text("y;size;price\n" + "".join(
        f"{i % 2};{i % 3},5;{i % 4},25\n" for i in range(60)))
    words = ["train", "--data", "t.csv", "--epochs", "1", "--model", "dense 2 softmax", "--quiet",
             "-o", "m.safetensors", "--category"]
    done = subprocess.run([QUERN, *words, "size"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([QUERN, "replay", "m.safetensors", "--data", "t.csv"], cwd=tmp_path,
                          capture_output=True, text=True)
    assert "replay: identical" in done.stdout, done.stderr
    one = subprocess.run([QUERN, *words, "size,price"], cwd=tmp_path, capture_output=True, text=True)
    assert one.returncode == 0, one.stderr
    ranks.run(QUERN, 2, *[tmp_path / w if w in ("t.csv", "m.safetensors") else w for w in words],
              "2-3", "--threads", "1")
    assert hashlib.sha256((tmp_path / "m.safetensors").read_bytes()).hexdigest() in one.stdout
    done = subprocess.run([QUERN, "replay", "m.safetensors", "--data", "t.csv"], cwd=tmp_path,
                          capture_output=True, text=True)
    assert "replay: identical" in done.stdout, done.stderr


def test_a_line_of_texts_alone(tmp_path):
    (tmp_path / "t.csv").write_text("yes,red,z\n")
    done = subprocess.run([QUERN, "data", "info", "t.csv"], cwd=tmp_path, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 1
    assert "set --header no" in done.stderr

"""Columns of texts, by both programs (docs/exactness.md 25.60 to 25.64)."""

import csv

import numpy as np
import pytest

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "oracle"))
import texts  # noqa: E402
from test_oracle import train  # noqa: E402

ITEMS = 60
SMALL = {"--data": None, "--seed": 5, "--grain": 7, "--label": "kind", "--scale": "none", "--loss": "cross-entropy",
         "--model": "dense 3 softmax", "--optimizer": "lbfgs", "--epochs": 2}
JOBS = {
    "alone": {"--drop": "size,town"},
    "chars": {"--drop": "size,town", "--text-features": "chars,words:2..3"},
    "across": {"--text": "town", "--missing": "zero", "--text-features": "chars-across:1..2,chars:5..9"},
    "mixed": {"--scale": "standard", "--missing": "mean", "--valid": "0.2", "--weight-decay": "0.01"},
    "said": {"--text": "town", "--missing": "zero", "--model": "dense 4 relu; dense 3 softmax", "--optimizer": "sgd",
             "--lr": "0.5", "--batch": 16},
    "real": {"--label": "size", "--loss": "mse", "--model": "dense 1", "--missing": "drop"},
    "category": {"--category": "note", "--missing": "zero"},
    "none": {"--text": "none", "--missing": "zero"},
}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Notes that are all different, some missing but for the job of them alone; a size; a town."""
    path = tmp_path_factory.mktemp("texts") / "notes.csv"
    generator = np.random.default_rng(3)
    words = ["good", "Bad", "BAD", "\u00dcber", "\u041a\u041e\u0422", "\u65e5\u672c", "x_1", "it's", "\u2014", "very", "\U0001f642"]
    with open(path, "w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(["note", "size", "town", "kind"])
        for i in range(ITEMS):
            kind = i % 3
            note = " ".join([f"n{i}", *(words[(kind * 3 + k) % 11] for k in generator.integers(0, 5, 5))])
            writer.writerow([note, f"{i + kind / 4:.2f}", "" if i % 9 == 4 else ["Ulm", "Bad Ems"][i % 2], "abc"[kind]])
    return path


@pytest.mark.parametrize("job", JOBS)
def test_model_files_are_the_same(job, table, tmp_path):
    own = {**SMALL, "--data": table, **JOBS[job]}
    train([str(part) for pair in own.items() for part in pair], tmp_path / "model.st")
    content = (tmp_path / "model.st").read_bytes()
    assert (b"table.idf" in content) == (job not in ("category", "none"))
    assert (b'\\"rules\\":\\"text\\"' in content) == (job not in ("category", "none"))


def test_pieces_of_texts():
    """Short words count once within words, and not at all across them; spaces at the ends do not count."""
    def found(kind, least, most):
        return texts.part_grams(" A  bcd\u3000\u0416! ", {"grams": kind, "least": least, "most": most})

    assert found("chars", 3, 4) == [" a ", " bc", "bcd", "cd ", " bcd", "bcd ", " \u0436!", "\u0436! ", " \u0436! "]
    assert found("chars", 9, 9) == [" a ", " bcd ", " \u0436! "]
    assert found("chars-across", 7, 9) == ["a bcd \u0436", " bcd \u0436!", "a bcd \u0436!"]
    assert found("words", 2, 2) == ["a bcd", "bcd \u0436"]


def test_the_hash_is_that_of_the_paper():
    """The last vector of its appendix A."""
    assert texts.siphash(bytes(range(16)), bytes(range(15))) == 0xA129CA6149BE45E5


def test_words_are_folded_and_paired():
    assert texts.grams("It's A\u0308-\u0416\u0401! \u65e5\u672c 42") == [
        "it", "s", "a\u0308", "\u0436\u0451", "\u65e5", "\u672c", "42",
        "it s", "s a\u0308", "a\u0308 \u0436\u0451", "\u0436\u0451 \u65e5", "\u65e5 \u672c", "\u672c 42"]

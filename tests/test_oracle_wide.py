"""Columns of whole numbers that float32 cannot hold, by both programs (docs/exactness.md 23.4 to 23.6)."""

import csv

import numpy as np
import pytest

from test_oracle import train

ITEMS = 90
SMALL = {"--data": None, "--epochs": 3, "--seed": 5, "--batch": 16, "--grain": 7, "--model": "dense 6 tanh; dense 3 softmax",
         "--loss": "cross-entropy", "--lr": "0.05", "--label": "kind"}

JOBS = {
    "standard": {"--scale": "standard", "--missing": "mean", "--valid": "0.25"},
    "order": {"--scale": "robust", "--missing": "median", "--weight": "size"},
    "zero": {"--scale": "minmax", "--missing": "zero"},
    "dropped": {"--scale": "standard", "--missing": "drop", "--keep": "best", "--lr": "0.5"},
    "none": {"--scale": "none", "--missing": "mean", "--lr": "1e-9"},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Days as numbers, seconds, identifiers near 2^62 of both signs; 2^24 and less; decimals; a town. Some are
    missing. The second file has other values, and its columns in another order."""
    folder = tmp_path_factory.mktemp("wide")
    generator = np.random.default_rng(12)
    for name, columns in ("train", slice(None)), ("valid", slice(None, None, -1)):
        head = ["day", "second", "town", "id", "small", "kind", "size", "far"]
        with open(folder / f"{name}.csv", "w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(head[columns])
            for i in range(ITEMS):
                kind = int(generator.integers(0, 3))
                cells = [20230101 + kind * 9 + int(generator.integers(0, 9)), 1_700_000_001 + 2 * i + 100 * kind,
                         ["Ulm", "Bern"][i % 2], (-1) ** i * (2**62 + 12345 * i), [2**24, 5, 2**25][i % 3], "abc"[kind],
                         i % 4 + 0.5, f"{2**53 + i}.5" if i % 8 else 2**53 + 1]
                cells = ["" if (i + k) % 11 == 0 and k not in (5, 6) else cell for k, cell in enumerate(cells)]
                writer.writerow(cells[columns])
    return folder


@pytest.mark.parametrize("job", JOBS)
def test_model_files_are_the_same(job, files, tmp_path):
    own = {**SMALL, "--data": files / "train.csv", **JOBS[job]}
    if job == "dropped":
        own["--valid"] = files / "valid.csv"
    words = [str(part) for pair in own.items() for part in pair]
    train(words, tmp_path / "model.st")
    content = (tmp_path / "model.st").read_bytes()
    assert b'\\"rules\\":\\"exact\\"' in content and (b"table.offset" in content) == (job != "none")
    assert content.count(b'\\"exact\\":\\"whole\\"') == 3  # not of `small`, and not of `far` with its fractions

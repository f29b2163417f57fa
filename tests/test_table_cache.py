"""Tables of text files in the cache folder (docs/formats.md, "The cache"): the same data with and
without it, and whatever is wrong with an entry costs time only."""

import gzip
import json
import os
import shutil
import subprocess
import time

import numpy as np
import pytest

ITEMS = 60_000


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A compressed table of 1 MiB and more, old enough that its stamp counts, and others."""
    top = tmp_path_factory.mktemp("tables")
    draw = np.random.default_rng(11)
    numbers = draw.random((ITEMS, 3))
    kinds, cities = draw.integers(0, 3, ITEMS), draw.integers(0, 2, ITEMS)
    rows = [f"{'abc'[k]},{x:.9f},{y:.9f},{['Bern', 'Bâle'][c]},{z:.9f}" for k, c, (x, y, z) in zip(kinds, cities, numbers)]
    text = "\n".join(["kind,x,y,city,w", *rows, ",".join(["a", "", "1", "", "1"])]) + "\n"
    with gzip.open(top / "t.csv.gz", "wb", compresslevel=1) as file:
        file.write(text.encode())
    assert (top / "t.csv.gz").stat().st_size > 1 << 20
    (top / "small.csv").write_text(text[:100_000].rsplit("\n", 1)[0] + "\n")
    time.sleep(2.1)
    return top


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("QUERN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def info(run_quern):
    def ask(*args):
        return json.loads(run_quern("data", "info", *args, "--json").stdout)
    return ask


def entries(cache):
    return sorted(cache.glob("*.tables")) if cache.exists() else []


def test_the_same_data(sources, cache, info):
    """Everything that is told, of each way to read the file; each way has its entry."""
    for count, more in enumerate(([], ["--weight", "w", "--drop", "city"]), 1):
        wanted = info(sources / "t.csv.gz", *more, "--no-cache")
        assert len(entries(cache)) == count - 1
        assert info(sources / "t.csv.gz", *more) == wanted and len(entries(cache)) == count
        before = [entry.stat().st_ino for entry in entries(cache)]
        assert info(sources / "t.csv.gz", *more) == wanted
        assert [entry.stat().st_ino for entry in entries(cache)] == before


def test_what_is_not_cached(sources, cache, info, quern):
    """A small file, the standard input, and one that was written just now."""
    info(sources / "small.csv")
    for name in "t.csv.gz", "small.csv":
        with open(sources / name) as file:
            done = subprocess.run([quern, "data", "info", "-", "--json"], stdin=file, check=True, capture_output=True)
        piped = subprocess.run([quern, "data", "info", "-", "--json"], input=(sources / name).read_bytes(), check=True,
                               capture_output=True)
        assert done.stdout == piped.stdout
        assert json.loads(done.stdout)["digest"] == info(sources / name, "--no-cache")["digest"]
    shutil.copy(sources / "t.csv.gz", cache.parent / "new.csv.gz")
    info(cache.parent / "new.csv.gz")
    assert entries(cache) == []


def test_a_folder_that_cannot_be_used(sources, cache, info):
    cache.write_text("a file")
    told = info(sources / "t.csv.gz")
    assert "not cached" in told["note"] and "QUERN_CACHE" in told["note"]


def test_a_changed_file_and_damaged_entries(sources, cache, info):
    path = sources / "t.csv.gz"
    wanted = info(path)
    entry, = entries(cache)
    good = entry.read_bytes()
    place = good.index(b"B\xc3\xa2le")
    for damaged in (good[:5000], good[:30] + b"\xff" + good[31:], b"\0" * 100,
                    good[:9000] + bytes([good[9000] ^ 1]) + good[9001:],
                    good[:place] + b"C" + good[place + 1:]):
        entry.chmod(0o600)
        entry.write_bytes(damaged)
        told = info(path)
        assert "damaged" in told["note"] and str(entry) in told["note"]
        assert {**told, "note": wanted["note"]} == wanted and entry.read_bytes() == good
    os.utime(path)  # another stamp, and too young for a new entry
    assert info(path) == wanted and entry.read_bytes() == good

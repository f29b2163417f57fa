"""Tables of text files in the cache folder (docs/formats.md, "The cache"): the same data with and
without it, and whatever is wrong with an entry costs time only."""

import gzip
import json
import os
import resource
import shutil
import subprocess
import time

import numpy as np
import pytest

ITEMS = 60_000


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A compressed table of 1 MiB and more, and others, old enough that their stamps count."""
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
    (top / "parts").mkdir()
    for i in range(4):
        with gzip.open(top / "parts" / f"{i}.csv.gz", "wb", compresslevel=1) as file:
            file.write("\n".join(["kind,x,y,city,w", *rows[15_000 * i:15_000 * i + 15_000], ""]).encode())
    rows = [f"{k % 3},1.5" + f",{k % 10}" * 98 + "\n" for k in range(1000)]
    (top / "large.csv").write_text("".join(rows) * 45)  # a table of 17 MiB
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


def test_several_files(sources, cache, info):
    """The entry is that of all files in their order, as long as none changed, came or went."""
    parts = sources / "parts"
    paths = sorted(parts.iterdir())
    wanted = info(parts)
    entry, = entries(cache)
    before = entry.stat().st_ino
    assert info(parts) == wanted and info(*paths) == {**wanted, "file": str(paths[0])}
    assert entry.stat().st_ino == before and entries(cache) == [entry]
    turned = info(*paths[::-1])
    assert turned["digest"] != wanted["digest"] and len(entries(cache)) == 2
    assert info(*paths[::-1]) == turned
    digests = {wanted["digest"], turned["digest"]}
    text = paths[2].read_bytes()
    other = gzip.compress(gzip.decompress(text).replace(b"Bern", b"Biel"), 1)
    changes = [lambda: paths[2].write_bytes(other), lambda: (parts / "new.csv").write_text("kind,x,y,city,w\nb,1,2,Bern,3\n"),
               paths[1].unlink, lambda: paths[0].rename(parts / "9.csv.gz")]
    for change in changes:
        change()
        told = info(parts)
        assert told == info(parts, "--no-cache") and told["digest"] not in digests
        digests.add(told["digest"])


def little_memory():
    """Private memory of less than the table, for one thread; files that are mapped do not count."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    resource.setrlimit(resource.RLIMIT_DATA, (14 << 20, 14 << 20))


def test_a_table_larger_than_memory(sources, cache, run_quern, info):
    """The first reading makes the entry in place; what reads and trains from it has the same bytes."""
    large = sources / "large.csv"
    words = ["data", "info", large, "--json"]
    told = json.loads(run_quern(*words, preexec_fn=little_memory).stdout)
    entry, = entries(cache)
    assert entry.stat().st_size > 17 << 20 and os.listdir(cache) == [entry.name]
    assert json.loads(run_quern(*words, preexec_fn=little_memory).stdout) == told
    train = ["train", "--data", large, "--model", "dense 3 softmax", "--epochs", 1, "--batch", 1000, "--threads", 1,
             "--json", "-o", cache.parent / "m"]
    digests = set()
    for limit in little_memory, None:
        run_quern(*train, preexec_fn=limit)
        digests.add((cache.parent / "m").read_bytes())
    assert len(digests) == 1
    assert info(large, "--no-cache") == told


@pytest.mark.parametrize("folder, more, wanted", [("cache", ["--no-cache"], "leave --no-cache out"),
                                                  ("file", [], "name a folder with space by QUERN_CACHE")])
def test_a_table_larger_than_memory_without_a_file(sources, tmp_path, monkeypatch, run_quern, folder, more, wanted):
    monkeypatch.setenv("QUERN_CACHE", str(tmp_path / folder))
    (tmp_path / "file").write_text("")
    large = sources / "large.csv"
    done = run_quern("data", "info", large, *more, preexec_fn=little_memory, status=None)
    assert done.returncode > 0 and wanted in done.stderr and str(large) in done.stderr, done.stderr
    assert "takes 17.0 MiB" in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["file"]

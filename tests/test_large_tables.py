"""Files whose tables memory does not hold: the same digest and the same model as with all memory
(docs/formats.md, "The cache"). Values lie in a file of the cache folder while they are used."""

import gzip
import json
import os
import resource
import struct

import numpy as np
import pytest

import data_vectors

MIB = 1 << 20
ITEMS, FEATURES = 24_000, 784


def little_memory():
    """Private memory of less than the table, for one thread; files that are mapped do not count."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    resource.setrlimit(resource.RLIMIT_STACK, (MIB, MIB))
    resource.setrlimit(resource.RLIMIT_DATA, (14 * MIB, 14 * MIB))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("QUERN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def same(run_quern, cache, tmp_path):
    """same(words of the data): what is told of the table, which depends on memory as little as a model does."""
    def compare(*words):
        told, models = [], []
        for limit in little_memory, None:
            told.append(run_quern("data", "info", *words, "--json", preexec_fn=limit).stdout)
            run_quern("train", "--data", *words, "--model", "dense 3 softmax", "--epochs", 1, "--batch", 1000,
                      "--valid", 0.1, "--threads", 1, "-o", tmp_path / "model", preexec_fn=limit)
            models.append((tmp_path / "model").read_bytes())
        assert told[0] == told[1] and models[0] == models[1]
        assert os.listdir(cache) == []  # it was used, and nothing is left
        return json.loads(told[0])

    return compare


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_idx(same, tmp_path, ending):
    """A plain file, and a compressed one."""
    images = np.random.default_rng(1).integers(0, 4, (ITEMS, FEATURES), np.uint8)
    heads = struct.pack(">BBBBIII", 0, 0, 8, 3, ITEMS, 28, 28), struct.pack(">BBBBI", 0, 0, 8, 1, ITEMS)
    with (gzip.open if ending else open)(tmp_path / f"images{ending}", "wb", *[1] * bool(ending)) as file:
        file.write(heads[0] + images.tobytes())
    (tmp_path / "labels").write_bytes(heads[1] + (np.arange(ITEMS) % 3).astype(np.uint8).tobytes())
    told = same(tmp_path / f"images{ending}", "--labels", tmp_path / "labels")
    assert told["digest"] == data_vectors.digest_of(1, ITEMS, FEATURES, images.tobytes(), np.arange(ITEMS, dtype="<i4") % 3)

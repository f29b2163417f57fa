"""Files whose tables memory does not hold: the same digest and the same model as with all memory
(docs/formats.md, "The cache"). Values lie in a file of the cache folder while they are used."""

import gzip
import json
import os
import resource
import shutil
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

import data_vectors
import parquet_writer
import ranks

sys.path.insert(0, str(Path(__file__).parent / "oracle"))
import data as oracle  # noqa: E402

MIB = 1 << 20
ITEMS, FEATURES = 24_000, 784


def little_memory(bytes_=15 * MIB, stack=MIB):
    """Private memory of less than the table, for one thread; files that are mapped do not count."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    resource.setrlimit(resource.RLIMIT_STACK, (stack, stack))
    resource.setrlimit(resource.RLIMIT_DATA, (bytes_, bytes_))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("QUERN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def same(run_quern, cache, tmp_path):
    """same(words of the data): what is told of the table, which depends on memory as little as a model does."""
    def compare(*words, train=()):
        told, models = [], []
        for limit in little_memory, None:
            told.append(run_quern("data", "info", *words, "--json", preexec_fn=limit).stdout)
            run_quern("train", "--data", *words, *train, "--model", "dense 3 softmax", "--epochs", 1, "--batch", 1000,
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


def columns(features):
    """Labels, floats, whole numbers of which only the last needs more than a byte, categories, weights."""
    draw = np.random.default_rng(2)
    late = draw.integers(0, 200, ITEMS).astype("i4")
    late[-1] = 1000
    return {"kind": [("no", "yes", "maybe")[k] for k in draw.integers(0, 3, ITEMS)],
            **{f"f{k}": draw.random(ITEMS, "f4") for k in range(features)}, "late": late,
            "city": [("Zürich", "Bern", "a name of more than twelve bytes")[k] for k in draw.integers(0, 3, ITEMS)],
            "w": draw.random(ITEMS)}


def test_parquet(same, tmp_path):
    parquet_writer.write(tmp_path / "t.parquet", columns(180), 2000)
    told = same(tmp_path / "t.parquet", "--weight", "w", train=["--drop", "city"])  # its inputs are in memory
    assert told["type"] == "f32" and told["items"] == ITEMS
    assert told["class_names"] == ["maybe", "no", "yes"]


def test_whole_numbers(same, tmp_path):
    """Bytes on the disk become floats with the last row group."""
    draw = np.random.default_rng(3)
    made = {f"x{k}": draw.integers(0, 256, ITEMS).astype("i4") for k in range(700)}
    made["x5"][-1] = -1
    parquet_writer.write(tmp_path / "t.parquet", {"y": np.arange(ITEMS, dtype="i4") % 3, **made}, 1000)
    told = same(tmp_path / "t.parquet")
    wanted = np.stack(list(made.values()), axis=1).astype("f4")
    assert told["digest"] == data_vectors.digest_of(2, ITEMS, 700, wanted.tobytes(), np.arange(ITEMS, dtype="<i4") % 3)


def test_a_large_row_group(run_quern, tmp_path):
    parquet_writer.write(tmp_path / "t.parquet", columns(180), ITEMS)
    told = run_quern("data", "info", tmp_path / "t.parquet", preexec_fn=little_memory, status=None)
    assert told.returncode > 0 and "a row group needs" in told.stderr, told.stderr
    assert "with smaller row groups" in told.stderr


@pytest.mark.parametrize("kind, packed", [("file", None), ("file", "lz4"), ("stream", "zstd")])
def test_arrow(same, tmp_path, kind, packed):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({name: pa.array(v) for name, v in columns(180).items()})
    table = table.set_column(182, "city", table["city"].dictionary_encode())
    with getattr(pa.ipc, f"new_{kind}")(tmp_path / "t.arrow", table.schema,
                                        options=pa.ipc.IpcWriteOptions(compression=packed)) as writer:
        writer.write_table(table, max_chunksize=2000)
    assert same(tmp_path / "t.arrow", "--weight", "w", train=["--drop", "city"])["type"] == "f32"


def test_a_batch_at_a_time(run_quern, tmp_path):
    """Memory holds one and no more."""
    pa = pytest.importorskip("pyarrow")
    table = pa.table({f"f{k}": pa.array(np.zeros(3 * ITEMS // 4, "f4")) for k in range(240)})
    with pa.ipc.new_stream(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=ITEMS // 2 - 1)
    run_quern("data", "info", tmp_path / "t.arrow", "--unlabelled", preexec_fn=lambda: little_memory(20 * MIB))


def test_parts(run_quern, tmp_path):
    """Files whose tables memory holds, but not that of all of them: CSV and Parquet have one digest."""
    pixels = np.random.default_rng(4).integers(0, 4, (ITEMS, FEATURES), np.uint8)
    classes = np.arange(ITEMS) % 3
    names = [f"f{k}" for k in range(FEATURES)]
    for i in range(4):
        begin, end = 6000 * i, 6000 * i + 6000
        (tmp_path / "csv").mkdir(exist_ok=True)
        text = "".join(f"{label}," + ",".join(map(chr, row + 48)) + "\n"
                       for label, row in zip(classes[begin:end], pixels[begin:end]))
        (tmp_path / "csv" / f"{i}.csv").write_text("y," + ",".join(names) + "\n" + text)
        (tmp_path / "parquet").mkdir(exist_ok=True)
        columns = {"y": classes[begin:end].astype("i4")}
        columns |= {name: pixels[begin:end, k].astype("i4") for k, name in enumerate(names)}
        parquet_writer.write(tmp_path / "parquet" / str(i), columns, 500)
    whole = data_vectors.digest_of(1, ITEMS, FEATURES, pixels.tobytes(), classes.astype("<i4"))
    for kind in "csv", "parquet":
        told = run_quern("data", "info", tmp_path / kind, "--json", preexec_fn=little_memory).stdout
        assert json.loads(told)["digest"] == whole


def test_a_corpus(run_quern, cache, tmp_path):
    """Texts, plain, compressed and in parts, and rows of tokens: those are used where they lie."""
    letters = np.random.default_rng(6).choice(np.frombuffer(b"\nacgt", "u1"), 5_000_000)
    row = np.searchsorted(np.frombuffer(b"\nacgt", "u1"), letters).astype("<u2")
    (tmp_path / "t.txt").write_bytes(letters.tobytes())
    with gzip.open(tmp_path / "t.txt.gz", "wb", 1) as file:
        file.write(letters.tobytes())
    (tmp_path / "parts").mkdir()
    for k in range(3):
        (tmp_path / "parts" / f"{k}.txt").write_bytes(letters[2_000_000 * k:2_000_000 * (k + 1)].tobytes())
    limit = {"preexec_fn": lambda: little_memory(22 * MIB, 2 * MIB)}
    for end in "npy", "bin":
        run_quern("data", "tokenize", tmp_path / "t.txt", "--tokens", "chars", "-o", tmp_path / f"t.{end}", **limit)
    assert np.array_equal(np.load(tmp_path / "t.npy"), row) and np.array_equal(np.fromfile(tmp_path / "t.bin", "<u2"), row)
    assert not cache.exists()
    wanted = oracle.digest(oracle.corpus(row, 500), None)
    for name in "t.npy", "t.bin", "t.txt", "t.txt.gz", "parts":
        told = run_quern("data", "info", tmp_path / name, "--tokens", "ids" if name[1:] in (".npy", ".bin") else "chars",
                         "--context", 500, "--json", **limit).stdout
        assert json.loads(told)["digest"] == wanted, name
        assert cache.exists() == (name not in ("t.npy", "t.bin")) and (not cache.exists() or os.listdir(cache) == [])
    models = []
    for name, tokens, more in ("t.txt", "chars", limit), ("t.bin", "ids", limit), ("t.txt", "chars", {}):
        run_quern("train", "--data", tmp_path / name, "--tokens", tokens, "--context", 500, "--task", "next", "--valid", 0.1,
                  "--model", "embedding 6 1; conv 6 1x1 softmax", "--epochs", 1, "--batch", 50, "--threads", 1,
                  "-o", tmp_path / "model", **more)
        models.append((tmp_path / "model").read_bytes())
    assert models[0] == models[2] and models[0][-8:] == models[1][-8:]


def test_documents(run_quern, cache, tmp_path):
    """Columns of texts that become tokens, as documents and as items."""
    letters = np.random.default_rng(7).choice(np.frombuffer(b'"\nacg', "u1"), (6000, 999)).view("S999")[:, 0].tolist()
    texts = [letter.decode() for letter in letters]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps({"y": k % 2, "text": t}) + "\n" for k, t in enumerate(texts)))
    (tmp_path / "t.csv").write_text("y,text\n" + "".join(
        f'{k % 2},"' + t.replace('"', '""') + '"\n' for k, t in enumerate(texts)))
    parquet_writer.write(tmp_path / "t.parquet", {"y": np.arange(6000, dtype="i4") % 2, "text": texts}, 500)
    documents, items = set(), set()
    for name, limit in ("t.jsonl", True), ("t.csv", True), ("t.parquet", True), ("t.parquet", False):
        for words, told in (["--task", "next"], documents), (["--label", "y"], items):
            told.add(json.loads(run_quern(
                "data", "info", tmp_path / name, "--tokens", "bytes", "--text", "text", "--context", 998, *words, "--json",
                preexec_fn=(lambda: little_memory(18 * MIB, 2 * MIB)) if limit else None).stdout)["digest"])
            assert cache.exists() == limit and (not limit or os.listdir(cache) == [])
        if limit:
            cache.rmdir()
    tokens = np.frombuffer("".join(texts).encode(), "u1").astype("<u2").reshape(6000, 999)
    assert items == {oracle.digest(tokens[:, :998], np.arange(6000, dtype="<i4") % 2)} and len(documents) == 1


def test_found_texts(run_quern, cache, tmp_path):
    """Columns of texts that nobody names: their texts, and the lists of their words, lie in files."""
    draw = np.random.default_rng(8)
    words = np.array(["".join(map(chr, word)) for word in draw.integers(97, 123, (2000, 6))])
    texts = [" ".join(row) + f' "{k}",\n' for k, row in enumerate(words[draw.integers(0, 2000, (4000, 180))])]
    labels = np.arange(4000, dtype="i4") % 2
    (tmp_path / "t.jsonl").write_text("".join(json.dumps({"y": k % 2, "text": t}) + "\n" for k, t in enumerate(texts)))
    (tmp_path / "t.csv").write_text("y,text\n" + "".join(
        f'{k % 2},"' + t.replace('"', '""') + '"\n' for k, t in enumerate(texts)))
    parquet_writer.write(tmp_path / "t.parquet", {"y": labels, "text": texts}, 200)
    number = np.argsort(np.argsort(texts)).astype("<f4")[:, None]
    wanted = oracle.digest(number, labels, words={0: sorted(texts)})
    for name in "t.csv", "t.jsonl", "t.parquet":
        told = run_quern("data", "info", tmp_path / name, "--json", preexec_fn=lambda: little_memory(16 * MIB, 2 * MIB)).stdout
        assert json.loads(told)["digest"] == wanted and os.listdir(cache) == []
        cache.rmdir()
    for most, words in ((26, ["--tokens", "bytes", "--context", 100, "--model", "embedding 256 4; pool mean; dense 2 softmax"]),
                        (64, ["--task", "regress", "--model", "dense 1"])):
        models = []
        for limit in (lambda most=most: little_memory(most * MIB, 2 * MIB)), None:
            run_quern("train", "--data", tmp_path / "t.csv", *words, "--optimizer", "sgd", "--batch", 500, "--epochs", 1,
                      "--threads", 1, "-o", tmp_path / "model", preexec_fn=limit)
            assert cache.exists() == (limit is not None) and (not limit or os.listdir(cache) == [])
            shutil.rmtree(cache, ignore_errors=True)
            models.append((tmp_path / "model").read_bytes())
        assert models[0] == models[1]


def test_less_than_four_mebibytes(run_quern, cache, tmp_path):
    """What memory refuses is in a file, whatever its size: a table, and texts that are collected."""
    images = np.random.default_rng(9).integers(0, 4, (5300, FEATURES), np.uint8)
    assert images.nbytes < 4 * MIB
    (tmp_path / "images").write_bytes(struct.pack(">BBBBIII", 0, 0, 8, 3, 5300, 28, 28) + images.tobytes())
    (tmp_path / "labels").write_bytes(struct.pack(">BBBBI", 0, 0, 8, 1, 5300) + bytes(k % 3 for k in range(5300)))
    (tmp_path / "t.csv").write_text("y,text\n" + "".join(f"{k % 2},{'acgt' * 240}\n" for k in range(3500)))
    tokens = np.tile(np.frombuffer(b"acgt" * 4, "u1").astype("<u2"), (3500, 1))
    for words, limit, wanted in (
            (["images", "--labels", tmp_path / "labels"], 4, data_vectors.digest_of(
                1, 5300, FEATURES, images.tobytes(), np.arange(5300, dtype="<i4") % 3)),
            (["t.csv", "--label", "y", "--tokens", "bytes", "--text", "text", "--context", 16], 6,
             oracle.digest(tokens, np.arange(3500, dtype="<i4") % 2))):
        told = run_quern("data", "info", tmp_path / words[0], *words[1:], "--json", preexec_fn=lambda: little_memory(limit * MIB)).stdout
        assert json.loads(told)["digest"] == wanted and os.listdir(cache) == []
        cache.rmdir()


def test_parts_of_ranks(quern, run_quern, cache, tmp_path):
    """Each rank's part in a file: categories get other numbers there, and bytes become floats."""
    for k in range(2):
        made = columns(180)
        if k:
            made["city"] = ["Zug", *made["city"][1:]]
            made["late"] = np.zeros(ITEMS, "i4")
        parquet_writer.write(tmp_path / f"{k}.parquet", made, 2000)
    words = ["data", "stats", "--json", "--label", "kind", "--by-class", "--threads", 1]
    files = ["0.parquet", "1.parquet"]
    parts = [word for name in files for word in ("--data-parts", name)]
    limits = {"wrap": lambda i: ["prlimit", f"--data={20 * MIB}", f"--stack={MIB}"], "cwd": tmp_path}
    want, got = (json.loads(told) for told in (run_quern(*words, *files, cwd=tmp_path).stdout,
                                               ranks.run(quern, 2, *words, *parts, **limits)[0][1]))
    assert {**want, "file": ""} == {**got, "file": ""}
    assert os.listdir(cache) == []
    done = ranks.run(quern, 2, *words, *parts, "--no-cache", **limits, status=1)
    assert "leave --no-cache out" in done[0][2]

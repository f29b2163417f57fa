"""Tables of tokens (docs/exactness.md 25.40): whole numbers that a network takes without scaling."""

import contextlib
import gzip
import json
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest

import data_vectors
import python_package
import ranks

sys.path.insert(0, str(Path(__file__).parent / "oracle"))
import data as oracle  # noqa: E402

MODEL = "dense 12 tanh; dense 2 softmax"


def digest(tokens, labels=None):
    kind = {2: 3, 4: 4}[tokens.dtype.itemsize]
    return data_vectors.digest_of(kind, *tokens.shape, tokens.astype(tokens.dtype.newbyteorder("<")).tobytes(),
                                  None if labels is None else np.asarray(labels, "<i4").tobytes())


@pytest.fixture
def ids(tmp_path):
    """Items x positions, and a class for each item."""
    draw = np.random.default_rng(5)
    x = draw.integers(0, 61, (200, 24)).astype(np.uint16)
    x[3, 5] = 65535
    y = (x[:, 2] > 30).astype(np.int64)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    return x, y


@pytest.fixture
def info(run_quern):
    return lambda *words: json.loads(run_quern("data", "info", *words, "--json").stdout)


@pytest.mark.parametrize("dtype", ["u1", "i1", "<u2", ">u2", "<i2", "<u4", ">i4", "<i8", ">u8"])
def test_integers_become_tokens(tmp_path, info, dtype):
    limits = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(0, min(limits.max, 2**32 - 1), (50, 7), dtype=np.dtype(dtype).newbyteorder("="),
                                          endpoint=True).astype(dtype)
    x[0, 0] = min(limits.max, 2**32 - 1)
    want = x.astype(np.uint16 if x.dtype.itemsize <= 2 else np.uint32)
    np.save(tmp_path / "x.npy", np.asfortranarray(x))
    np.savez(tmp_path / "x.npz", x=x, y=np.arange(50) % 3)
    told = info(tmp_path / "x.npy", "--tokens", "ids")
    assert (told["type"], told["items"], told["features"]) == ("t16" if want.itemsize == 2 else "t32", 50, 7)
    assert told["tokens"] == "ids" and told["digest"] == digest(want)
    most = np.iinfo(want.dtype).max
    assert told["padding"] == (want == most).sum() and told["vocabulary"] == want[want < most].max() + 1
    told = info(tmp_path / "x.npz", "--tokens", "ids")
    assert told["classes"] == 3 and told["digest"] == digest(want, np.arange(50) % 3)
    assert info(tmp_path / "x.npy")["type"] in ("u8", "f32")  # numbers, where nothing is said


def test_they_come_out_as_they_went_in(tmp_path, run_quern, ids):
    x, _ = ids
    run_quern("data", "convert", tmp_path / "x.npy", "--tokens", "ids", "-o", tmp_path / "z.npy")
    assert (tmp_path / "z.npy").read_bytes() == (tmp_path / "x.npy").read_bytes()
    run_quern("data", "split", tmp_path / "x.npy", "--labels", tmp_path / "y.npy", "--tokens", "ids",
              "-o", tmp_path / "%.npz", "--parts", "a=0.5,b=0.5")
    parts = [np.load(tmp_path / name)["x"] for name in ("a.npz", "b.npz")]
    assert all(part.dtype == np.uint16 for part in parts)
    assert sorted(map(bytes, np.concatenate(parts))) == sorted(map(bytes, x))
    head = json.loads(run_quern("data", "head", tmp_path / "x.npy", "--tokens", "ids", "--json").stdout)
    assert [item[:24] for item in head["items"]] == x[:5].tolist()


@pytest.mark.parametrize("array, what", [
    (np.zeros((3, 4), np.float32), "does not hold integers"),
    (np.zeros((3, 4), bool), "does not hold integers"),
    (np.zeros((3, 4, 2), np.uint16), "3 dimensions"),
    (np.array([[1, 2], [3, -4]]), "item 1, position 1 (both from 0) is -4"),
    (np.array([[1, 2**32]]), "is 4294967296"),
    (np.array([[1, 2**64 - 1]], np.uint64), "18446744073709551615"),
])
def test_what_is_not_tokens(tmp_path, run_quern, array, what):
    np.save(tmp_path / "x.npy", array)
    told = run_quern("data", "info", tmp_path / "x.npy", "--tokens", "ids", status=None)
    assert told.returncode == 1 and what in told.stderr, told.stderr


def test_other_formats_have_none(tmp_path, run_quern, ids):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    told = run_quern("data", "info", tmp_path / "x.csv", "--tokens", "ids", status=None)
    assert "holds no numbers of tokens" in told.stderr and "leave --tokens out" in told.stderr
    told = run_quern("data", "convert", tmp_path / "x.npy", "--tokens", "ids", "-o", tmp_path / "z.csv", status=None)
    assert "numbers of tokens" in told.stderr and not (tmp_path / "z.csv").exists()


def train(run_quern, folder, *words, model="m.st", **more):
    return run_quern("train", "--data", folder / "x.npy", "--labels", folder / "y.npy", "--model", MODEL, "--epochs", 2,
                     "--seed", 3, "--quiet", "-o", folder / model, *words, **more)


def test_a_model_remembers_them(tmp_path, run_quern, ids):
    """It is that of the same whole numbers as floats, and is applied to arrays of tokens by itself."""
    x, y = ids
    train(run_quern, tmp_path, "--tokens", "ids")
    np.save(tmp_path / "x.npy", x.astype(np.float32))
    train(run_quern, tmp_path, "--scale", "none", model="f.st")
    np.save(tmp_path / "x.npy", x)
    tokens, floats = ((tmp_path / name).read_bytes() for name in ("m.st", "f.st"))
    size = 4 * (24 * 12 + 12 + 12 * 2 + 2)
    assert tokens[-size:] == floats[-size:]
    assert b'\\"contract\\":9' in tokens and b'\\"scale\\":\\"none\\"' in tokens and b'\\"tokens\\":\\"ids\\"' in tokens
    run_quern("predict", tmp_path / "m.st", tmp_path / "x.npy", "-o", tmp_path / "m.csv")
    run_quern("predict", tmp_path / "f.st", tmp_path / "x.npy", "-o", tmp_path / "f.csv")
    assert (tmp_path / "m.csv").read_bytes() == (tmp_path / "f.csv").read_bytes()
    said = run_quern("replay", tmp_path / "m.st", "--data", tmp_path / "x.npy", "--labels", tmp_path / "y.npy")
    assert "identical" in said.stdout + said.stderr


def test_nothing_scales_them(tmp_path, run_quern, ids):
    told = train(run_quern, tmp_path, "--tokens", "ids", "--scale", "standard", status=None)
    assert told.returncode == 2 and "not scaled" in told.stderr and "--scale none" in told.stderr
    told = train(run_quern, tmp_path, "--tokens", "ids", "--mixup", "0.2", status=None)
    assert told.returncode == 2 and "--mixup" in told.stderr
    train(run_quern, tmp_path, "--scale", "standard")
    told = run_quern("predict", tmp_path / "m.st", tmp_path / "x.npy", "--tokens", "ids", status=None)
    assert "scales its inputs" in told.stderr and "leave --tokens out" in told.stderr


def test_ranks_share_them(tmp_path, run_quern, quern, ids):
    """One rank reads, and the others have its table."""
    train(run_quern, tmp_path, "--tokens", "ids")
    ranks.run(quern, 2, "train", "--data", tmp_path / "x.npy", "--labels", tmp_path / "y.npy", "--model", MODEL,
              "--epochs", "2", "--seed", "3", "--tokens", "ids", "--data-from-rank0", "-o", tmp_path / "r.st")
    assert (tmp_path / "r.st").read_bytes() == (tmp_path / "m.st").read_bytes()


@pytest.fixture(scope="module")
def q():
    python_package.folder()
    import quern

    return quern


def test_python(tmp_path, q, ids):
    x, y = ids
    made = q.Data(x.astype(np.int64), y, tokens="ids")
    assert made.values.dtype == np.uint32 and (made.values == x).all()
    made = q.Data(x, y, tokens="ids")
    assert made.values.dtype == np.uint16 and (made.values == x).all()
    model = q.train(made, model=MODEL, epochs=2, seed=3)
    same = q.train(str(tmp_path / "x.npy"), labels=str(tmp_path / "y.npy"), tokens="ids", model=MODEL, epochs=2,
                       seed=3)
    assert model.digest == same.digest
    assert (model.predict(x) == model.predict(x.astype(np.int64))).all()
    with pytest.raises(q.InputError, match="does not hold integers"):
        q.Data(x.astype(np.float32), tokens="ids")
    with pytest.raises(q.UsageError, match="how tokens are made"):
        q.Data(x, tokens="words")


# ---------------------------------------------------------------- corpora


@pytest.fixture
def corpus(tmp_path):
    """One row of tokens, as an array, as a file of numbers, and cut into items by hand (25.42)."""
    row = np.random.default_rng(7).integers(0, 300, 5003).astype(np.uint16)
    np.save(tmp_path / "row.npy", row)
    row.astype("<u2").tofile(tmp_path / "row.bin")
    (tmp_path / "row.bin.gz").write_bytes(gzip.compress((tmp_path / "row.bin").read_bytes()))
    row[:2000].tofile(tmp_path / "a.bin")
    row[2000:].tofile(tmp_path / "b.bin")
    return row, oracle.corpus(row, 64)


def test_a_row_is_cut(tmp_path, info, corpus):
    row, items = corpus
    want = oracle.digest(items, None)
    assert len(items) == 78 and items.shape[1] == 65 and want == digest(items)
    for name in (["row.npy"], ["row.bin"], ["row.bin.gz"], ["a.bin", "b.bin"]):
        told = info(*(tmp_path / one for one in name), "--tokens", "ids", "--context", 64)
        assert (told["items"], told["features"], told["context"], told["digest"]) == (78, 65, 64, want), name
        assert "the last 10 of 5003 tokens do not fill an item" in told["note"]
    np.save(tmp_path / "items.npy", items)
    assert info(tmp_path / "items.npy", "--tokens", "ids")["digest"] == want


def test_blocks_of_a_digest_end_inside_items(tmp_path, info):
    """2.2 cuts the values after each MiB, wherever an item is."""
    row = np.random.default_rng(2).integers(0, 2**32, 700_001, np.uint32)
    np.save(tmp_path / "row.npy", row)
    assert info(tmp_path / "row.npy", "--tokens", "ids", "--context", 999)["digest"] == digest(oracle.corpus(row, 999))


@pytest.mark.parametrize("words, what", [
    (["row.npy", "--tokens", "ids"], "say how many an item has with --context"),
    (["row.npy", "--context", "8"], "say with --tokens how they are made"),
    (["row.npy", "--tokens", "ids", "--context", "6000"], "there are 5003"),
    (["items.npy", "--tokens", "ids", "--context", "8"], "has items, and --context cuts one row"),
    (["odd.bin", "--tokens", "ids", "--context", "8"], "3 bytes are not numbers of two bytes"),
    (["row.npy", "--labels", "row.npy", "--tokens", "ids", "--context", "8"], "neither labels nor weights"),
    (["row.npz", "--tokens", "ids", "--context", "8"], "neither labels nor weights"),
])
def test_what_cannot_be_cut(tmp_path, run_quern, corpus, words, what):
    np.save(tmp_path / "items.npy", corpus[1])
    np.savez(tmp_path / "row.npz", x=corpus[0], y=corpus[0])
    (tmp_path / "odd.bin").write_bytes(b"abc")
    told = run_quern("data", "info", *words, status=None, cwd=tmp_path)
    assert told.returncode in (1, 2) and what in told.stderr, told.stderr


def test_rows_in_python(tmp_path, q, corpus):
    row, items = python_package.placed(corpus[0]), corpus[1]
    made = q.Data(row, tokens="ids", context=64)
    assert np.shares_memory(made.values, row)  # used where it is
    assert (made.values == items).all() and made.digest == oracle.digest(items, None)
    assert q.Data(row.astype(np.int64), tokens="ids", context=64).values.dtype == np.uint32
    read = q.open(str(tmp_path / "row.bin"), tokens="ids", context=64)
    assert read.digest == made.digest and (read.values == items).all()
    assert (q.Data(row[:66], tokens="ids", context=64).values == row[None, :65]).all()
    with pytest.raises(q.UsageError, match="one row of 5003 tokens"):
        q.Data(row, tokens="ids")
    with pytest.raises(q.InputError, match="the context is 6000"):
        q.Data(row, tokens="ids", context=6000)


def test_the_last_items_judge():
    """25.43, beside the C test of the program's split."""
    assert oracle.training_items(1, 100, 0.1, 64).tolist() == list(range(89))


# ---------------------------------------------------------------- texts

TEXT = "Ünder the näive fox, a dog works.\nthe the fox\n" * 40


@pytest.fixture
def text(tmp_path):
    (tmp_path / "t.txt").write_text(TEXT)
    (tmp_path / "t.any.gz").write_bytes(gzip.compress(TEXT.encode()))
    (tmp_path / "a.txt").write_text(TEXT[:700])
    (tmp_path / "b.txt").write_text(TEXT[700:])
    return TEXT


@pytest.mark.parametrize("kind, numbers", [
    ("bytes", lambda text: list(text.encode())),
    ("chars", lambda text: [sorted(set(text)).index(c) for c in text]),
])
def test_texts_become_tokens(tmp_path, info, text, kind, numbers):
    """Files follow one another; their names do not matter."""
    want = oracle.digest(oracle.corpus(np.array(numbers(text), np.uint16), 16), None)
    for names in (["t.txt"], ["t.any.gz"], ["a.txt", "b.txt"]):
        told = info(*(tmp_path / name for name in names), "--tokens", kind, "--context", 16)
        assert (told["type"], told["context"], told["digest"]) == ("t16", 16, want), names
        assert told["tokens"].split()[0] == kind and len(told["tokens"].split()[1]) == 64


def test_texts_in_python(tmp_path, q, text):
    made = q.open(str(tmp_path / "t.txt"), tokens="words:6", context=8)
    tokenizer = q.Tokenizer("words:6", str(tmp_path / "t.txt"))
    ids = np.concatenate([made.values[:, :-1].ravel(), made.values[-1:, -1]])
    assert (ids == tokenizer.encode(text)[:len(ids)]).all() and len(tokenizer.encode(text)) - len(ids) < 8
    assert made.values.max() == 5


def test_a_tokenizer_that_is_not_there(tmp_path, run_quern, text):
    told = run_quern("data", "info", tmp_path / "t.txt", "--tokens", "bpe:nofile.json", "--context", 8, status=None)
    assert told.returncode == 1 and "cannot open nofile.json" in told.stderr
    assert 'at --tokens "bpe:nofile.json"' in told.stderr, told.stderr


def test_documents_end(tmp_path, q, text):
    """25.44: a token between two files, where the tokenizer has one."""
    paths = [str(tmp_path / name) for name in ("a.txt", "b.txt")]
    tokenizer = q.Tokenizer("bpe:280", paths)
    parts = [tokenizer.encode(text[:700]), tokenizer.encode("<|endoftext|>"), tokenizer.encode(text[700:])]
    assert list(parts[1]) == [0]
    row = np.concatenate(parts).astype(np.uint16)
    read = q.open(paths, tokens="bpe:280", context=8)
    assert (read.values == oracle.corpus(row, 8)).all()
    tokenizer.write(paths, tmp_path / "row.bin")
    assert q.open(str(tmp_path / "row.bin"), tokens="ids", context=8).digest == read.digest


@pytest.mark.parametrize("words, what", [
    (["t.txt", "--tokens", "letters", "--context", "8"], "is not a tokenizer"),
    (["t.txt", "--tokens", "chars"], "say how many an item has with --context"),
    (["t.txt", "--tokens", "chars", "--context", "8", "--label", "1"], "a table has as many cells in every line"),
    (["row.npy", "--tokens", "chars", "--context", "8"], "set --tokens to ids"),
    (["row.parquet", "--tokens", "chars", "--context", "8"], "no column of texts"),
])
def test_what_is_no_text(tmp_path, run_quern, text, words, what):
    np.save(tmp_path / "row.npy", np.arange(100))
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    run_quern("data", "convert", tmp_path / "t.csv", "-o", tmp_path / "row.parquet")
    told = run_quern("data", "info", *words, status=None, cwd=tmp_path)
    assert told.returncode in (1, 2) and what in told.stderr, told.stderr


def test_a_text_trains_a_network(tmp_path, run_quern, text):
    """The end of the text judges; the model file has the tokenizer, and a replay needs nothing else."""
    words = ["--tokens", "chars", "--context", "16", "--model", "embedding 32 8; conv 32 1x1 softmax", "--epochs", "1",
             "--seed", "3"]
    told = run_quern("train", "--data", tmp_path / "t.txt", "--valid", "0.25", *words, "-o", tmp_path / "m.st")
    assert "84 items of 16 tokens" in told.stderr and "validation set of 29 at the end; one item between is left out" in told.stderr
    header = (tmp_path / "m.st").read_bytes()[:4000]
    assert b'\\"task\\":\\"next\\"' in header and b'\\"context\\":16' in header
    assert b'"tokenizer":"{\\"kind\\": \\"chars\\"' in header
    said = run_quern("replay", tmp_path / "m.st", "--data", tmp_path / "t.any.gz")
    assert "identical" in said.stdout + said.stderr
    for kind, status, what in ("words", 2, "of the kind chars"), ("chars", 0, "identical"):
        said = run_quern("replay", tmp_path / "m.st", "--data", tmp_path / "t.txt", "--tokens", kind, status=None)
        assert said.returncode == status and what in said.stdout + said.stderr, said.stderr


def test_a_model_learns_no_other_tokenizer(tmp_path, run_quern, text):
    """Its own is used; who asks for another size is told so."""
    model = tmp_path / "m.st"
    run_quern("train", "--data", tmp_path / "t.txt", "--tokens", "words:6", "--context", "16", "--model",
              "embedding 6 4; conv 6 1x1 softmax", "--epochs", "1", "-o", model)
    for size in 6, 5:
        said = run_quern("replay", model, "--data", tmp_path / "t.txt", "--tokens", f"words:{size}")
        assert "identical" in said.stdout + said.stderr
        assert ('of the model, with 6 tokens: "words:5" learns no other' in said.stderr) == (size == 5), said.stderr


def test_a_vocabulary_may_have_all_numbers_of_16_bits(tmp_path, run_quern):
    """25.40: 65,535 is a token then, as it is among numbers of 32 bits."""
    tokens = np.random.default_rng(1).integers(0, 65536, (3, 4)).astype(np.uint16)
    tokens[0, 1] = tokens[1, 2] = tokens[2, 3] = 65535
    weights = []
    for kind in np.uint16, np.uint32:
        np.save(tmp_path / "x.npy", tokens.astype(kind))
        said = run_quern("train", "--data", tmp_path / "x.npy", "--tokens", "ids", "--task", "next", "--model",
                         "embedding 65536 1; conv 65536 1x1 softmax", "--epochs", "1", "--seed", "1", "-o", tmp_path / "m.st")
        assert " of 9)" in said.stdout, said.stdout  # each of them is a target that counts
        weights.append((tmp_path / "m.st").read_bytes()[-65536 * 4 * 3:])
    assert weights[0] == weights[1]


DOCUMENTS = ["One fish, two fish.\nRed fish.", "", " a \"b\" ä ", "NA", "One fish, two fish.\nRed fish.", "x" * 90]


@pytest.fixture
def tables(tmp_path):
    """The same documents as JSON lines, in two files and in a database."""
    lines = [json.dumps({"id": i, "body": text, "n": 1.5}) + "\n" for i, text in enumerate(DOCUMENTS)]
    (tmp_path / "all.jsonl").write_text("".join(lines))
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "1.jsonl").write_text("".join(lines[:2]))
    (tmp_path / "parts" / "2.jsonl").write_text("".join(lines[2:]))
    with contextlib.closing(sqlite3.connect(tmp_path / "all.sqlite")) as base, base:
        base.execute("CREATE TABLE t (body TEXT, id INTEGER)")
        base.executemany("INSERT INTO t VALUES (?, ?)", [(text or None, i) for i, text in enumerate(DOCUMENTS)])
    return tmp_path


@pytest.mark.parametrize("name", ["all.jsonl", "parts", "parts/*.jsonl", "all.sqlite"])
def test_documents_of_a_column(run_quern, tables, q, name):
    """25.67: the texts of a column, each by itself, with an end between two where the tokenizer has one."""
    there = [text for text in DOCUMENTS if text]
    want = q.Tokenizer("bytes").encode("".join(there)).astype(np.uint16)
    column = ["--text", "body", "--context", 8, "--task", "next"]
    told = json.loads(run_quern("data", "info", tables / name, "--tokens", "bytes", *column, "--json").stdout)
    assert told["digest"] == oracle.digest(oracle.corpus(want, 8), None) and told["context"] == 8
    assert "1 of 6 rows have no text" in told["note"]
    run_quern("data", "tokenize", tables / name, "--text", "body", "--train-bpe", 270, "-o", tables / "t.json")
    run_quern("data", "tokenize", tables / name, "--text", "body", "--tokens", f"bpe:{tables}/t.json", "-o", tables / "t.bin")
    t = q.Tokenizer(f"bpe:{tables}/t.json")
    wanted = [number for k, text in enumerate(there) for number in ([0] if k else []) + t.encode(text).tolist()]
    assert np.fromfile(tables / "t.bin", np.uint16).tolist() == wanted
    told = json.loads(run_quern("data", "info", tables / name, "--tokens", f"bpe:{tables}/t.json", *column, "--json").stdout)
    assert told["digest"] == oracle.digest(oracle.corpus(np.array(wanted, np.uint16), 8), None)
    assert q.Tokenizer("bpe:270", tables / name, text="body").json == t.json
    assert t.write(tables / name, tables / "u.npy", text="body") == len(wanted)
    assert np.load(tables / "u.npy").tolist() == wanted


def test_a_table_without_a_column_is_one_text(run_quern, tables):
    """Which is rarely meant: a note says so."""
    words = ["data", "info", tables / "all.jsonl", "--tokens", "bytes", "--context", 8, "--task", "next"]
    told = run_quern(*words)
    assert "read as one text" in told.stderr and "--text names the column" in told.stderr, told.stderr
    assert "one text" not in run_quern(*words, "--text", "body").stderr


def test_a_model_of_documents(run_quern, tables):
    """Training, measuring and replaying take the column by its name."""
    data = ["--data", tables / "all.jsonl", "--text", "body"]
    run_quern("train", *data, "--tokens", "bytes", "--context", 8, "--task", "next", "--model",
              "embedding 256 4; conv 256 1x1 softmax", "--epochs", 1, "--valid", tables / "all.sqlite", "-o", tables / "m.st")
    found = json.loads(run_quern("evaluate", tables / "m.st", *data, "--json").stdout)["evaluation"]
    size = sum(len(text.encode()) for text in DOCUMENTS)
    assert found["tokens"] == found["bytes"] == (size - 1) // 8 * 8
    run_quern("replay", tables / "m.st", *data, "--valid", tables / "all.sqlite")


@pytest.mark.parametrize("column, said", [
    ("nobody", 'no column "nobody"'), ("body,id", "texts of one column"),
])
def test_what_is_no_column_of_documents(run_quern, tables, column, said):
    for words in (["info", tables / "all.jsonl", "--context", 8, "--task", "next"],
                  ["tokenize", tables / "all.jsonl", "-o", tables / "o.bin"]):
        told = run_quern("data", *words, "--tokens", "bytes", "--text", column, status=None)
        assert told.returncode != 0 and said in told.stderr, told.stderr


def test_small_and_large_documents(q, tmp_path):
    """Pieces that threads take: several texts, one text, a part of a text."""
    texts = ["ab" * n for n in (1, 0, 400_000, 3, 700_000, 2_000_000, 1, 300_000, 300_000)]
    for k, text in enumerate(texts):
        (tmp_path / f"{k}.txt").write_text(text or "c")
    t = q.Tokenizer("bpe:258", b"abab" * 9, threads=3)
    t.write(tmp_path, tmp_path / "o.npy")
    want = []
    for k, text in enumerate(texts):
        want += ([0] if k else []) + t.encode(text or "c").tolist()
    assert np.array_equal(np.load(tmp_path / "o.npy"), want)

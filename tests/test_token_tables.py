"""Tables of tokens (docs/exactness.md 25.40): whole numbers that a network takes without scaling."""

import json

import numpy as np
import pytest

import data_vectors
import python_package
import ranks

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

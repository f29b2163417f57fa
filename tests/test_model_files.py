"""Model and checkpoint files, read and forged by other programs.

The oracles are Python's own json, struct and hashlib, NumPy and the safetensors package, none of
which shares a line with Quern.
"""

import csv
import hashlib
import json
import random
import struct

import numpy as np
import pytest

safetensors_numpy = pytest.importorskip("safetensors.numpy")
from safetensors import safe_open  # noqa: E402  (needs the line above)

SEED = 20261121
FEATURES, CLASSES, HIDDEN = 5, 3, 7


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table that three classes can be learnt from."""
    path = tmp_path_factory.mktemp("models")
    rng = np.random.default_rng(SEED)
    labels = rng.integers(0, CLASSES, 120)
    values = rng.normal(size=(120, FEATURES)).round(3) + labels[:, None]
    with open(path / "data.csv", "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["label", *"abcde"])
        rows.writerows([label, *row] for label, row in zip(labels, values.tolist()))
    return path


@pytest.fixture(scope="module")
def options(folder):
    return ["--data", folder / "data.csv", "--scale", "standard", "--model",
            f"dense {HIDDEN} tanh dropout 0.1; dense {CLASSES} softmax", "--epochs", "3",
            "--batch", "16", "--lr", "0.1", "--quiet"]


@pytest.fixture(scope="module")
def model(run_quern, folder, options):
    run_quern("train", *options, "-o", folder / "model.safetensors")
    return folder / "model.safetensors"


def parts(path):
    """The header as text and as a dictionary, and the bytes after it."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    text = data[8:8 + size].decode("utf-8")
    return text, json.loads(text), data[8 + size:]


def assembled(header, body):
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + body


def predictions(run_quern, model, data, out):
    run_quern("predict", model, "--data", data, "--outputs", "--quiet", "-o", out)
    with open(out, newline="") as rows:
        return list(csv.DictReader(rows))


# ---------------------------------------------------------------- what Quern writes

def test_safetensors_reads_it(model):
    with safe_open(model, framework="numpy") as file:
        assert file.metadata()["format"] == "quern-model-1"
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    shapes = {name: array.shape for name, array in tensors.items()}
    assert shapes == {"layer0.weight": (HIDDEN, FEATURES), "layer0.bias": (HIDDEN,),
                      "layer1.weight": (CLASSES, HIDDEN), "layer1.bias": (CLASSES,),
                      "scale.mean": (FEATURES,), "scale.deviation": (FEATURES,)}
    assert all(a.dtype == np.float32 and np.isfinite(a).all() for a in tensors.values())
    assert all(np.abs(a).max() > 0 for a in tensors.values())


def test_statistics_are_those_of_the_data(model, folder):
    """float64 and NumPy's sums are within a few units of the last place of the exact ones."""
    table = np.loadtxt(folder / "data.csv", delimiter=",", skiprows=1)[:, 1:].astype(np.float32)
    tensors = safetensors_numpy.load_file(model)
    np.testing.assert_allclose(tensors["scale.mean"], table.astype(np.float64).mean(0), rtol=3e-7)
    np.testing.assert_allclose(tensors["scale.deviation"], table.astype(np.float64).std(0),
                               rtol=3e-7)


def test_header_is_canonical(model):
    """docs/exactness.md 12.1: json.dumps gives the same bytes, and the padding is spaces to 8."""
    text, header, body = parts(model)
    compact = json.dumps(header, separators=(",", ":"))
    assert text == compact + " " * (-len(compact) % 8)
    assert list(header) == ["__metadata__", "layer0.weight", "layer0.bias", "layer1.weight",
                            "layer1.bias", "scale.mean", "scale.deviation"]
    assert list(header["__metadata__"]) == ["format", "recipe"]
    ends = [header[name]["data_offsets"][1] for name in list(header)[1:]]
    begins = [header[name]["data_offsets"][0] for name in list(header)[1:]]
    assert begins == [0, *ends[:-1]] and ends[-1] == len(body)


def test_recipe_is_canonical(model):
    recipe = parts(model)[1]["__metadata__"]["recipe"]
    members = json.loads(recipe)
    assert list(members) == (
        "contract arith data items features valid scale model init loss optimizer momentum beta1 "
        "beta2 epsilon weight_decay lr schedule lr_step lr_gamma warmup batch grain epochs seed "
        "unit task delta missing table keep patience init_from").split()
    assert recipe == json.dumps(members, separators=(",", ":"))
    assert members["model"] == f"dense {HIDDEN} tanh dropout 0.1; dense {CLASSES} softmax"
    assert members["items"] == 120 and members["features"] == FEATURES


def test_numpy_gets_the_same_outputs(run_quern, model, folder, tmp_path):
    """A forward pass in float64 agrees with the outputs to float32's precision."""
    t = {k: v.astype(np.float64) for k, v in safetensors_numpy.load_file(model).items()}
    table = np.loadtxt(folder / "data.csv", delimiter=",", skiprows=1)[:, 1:]
    x = (table - t["scale.mean"]) / t["scale.deviation"]
    z = np.tanh(x @ t["layer0.weight"].T + t["layer0.bias"]) @ t["layer1.weight"].T
    e = np.exp(z + t["layer1.bias"])
    expected = e / e.sum(1, keepdims=True)
    rows = predictions(run_quern, model, folder / "data.csv", tmp_path / "out.csv")
    outputs = np.array([[float(r[f"p{j}"]) for j in range(CLASSES)] for r in rows])
    np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-6)
    assert [int(r["prediction"]) for r in rows] == list(expected.argmax(1))


@pytest.mark.parametrize("scale, divisor", [("unit", 255), ("fraction", 256)])
def test_a_model_of_bytes(run_quern, tmp_path, scale, divisor):
    """It is applied to what NumPy's division gives, and refused where the data holds no bytes."""
    rng, path, model = np.random.default_rng(SEED), tmp_path / "bytes.csv", tmp_path / "m"
    table = rng.integers(0, 256, (40, 1 + FEATURES))
    table[:, 0] %= CLASSES
    np.savetxt(path, table, "%d", ",")
    run_quern("train", "--data", path, "--scale", scale, "--model", f"dense {CLASSES} softmax",
              "--epochs", "2", "--batch", "8", "--valid", path, "--quiet", "-o", model)
    t = {k: v.astype(np.float64) for k, v in safetensors_numpy.load_file(model).items()}
    e = np.exp(table[:, 1:] / divisor @ t["layer0.weight"].T + t["layer0.bias"])
    rows = predictions(run_quern, model, path, tmp_path / "out.csv")
    outputs = np.array([[float(r[f"p{j}"]) for j in range(CLASSES)] for r in rows])
    np.testing.assert_allclose(outputs, e / e.sum(1, keepdims=True), rtol=1e-5)
    assert "identical" in run_quern("replay", model, "--data", path).stdout
    np.savetxt(path, table + 0.5 * (np.arange(1 + FEATURES) > 0), "%.1f", ",")
    done = run_quern("predict", model, "--data", path, "-o", tmp_path / "none.csv", status=1)
    assert "trained on bytes" in done.stderr


# ---------------------------------------------------------------- what others write

def test_saved_again_by_safetensors(run_quern, model, folder, tmp_path):
    """Another order of tensors and keys is the same model."""
    with safe_open(model, framework="numpy") as file:
        metadata = file.metadata()
    again = tmp_path / "again.safetensors"
    safetensors_numpy.save_file(safetensors_numpy.load_file(model), again, metadata)
    data = folder / "data.csv"
    assert predictions(run_quern, again, data, tmp_path / "a.csv") == \
        predictions(run_quern, model, data, tmp_path / "b.csv")


def refused(run_quern, path, folder, tmp_path):
    """The message with which predict refuses the file."""
    done = run_quern("predict", path, "--data", folder / "data.csv", "-o", tmp_path / "none.csv",
                     status=1)
    assert not (tmp_path / "none.csv").exists()
    assert str(path) in done.stderr
    return done.stderr


def swap(header, body):
    """Two tensors that change places: each has the bytes of the other's shape."""
    a, b = header["layer0.weight"], header["layer1.weight"]
    header["layer0.weight"], header["layer1.weight"] = b, a


def transpose(header, body):
    header["layer0.weight"]["shape"].reverse()


def flatten(header, body):
    header["layer0.weight"]["shape"] = [HIDDEN * FEATURES]


def add_dimension(header, body):
    header["layer0.bias"]["shape"] = [1, 1, HIDDEN]


def hole(header, body):
    for name, entry in header.items():
        if name not in ("__metadata__", "layer0.weight"):
            entry["data_offsets"] = [x + 4 for x in entry["data_offsets"]]
    body += b"\0\0\0\0"


def alias(header, body):
    header["scale.deviation"]["data_offsets"] = header["scale.mean"]["data_offsets"]
    del body[-4 * FEATURES:]


def infinite(header, body):
    body[-4:] = struct.pack("<f", float("inf"))


def negative_deviation(header, body):
    body[-4:] = struct.pack("<f", -1.0)


def recipe_with(**members):
    def change(header, body):
        recipe = json.loads(header["__metadata__"]["recipe"])
        recipe.update(members)
        header["__metadata__"]["recipe"] = json.dumps(recipe, separators=(",", ":"))
    return change


def without_names(**members):
    """The recipe as contract 1 has it, which knows no names."""
    def change(header, body):
        recipe = json.loads(header["__metadata__"]["recipe"])
        for key in "task delta missing table keep patience init_from".split():
            del recipe[key]
        recipe.update(contract=1, **members)
        header["__metadata__"]["recipe"] = json.dumps(recipe, separators=(",", ":"))
    return change


def metadata_is_a_list(header, body):
    header["__metadata__"] = []


def recipe_is_an_object(header, body):
    header["__metadata__"]["recipe"] = json.loads(header["__metadata__"]["recipe"])


@pytest.mark.parametrize("change, words", [
    (swap, "another shape"),
    (transpose, "another shape"),
    (flatten, "another shape"),
    (add_dimension, "one, two or four dimensions"),
    (hole, "gap before"),
    (alias, "overlaps"),
    (infinite, "infinite"),
    (negative_deviation, "deviation"),
    (recipe_with(contract=10), "version 10"),
    (recipe_with(contract=4, weight=None, class_weight="", init_scale="fit"), "the key is missing"),
    (recipe_with(contract=4, weight=None, class_weight="", init_scale="fit", valid_data=""),
     "not written the way"),
    (recipe_with(contract=4, weight=None, class_weight="", init_scale="fit", valid_data="ab"),
     "not a digest"),
    (recipe_with(contract=4, weight=None, class_weight="", init_scale="fit", valid_data="ab" * 32),
     "the validation file decides on nothing"),
    (recipe_with(contract=3), "the key is missing"),
    (recipe_with(contract=3, weight=None, class_weight="", init_scale="fit"), "not written the way"),
    (recipe_with(contract=3, weight=7, class_weight="", init_scale="fit"), "not a string"),
    (recipe_with(contract=3, weight="w", class_weight="0=2.0", init_scale="fit"),
     "class weights"),
    (recipe_with(contract=3, weight=None, class_weight="no=2", init_scale="fit"), "not there"),
    (recipe_with(contract=3, weight="w", class_weight="", init_scale="keep"), "could be kept"),
    (recipe_with(contract=3, weight="w", class_weight="", init_scale="some"), "unknown choice"),
    (recipe_with(contract=1), "unknown key"),
    (recipe_with(features=6), "names 5 columns, but there are 6"),
    (without_names(features=6), "not those of the recipe's model"),
    (without_names(features=4294967295), "not those of the recipe's model"),
    (recipe_with(scale="none"), "not those of the recipe's model"),
    (recipe_with(batch=0), "the batch is 0"),
    (recipe_with(lr="fast"), "not a number"),
    (recipe_with(model="dense 16777216 tanh; " * 254 + "dense 3 softmax"),
     "not those of the recipe's model"),
    (recipe_with(secret=1), "unknown key"),
    (metadata_is_a_list, "__metadata__ is not an object"),
    (recipe_is_an_object, "not a string"),
], ids=lambda x: getattr(x, "__name__", None))
def test_forged(run_quern, model, folder, tmp_path, change, words):
    _, header, body = parts(model)
    body = bytearray(body)
    change(header, body)
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(assembled(header, bytes(body)))
    assert words in refused(run_quern, bad, folder, tmp_path)


def test_header_changed_at_random(run_quern, model, folder, tmp_path):
    """A changed byte of the header is refused, or the file still says the same: status 0 or 1."""
    rng = random.Random(SEED)
    good = model.read_bytes()
    size = 8 + struct.unpack("<Q", good[:8])[0]
    outcomes = set()
    for _ in range(60):
        bad = bytearray(good)
        bad[rng.randrange(size)] = rng.choice(b'0123456789{}[]":,\\ \x00\xffaF')
        path = tmp_path / "fuzz.safetensors"
        path.write_bytes(bad)
        done = run_quern("predict", path, "--data", folder / "data.csv", "--quiet", "-o",
                         tmp_path / "fuzz.csv", status=None)
        assert done.returncode in (0, 1), done.stderr
        assert (done.returncode == 0) == (done.stderr == "")
        outcomes.add(done.returncode)
    assert 1 in outcomes


# ---------------------------------------------------------------- checkpoints

@pytest.fixture(scope="module")
def checkpoints(run_quern, folder, options):
    where = folder / "checkpoints"
    run_quern("train", *options, "--optimizer", "adam", "--checkpoint", where,
              "--checkpoint-every", "5", "-o", folder / "adam.safetensors")
    return where


def test_checkpoint_holds_the_model(checkpoints, folder):
    """The last checkpoint's parameters are the finished model's, layer after layer."""
    files = sorted(checkpoints.glob("checkpoint-*.safetensors"))
    assert len(files) == 2 and files[-1].name == "checkpoint-000000000024.safetensors"
    state = safetensors_numpy.load_file(files[-1])
    assert sorted(state) == ["parameters", "slot0", "slot1"]
    tensors = safetensors_numpy.load_file(folder / "adam.safetensors")
    flat = np.concatenate([tensors[f"layer{i}.{kind}"].ravel() for i in (0, 1)
                           for kind in ("weight", "bias")])
    assert state["parameters"].tobytes() == flat.tobytes()
    assert (state["slot1"] >= 0).all() and np.abs(state["slot0"]).max() > 0
    with safe_open(files[-1], framework="numpy") as file:
        assert file.metadata()["step"] == "24"


def test_checkpoint_is_no_model(run_quern, checkpoints, folder, tmp_path):
    last = max(checkpoints.glob("checkpoint-*.safetensors"))
    message = refused(run_quern, last, folder, tmp_path)
    assert "a checkpoint, not a model" in message and "--resume" in message


def test_resumed_after_damage(run_quern, checkpoints, folder, options, tmp_path):
    """The newest damaged: the one before is used, a note says so, and the bytes are the same."""
    last = max(checkpoints.glob("checkpoint-*.safetensors"))
    whole = last.read_bytes()
    last.write_bytes(whole[:-1])
    out = tmp_path / "again.safetensors"
    loud = [x for x in options if x != "--quiet"]
    done = run_quern("train", *loud, "--optimizer", "adam", "--checkpoint", checkpoints,
                     "--resume", "-o", out)
    assert last.name in done.stdout + done.stderr
    assert hashlib.sha256(out.read_bytes()).digest() == \
        hashlib.sha256((folder / "adam.safetensors").read_bytes()).digest()
    assert last.read_bytes() == whole


def test_resumed_at_the_end(run_quern, checkpoints, options, tmp_path):
    """No step is left, so there is no time of which cores could have been busy for a part."""
    done = run_quern("train", *[x for x in options if x != "--quiet"], "--optimizer", "adam",
                     "--checkpoint", checkpoints, "--resume", "--verbose", "-o", tmp_path / "x")
    assert "resumed from step 24" in done.stdout and "no items\n" in done.stdout
    assert "core busy" not in done.stdout


def test_resumed_with_other_options(run_quern, checkpoints, options, tmp_path):
    done = run_quern("train", *options, "--optimizer", "adam", "--weight-decay", "0.5",
                     "--checkpoint", checkpoints, "--resume", "-o", tmp_path / "x", status=1)
    assert "weight_decay 0 and 0.5" in done.stderr
    assert "--checkpoint" in done.stderr
    assert not (tmp_path / "x").exists()

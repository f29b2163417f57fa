"""quern.import_state: state dicts, files of torch.save, config.json. torch itself is not needed: a module that does
what the package asks of it stands in its place."""

import json
import pickle
import subprocess
import sys
import types

import numpy as np
import pytest

import checkpoints
import python_package
import test_import_config
import test_pictures
import test_state_dict
from onnx_reader import Graph, conv


@pytest.fixture(scope="module")
def q():
    python_package.folder()
    import quern

    return quern


class Tensor:
    """What the package asks of a tensor."""

    def __init__(self, values, dtype="torch.float32"):
        self.values, self.dtype, self.shape = values, dtype, tuple(values.shape)

    def detach(self):
        return self

    cpu = contiguous = detach

    def reshape(self, _):
        return Tensor(self.values.reshape(-1), self.dtype)

    def view(self, dtype):
        if self.dtype == "torch.sparse":
            raise NotImplementedError
        return Tensor(self.values.view(dtype))

    def numpy(self):
        return self.values


@pytest.fixture
def torch(monkeypatch):
    """A torch whose load gives `content`, or raises it."""
    made = types.SimpleNamespace(uint8="u1", content=None, asked=[])

    def load(path, **how):
        made.asked.append((path, how))
        if isinstance(made.content, Exception):
            raise made.content
        return made.content
    made.load = load
    monkeypatch.setitem(sys.modules, "torch", made)
    return made


WEIGHTS = {"fc.weight": np.arange(12, dtype="f4").reshape(3, 4) / 8, "fc.bias": np.arange(3, dtype="f4")}


def tensors(prefix="", **more):
    return {**{prefix + key: Tensor(value) for key, value in WEIGHTS.items()}, **more}


def test_files_of_torch(q, torch, tmp_path):
    path, count = tmp_path / "net.pth", Tensor(np.array(7, "i8"), "torch.int64")
    path.write_bytes(b"PK\3\4 and so on")
    half = {key: Tensor((value.view("u4") >> 16).astype("u2"), "torch.bfloat16") for key, value in WEIGHTS.items()}
    test_state_dict.write(tmp_path / "s", WEIGHTS)
    ours = q.import_state(tmp_path / "s", "dense 3 softmax", 4, classes=["a", "b", "c"])
    for content in (tensors(), {"epoch": 3, "state_dict": tensors("module.")}, {"model": tensors()}, half,
                    tensors(**{"fc.num_batches_tracked": count})):
        torch.content = content
        model = q.import_state(path, "dense 3 softmax", 4, classes=["a", "b", "c"])
        for name in ("layer0.weight", "layer0.bias"):
            assert np.array_equal(model.tensor(name), ours.tensor(name))
    assert torch.asked[0] == (path, {"map_location": "cpu", "weights_only": True})
    assert q.import_state(tensors(), "dense 3 softmax", 4).predict(np.eye(4)).tolist() == [2] * 4
    assert len(torch.asked) == 5


def test_what_torch_does_not_read_is_refused(q, torch, tmp_path, monkeypatch):
    path = tmp_path / "net.pth"
    path.write_bytes(pickle.dumps(1))

    def said(content, error=q.FormatError):
        torch.content = content
        with pytest.raises(error) as refused:
            q.import_state(path, "dense 3 softmax", 4)
        return str(refused.value)
    words = said(pickle.UnpicklingError("Weights \x1b[1monly\nUnsupported: GLOBAL os.system\nmore"))
    assert "weights_only=True" in words and "GLOBAL os.system" in words and "\x1b" not in words and "more" not in words and "torch.save(net.state_dict()" in words
    assert "not a state dict" in said([1]) and "not a state dict" in said({}) and "'a' of the state dict" in said({"a": 1})
    assert "3 of the state dict" in said({3: count_of(1)})
    assert "complex64" in said({"a": Tensor(np.zeros(1, "c8"), "torch.complex64")}, q.InputError)
    assert "not a dense one" in said({"a": Tensor(np.zeros(1), "torch.float32"), "b.weight": sparse()}, q.InputError)
    assert "Invalid argument" in said(OSError(22, "Invalid argument"))
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "torch is not installed" in said(None, q.UnsupportedError)


def count_of(number):
    return Tensor(np.array(number, "i8"), "torch.int64")


def sparse():
    tensor = Tensor(np.zeros(1, "f4"), "torch.float32")
    tensor.view = Tensor(np.zeros(1, "f4"), "torch.sparse").view
    tensor.reshape = lambda _: tensor
    return tensor


def test_config_and_labels(q, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(test_import_config.config()))
    (tmp_path / "labels.json").write_text('{"0": "x", "1": "y", "2": "x"}')
    test_state_dict.write(tmp_path / "s", {"fc.weight": np.zeros((3, 192)), "fc.bias": np.arange(3) / 2})
    recipe = q.import_state(tmp_path / "s", "dense 3 softmax", config=tmp_path / "config.json").recipe
    assert recipe["resize"] == "short 10 crop 8x8 bicubic" and recipe["shape"] == "3x8x8"
    assert recipe["table"]["classes"] == ["crane (n1)", "dog, small", "crane (n3)"]
    recipe = q.import_state(tmp_path / "s", "dense 3 softmax", (3, 8, 8), classes=tmp_path / "labels.json", scale="unit",
                            resize="8x8", config=tmp_path / "config.json").recipe
    assert recipe["resize"] == "8x8" and recipe["scale"] == "unit" and recipe["table"]["classes"] == ["x (0)", "y", "x (2)"]
    with pytest.raises(q.UsageError, match="shape of an item"):
        q.import_state(tmp_path / "s", "dense 3 softmax")
    with pytest.raises(q.MismatchError, match="not those of a known network"):
        q.import_state(tmp_path / "s")
    assert q.import_state(tmp_path / "s", "dense 3 softmax", 192, classes=["a", "b", "c"]).predict(np.eye(192)[:1]).tolist() == ["c"]
    model = q.import_state(tmp_path / "s", "dense 3 softmax", 192)
    with pytest.raises(q.UnsupportedError, match="these are known"):
        model.save_state(tmp_path / "b")


def test_networks_that_end_with_a_convolution(q, quern, tmp_path):
    """Probabilities of pixels are those of NumPy, and the classes have the names that were given."""
    rng = np.random.default_rng(5)
    x = rng.integers(0, 256, (3, 2, 6, 8)).astype(np.uint8)
    state = {"0.weight": rng.normal(size=(5, 2, 3, 3)), "0.bias": rng.normal(size=5), "2.weight": rng.normal(size=(3, 5, 1, 1)),
             "2.bias": rng.normal(size=3)}
    shape = {"dilations": (1, 1), "group": 1, "strides": (1, 1)}
    z = np.maximum(conv(x / 255, state["0.weight"], state["0.bias"], kernel_shape=(3, 3), pads=(1, 1, 1, 1), **shape), 0)
    z = conv(z, state["2.weight"], state["2.bias"], kernel_shape=(1, 1), pads=(0, 0, 0, 0), **shape).transpose(0, 2, 3, 1)
    wanted = np.exp(z) / np.exp(z).sum(axis=3, keepdims=True)
    test_state_dict.write(tmp_path / "s", state)
    text = "conv 5 3x3 relu; conv 3 1x1 softmax"
    model = q.import_state(tmp_path / "s", text, (2, 6, 8), scale="unit", classes=["sky", "road", "car"])
    assert model.recipe["task"] == "segment" and model.classes == ["sky", "road", "car"]
    assert np.abs(model.predict(x, outputs=True) - wanted).max() < 1e-6
    assert (model.predict(x) == z.argmax(axis=3)).all()
    assert model.evaluate(x, z.argmax(axis=3))["by_class"]["name"] == model.classes
    done = subprocess.run([quern, "model", "import", tmp_path / "s", "--model", text, "--input", "2x6x8", "--scale", "unit",
                           "--classes", "sky,road,car", "-o", tmp_path / "m", "--quiet"], capture_output=True, text=True)
    assert done.stdout.split()[0] == model.digest, done.stderr
    model.save_onnx(tmp_path / "m.onnx")
    assert np.abs(Graph((tmp_path / "m.onnx").read_bytes()).run(x)["output"].transpose(0, 2, 3, 1) - wanted).max() < 1e-6
    test_state_dict.write(tmp_path / "s", {**state, "2.weight": state["2.weight"][:1], "2.bias": state["2.bias"][:1]})
    model = q.import_state(tmp_path / "s", "conv 5 3x3 relu; conv 1 1x1 sigmoid", (2, 6, 8), scale="unit")
    assert np.abs(model.predict(x, outputs=True)[..., 0] - 1 / (1 + np.exp(-z[..., 0]))).max() < 1e-6
    with pytest.raises(q.UsageError, match="each pixel has a class"):
        q.import_state(tmp_path / "s", "conv 5 3x3 relu; conv 1 1x1", (2, 6, 8), scale="unit")
    test_state_dict.write(tmp_path / "s", {"fc.weight": rng.normal(size=(2, 4)), "fc.bias": np.zeros(2)})
    model = q.import_state(tmp_path / "s", "dense 2 sigmoid", 4, loss="binary", classes=["old", "big"])
    assert model.classes == ["old", "big"] and model.predict(np.eye(4)).shape == (4, 2)


def test_a_training_takes_layers_sizes_and_scale_of_its_start(q, tmp_path):
    draw = np.random.default_rng(7).normal
    test_state_dict.write(tmp_path / "s", {"a.weight": draw(size=(2, 3, 3, 3)), "a.bias": draw(size=2),
                                           "b.weight": draw(size=(9, 2)), "b.bias": draw(size=9)})
    start = q.import_state(tmp_path / "s", "conv 2 3x3 relu; globalpool; dense 9 softmax", (3, 8, 8),
                           scale="imagenet", resize="8x8 bilinear")
    photos = test_pictures.folder(tmp_path / "d", {
        f"{k}/{i}.png": test_pictures.packed(test_pictures.photograph(9 * k + i, 9 + i, 10)) for k in (0, 1)
        for i in range(3)})
    with pytest.raises(q.QuernError, match="9 outputs, and the data 2 classes"):
        q.train(photos, init_from=start, epochs=1)
    recipe = q.train(photos, init_from=start, new_last=True, epochs=1).recipe
    assert recipe["resize"] == "8x8 bilinear" and "0.485" in recipe["scale_numbers"]
    assert recipe["model"] == "conv 2 3x3 relu; globalpool; dense 2 softmax"


def test_checkpoints_of_transformers(q, torch, tmp_path):
    """The folder, its tensors as a mapping, and pytorch_model.bin give one model, which goes back."""
    values = checkpoints.gpt2(np.random.default_rng(2))
    kept = checkpoints.save(tmp_path / "c", checkpoints.GPT2, values)
    model = q.import_pretrained(tmp_path / "c", context=6)
    assert model.recipe["context"] == 6 and model.recipe["tokens"] == "ids"
    state = {name: Tensor(value) for name, value in kept.items()}
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "config.json").write_text(json.dumps(checkpoints.GPT2))
    (tmp_path / "b" / "pytorch_model.bin").write_bytes(b"PK\3\4 and so on")
    torch.content = state
    for again in (q.import_pretrained(state, context=6, config=tmp_path / "c" / "config.json"),
                  q.import_pretrained(tmp_path / "b", context=6), q.import_pretrained(tmp_path / "b" / "pytorch_model.bin", context=6)):
        assert all(np.array_equal(again.tensor(name), model.tensor(name)) for name in ("layer1.weight", "layer3.weight"))
    assert len(torch.asked) == 2 and torch.asked[0][1]["weights_only"] is True
    model.save_pretrained(tmp_path / "back")
    assert q.import_pretrained(tmp_path / "back").layers == model.layers
    with pytest.raises(q.UnsupportedError, match="bloom"):
        q.import_pretrained(tmp_path / "c", type="bloom")
    with pytest.raises(q.InputError, match="no config.json"):
        q.import_pretrained(state)

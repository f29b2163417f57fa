"""`quern model import`: parameters that PyTorch has trained, taken into the layers of a model text."""

import hashlib
import json
import struct
import subprocess

import numpy as np
import pytest

import machine
from builds import ROOT
from onnx_reader import conv_transpose

# The modules of torch.nn.Sequential(Conv2d(1, 4, 3, padding=1, bias=False), BatchNorm2d(4), ReLU(), ...):
# modules without parameters count, so the last numbers have two digits.
MODEL = "conv 4 3x3; batchnorm relu; maxpool 2; conv 4 3x3 relu; conv 4 3x3; groupnorm 2 relu; dense 5 tanh; dense 3 softmax"


def modules(generator):
    """Names and values, in doubles."""
    def some(*shape):
        return generator.normal(0, 0.5, shape)
    return {"0.weight": some(4, 1, 3, 3), "1.weight": some(4), "1.bias": some(4), "1.running_mean": some(4),
            "1.running_var": some(4) ** 2, "1.num_batches_tracked": np.array(3, np.int64),
            "9.weight": some(4, 4, 3, 3), "9.bias": some(4), "10.weight": some(4, 4, 3, 3), "10.bias": some(4),
            "11.weight": some(4), "11.bias": some(4), "16.weight": some(5, 36), "16.bias": some(5),
            "18.weight": some(3, 5), "18.bias": some(3)}


def rounded(values, dtype):
    """Bytes of the type, and the floats that they mean."""
    if values.dtype == np.int64:
        return "I64", values.tobytes(), values
    if dtype == "BF16":
        bits = values.astype("<f4").view("<u4") >> 16 << 16
        return dtype, (bits >> 16).astype("<u2").tobytes(), bits.view("<f4")
    kept = values.astype({"F16": "<f2", "F32": "<f4", "F64": "<f8"}[dtype])
    return dtype, kept.tobytes(), kept.astype("<f4")


def write(path, tensors, dtype="F32"):
    """As safetensors.torch.save_file: ordered by type, then by name. Returns the float32 values."""
    header, body, at, kept = {"__metadata__": {"format": "pt"}}, [], 0, {}
    for name in sorted(tensors, key=lambda name: (tensors[name].dtype != np.int64, name)):
        kind, raw, kept[name] = rounded(tensors[name], dtype)
        header[name] = {"dtype": kind, "shape": list(tensors[name].shape),
                        "data_offsets": [at, at + len(raw)]}
        body.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(b"".join([struct.pack("<Q", len(text)), text, *body]))
    return kept


def read(path):
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + size])
    recipe = json.loads(header.pop("__metadata__")["recipe"])
    body = memoryview(content)[8 + size:]
    return recipe, {name: np.frombuffer(body[slice(*t["data_offsets"])], "<f4").reshape(t["shape"])
                    for name, t in header.items()}


def run(quern, *words):
    return subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=60)


def imported(quern, state, out, *more, model=MODEL):
    return run(quern, "model", "import", state, "--model", model, "--input", "1x6x6", "--scale", "unit", "-o", out,
               *more)


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16", "F64"])
def test_each_layer_gets_its_tensors(quern, tmp_path, dtype):
    state, model = tmp_path / "state", tmp_path / "m"
    kept = write(state, modules(np.random.default_rng(2)), dtype)
    done = imported(quern, state, model, "--classes", "dog,cat,a b", "--json")
    assert done.returncode == 0 and not done.stderr, done.stderr
    recipe, tensors = read(model)
    places = {0: 0, 1: 1, 3: 9, 4: 10, 5: 11, 6: 16, 7: 18}
    events = [json.loads(line) for line in done.stdout.splitlines()]
    told = {e["tensor"]: e["from"] for e in events[:-1]}
    assert "layer0.bias" not in tensors and "conv 4 3x3 nobias" in recipe["model"]
    assert told == {name: name.replace(f"layer{l}", str(places[l]))
                    for name in tensors for l in [int(name[5])]}
    for name, values in tensors.items():
        assert np.array_equal(values, kept[told[name]]), name
    assert (recipe["data"], recipe["items"], recipe["scale"]) == ("0" * 64, 1, "unit")
    assert recipe["table"]["classes"] == ["dog", "cat", "a b"]
    assert events[-1]["digest"] == run("sha256sum", model).stdout.split()[0]
    assert recipe["init_from"] == run("sha256sum", state).stdout.split()[0]


def test_a_transposed_convolution_keeps_the_order_of_its_weights(quern, tmp_path):
    """torch.nn.ConvTranspose2d(2, 4, (2, 3), stride=2, padding=(0, 1), output_padding=1, bias=False)."""
    generator = np.random.default_rng(6)
    kept = write(tmp_path / "state", {"up.weight": generator.normal(size=(2, 4, 2, 3)),
                                      "zout.weight": generator.normal(size=(3, 4 * 7 * 8)), "zout.bias": np.zeros(3)})
    done = run(quern, "model", "import", tmp_path / "state", "--input", "2x3x4", "--scale", "none", "-o",
               tmp_path / "m", "--model",
               "convtranspose 4 2x3 stride 2 pad 0x1 outpad 1 tanh; dense 3 softmax")
    assert done.returncode == 0, done.stderr
    assert np.array_equal(read(tmp_path / "m")[1]["layer0.weight"], kept["up.weight"])
    x = generator.normal(size=(60, 2, 3, 4)).round(3)
    np.save(tmp_path / "x.npy", x.reshape(60, -1))
    run(quern, "predict", tmp_path / "m", "--data", tmp_path / "x.npy", "--unlabelled", "-o", tmp_path / "p", "--quiet")
    up = conv_transpose(x, kept["up.weight"], dilations=(1, 1), kernel_shape=(2, 3), output_padding=(1, 1),
                        pads=(0, 1, 0, 1), strides=(2, 2))
    logits = np.tanh(up).reshape(60, -1) @ kept["zout.weight"].T
    found = [int(line.split(",")[1]) for line in (tmp_path / "p").read_text().splitlines()[1:]]
    assert found == logits.argmax(1).tolist() and len(set(found)) == 3
    wrong = run(quern, "model", "import", tmp_path / "state", "--input", "2x3x4", "--scale", "none", "-o",
               tmp_path / "m", "--model",
                "convtranspose 5 2x3 stride 2; dense 3 softmax")
    assert "needs a weight of 2x5x2x3" in wrong.stderr, wrong.stderr


def test_an_imported_model_predicts_and_starts_a_training(quern, tmp_path):
    generator = np.random.default_rng(4)
    kept = write(tmp_path / "state", {"out.weight": generator.normal(size=(2, 5)), "out.bias": generator.normal(size=2),
                                      "hidden.weight": generator.normal(size=(5, 7))})
    x = generator.normal(size=(20, 7)).round(3)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", np.array(["no", "yes"])[np.arange(20) % 2])
    done = run(quern, "model", "import", tmp_path / "state", "--model", "dense 5 relu; dense 2 softmax", "--input", 7,
               "--classes", "no,yes", "-o", tmp_path / "m")
    assert done.returncode == 0, done.stderr
    assert "layer0.bias " not in done.stdout and "nobias" in run(quern, "model", "show", tmp_path / "m").stdout
    run(quern, "predict", tmp_path / "m", "--data", tmp_path / "x.npy", "--unlabelled", "-o", tmp_path / "p", "--quiet")
    logits = np.maximum(x @ kept["hidden.weight"].T, 0) @ kept["out.weight"].T + kept["out.bias"]
    assert [line.split(",")[1] for line in (tmp_path / "p").read_text().splitlines()[1:]] == \
        [("no", "yes")[k] for k in logits.argmax(1)]
    data = ["--data", tmp_path / "x.npy", "--labels", tmp_path / "y.npy"]
    done = run(quern, "replay", tmp_path / "m", *data)
    assert done.returncode == 1 and "imported" in done.stderr and "--init-from" in done.stderr
    done = run(quern, "train", *data, "--init-from", tmp_path / "m", "--model", "dense 5 nobias relu; dense 2 softmax", "--scale",
               "none", "--epochs", 1, "--quiet", "-o", tmp_path / "t", "--threads", 1, "--devices", "cpu")
    assert done.returncode == 0, done.stderr


def states_module(kind, into, width, suffix, biases, generator):
    """Names and values of a layer of torch.nn.LSTM or GRU, and its function [positions, into] -> [positions, width]."""
    gates = {"lstm": 4, "gru": 3}[kind]
    outside, inside = (generator.normal(0, 0.5, (gates * width, n)) for n in (into, width))
    b, c = generator.normal(0, 0.5, (2, gates * width)) * biases
    tensors = {f"weight_ih{suffix}": outside, f"weight_hh{suffix}": inside}
    tensors |= {f"bias_ih{suffix}": b, f"bias_hh{suffix}": c} if biases else {}

    def states(x):
        h, cell, out = np.zeros(width), np.zeros(width), []
        for at in x:
            u, v = (outside @ at + b).reshape(gates, width), (inside @ h + c).reshape(gates, width)
            s = 1 / (1 + np.exp(-(u + v)))
            if kind == "lstm":
                cell = s[1] * cell + s[0] * np.tanh(u[2] + v[2])
                h = s[3] * np.tanh(cell)
            else:
                h = (1 - s[1]) * np.tanh(u[2] + s[0] * v[2]) + s[1] * h
            out.append(h)
        return np.array(out)
    return tensors, states


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_states_of_two_layers_in_both_directions(quern, tmp_path, kind, biases):
    generator = np.random.default_rng(8)
    table, last = generator.normal(size=(20, 5)), generator.normal(size=(3, 14))
    state, layers = {"embedding.weight": table, "out.weight": last}, []
    for number, into in enumerate((5, 14)):
        for suffix in (f"_l{number}", f"_l{number}_reverse"):
            tensors, function = states_module(kind, into, 7, suffix, biases, generator)
            state |= {f"net.{name}": values for name, values in tensors.items()}
            layers.append(function)
    write(tmp_path / "state", state, "F64")
    x = generator.integers(0, 20, (60, 6))
    np.save(tmp_path / "x.npy", x.astype(np.float32))
    both = f"concat {{ {kind} 7 | {kind} 7 reverse }}"
    words = ["model", "import", tmp_path / "state", "--input", 6, "-o", tmp_path / "m", "--model"]
    done = run(quern, *words, f"embedding 20 5; {both}; {both}; pool mean; dense 3 nobias softmax")
    assert done.returncode == 0, done.stderr
    assert ("net.bias_ih_l1_reverse + net.bias_hh_l1_reverse" in done.stdout) == biases
    run(quern, "predict", tmp_path / "m", "--data", tmp_path / "x.npy", "--unlabelled", "--outputs", "-o", tmp_path / "p")
    logits = []
    for item in x:
        at = table[item]
        for forward, backward in (layers[:2], layers[2:]):
            at = np.hstack([forward(at), backward(at[::-1])[::-1]])
        logits.append(last @ at.mean(0))
    wanted = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    found = np.array([line.split(",")[3:] for line in (tmp_path / "p").read_text().splitlines()[1:]], float)
    assert np.abs(found - wanted).max() < 1e-6 and wanted.std() > 0.05
    other = {"lstm": "gru", "gru": "lstm"}[kind]
    for model, said in ((f"embedding 20 5; {other} 7", "needs weight_ih of "), ("embedding 19 5", "a weight of 19x5"),
                        ("embedding 20 5; conv 28 1x1 relu; recurrent lstm", "28x5x1x1")):
        done = run(quern, *words, f"{model}; pool mean; dense 3 nobias softmax")
        assert done.returncode == 1 and said in done.stderr, done.stderr


def without(tensors, *names):
    return {name: t for name, t in tensors.items() if name not in names}


BROKEN = {
    "no module": (lambda t: without(t, "18.weight", "18.bias"), ["layer 7", "3x5", "all of whose tensors are taken"]),
    "another shape": (lambda t: {**t, "16.weight": np.zeros((5, 35))}, ["layer 6", "5x36", '"16.weight" of 5x35']),
    "more": (lambda t: {**t, "19.weight": np.zeros((9, 3))}, ["belongs to no layer", '"19.weight" of 9x3']),
    "NaN": (lambda t: {**t, "9.bias": np.array([0, np.nan, 0, 0])}, ["finite", '"9.bias"']),
    "variance": (lambda t: {**t, "1.running_var": -np.ones(4)}, ["variance is negative", "element 0"]),
    "integers": (lambda t: {**t, "9.bias": np.zeros(4, np.int64)}, ["of the type I64", "not floating-point", '"9.bias"', "tensor.float()"]),
    "other names": (lambda t: {**t, "9.weight_g": np.zeros(4)}, ["neither weight", '"9.weight_g"']),
}


@pytest.mark.parametrize("how", BROKEN)
def test_what_does_not_fit_is_named(quern, tmp_path, how):
    change, said = BROKEN[how]
    write(tmp_path / "state", change(modules(np.random.default_rng(2))), "F64")
    done = imported(quern, tmp_path / "state", tmp_path / "m", "--quiet")
    assert done.returncode == 1 and all(s in done.stderr for s in said), done.stderr
    assert not (tmp_path / "m").exists()


def test_other_files_and_orders_in_doubt(quern, tmp_path):
    square = {f"{name}.weight": np.eye(3) * k for k, name in enumerate(["b", "a", "last"], 1)}
    write(tmp_path / "state", square)
    words = ["--model", "dense 3 relu; dense 3 relu; dense 3 softmax", "-o", tmp_path / "m"]
    done = run(quern, "model", "import", tmp_path / "state", *words, "--input", 3)
    assert '"a.weight" and "b.weight" have the same shapes' in done.stderr
    assert read(tmp_path / "m")[1]["layer0.weight"][0, 0] == 2
    (tmp_path / "zip").write_bytes(b"PK\3\4" + bytes(40))
    done = run(quern, "model", "import", tmp_path / "zip", *words, "--input", 3)
    assert done.returncode == 1 and "torch.save" in done.stderr and "save_file" in done.stderr
    for more, said in ((["--input", "1x3x1"], "--scale is required"), (["--input", "0x3"], "cannot be 0x3"),
                       (["--input", 3, "--scale", "standard"], "--scale none"),
                       (["--input", 3, "--scale", "bogus"], '"bogus"\n  at --scale\n  use --scale none, unit, fraction or imagenet, or'),
                       (["--resize", "96x128"], "--input 3x96x128"), (["--resize", "short 9 crop 8"], "--input 3x8x8, as --resize"),
                       (["--input", 3, "--classes", "a,,b"], "empty name"), ([], "--input SHAPE is required"),
                       (["--input", 3, "--classes", 4], "4 classes, and the last layer has 3 outputs"),
                       (["--input", 3, "--classes", "a,b"], "2 classes"), (["--input", "99999999x99999999"], "cannot be")):
        done = run(quern, "model", "import", tmp_path / "state", *words, *more)
        assert done.returncode in (1, 2) and said in done.stderr, (more, done.stderr)


# ---------------------------------------------------------------- with torch

PEER = ROOT / ".venv-bench" / "bin" / "python"
NETWORK = """
import sys, torch, numpy
from torch import nn
torch.manual_seed(1)
class Block(nn.Module):
    def __init__(self, before, channels, stride=1):
        super().__init__()
        self.main = nn.Sequential(nn.Conv2d(before, channels, 3, stride, padding=1, bias=False), nn.BatchNorm2d(channels),
                                  nn.ReLU(), nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels))
        self.shortcut = nn.Identity() if stride == 1 else nn.Sequential(nn.Conv2d(before, channels, 1, stride),
                                                                        nn.BatchNorm2d(channels))
    def forward(self, x):
        return torch.relu(self.main(x) + self.shortcut(x))
net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), Block(16, 16), Block(16, 32, 2),
                    Block(32, 64, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
x = torch.randint(0, 256, (60, 1, 28, 28))
for _ in range(3):
    net(x / 255.0)
net.eval()
with torch.no_grad():
    outputs = torch.softmax(net(x / 255.0), 1).numpy()
numpy.savez(sys.argv[1], x=x.numpy()[:, 0].astype("u1"), outputs=outputs,
            **{"state." + k: v.numpy() for k, v in net.state_dict().items()})
"""


def test_a_state_dict_is_no_model(quern, tmp_path):
    """Tensors of whole numbers do not count as damage; a part of a known network has its name, with any prefix."""
    state = tmp_path / "state"
    write(state, modules(np.random.default_rng(3)))
    for words in (["predict", state, "--data", __file__], ["train", "--init-from", state, "-o", tmp_path / "m"], ["model", "show", state]):
        said = run(quern, *words).stderr
        assert "the file is not a Quern model" in said and "quern model import" in said, said
    for prefix in ("", "module.", "features."):
        write(state, {f"{prefix}features.{k}.{part}": np.ones(2) for k in (0, 3, 6, 8, 11, 13, 16, 18) for part in ("weight", "bias")})
        said = run(quern, "model", "import", state, "-o", tmp_path / "m").stderr
        assert "vgg11 of torchvision" in said and 'no module "classifier.0"' in said, said


@machine.LONG
def test_torch_computes_the_same(quern, tmp_path):
    if not PEER.exists() or subprocess.run([PEER, "-c", "import torch"], capture_output=True).returncode:
        pytest.skip("torch is not in .venv-bench (bench/README.md)")
    done = subprocess.run([PEER, "-c", NETWORK, tmp_path / "net.npz"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    net = np.load(tmp_path / "net.npz")
    write(tmp_path / "state", {name[6:]: net[name] for name in net.files if name.startswith("state.")})
    np.save(tmp_path / "x.npy", net["x"])
    done = run(quern, "model", "import", tmp_path / "state", "--model", "resnet8", "--input", "1x28x28", "--scale",
               "unit", "-o", tmp_path / "m")
    assert done.returncode == 0, done.stderr
    run(quern, "predict", tmp_path / "m", "--data", tmp_path / "x.npy", "--unlabelled", "--outputs", "-o", tmp_path / "p")
    rows = [line.split(",")[3:] for line in (tmp_path / "p").read_text().splitlines()[1:]]
    assert np.abs(np.array(rows, float) - net["outputs"]).max() < 1e-6


def split(folder, tensors, parts, index=None):
    """The tensors in files, with an index as Transformers writes it."""
    names, kept, map_ = sorted(tensors), {}, {}
    for k in range(parts):
        name = f"model-{k + 1:05}-of-{parts:05}.safetensors"
        kept |= write(folder / name, {n: tensors[n] for n in names[k::parts]})
        map_ |= {n: name for n in names[k::parts]}
    text = json.dumps({"metadata": {"total_size": 1}, "weight_map": map_ if index is None else index(map_)}, indent=2)
    (folder / "model.safetensors.index.json").write_text(text)
    return kept


def test_shards(quern, tmp_path):
    """Several files with an index give the parameters of one file; whole numbers that are not parameters are left out."""
    tensors = modules(np.random.default_rng(7))
    folder = tmp_path / "model"
    folder.mkdir()
    write(tmp_path / "one", tensors)
    split(folder, {**tensors, "embeddings.position_ids": np.arange(5)}, 3)
    digests = []
    for number, path in enumerate([tmp_path / "one", folder, folder / "model.safetensors.index.json"]):
        done = imported(quern, path, tmp_path / f"m{number}")
        assert done.returncode == 0, done.stderr
        assert ("position_ids" in done.stderr) == (number > 0)
        recipe, parameters = read(tmp_path / f"m{number}")
        digests.append(recipe["init_from"])
        if number == 0:
            wanted = parameters
        assert all(np.array_equal(parameters[n], wanted[n]) for n in wanted)
    files = sorted(folder.glob("*.safetensors"))
    whole = hashlib.sha256(b"".join(hashlib.sha256(f.read_bytes()).digest() for f in files)).hexdigest()
    assert digests[1] == digests[2] == whole != digests[0]
    for path in folder, folder / "model.safetensors.index.json":
        done = imported(quern, path, files[1])
        assert done.returncode == 2 and "would overwrite the file of STATE" in done.stderr, done.stderr
    for _ in range(2):
        assert imported(quern, folder, folder / "m.safetensors").returncode == 0


FOREIGN = {
    "a path": (lambda m: {**m, "0.weight": "../one"}, "not in its folder"),
    "a root": (lambda m: {**m, "0.weight": "/etc/passwd"}, "not in its folder"),
    "a hidden file": (lambda m: {**m, "0.weight": "..."}, "not in its folder"),
    "no file": (lambda m: {**m, "0.weight": "model-00000.safetensors"}, "model-00000.safetensors"),
    "a number": (lambda m: {**m, "0.weight": 7}, "names no file"),
    "a missing tensor": (lambda m: {**m, "20.weight": m["0.weight"]}, "not in its file"),
    "a tensor too many": (lambda m: without(m, "0.weight"), "does not have there"),
    "another file": (lambda m: {**m, "0.weight": m["1.bias"]}, "does not have there"),
    "nothing": (lambda m: {}, "weight_map"), "a list": (lambda m: [1], "weight_map"),
}


def test_hostile_indices(quern, tmp_path):
    write(tmp_path / "one", modules(np.random.default_rng(7)))
    folder = tmp_path / "model"
    folder.mkdir()
    for how, (change, said) in FOREIGN.items():
        split(folder, modules(np.random.default_rng(7)), 2, change)
        done = imported(quern, folder, tmp_path / "m")
        assert done.returncode == 1 and said in done.stderr, (how, done.stderr)
    (folder / "model.safetensors.index.json").write_text('{"weight_map": ')
    assert "not valid JSON" in imported(quern, folder, tmp_path / "m").stderr


def test_types_of_elements_have_their_names(quern, tmp_path):
    for kind, size, said in (("F8_E4M3", 1, "floats of 8 bits"), ("F8_E5M2", 1, "scales"), ("I64", 8, "not floating-point"),
                             ("BOOL", 1, "not floating-point"), ("F4", 1, "unknown type")):
        text = json.dumps({"out.weight": {"dtype": kind, "shape": [2, 3], "data_offsets": [0, 6 * size]}}).encode()
        (tmp_path / "state").write_bytes(struct.pack("<Q", len(text)) + text + bytes(6 * size))
        done = run(quern, "model", "import", tmp_path / "state", "--model", "dense 2 softmax", "--input", 3, "-o", tmp_path / "m")
        assert done.returncode == 1 and kind in done.stderr and said in done.stderr and "out.weight" in done.stderr, done.stderr


def test_an_import_with_means_and_deviations(quern, tmp_path):
    """As torchvision's Normalize after ToTensor."""
    generator = np.random.default_rng(6)
    kept = write(tmp_path / "state", {"0.weight": generator.normal(size=(3, 60)), "0.bias": generator.normal(size=3)})
    x = generator.integers(0, 256, (20, 3, 4, 5)).astype(np.uint8)
    np.save(tmp_path / "x.npy", x.reshape(20, -1))
    for scale, mean, deviation in (("imagenet", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
                                   ("0.5,0.4,0.3/0.5,0.25,0.2", (0.5, 0.4, 0.3), (0.5, 0.25, 0.2))):
        done = run(quern, "model", "import", tmp_path / "state", "--model", "dense 3 softmax", "--input", "3x4x5",
                   "--scale", scale, "-o", tmp_path / "m")
        assert done.returncode == 0, done.stderr
        done = run(quern, "predict", tmp_path / "m", "--data", tmp_path / "x.npy", "--shape", "3x4x5", "--unlabelled",
                   "--outputs", "-o", tmp_path / "p.csv")
        assert done.returncode == 0, done.stderr
        normal = (x / 255 - np.array(mean)[:, None, None]) / np.array(deviation)[:, None, None]
        z = normal.reshape(20, -1) @ kept["0.weight"].T + kept["0.bias"]
        scores = np.exp(z - z.max(1, keepdims=True))
        found = np.genfromtxt(tmp_path / "p.csv", delimiter=",", skip_header=1)[:, -3:]
        np.testing.assert_allclose(found, scores / scores.sum(1, keepdims=True), atol=2e-5)
    done = run(quern, "model", "import", tmp_path / "state", "--model", "dense 3 softmax", "--input", "6x10",
               "--scale", "imagenet", "-o", tmp_path / "n")
    assert done.returncode == 2 and "3 channels" in done.stderr


FOUR = "; ".join(["conv 4 3x3 relu; maxpool 2"] * 2 + ["conv 4 3x3 relu; conv 4 3x3 relu; maxpool 2"] * 3)
NARROW = f"{FOUR}; dense 4 relu; dense 4 relu; dense 4 softmax"  # of VGG-11's layers, all with 4 channels
VGG11 = [f"features.{k}" for k in (0, 3, 6, 8, 11, 13, 16, 18)] + ["pre_logits.fc1", "pre_logits.fc2", "head.fc"]


def narrow(prefix="", change=lambda names: names):
    """VGG-11 as timm names it: `head.fc` is before the others in the order of names, and has their shape."""
    generator = np.random.default_rng(5)
    shapes = [(4, 1, 3, 3)] + [(4, 4, 3, 3)] * 7 + [(4, 4, 1, 1)] * 2 + [(4, 4)]
    tensors = {f"{name}.{part}": generator.normal(size=shape if part == "weight" else 4)
               for name, shape in zip(VGG11, shapes) for part in ("weight", "bias")}
    return {prefix + name: t for name, t in change(tensors).items()}


def test_names_of_timm_decide_before_shapes(quern, tmp_path):
    def as_narrow(*more):
        return run(quern, "model", "import", tmp_path / "s", "--model", NARROW, "--input", "1x32x32", "--scale", "unit",
                   "-o", tmp_path / "m", *more)
    kept = write(tmp_path / "s", narrow("module.net."), "F16")
    done = as_narrow("--json")
    assert done.returncode == 0 and not done.stderr, done.stderr
    told = {e["tensor"]: e["from"] for e in map(json.loads, done.stdout.splitlines()) if e["event"] == "tensor"}
    assert list(told.values()) == [f"module.net.{name}.{part}" for name in VGG11 for part in ("weight", "bias")]
    tensors = read(tmp_path / "m")[1]
    for name, source in told.items():
        assert np.array_equal(tensors[name].ravel(), kept[source].ravel()), name
    for change, said in {
            (lambda t: without(t, "features.3.weight", "features.3.bias")): ['no module "features.3"', "4x4x3x3"],
            (lambda t: {**t, "head.fc.weight": np.zeros((4, 5))}): ["layer 15", "4x4", '"head.fc.weight" of 4x5', "another network"],
            (lambda t: {**t, "head.fc.weight": np.zeros((5, 4))}): ['"head.fc.weight" of 5x4', "as many classes", "--new-last"],
            (lambda t: {**t, "features.0.bias": np.zeros(5)}): ["takes a bias of 4 numbers", '"features.0.bias" of 5'],
            (lambda t: {**t, "features.0.running_var": np.zeros(4)}): ["no running averages", '"features.0.running_var" of 4'],
            (lambda t: {**t, "aux.weight": np.zeros((4, 4))}): ["belongs to no layer", '"aux.weight" of 4x4']}.items():
        write(tmp_path / "s", narrow(change=change))
        done = as_narrow()
        assert done.returncode == 1 and all(s in done.stderr for s in said), done.stderr
    write(tmp_path / "s", narrow(change=lambda t: without(t, "head.fc.bias")))
    done = as_narrow()
    assert done.returncode == 0 and '"head.fc.bias" is not in the file: the layer gets' in done.stderr, done.stderr


def test_a_network_is_found_by_names(quern, tmp_path):
    def found(tensors):
        write(tmp_path / "s", tensors)
        done = run(quern, "model", "import", tmp_path / "s", "-o", tmp_path / "m")
        assert done.returncode == 1 and not (tmp_path / "m").exists()
        return done.stderr
    said = found(narrow())
    assert '--scale imagenet and --resize "short 256 crop 224 bilinear" are taken' in said and "64x3x3x3" in said and '"features.0.weight" of 4x1x3x3' in said, said
    said = found(narrow(change=lambda t: without(t, "features.3.weight", "features.3.bias")))
    assert "those of vgg11 of timm, but not all" in said and 'vgg11 of timm: no module "features.3"' in said, said
    assert "write the state dict of the whole network" in said, said
    said = found(narrow(change=lambda t: without(t, "head.fc.weight", "head.fc.bias")))
    assert 'with its last layer, "head.fc"' in said and "--new-last" in said, said
    assert "not those of a known network" in found({"x.weight": np.zeros(3), "features.0.weight": np.zeros(3)})
    said = found({**narrow(), "x.weight": np.zeros(3)})
    assert '1 modules more, of 12; the first has "x.weight"' in said and "leave tensors of other modules out" in said, said
    found({"weight": np.zeros(3)})


def resnet(blocks, names, widths):
    """Modules of torchvision's resnets and their shapes: of a block of `names`, whose convolutions give `widths`
    times the stage's width."""
    shapes, before = {"conv1": (64, 3, 7, 7), "bn1": (64,)}, 64
    for stage, count in enumerate(blocks, 1):
        for block in range(count):
            at, first = f"layer{stage}.{block}.", before
            for k, (side, times) in enumerate(zip(names, widths), 1):
                shapes[f"{at}conv{k}"] = (out := 32 * 2 ** stage * times, first, side, side)
                shapes[f"{at}bn{k}"] = (out,)
                first = out
            if before != out:
                shapes[f"{at}downsample.0"], shapes[f"{at}downsample.1"] = (out, before, 1, 1), (out,)
            before = out
    return {**shapes, "fc": (7, before)}


# torchvision's count, for 7 classes: sum(p.numel() for p in net.parameters()).
TORCHVISION = {"resnet18": ([2, 2, 2, 2], [3, 3], [1, 1], 11_180_103), "resnet34": ([3, 4, 6, 3], [3, 3], [1, 1], 21_288_263),
               "resnet50": ([3, 4, 6, 3], [1, 3, 1], [1, 1, 4], 23_522_375),
               "resnet101": ([3, 4, 23, 3], [1, 3, 1], [1, 1, 4], 42_514_503),
               "resnet152": ([3, 8, 36, 3], [1, 3, 1], [1, 1, 4], 58_158_151)}
# The same count of VGG, and the convolutions between two pools.
VGG = {"vgg11": ([1, 1, 2, 2, 2], 128_795_015), "vgg13": ([2, 2, 2, 2, 2], 128_979_527), "vgg16": ([2, 2, 3, 3, 3], 134_289_223),
       "vgg19": ([2, 2, 4, 4, 4], 139_598_919), "vgg11-bn": ([1, 1, 2, 2, 2], 128_800_519),
       "vgg13-bn": ([2, 2, 2, 2, 2], 128_985_415), "vgg16-bn": ([2, 2, 3, 3, 3], 134_297_671),
       "vgg19-bn": ([2, 2, 4, 4, 4], 139_609_927)}


@pytest.mark.parametrize("name", VGG)
def test_vgg_is_found_by_its_names(quern, tmp_path, name):
    """Narrow ones, as --model describes them: each convolution has its own width, so no module fits twice."""
    counts, parameters = VGG[name]
    normed, shapes, text, at, before, width = name.endswith("bn"), {}, [], 0, 3, 4
    for count in counts:
        for _ in range(count):
            shapes[f"features.{at}"] = (width, before, 3, 3)
            text.append(f"conv {width} 3x3" + ("; batchnorm relu" if normed else " relu"))
            if normed:
                shapes[f"features.{at + 1}"] = (width,)
            at, before, width = at + 2 + normed, width, width + 1
        at += 1
        text.append("maxpool 2")
    shapes |= {"classifier.0": (6, 49 * before), "classifier.3": (9, 6), "classifier.6": (5, 9)}
    text = "; ".join([*text, "avgpool to 7x7", "dense 6 relu", "dense 9 relu", "dense 5 softmax"])
    tensors = {f"{module}.{part}": np.full(shape if part == "weight" else shape[:1], k / 64)
               for k, (module, shape) in enumerate(shapes.items())
               for part in ("weight", "bias", *(("running_mean", "running_var") if len(shape) == 1 else ()))}
    write(tmp_path / "s", dict(reversed(tensors.items())), "BF16")
    done = run(quern, "model", "import", tmp_path / "s", "-o", tmp_path / "m", "--json", "--scale", "unit", "--model", text,
               "--input", "3x32x32")
    assert done.returncode == 0 and not done.stderr, done.stderr
    told = {e["tensor"]: e["from"] for e in map(json.loads, done.stdout.splitlines()[:-1])}
    assert list(told.values()) == list(tensors)
    rows = [json.loads(line) for line in run(quern, "model", "show", name, "--classes", 7, "--json").stdout.splitlines()]
    averages = sum(2 * row["output"][0] for row in rows[:-1] if row["text"].startswith("batchnorm"))
    assert rows[-1]["parameters"] == parameters + averages
    # the texts above are those of the ready models, but for widths and dropout
    assert [row["text"].split()[0] for row in rows[:-1]] == [layer.split()[0] for layer in text.split("; ")]


@pytest.mark.parametrize("name", TORCHVISION)
def test_modules_of_torchvision_are_those_of_the_ready_model(quern, tmp_path, name):
    *layout, parameters = TORCHVISION[name]
    shapes = resnet(*layout)
    events = [json.loads(line) for line in run(quern, "model", "show", name, "--classes", 7, "--json").stdout.splitlines()]
    kinds = [e["text"].split()[0] for e in events[:-1]]
    assert len(shapes) == sum(kind in ("conv", "batchnorm", "dense") for kind in kinds)
    own = sum(int(np.prod(s)) * (2 if len(s) == 1 else 1) for s in shapes.values()) + 7
    assert own == parameters
    averages = 2 * sum(s[0] for s in shapes.values() if len(s) == 1)
    assert events[-1]["parameters"] == parameters + averages


def test_resnet18_is_found_and_its_classes_counted(quern, tmp_path):
    shapes, tensors = resnet(*TORCHVISION["resnet18"][:3]), {}
    for k, (name, shape) in enumerate(shapes.items()):  # each tensor has a value of its own, which BF16 holds
        tensors[f"{name}.weight"] = np.full(shape, k / 64)
        if len(shape) == 1:
            for part, factor in {"bias": 2, "running_mean": 4, "running_var": 8}.items():
                tensors[f"{name}.{part}"] = np.full(shape, factor * k / 64)
    tensors["fc.bias"] = np.arange(7) / 8
    kept = write(tmp_path / "s", tensors, "BF16")
    done = run(quern, "model", "import", tmp_path / "s", "-o", tmp_path / "m", "--json", "--scale", "imagenet")
    assert done.returncode == 0 and not done.stderr, done.stderr
    *rows, total = map(json.loads, done.stdout.splitlines())
    assert total["model"] == "resnet18" and total["parameters"] == TORCHVISION["resnet18"][3] + 9600
    told = {row["tensor"]: row["from"] for row in rows if row["from"]}
    assert list(told.values()) == list(tensors)
    own = read(tmp_path / "m")[1]
    for name, source in told.items():
        assert np.array_equal(own[name].ravel(), kept[source].ravel()), name


# Blocks: input, window, widened, output, width of the squeeze (0: none); where they stand; torchvision's count.
EXCITED = {
    "mobilenetv3-small": ([(16, 3, 16, 16, 8), (16, 3, 72, 24, 0), (24, 3, 88, 24, 0), (24, 5, 96, 40, 24), (40, 5, 240, 40, 64),
                           (40, 5, 240, 40, 64), (40, 5, 120, 48, 32), (48, 5, 144, 48, 40), (48, 5, 288, 96, 72),
                           (96, 5, 576, 96, 144), (96, 5, 576, 96, 144)],
                          [f"{i}" for i in range(1, 12)], {"features.12": (576, 96), "classifier.0": (1024, 576)}, 1_525_031),
    "efficientnet-b0": ([(32, 3, 32, 16, 8), (16, 3, 96, 24, 4), (24, 3, 144, 24, 6), (24, 5, 144, 40, 6), (40, 5, 240, 40, 10),
                         (40, 3, 240, 80, 10), *[(80, 3, 480, 80, 20)] * 2, (80, 5, 480, 112, 20), *[(112, 5, 672, 112, 28)] * 2,
                         (112, 5, 672, 192, 28), *[(192, 5, 1152, 192, 48)] * 3, (192, 3, 1152, 320, 48)],
                        [f"{s}.{i}" for s, n in enumerate([1, 2, 2, 3, 3, 4, 1], 1) for i in range(n)],
                        {"features.8": (1280, 320)}, 4_016_515)}


def excited(blocks, places, ends):
    """Modules of such a network and their shapes; those without a batchnorm have a bias."""
    shapes = {}

    def normed(at, *shape):
        shapes[at + "0"], shapes[at + "1"] = shape, shape[:1]

    normed("features.0.", blocks[0][0], 3, 3, 3)
    for place, (first, side, wide, out, few) in zip(places, blocks):
        at, k = f"features.{place}.block.", 0
        if wide != first:
            normed(f"{at}0.", wide, first, 1, 1)
            k = 1
        normed(f"{at}{k}.", wide, 1, side, side)
        if few:
            shapes[f"{at}{k + 1}.fc1"], shapes[f"{at}{k + 1}.fc2"] = (few, wide, 1, 1), (wide, few, 1, 1)
        normed(f"{at}{k + 1 + bool(few)}.", out, wide, 1, 1)
    for name, (out, before) in ends.items():
        if name.startswith("features"):
            normed(name + ".", out, before, 1, 1)
        else:
            shapes[name] = (out, before)
    return {**shapes, "classifier.3" if len(ends) > 1 else "classifier.1": (7, out)}


@pytest.mark.parametrize("name", EXCITED)
def test_networks_with_squeeze_and_excitation_are_found(quern, tmp_path, name):
    *layout, parameters = EXCITED[name]
    shapes, tensors = excited(*layout), {}
    for k, (module, shape) in enumerate(shapes.items()):
        tensors[f"{module}.weight"] = np.full(shape, k / 128)
        for part in ("bias", "running_mean", "running_var") if len(shape) == 1 else ("bias",):
            if len(shape) < 3 or "fc" in module:
                tensors[f"{module}.{part}"] = np.full(shape[0], k / 64)
    assert sum(t.size for key, t in tensors.items() if "running" not in key) == parameters
    kept = write(tmp_path / "s", tensors, "BF16")
    done = run(quern, "model", "import", tmp_path / "s", "-o", tmp_path / "m", "--json", "--scale", "imagenet")
    assert done.returncode == 0 and not done.stderr, done.stderr
    *rows, total = map(json.loads, done.stdout.splitlines())
    told = {row["tensor"]: row["from"] for row in rows if row["from"]}
    assert total["model"] == name and sorted(told.values()) == sorted(tensors)
    own = read(tmp_path / "m")[1]
    assert set(own) == {*told, "scale.mean", "scale.deviation"}
    for tensor, source in told.items():
        assert np.array_equal(own[tensor].ravel(), kept[source].ravel()), tensor
    if name == "mobilenetv3-small":
        comes_back(quern, tmp_path, kept)


def comes_back(quern, folder, kept):
    """The export has all tensors of torchvision and no other, and their values; biases become means."""
    recipe, own = read(folder / "m")
    done = run(quern, "model", "export", folder / "m", "--names", "torchvision", "-o", folder / "b")
    assert done.returncode == 0 and not done.stderr, done.stderr
    content = (folder / "b").read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + size])
    assert header.pop("__metadata__")["format"] == "pt"
    counts = {key: header.pop(key) for key in list(header) if key.endswith("num_batches_tracked")}
    assert {key.replace("num_batches_tracked", "running_var") for key in counts} == {k for k in kept if "running_var" in k}
    assert all(t["dtype"] == "I64" and t["shape"] == [] and t["data_offsets"][0] % 8 == 0 for t in counts.values())
    assert {key: t["shape"] for key, t in header.items()} == {key: list(t.shape) for key, t in kept.items()}
    for key, t in header.items():
        assert content[8 + size:][slice(*t["data_offsets"])] == kept[key].astype("<f4").tobytes(), key

    state = {key.replace("layer", "x"): t for key, t in own.items() if key.startswith("layer")}
    state["x0.bias"] = np.full(16, 0.25)
    squeezed = next(key for key, t in state.items() if key.endswith("bias") and t.shape == (8,))
    del state[squeezed]  # the library has this bias
    write(folder / "s", {key: np.asarray(t, float) for key, t in state.items()})
    text = recipe["model"].replace(" nobias", "", 1).replace("conv 8 1x1 relu", "conv 8 1x1 nobias relu")
    done = run(quern, "model", "import", folder / "s", "--model", text, "--input", "3x224x224", "--scale", "unit", "-o", folder / "m")
    assert done.returncode == 0, done.stderr
    done = run(quern, "model", "export", folder / "m", "--names", "torchvision", "-o", folder / "b")
    assert done.returncode == 0 and "subtracted from the running means" in done.stderr, done.stderr
    content = (folder / "b").read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + size])
    mean, bias = (header[key]["data_offsets"] for key in ("features.0.1.running_mean", "features.1.block.1.fc1.bias"))
    assert not any(content[8 + size:][slice(*bias)]) and bias[1] - bias[0] == 4 * 8
    values = np.frombuffer(content[8 + size:][slice(*mean)], "<f4")
    assert np.array_equal(values, kept["features.0.1.running_mean"].astype("f4") - np.float32(0.25))
    for words, said in ((["--names", "timm", "-o", folder / "b"], "these are known, with any last layer: vgg11"),
                        (["-o", folder / "b.safetensors"], "add --names torchvision"),
                        (["--names", "torchvision", "-o", folder / "b.onnx"], "is the name of an ONNX file")):
        done = run(quern, "model", "export", folder / "m", *words)
        assert done.returncode and said in done.stderr, done.stderr


# ConvNeXt's blocks and where they stand, in torchvision and in timm: convolution, norm, two dense layers, factors.
NEXT = {"torchvision": (("block.0", "block.2", "block.3", "block.5", "layer_scale"), "features.{}", "features.{}",
                        ("features.0.0", "features.0.1"), ("classifier.0", "classifier.2")),
        "timm": (("conv_dw", "norm", "mlp.fc1", "mlp.fc2", "gamma"), "stages.{}.blocks", "stages.{}.downsample",
                 ("stem.0", "stem.1"), ("head.norm", "head.fc"))}


def convnext(library, widths, depths=(3, 3, 9, 3)):
    """The tensors' shapes of such a network, and its model text."""
    parts, blocks, between, stem, ends = NEXT[library]
    each = "layernorm channels eps 1e-6"
    shapes, text, before = {stem[0]: (widths[0], 3, 4, 4), stem[1]: (widths[0],)}, f"conv {widths[0]} 4x4 stride 4; {each}", widths[0]
    for stage, (n, depth) in enumerate(zip(widths, depths)):
        if stage:
            place = between.format(2 * stage if library == "torchvision" else stage)
            shapes |= {place + ".0": (before,), place + ".1": (n, before, 2, 2)}
            text += f"; {each}; conv {n} 2x2 stride 2"
        for k in range(depth):
            place = f"{blocks.format(2 * stage + 1 if library == 'torchvision' else stage)}.{k}."
            own = ((n, 1, 7, 7), (n,), (4 * n, n), (n, 4 * n), (n, 1, 1) if library == "torchvision" else (n,))
            shapes |= {place + part: shape for part, shape in zip(parts, own)}
            text += f"; residual {{ conv {n} 7x7 depthwise; {each}; conv {4 * n} 1x1 gelu; conv {n} 1x1; layerscale 1e-6 }}"
        before = n
    return {**shapes, ends[0]: (before,), ends[1]: (5, before)}, f"{text}; globalpool; {each}; dense 5 softmax"


@pytest.mark.parametrize("library", NEXT)
def test_convnext_is_found_by_its_names(quern, tmp_path, library):
    shapes, text = convnext(library, (2, 3, 4, 5))
    generator, tensors = np.random.default_rng(6), {}
    for module, shape in shapes.items():
        alone = module.endswith(("layer_scale", "gamma"))
        tensors[module if alone else module + ".weight"] = generator.normal(size=shape)
        if not alone:
            tensors[module + ".bias"] = generator.normal(size=shape[0])
    kept = write(tmp_path / "s", tensors)
    done = run(quern, "model", "import", tmp_path / "s", "-o", tmp_path / "m", "--json", "--scale", "unit", "--model", text,
               "--input", "3x64x64")
    assert done.returncode == 0 and not done.stderr, done.stderr
    told = {e["tensor"]: e["from"] for e in map(json.loads, done.stdout.splitlines()[:-1])}
    own = read(tmp_path / "m")[1]
    assert list(told.values()) == list(tensors) and list(told) == list(own)
    for tensor, source in told.items():
        assert np.array_equal(own[tensor].ravel(), kept[source].ravel()), tensor
    write(tmp_path / "s", {**tensors, "gamma": np.ones(2)})
    done = run(quern, "model", "import", tmp_path / "s", "-o", tmp_path / "n", "--scale", "unit", "--model", text, "--input",
               "3x64x64")
    assert done.returncode and '"gamma"' in done.stderr, done.stderr


def test_the_ready_convnext_has_the_parameters_of_torchvision(quern):
    shown = run(quern, "model", "show", "convnext-tiny", "--classes", 1000, "--json").stdout.splitlines()
    rows = [json.loads(line) for line in shown]
    shapes, text = convnext("torchvision", (96, 192, 384, 768))
    assert rows[-1]["parameters"] == 28_589_128
    # the canonical text names the activation and both sides of a window
    assert len(rows) - 1 == text.count(";") + 1 + text.count("residual")
    assert sum(row["parameters"] > 0 for row in rows[:-1]) == len(shapes)
    # torchvision.models.convnext._convnext: of block n of 18; efficientnet._efficientnet_conf: of 16, with a shortcut
    drops = {"convnext-tiny": [0.1 * n / 17 for n in range(1, 18)],
             "efficientnet-b0": [0.2 * n / 16 for n in (2, 4, 6, 7, 9, 10, 12, 13, 14)]}
    for name, wanted in drops.items():
        texts = [json.loads(row)["text"] for row in run(quern, "model", "show", name, "--json").stdout.splitlines()[:-1]]
        found = [np.float32(text.split()[-1]) for text in texts if "droppath" in text]
        assert found == [np.float32(p) for p in wanted], name


@pytest.mark.parametrize("library", ["torchvision", pytest.param("timm", marks=machine.LONG)])
def test_convnext_goes_back_to_its_library(quern, tmp_path, library):
    """The shapes are those of torchvision.models.convnext_tiny() and timm's convnext_tiny: dense layers of a pixel are
    matrices, and torchvision's factors have the axes of a picture."""
    shapes, kept = convnext(library, (96, 192, 384, 768))[0], {}
    for k, (module, shape) in enumerate(shapes.items()):
        alone = module.endswith(("layer_scale", "gamma"))
        kept[module if alone else module + ".weight"] = shape, k
        if not alone:
            kept[module + ".bias"] = shape[:1], -k
    write(tmp_path / "s", {key: np.full(shape, float(k)) for key, (shape, k) in kept.items()}, "BF16")
    done = run(quern, "model", "import", tmp_path / "s", "-o", tmp_path / "m", "--scale", "unit")
    assert done.returncode == 0, done.stderr
    done = run(quern, "model", "export", tmp_path / "m", "--names", library, "-o", tmp_path / "b")
    assert done.returncode == 0 and not done.stderr, done.stderr
    content = memoryview((tmp_path / "b").read_bytes())
    size = int.from_bytes(content[:8], "little")
    header = json.loads(bytes(content[8:8 + size]))
    del header["__metadata__"]
    assert {key: t["shape"] for key, t in header.items()} == {key: list(shape) for key, (shape, _) in kept.items()}
    for key, t in header.items():
        values = np.frombuffer(content[8 + size:][slice(*t["data_offsets"])], "<f4")
        assert len(values) == np.prod(kept[key][0]) and values[0] == values[-1] == kept[key][1], key


def test_names_of_classes_from_a_file(quern, tmp_path):
    def named(content):
        (tmp_path / "c").write_bytes(content)
        return imported(quern, tmp_path / "s", tmp_path / "m", "--classes", f"@{tmp_path / 'c'}")
    write(tmp_path / "s", modules(np.random.default_rng(2)))
    for content in b"a, b\n\"q\"\r\ncat\n", b"a, b\n\"q\"\ncat":
        done = named(content)
        assert done.returncode == 0, done.stderr
        assert read(tmp_path / "m")[0]["table"]["classes"] == ["a, b", '"q"', "cat"]
    for content, said in {b"a\nb\n": "--classes has 2 classes, and the last layer has 3 outputs", b"": "an empty name",
                          b"a\n\nb": "an empty name", b"a\0b": "not a text", b"a\n" * 65537: "65537 names of classes"}.items():
        done = named(content)
        assert done.returncode and said in done.stderr, (content[:9], done)
    done = imported(quern, tmp_path / "s", tmp_path / "m", "--classes", "@/nowhere")
    assert done.returncode == 1 and "--classes" in done.stderr, done.stderr

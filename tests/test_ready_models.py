"""The residual networks with names: what was published about them, training, and other tools' reading of their files."""

import json
import pathlib
import re
import subprocess
from xml.etree import ElementTree

import numpy as np
import pytest

# Weights without biases of convolutions, which batchnorm makes superfluous, and without running averages.
PUBLISHED = {"resnet8": 78_042, "resnet20": 272_474, "resnet56": 855_770, "mobilenet-small": 213_072 + 2570}
SHAPE = (1, 8, 8)
TUTORIAL = pathlib.Path(__file__).parent.parent / "docs" / "tutorial.md"


def run(quern, *words):
    done = subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def events(quern, *words):
    return [json.loads(line) for line in run(quern, *words, "--json").splitlines()]


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    """160 images of 8 x 8 of ten classes, each a pattern with noise."""
    generator = np.random.default_rng(11)
    labels = np.arange(160) % 10
    values = generator.integers(0, 200, (10, *SHAPE))[labels] + generator.integers(0, 56, (160, *SHAPE))
    path = tmp_path_factory.mktemp("ready") / "items.npz"
    np.savez(path, x=values.astype(np.uint8), y=labels)
    return path, values


@pytest.fixture(scope="module")
def trained(quern, items):
    """resnet8 after some steps, its weights, and what it predicts for the items."""
    model = items[0].parent / "resnet8.st"
    run(quern, "train", "--data", items[0], "--shape", "1x8x8", "--model", "resnet8", "--epochs", 3, "--batch", 32,
        "--scale", "unit", "--lr", "0.05", "-o", model)
    run(quern, "predict", model, "--data", items[0], "--outputs", "-o", model.with_suffix(".csv"))
    rows = [line.split(",") for line in model.with_suffix(".csv").read_text().split()[1:]]
    return model, np.array([row[-10:] for row in rows], dtype=float)


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_the_published_ones(quern, name):
    *layers, network = events(quern, "model", "show", name)
    of = {kind: [layer for layer in layers if layer["text"].startswith(kind)] for kind in ("conv", "batchnorm")}
    biases = sum(layer["output"][0] for layer in of["conv"])
    averages = sum(2 * layer["output"][0] for layer in of["batchnorm"])
    assert network["parameters"] - biases - averages == PUBLISHED[name]
    blocks = (int(name[6:]) - 2) // 2 if name.startswith("resnet") else 0
    assert len(of["conv"]) == len(of["batchnorm"]) == (1 + 2 * blocks + 2 if blocks else 1 + 2 * 13)
    assert sum("second" in layer for layer in layers) == blocks


@pytest.mark.parametrize("name", ["resnet20", "resnet56", "mobilenet-small"])
def test_it_learns(quern, items, tmp_path, name):
    losses = [e["train_loss"] for e in events(quern, "train", "--data", items[0], "--shape", "1x8x8", "--model", name,
              "--epochs", 3, "--batch", 32, "--lr", "0.05", "-o", tmp_path / "m") if e["event"] == "epoch"]
    assert len(losses) == 3 and losses[-1] < losses[0], losses


def test_unet_gives_each_pixel_a_class(quern, tmp_path):
    """Squares and background at 64x64; plans and the list name the convolution that suits masks."""
    generator = np.random.default_rng(4)
    images, masks = generator.integers(0, 90, (4, 3, 64, 64)).astype(np.uint8), np.zeros((4, 64, 64), np.uint8)
    for image, mask, at in zip(images, masks, generator.integers(0, 40, (4, 2, 2))):
        for kind, (y, x) in enumerate(at, 1):
            image[kind, y:y + 20, x:x + 20] = 220
            mask[y:y + 20, x:x + 20] = kind
    masks[:, 0] = 255
    np.save(tmp_path / "x.npy", images)
    np.save(tmp_path / "y.npy", masks)
    data = "--data", tmp_path / "x.npy", "--labels", tmp_path / "y.npy"
    told = events(quern, "train", *data, "--shape", "3x64x64", "--model", "unet-small", "--epochs", 3, "--batch", 4, "--grain",
                  2, "--optimizer", "adam", "--lr", "0.01", "--scale", "unit", "-o", tmp_path / "m")
    losses = [e["train_loss"] for e in told if e["event"] == "epoch"]
    assert losses[-1] < 0.9 * losses[0], losses
    found = json.loads(run(quern, "evaluate", tmp_path / "m", *data, "--json").splitlines()[-1])
    assert 0 < found["evaluation"]["mean_iou"] <= 1, found
    # a block has 9*n*m weights, and its batchnorm 4 numbers; the last layer 17 a class
    widths, weights = [16, 32, 64, 128, 256], 0
    for before, n in zip([3, *widths], widths):
        weights += 9 * n * (before + n) + 8 * n
    for n in widths[:-1]:
        weights += 4 * 2 * n * n + n + 9 * n * (2 * n + n) + 8 * n
    shown = events(quern, "model", "show", "unet-small", "--classes", 5)
    assert shown[-1]["parameters"] == weights + 5 * 17 and shown[-2]["text"] == "conv 5 1x1 softmax"
    plan = run(quern, "plan", "--model", "unet-small", "--shape", "3x512x512", "--classes", 5, "--items", 100, "--batch", 4,
               "--team", "host(cpu 1)")
    assert f"unet-small: {weights + 5 * 17:,} parameters" in plan and "GiB of memory" in plan, plan


def conv(x, kernel, bias, stride):
    pad = (kernel.shape[2] - 1) // 2
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    view = np.lib.stride_tricks.sliding_window_view(x, kernel.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
    return np.einsum("nchwij,ocij->nohw", view, kernel, optimize=True) + bias[:, None, None]


def applied(layers, weights, x):
    """The network in NumPy, in doubles: each layer reads those that `model show` names."""
    outputs = {-1: x}
    for index, layer in enumerate(layers):
        kind, a = layer["text"].split()[0], outputs[layer["source"]]
        own = {name.split(".")[1]: t.astype(float) for name, t in weights.items() if name.startswith(f"layer{index}.")}
        if kind == "conv":
            stride = re.search(r"stride (\d)", layer["text"])
            a = conv(a, own["weight"], own["bias"], int(stride[1]) if stride else 1)
        elif kind == "batchnorm":
            factor = own["weight"] / np.sqrt(own["running_var"] + 1e-5)
            a = (a - own["running_mean"][:, None, None]) * factor[:, None, None] + own["bias"][:, None, None]
        elif kind == "residual":
            a = a + outputs[layer["second"]]
        elif kind == "globalpool":
            a = a.mean((2, 3))
        else:
            a = a @ own["weight"].T + own["bias"]
        outputs[index] = np.maximum(a, 0) if " relu" in layer["text"] else a
    return outputs[len(layers) - 1]


def tensors(path):
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header, body = json.loads(content[8:8 + length]), content[8 + length:]
    return {name: np.frombuffer(body[slice(*t["data_offsets"])], "<f4").reshape(t["shape"])
            for name, t in header.items() if name.startswith("layer")}


def test_numpy_reads_the_file(quern, items, trained):
    layers = events(quern, "model", "show", "resnet8", "--input", "1x8x8")[:-1]
    wanted = np.exp(applied(layers, tensors(trained[0]), items[1] / 255))
    assert trained[1] == pytest.approx(wanted / wanted.sum(1, keepdims=True), abs=1e-5)


def test_pytorch_reads_the_file_as_the_tutorial_says(items, trained):
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    text = TUTORIAL.read_text()
    code = re.search(r"```python\n(.*?Block.*?)```", text, re.S)[1]
    names = {}
    exec(code.replace("resnet8.safetensors", str(trained[0])), names)  # noqa: S102
    with torch.no_grad():
        got = torch.softmax(names["net"](torch.tensor(items[1] / 255, dtype=torch.float32)), 1).numpy()
    assert got == pytest.approx(trained[1], abs=1e-5)


def test_blocks_are_drawn(quern, tmp_path):
    """A shortcut's boxes stand beside its block; no two boxes overlap; arrows end at the right side of each sum."""
    run(quern, "model", "show", "resnet8", "--svg", tmp_path / "net.svg")
    root = ElementTree.parse(tmp_path / "net.svg").getroot()
    ns = "{http://www.w3.org/2000/svg}"
    boxes = [[float(e.get(k)) for k in ("x", "y", "width", "height")] for e in root.findall(f"{ns}rect")][1:]
    layers = events(quern, "model", "show", "resnet8")[:-1]
    shown = [re.search(r"(?:, of |relu, )(.*?)  ", line) for line in run(quern, "model", "show", "resnet8").splitlines()]
    assert [line[1] for line in shown if line] == ["5 + 1", "6", "10 + 12", "13", "17 + 19"]
    assert len(boxes) == 1 + len(layers)
    main = boxes[0][0]
    aside = [k for k, (x, *_) in enumerate(boxes[1:]) if x > main]
    assert [layers[k]["text"] for k in aside] == [
        "conv 32 1x1 stride 2 none", "batchnorm none", "conv 64 1x1 stride 2 none", "batchnorm none"]
    assert len({(x, y) for x, y, *_ in boxes}) == len(boxes)
    for k in (k for k, layer in enumerate(layers) if "second" in layer):
        x, y, width, height = boxes[k + 1]
        arrow = f"{y + height / 2:g}H{x + width:g}"
        assert sum(e.get("d").endswith(arrow) for e in root.findall(f"{ns}path")) == 1


def test_the_tokens_of_a_gpt_are_those_of_the_data(quern, tmp_path):
    """The vocabulary is the tokenizer's, or that of the greatest number; positions are the context."""
    (tmp_path / "t.txt").write_text("to be or not to be\n" * 9)
    np.save(tmp_path / "ids.npy", np.array([[3, 0, 65535, 20, 1]] * 4, np.uint16))
    for data, tokens, positions in ((["t.txt", "--tokens", "chars", "--context", 8], 9, 8), (["ids.npy", "--tokens", "ids", "--task", "next"], 21, 4)):
        run(quern, "train", "--data", tmp_path / data[0], *data[1:], "--model", "gpt-micro", "--epochs", 1, "--batch", 4,
            "-o", tmp_path / "m.st")
        shown = events(quern, "model", "show", tmp_path / "m.st")[0]
        text = json.loads(shown["recipe"])["model"]
        assert text.startswith(f"embedding {tokens} 128 ") and text.endswith(f"; conv {tokens} 1x1 tied softmax"), text
        assert shown["outputs"] == tokens * positions
    rows = ["text,kind", *(f"{'good' if i % 2 else 'bad'} film {i},{i % 2}" for i in range(40))]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    for name, begin in ("bag", "embedding 20 128 none; pool mean;"), ("text-cnn", "embedding 20 128 none; concat {"), (
            "lstm-text", "embedding 20 128 none dropout 0.2; conv 512 1x1 none; recurrent lstm none; pool last;"):
        run(quern, "train", "--data", tmp_path / "t.csv", "--label", "kind", "--tokens", "words:20", "--context", 6, "--model", name,
            "--epochs", 9, "-o", tmp_path / "m.st")
        shown = events(quern, "model", "show", tmp_path / "m.st")[0]
        assert json.loads(shown["recipe"])["model"].startswith(begin) and shown["outputs"] == 2
        assert "accuracy 100.00 %" in run(quern, "evaluate", tmp_path / "m.st", "--data", tmp_path / "t.csv")
    assert events(quern, "model", "show", "gpt2")[-1]["parameters"] == 124_439_808  # as transformers counts GPT-2's
    assert events(quern, "model", "show", "llama-mini")[-1]["parameters"] == 9_492_096  # the same of a Llama of this size

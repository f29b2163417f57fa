"""`quern model export`: the graph of the ONNX file, evaluated by tests/onnx_reader.py, gives the outputs
of `quern predict` for the values as they are in the data. onnx and onnxruntime, where they are
installed, read the same files."""

import csv
import json
import os
import subprocess

import numpy as np
import pytest

import machine
from builds import ROOT
from onnx_reader import Graph

PIXELS = (2, 8, 6)
# Every kind of layer and every activation; paths of a block that end with and without pixels; layers
# with pixels after one without.
NETWORKS = [
    "conv 6 3x2 stride 2x1 tanh; residual { conv 6 3x3 groups 3 dilation 2 silu; conv 6 1x1 } gelu; "
    "residual { conv 6 2x2 depthwise pad 1x0 | conv 6 1x1 pad 1x0; avgpool 2 stride 1 } leaky_relu; "
    "batchnorm eps 0.3 relu; maxpool 2 stride 1; groupnorm 2 eps 0.2 sigmoid; globalpool; residual { dense 6 | "
    "layernorm } relu6; conv 5 1x1 hardswish; batchnorm gelu-tanh; groupnorm 1 hardsigmoid; dense 3 softmax",
    "residual { dense 96 relu | batchnorm } tanh; dense 3 softmax",
    "dense 9 tanh; residual { residual { dense 9 tanh | dense 9 }; dense 9 | residual { dense 9 tanh } } tanh; "
    "dense 3 softmax",
    "conv 6 3x3; layernorm channels eps 0.1 tanh; layerscale 0.5; maxpool 3x2 stride 2 pad 1x0 ceil; avgpool 3 stride 1 pad 1 uncounted; avgpool 2 stride 1 pad 0x1; "
    "avgpool 2 stride 1 ceil; dense 3 softmax",
    "conv 6 3x2 stride 2x1 tanh; position sinusoid; position rotary 1 scale 2; product { globalpool; dense 6 sigmoid }; concat { conv 3 3x3 tanh | product { conv 6 "
    "1x1 tanh } }; product { conv 9 1x1 nobias tanh | dense 9 sigmoid }; layernorm; dense 4 nobias; dense 3 softmax",
    "conv 30 3x2 stride 2x1 tanh; position rotary 3 kv 1 base 50; attention 3 causal kv 1 window 5; conv 18 1x1 tanh; attention 2; globalpool; attention 1; "
    "dense 3 softmax",
    "conv 6 3x3; convtranspose 4 2x3 stride 2x3 pad 1x0 outpad 1 tanh; convtranspose 5 3x2 stride 1x2 dilation 2x1 nobias; "
    "conv 6 3x3 stride 3; maxpool to 5x4; avgpool to 4x6; upsample 2x1; avgpool to 4x3; upsample 2x3 bilinear; maxpool to 5x3; rmsnorm eps 0.2; layernorm; dense 5; rmsnorm; dense 3 softmax",
]


def run(quern, *words):
    done = subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done


def outputs(quern, model, data, out, *more):
    """Predictions, and all outputs of the network, by quern predict."""
    run(quern, "predict", model, "--data", data, "--outputs", "-o", out, "--quiet", *more)
    rows = list(csv.DictReader(out.open()))
    columns = [name for name in rows[0] if name[0] == "p" and name[1:].isdigit()] or ["prediction"]
    return [row["prediction"] for row in rows], np.array([[float(row[c] or "nan") for c in columns] for row in rows])


@pytest.fixture(scope="module")
def pixels(tmp_path_factory):
    generator = np.random.default_rng(5)
    kinds = generator.integers(0, 3, 40)
    values = generator.integers(0, 90, (3, 96))[kinds] + generator.integers(0, 90, (40, 96))
    path = tmp_path_factory.mktemp("onnx") / "t.csv"
    path.write_text("".join(f"{kind}," + ",".join(map(str, row)) + "\n" for kind, row in zip(kinds, values)))
    return path, values.astype(float)


@pytest.mark.parametrize("network, scale", [(0, "channel"), (0, "unit"), (1, "standard"), (1, "fraction"), (2, "unit"), (3, "unit"),
                                            (4, "unit"), (5, "unit")])
def test_the_graph_predicts_as_the_model(quern, pixels, tmp_path, network, scale):
    data, values = pixels
    model, file = tmp_path / "m", tmp_path / "m.onnx"
    run(quern, "train", "--data", data, "--shape", "2x8x6", "--model", NETWORKS[network], "--epochs", 2, "--lr",
        0.02, "--scale", scale, "--threads", 1, "--devices", "cpu", "--quiet", "-o", model)
    said = run(quern, "model", "export", model, "-o", file)
    assert said.stdout == f"{file}: ONNX, opset 13, {file.stat().st_size} bytes\n" and not said.stderr
    graph = Graph(file.read_bytes())
    classes, expected = outputs(quern, model, data, tmp_path / "p.csv")
    shape = PIXELS if network in (0, 3, 4, 5) else (96,)
    assert graph.inputs == {"input": (None, *shape)} and graph.outputs == {"output": (None, 3), "class": (None,)}
    assert (graph.ir, graph.opsets) == (7, [("", 13)])
    found = graph.run(values.reshape(-1, *shape))
    assert len(set(classes)) > 1 and np.ptp(expected) > 0.05
    assert np.abs(found["output"] - expected).max() < 2e-5
    assert found["class"].tolist() == [int(c) for c in classes]


def mixed(path, label):
    """A table of numbers with gaps and texts, its values as the graph takes them, and class names."""
    generator = np.random.default_rng(8)
    age = generator.normal(40, 12, 60)
    colour = generator.choice(["red", "green", "b,lue", ""], 60)
    code = generator.choice([1, 2, 10], 60)
    targets = age + 9 * (colour == "red") + code
    labels = np.where(targets > 48, "yes", "no") if label == "class" else targets.round(3)
    age[generator.random(60) < 0.2] = np.nan
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["colour", "age", "size", "code", "sick"])
        for k in range(60):
            rows.writerow([colour[k], "" if np.isnan(age[k]) else age[k], k % 7, code[k], labels[k]])
    lists = [["b,lue", "green", "red"], None, None, ["1", "10", "2"]]
    number = [np.nan if c == "" else lists[0].index(c) for c in colour]
    return np.stack([number, age, np.arange(60) % 7, [lists[3].index(str(c)) for c in code]], 1), lists


@pytest.mark.parametrize("label, missing, more", [("class", "median", ["--loss", "binary"]), ("class", "drop", []),
                                                  ("real", "mean", []), ("real", "drop", [])])
def test_a_table_with_gaps_and_categories(quern, tmp_path, label, missing, more):
    values, lists = mixed(tmp_path / "t.csv", label)
    model, file = tmp_path / "m", tmp_path / "m.onnx"
    run(quern, "train", "--data", tmp_path / "t.csv", "--label", "sick", "--category", "code", "--missing", missing,
        "--epochs", 10, "--threads", 1, "--devices", "cpu", "--quiet", "-o", model, *more)
    run(quern, "model", "export", model, "-o", file, "--quiet")
    graph = Graph(file.read_bytes())
    assert json.loads(graph.notes["categories"]) == lists
    assert json.loads(graph.notes["columns"]) == ["colour", "age", "size", "code"] and graph.notes["label"] == "sick"
    predicted, expected = outputs(quern, model, tmp_path / "t.csv", tmp_path / "p.csv")
    found = graph.run(values)
    assert np.isnan(expected).any() == (missing == "drop")
    assert np.allclose(found["output"], expected, rtol=1e-5, atol=2e-6, equal_nan=True)
    assert ("class" in found) == (label == "class")
    if label == "class":
        names = [*json.loads(graph.notes["class_names"]), ""]
        assert [names[k] for k in found["class"]] == predicted and len(set(predicted)) > 1
    values[0, 3] = -1  # another code than the model knows
    assert np.array_equal(graph.run(values)["output"][1:], found["output"][1:], equal_nan=True)


def test_integer_models_and_refusals(quern, pixels, tmp_path):
    model, file = tmp_path / "m", tmp_path / "m.onnx"
    run(quern, "train", "--data", pixels[0], "--model", "dense 8 tanh; dense 3 softmax", "--epochs", 1, "--arith",
        "i14", "--threads", 1, "--devices", "cpu", "--quiet", "-o", model)
    said = run(quern, "model", "export", model, "-o", file, "--json")
    assert json.loads(said.stdout) == {"event": "export", "file": str(file), "format": "onnx", "opset": 13,
                                       "bytes": file.stat().st_size}
    assert "in float32, whose outputs differ slightly" in run(quern, "model", "export", model, "-o", file).stderr
    graph = Graph(file.read_bytes())
    assert graph.notes["arithmetic"] == "i14" and json.loads(graph.notes["quern_recipe"])["arith"] == "i14"
    expected = outputs(quern, model, pixels[0], tmp_path / "p.csv")[1]
    assert np.abs(graph.run(pixels[1])["output"] - expected).max() < 2e-3
    before = file.read_bytes()
    for words, said in (((model,), "-o FILE is required"), ((model, "-o", model), "MODEL"),
                        ((pixels[0], "-o", file), "not a model"), ((model, "-o", tmp_path), "folder")):
        done = subprocess.run([quern, "model", "export", *map(str, words)], capture_output=True, text=True)
        assert done.returncode in (1, 2) and said in done.stderr, done.stderr
    assert file.read_bytes() == before


# ---------------------------------------------------------------- with onnx and onnxruntime

PEER = ROOT / ".venv-bench" / "bin" / "python"
RUN = """
import sys, numpy, onnx, onnxruntime
onnx.checker.check_model(sys.argv[1], full_check=True)
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
given = numpy.load(sys.argv[2], mmap_mode="r")
shape = session.get_inputs()[0].shape[1:]
parts = [session.run(["output", "class"], {"input": given[k:k + 500].astype("f4").reshape(-1, *shape)})
         for k in range(0, len(given), 500)]
numpy.savez(sys.argv[3], output=numpy.concatenate([p[0] for p in parts]), classes=numpy.concatenate([p[1] for p in parts]))
"""


def by_runtime(file, values, folder):
    """Outputs and classes by onnxruntime, or a skip."""
    if not PEER.exists() or subprocess.run([PEER, "-c", "import onnx, onnxruntime"], capture_output=True).returncode:
        pytest.skip("onnx and onnxruntime are not in .venv-bench (bench/README.md)")
    np.save(folder / "x.npy", values)
    done = subprocess.run([PEER, "-c", RUN, file, folder / "x.npy", folder / "y.npz"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return np.load(folder / "y.npz")


@machine.LONG
def test_onnxruntime_reads_every_kind(quern, pixels, tmp_path):
    for network, text in enumerate(NETWORKS):
        model, file = tmp_path / "m", tmp_path / "m.onnx"
        run(quern, "train", "--data", pixels[0], "--shape", "2x8x6", "--model", text, "--epochs", 2, "--lr", 0.02,
            "--quiet", "-o", model)
        run(quern, "model", "export", model, "-o", file)
        classes, expected = outputs(quern, model, pixels[0], tmp_path / "p.csv")
        found = by_runtime(file, pixels[1], tmp_path)
        assert np.abs(found["output"] - expected).max() < 1e-4, network
        assert found["classes"].tolist() == [int(c) for c in classes]


@machine.LONG
@pytest.mark.parametrize("data, network, size", [("mnist", "lenet", None), ("cifar10", "resnet8", 5000),
                                                 ("cifar10", "vgg8", 2000)])
def test_onnxruntime_predicts_all_test_images(quern, tmp_path, data, network, size):
    """Classes equal, probabilities within 1e-5, over the whole test set; after a short training."""
    folder = os.environ.get({"mnist": "QUERN_MNIST", "cifar10": "QUERN_CIFAR10"}[data])
    folder = ROOT.parent / "shared" / "data" / data if folder is None else ROOT / folder
    if not folder.exists():
        pytest.skip(f"{data} is not in {folder}")
    model, file = tmp_path / "m", tmp_path / "m.onnx"
    if data == "mnist":
        train, test = ([folder / f"{part}-images-idx3-ubyte.gz", "--labels", folder / f"{part}-labels-idx1-ubyte.gz"]
                       for part in ("train", "t10k"))
        import gzip
        values = np.frombuffer(gzip.open(test[0]).read()[16:], np.uint8).reshape(-1, 784)
    else:
        import io
        import tarfile

        from PIL import Image
        train, test = [tmp_path / "some.tar"], [folder / "test.tar"]
        with tarfile.open(folder / "train.tar") as whole, tarfile.open(train[0], "w") as some:
            files = [m for m in whole if m.isfile()]
            for member in files[::len(files) // size]:
                some.addfile(member, whole.extractfile(member))
        with tarfile.open(test[0]) as archive:
            pixels = {m.name.split("/", 1)[1]: np.asarray(Image.open(io.BytesIO(archive.extractfile(m).read())).convert("RGB"))
                      for m in archive if m.isfile()}
    done = subprocess.run([quern, "train", "--data", *train, "--model", network, "--epochs", "1", "--quiet", "-o", model])
    assert done.returncode == 0
    run(quern, "model", "export", model, "-o", file)
    done = subprocess.run([quern, "predict", model, "--data", *test, "--outputs", "-o", tmp_path / "p.csv"])
    assert done.returncode == 0
    rows = list(csv.DictReader((tmp_path / "p.csv").open()))
    if data != "mnist":
        values = np.stack([pixels[row["file"]] for row in rows]).transpose(0, 3, 1, 2)
    expected = np.array([[float(row[f"p{k}"]) for k in range(10)] for row in rows])
    found = by_runtime(file, values, tmp_path)
    assert len(rows) == 10000 and np.abs(found["output"] - expected).max() < 1e-5
    assert found["classes"].tolist() == expected.argmax(1).tolist()

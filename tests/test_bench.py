"""The benchmarks are built and begin, and reach their peers: nobody runs them otherwise but who wants a
figure. Stand-ins for peers are in tests/stand_ins/."""

import gzip
import importlib.util
import json
import os
import shlex
import subprocess
import sys

import pytest

import builds
import machine

BENCH = builds.ROOT / "bench"
SCRIPTS = sorted(f for f in BENCH.glob("*.py") if f.name != "common.py")
PROGRAMS = sorted([*BENCH.glob("*.c"), *(builds.ROOT / "examples").glob("*.c")])
# Few images; each benchmark in Python writes JSON with a row for each contender.
SMALL = ["--rounds", "1", "--epochs", "1"]


def test_programs_compile():
    """Each with the flags of the release build, which make warnings errors. No code is made."""
    folder = builds.ready("release")
    commands = {c["file"]: shlex.split(c["command"]) for c in json.loads((folder / "compile_commands.json").read_text())}
    for program in PROGRAMS:
        words = commands[str(program)]
        words = [w for w in words[:words.index("-o")] if not w.startswith(("-M", "-O"))][words[0].endswith("ccache"):]
        done = subprocess.run([*words, "-fsyntax-only", program], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """A folder as MNIST's: the class of an image is the largest of its first inputs."""
    import numpy as np

    folder = tmp_path_factory.mktemp("images")
    for part, items in (("train", 1024), ("t10k", 256)):
        labels = np.arange(items) % 10
        pixels = np.eye(10, dtype=np.uint8)[labels] * 255
        pixels = np.tile(pixels, 79)[:, :784]
        for name, array in ((f"{part}-images-idx3-ubyte.gz", pixels.reshape(-1, 28, 28)),
                            (f"{part}-labels-idx1-ubyte.gz", labels.astype(np.uint8))):
            head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
            (folder / name).write_bytes(gzip.compress(head + array.tobytes(), 1))
    return folder


def reached(script, images, *words):
    """The rows of all contenders of one table of a benchmark; none may be skipped."""
    builds.ready("release")
    env = {**os.environ, "QUERN_MNIST": str(images), "QUERN_CIFAR10": str(images), "PYTHONPATH": str(builds.ROOT / "tests/stand_ins")}
    told = images / f"{script}.json"
    done = subprocess.run([sys.executable, BENCH / script, *words, "--json", told], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = next(iter(json.loads(told.read_text())["results"].values()))
    for name, row in rows.items():
        assert "skip" not in row and row["chunks"], (name, row)
    return rows


def peer(script, *words):
    """One row of a peer's script."""
    env = {**os.environ, "PYTHONPATH": str(builds.ROOT / "tests/stand_ins")}
    done = subprocess.run([sys.executable, BENCH / "peers" / script, *words], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_peers_of_training(images):
    peers = ["jax", "jax-step", "torch", "torch-compile", "torch-bf16"]
    peers += ["scikit-learn"] if importlib.util.find_spec("sklearn") else []
    rows = reached("train.py", images, *SMALL, "--threads", "1", "--batches", "32", "--peers", ",".join(peers))
    assert list(rows) == ["quern f32", *peers]
    assert "stand-in" in rows["torch"]["version"] and rows["jax"]["loss_after"] < rows["jax"]["loss_before"]


def test_peers_of_convolutions(images):
    rows = reached("train_cnn.py", images, *SMALL, "--threads", "1", "--batches", "32", "--items", "64", "--networks", "lenet")
    assert list(rows) == ["quern f32", "torch", "torch-bf16", "jax"]


def test_peers_of_two_processes(images):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core here")
    rows = reached("cluster.py", images, *SMALL, "--batches", "32", "--mpirun", "")
    assert [name.split(",")[0] for name in rows] == ["quern"] * 3 + ["torch", "torch DDP"]
    assert "2 processes" in rows["torch DDP, 2 processes, 2 cores"]["version"]


def test_peers_of_prediction(images):
    rows = reached("predict.py", images, "--rounds", "1", "--threads", "1", "--peers", "torch")
    assert list(rows) == ["quern", "torch"] and rows["torch"]["accuracy"] == 1


def test_peers_of_photographs(images):
    """Blocks with shortcuts, a padded pool; PyTorch and Quern train the last layer alone."""
    rows = reached("photographs.py", images, "--networks", "resnet18", "--size", "32", "--items", "8", "--batch", "4",
                   "--rounds", "1", "--threads", "1", "--cases", "last")
    assert list(rows) == ["quern", "torch", "torch-bf16"]
    assert all(row["peak_bytes"] > 1 << 20 for row in rows.values())


def test_training_of_texts(images):
    """A token's rate, and a loss that falls: without peers, for which there is no stand-in."""
    rows = reached("train_text.py", images, "--settings", "tiny", "--rounds", "1", "--threads", "1", "--peers", "none")
    assert list(rows) == ["quern"] and rows["quern"]["loss_after"] < rows["quern"]["loss_before"]


def test_generation(images):
    rows = reached("generate.py", images, "--settings", "tiny", "--prompts", "2", "--rounds", "1", "--threads", "1", "--peers",
                   "none")
    assert list(rows) == ["quern"] and rows["quern"]["chunks"][0] > 0


def test_peers_of_fine_tuning(images):
    """The last layer alone, and all layers at rates that rise from the first to the last one."""
    rows = reached("fine_tuning.py", images, "--network", "resnet8", "--seeds", "1", "--first-items", "4", "--items", "4",
                   "--first-epochs", "1", "--epochs", "1", "--threads", "1")
    assert list(rows) == ["quern", "torch"] and all(0 <= row["chunks"][0] <= 100 for row in rows.values())


@pytest.fixture
def unpacked(images, tmp_path):
    for part in ("images-idx3", "labels-idx1"):
        (tmp_path / part).write_bytes(gzip.decompress((images / f"t10k-{part}-ubyte.gz").read_bytes()))
    return tmp_path / "images-idx3", tmp_path / "labels-idx1"


def test_peers_of_one_image(unpacked, run_quern, tmp_path):
    """They take the weights of a model of Quern, layer by layer."""
    text = "conv 4 3x3 relu; batchnorm; maxpool 2; dense 10 softmax"
    model = tmp_path / "m.safetensors"
    done = run_quern("train", "--data", unpacked[0], "--labels", unpacked[1], "--shape", "1x28x28",
                     "--model", text, "--epochs", "1", "-o", model)
    assert done.returncode == 0, done.stderr
    for name in ("torch", "onnxruntime"):
        row = peer("predict_cnn_peer.py", name, "one", "--network", text, "--shape", "1x28x28",
                   "--model", model, "--images", unpacked[0], "--count", "12")
        assert row["classes"] == [*range(10), 0, 1] and row["median_ms"] >= row["least_ms"] > 0


def test_peer_with_a_graph(unpacked):
    """It computes on GPUs only."""
    words = ["train", "--images", unpacked[0], "--labels", unpacked[1], "--batch", "32"]
    row = peer("torch_graph_mlp.py", *words, "--device", "cuda", "--products", "tf32")
    assert row["version"].endswith("CUDA graph, TF32") and row["loss_after"] < row["loss_before"]
    assert "does not compute on cpu" in peer("torch_graph_mlp.py", *words)["skip"]


@machine.LONG
def test_products_of_integers():
    """All programs of bench/ and examples/ are built. `integers` compares before it times: odd sizes, plain C."""
    program = builds.ready("release", "bench", "examples") / "bench" / "integers"
    done = subprocess.run([program, "5", "37", "19", "scalar"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[2:]]
    assert [row[:2] for row in rows] == [["scalar", a] for a in ("f32", "i7", "i14", "i21")]
    assert all(float(rate) > 0 for row in rows for rate in row[2:])
    done = subprocess.run([program, "5", "37", "19", "sse"], capture_output=True, text=True)
    assert done.returncode == 2 and "no instruction set sse" in done.stderr


# About a second each. What needs a GPU, root or a quiet machine is not here.
RUNS = ["accuracy.py --seeds 1 --jobs cancer --arith f32", "functions_numpy.py", "kernel.py --cases mandelbrot --rounds 1",
        "kernel_numbers.py --items 10000 --repeats 1", "kernel_ranks.py --repeats 1", "memory.py --threads 1 --batches 128",
        "rounding.py --items 32 --epochs 1", "start.py --threads 1 --rounds 1", "conv_layers lenet 2",
        "elementary_speed 1", "functions_speed 1", "peak --json 1"]


@machine.LONG
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.split()[0])
def test_runs(run, images):
    """Exit status 1 of those that have a target is not a fault: no test asserts a time."""
    name, *words = run.split()
    folder = builds.ready("release", "bench")
    program = [sys.executable, BENCH / name] if name.endswith(".py") else [folder / "bench" / name]
    done = subprocess.run([*program, *words], env={**os.environ, "QUERN_MNIST": str(images)}, capture_output=True, text=True)
    missed = name == "start.py" and done.returncode == 1
    assert (done.returncode == 0 or missed) and done.stdout, done.stderr
    assert "FAILED" not in done.stdout and "Traceback" not in done.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda s: s.name)
def test_scripts_begin(script):
    done = subprocess.run([sys.executable, script, "--help"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage:")

"""The standing job on the real MNIST, as the README writes it, where the data is at hand.

The folder is $QUERN_MNIST, or shared/data/mnist beside the repository; without it these tests are
skipped. The files are the original IDX files, gzipped; the CSV files are made of them here.
"""

import csv
import gzip
import json
import os
from pathlib import Path

import numpy
import pytest

import devices
import machine
import recipes

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(os.environ.get("QUERN_MNIST", ROOT.parent / "shared" / "data" / "mnist"))
FILES = [f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k")
         for kind in ("images-idx3", "labels-idx1")]

# The SHA-256 of digits.safetensors after the standing job, and after two of its epochs. It moves only
# with the contract.
STANDING = {10: "077c4a38b0c4d2a93ff408e751dce1fb5d3fd6aa2a206f704f36007c3a989e90",
            2: "2d7dfb3416376f8af798ba13dbdba4ed023617d0bdaa47c38a39ac859e65cbce"}
STANDING_I14 = {"unit": "af34dfa2c64f19ab78f2f20e233ee5e1b82eaca61d540a990263a64ececee351",
                "fraction": "3097f8af0440620fb92f83ab0322c23396ab68da41c026f45b9abe3697ae4501"}

pytestmark = pytest.mark.skipif(not all((FOLDER / name).exists() for name in FILES),
                                reason=f"MNIST is not in {FOLDER} (set QUERN_MNIST)")


def read(part):
    with gzip.open(FOLDER / f"{part}-images-idx3-ubyte.gz") as file:
        images = numpy.frombuffer(file.read()[16:], numpy.uint8).reshape(-1, 784)
    with gzip.open(FOLDER / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = numpy.frombuffer(file.read()[8:], numpy.uint8)
    return images, labels


def write_csv(path, images, labels):
    words = [str(value) for value in range(256)]
    with open(path, "w") as file:
        # Other names than Quern's own would be part of the model file.
        file.write("label," + ",".join(f"f{i}" for i in range(784)) + "\n")
        for label, image in zip(labels.tolist(), images):
            file.write(f"{label}," + ",".join([words[v] for v in image.tolist()]) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("mnist")
    for part, name in (("train", "mnist_train.csv"), ("t10k", "mnist_test.csv")):
        write_csv(made / name, *read(part))
    return made


@pytest.mark.parametrize("epochs, least", [(2, 0.94), pytest.param(10, 0.97, marks=machine.LONG)])
def test_standing_job(epochs, least, run_quern, folder):
    """Trained from CSV, applied, made again; the bytes and the accuracy are the committed ones."""
    sets = ["--data", "mnist_train.csv", "--test", "mnist_test.csv"]
    run_quern("train", *sets, "--model", "dense 500 tanh; dense 10 softmax", "--loss", "mse",
              "--batch", "64", "--lr", "0.1", "--momentum", "0.9", "--epochs", epochs, "--seed", "1",
              "-o", "digits.safetensors", cwd=folder)
    run_quern("predict", "digits.safetensors", "--data", "mnist_test.csv", "-o", "predictions.csv",
              cwd=folder)
    with open(folder / "predictions.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    predictions = numpy.array([int(row["prediction"]) for row in rows])
    accuracy = float((predictions == read("t10k")[1]).mean())
    assert accuracy >= least
    assert recipes.sha256(folder / "digits.safetensors") == STANDING[epochs]


@pytest.mark.parametrize("scale", ["unit", "fraction"])
@machine.LONG
def test_standing_job_in_integers(scale, run_quern, tmp_path):
    """The same with --arith i14, from the original files; bytes over 256 as bytes themselves."""
    test = [FOLDER / FILES[2], FOLDER / FILES[3]]
    done = run_quern("train", *IMAGES, "--test", test[0], "--test-labels", test[1], "--model",
                     "dense 500 tanh; dense 10 softmax", "--loss", "mse", "--batch", "64", "--lr",
                     "0.1", "--momentum", "0.9", "--epochs", "10", "--seed", "1", "--arith", "i14",
                     "--scale", scale, "--json", "-o", tmp_path / "digits.safetensors", timeout=200)
    end = json.loads(done.stdout.splitlines()[-1])
    assert end["digest"] == STANDING_I14[scale]
    assert end["accuracy_of"] == "test" and end["accuracy"] >= 0.97


IMAGES = ["--data", FOLDER / "train-images-idx3-ubyte.gz",
          "--labels", FOLDER / "train-labels-idx1-ubyte.gz"]
ONE_EPOCH = ["--loss", "cross-entropy", "--batch", "128", "--lr", "0.1", "--momentum", "0.9",
             "--epochs", "1", "--quiet"]
SMALL, LARGE = (["--model", f"dense {n} tanh; dense 10 softmax"] for n in (30, 500))


def test_gzipped_idx_gives_the_same_model(run_quern, folder):
    """One epoch from the original files and from CSV: one model."""
    for data, name in ((["--data", "mnist_train.csv"], "csv"), (IMAGES, "idx")):
        run_quern("train", *data, *SMALL, *ONE_EPOCH, "-o", f"{name}.safetensors", cwd=folder)
    one, other = ((folder / f"{name}.safetensors").read_bytes() for name in ("csv", "idx"))
    assert one == other


@machine.LONG
def test_devices_give_the_same_model(run_quern, tmp_path):
    """One epoch on the processor, on an OpenCL device, on both by fixed and by measured shares."""
    (opencl,), environment = devices.pocl()
    ways = {"cpu": [], opencl: [], f"cpu,{opencl}": [], f"{opencl},cpu": ["--shares", "1,3"]}
    models = []
    for names, shares in ways.items():
        run_quern("train", *IMAGES, *LARGE, *ONE_EPOCH, "--devices", names, *shares, "-o", "model",
                  cwd=tmp_path, env=environment)
        models.append((tmp_path / "model").read_bytes())
    assert len(set(models)) == 1

"""What every peer script shares: its arguments, the IDX reader, the clock, the one JSON line.

A peer script defines a class with the methods named in `Peer` and ends with `run(TheClass)`.
It is started by bench/train.py, predict.py and gpu_train.py, in a process that already holds
exactly the processor cores it may use, but works alone too:

    python bench/peers/jax_mlp.py train --images IDX --labels IDX --batch 128 --threads 2
    python bench/peers/torch_mlp.py train --images IDX --labels IDX --hidden 4096,4096 --device cuda

This file imports nothing heavier than NumPy, because predict.py times the imports as well.
"""

import argparse
import gzip
import json
import resource
import sys
import time

import numpy as np

MOMENTUM = 0.9


class Peer:
    """The methods a peer has. Only `epoch` and `predict` are ever timed inside the process.

    Before the first of them `run` sets what the command line says of the network (`sizes`, from the
    inputs to the classes), the learning rate (`rate`), where to compute (`device`, cpu or cuda) and
    whether products of float32 may be computed in TF32 (`tf32`), which CUDA devices alone do.
    """

    name = "peer"
    devices = ("cpu",)
    sizes, rate, device, tf32 = (784, 500, 10), 0.1, "cpu", False
    frozen = 0  # 1: train the last layer alone; others keep their weights and running averages
    text = shape = None  # model text and shape of an image, of the peers of train_cnn.py: cnnlib.py

    def __init__(self, threads):
        """Import the library and hold it to that many threads."""

    def version(self):
        """The library's version, and what else decides its speed."""

    def begin(self, images, labels, batch, seed):
        """Take float32 images in 0..1 and labels; make fresh weights; keep the data resident."""

    def epoch(self):
        """Train one shuffled epoch, wait for its end and return how many items were used."""

    def loss(self):
        """Mean cross-entropy over the training data."""

    def save(self, path):
        """Write the model in the library's own habit."""

    def load(self, path):
        """Read what `save` wrote."""

    def predict(self, images, batch):
        """The class of each float32 image, as a NumPy array."""


def read_idx(path):
    """One IDX file of unsigned bytes, gzipped or not, as an array of items x everything else."""
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "rb") as file:
        data = file.read()
    if data[:3] != b"\0\0\x08":
        sys.exit(f"{path}: not an IDX file of unsigned bytes")
    shape = np.frombuffer(data, ">u4", count=data[3], offset=4)
    body = np.frombuffer(data, np.uint8, offset=4 + 4 * data[3])
    return body.reshape(shape[0], -1)


def read_images(path):
    """As `--scale fraction` of Quern has them."""
    return read_idx(path).astype(np.float32) / np.float32(256)


def read_labels(path):
    return read_idx(path).ravel().astype(np.int64)


def first_weights(seed, sizes):
    """Glorot-uniform weights and zero biases, so that the peers begin alike."""
    random = np.random.default_rng(seed)
    arrays = []
    for rows, columns in zip(sizes, sizes[1:]):
        bound = np.sqrt(6.0 / (rows + columns))
        arrays.append(random.uniform(-bound, bound, (rows, columns)).astype(np.float32))
        arrays.append(np.zeros(columns, np.float32))
    return arrays


def write_classes(path, classes):
    with open(path, "w", encoding="ascii") as file:
        file.write("item,prediction\n")
        file.writelines(f"{item},{value}\n" for item, value in enumerate(classes.tolist()))


def timed_epochs(peer, warmups, epochs):
    """The rate of each epoch after the warm-ups (which hold any compilation), and how many cores
    the process kept busy meanwhile: fewer than its threads when it had to wait for them."""
    for _ in range(warmups):
        peer.epoch()
    rates = []
    wall, busy = time.perf_counter(), time.process_time()
    for _ in range(epochs):
        start = time.perf_counter()
        items = peer.epoch()
        rates.append(items / (time.perf_counter() - start))
    return rates, (time.process_time() - busy) / (time.perf_counter() - wall)


def train(peer, options):
    images, labels = read_images(options.images), read_labels(options.labels)
    peer.begin(images, labels, options.batch, options.seed)
    before = peer.loss()
    rates, cores = timed_epochs(peer, options.warmups, options.epochs)
    return {
        "batch": options.batch,
        "items_per_s": float(np.median(rates)),
        "chunks": rates,
        "busy_cores": cores,
        "loss_before": before,
        "loss_after": peer.loss(),
        "peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }


def save(peer, options):
    images, labels = read_images(options.images), read_labels(options.labels)
    peer.begin(images, labels, options.batch, options.seed)
    before = peer.loss()
    peer.epoch()
    peer.save(options.model)
    return {"loss_before": before, "loss_after": peer.loss()}


def speed(peer, options):
    """Prediction alone: images resident as float32, the clock stops at the classes."""
    images, labels = read_images(options.images), read_labels(options.labels)
    peer.load(options.model)
    rates = []
    for chunk in range(options.warmups + options.epochs):
        start = time.perf_counter()
        classes = peer.predict(images, options.batch)
        if chunk >= options.warmups:
            rates.append(len(images) / (time.perf_counter() - start))
    return {
        "batch": options.batch,
        "items_per_s": float(np.median(rates)),
        "chunks": rates,
        "accuracy": float(np.mean(classes == labels)),
    }


def predict(peer, options):
    """The whole way, from the files to the written classes; the caller holds the clock."""
    images = read_images(options.images)
    peer.load(options.model)
    write_classes(options.out, peer.predict(images, options.batch))
    return {"batch": options.batch}


def arguments():
    parser = argparse.ArgumentParser(description="One peer of Quern's benchmarks.")
    parser.add_argument("verb", choices=("train", "save", "speed", "predict"))
    parser.add_argument("--images", required=True, help="IDX file of images")
    parser.add_argument("--labels", help="IDX file of labels")
    parser.add_argument("--model", help="the model file to write or read")
    parser.add_argument("--out", help="where predict writes its CSV")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--hidden", default="500", help="units of the hidden layers, as 500,500")
    parser.add_argument("--network", help="a model text, for the peers of train_cnn.py")
    parser.add_argument("--shape", help="of an image, as 3x32x32, for them")
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--products", choices=("float32", "tf32"), default="float32")
    parser.add_argument("--frozen", type=int, default=0, help="1: train the last layer alone (peers of train_cnn.py)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--warmups", type=int, default=1, help="epochs before the clock")
    parser.add_argument("--epochs", type=int, default=5, help="timed epochs, a chunk each")
    return parser.parse_args()


def run(kind):
    """Do what the command line asks of this peer and print one JSON object on one line."""
    options = arguments()
    if options.device not in kind.devices:
        print(json.dumps({"peer": kind.name, "skip": f"does not compute on {options.device}"}))
        return
    kind.device, kind.rate = options.device, options.rate
    kind.frozen = options.frozen
    kind.tf32 = options.products == "tf32"
    kind.text, kind.shape = options.network, options.shape
    kind.sizes = (784, *map(int, options.hidden.split(",")), 10)
    try:
        peer = kind(options.threads)
    except (ImportError, OSError, RuntimeError) as error:
        print(json.dumps({"peer": kind.name, "skip": f"cannot be used: {error}"}))
        return
    verb = {"train": train, "save": save, "speed": speed, "predict": predict}[options.verb]
    result = verb(peer, options)
    version = peer.version() + (", TF32" if kind.tf32 else "")
    head = {"peer": kind.name, "version": version, "threads": options.threads}
    print(json.dumps({**head, **result}))

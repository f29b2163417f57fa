"""What convolutional networks reach on CIFAR-10's JPEG files: Quern, and PyTorch by the same recipe.

    python bench/accuracy_cnn.py --networks resnet20 --epochs 10 --arith f32 --seeds 1

Momentum 0.9, a cosine schedule after a warm-up, weight decay, "pad 4; crop; flip", channels scaled
by `standard`. The whole training set is trained on; the accuracy is that of the test set. A seed
decides the first weights, the order and the augmentation; PyTorch draws its own. Takes hours. It
needs ../shared/data/cifar10, or the folder in QUERN_CIFAR10. Nothing is timed beside anything.
"""

import hashlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import common
import train_cnn

WARMUP, DECAY = 200, 0.0005
RATES = {"vgg8": 0.05}  # without normalisation; others 0.1
USUAL_RATE = 0.1


def archives():
    folder = pathlib.Path(os.environ.get("QUERN_CIFAR10", common.ROOT.parent / "shared/data/cifar10"))
    files = [folder / "train.tar", folder / "test.tar"]
    return files if all(file.is_file() for file in files) else None


def decode(archive, path):
    """The pixels and labels of an archive of one folder a class, as the peer reads them."""
    import numpy as np
    import PIL.Image

    with tarfile.open(archive) as tar:
        members = sorted((m for m in tar if m.isfile()), key=lambda m: m.name)
        names = sorted({m.name.split("/")[-2] for m in members})
        images = [np.asarray(PIL.Image.open(io.BytesIO(tar.extractfile(m).read())).convert("RGB"))
                  for m in members]
        labels = [names.index(m.name.split("/")[-2]) for m in members]
    np.savez(path, images=np.stack(images).transpose(0, 3, 1, 2), labels=np.array(labels))


def lines_of(command):
    """The JSON lines that a command prints, which are shown as they come."""
    found = []
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True) as running:
        for line in running.stdout:
            print(line, end="", file=sys.stderr, flush=True)
            found += common.json_lines(line)
    if running.returncode != 0 or not found:
        raise common.Failed(f"'{' '.join(map(str, command))}' ended with {running.returncode}")
    return found


def quern(text, rate, arithmetic, seed, chosen, files, scratch):
    """Accuracy in percent, and the digest of the model."""
    model = scratch / "model.safetensors"
    command = [common.quern_path(), "train", "--data", files[0], "--test", files[1], "--model", text]
    command += ["--scale", "standard", "--augment", "pad 4; crop; flip", "--schedule", "cosine"]
    command += ["--momentum", "0.9", "--weight-decay", DECAY, "--warmup", WARMUP, "--lr", rate, "--batch", "128"]
    command += ["--epochs", chosen.epochs, "--arith", arithmetic, "--seed", seed]
    command += ["--threads", chosen.threads[0], "--json", "-o", model]
    end = next(row for row in lines_of(command) if row["event"] == "end")
    return 100 * end["accuracy"], hashlib.sha256(model.read_bytes()).hexdigest()


def torch(text, rate, seed, chosen, scratch):
    """Accuracy in percent, or why there is none."""
    script = common.HERE / "peers" / "torch_accuracy_cnn.py"
    command = [sys.executable, script, "--train", scratch / "train.npz", "--test", scratch / "test.npz"]
    command += ["--network", text, "--epochs", chosen.epochs, "--lr", rate, "--seed", seed]
    command += ["--decay", DECAY, "--warmup", WARMUP, "--threads", chosen.threads[0]]
    told = lines_of(command)[-1]
    return f"SKIPPED: {told['skip']}" if "skip" in told else f"{told['accuracy']:.2f} %"


def contest(name, chosen, files, scratch):
    """A row for each contender and seed."""
    text, rate = train_cnn.NETWORKS[name][0], RATES.get(name, USUAL_RATE)
    for seed in chosen.seeds:
        for arithmetic in chosen.arith:
            percent, digest = quern(text, rate, arithmetic, seed, chosen, files, scratch)
            yield [f"quern {arithmetic}", seed, f"{percent:.2f} %", digest]
        if "torch" in chosen.peers:
            yield ["torch", seed, torch(text, rate, seed, chosen, scratch), "-"]


def main():
    parser = common.options(__doc__.splitlines()[0], threads=[2], peers=["torch"])
    parser.add_argument("--networks", type=lambda text: text.split(","), default=["vgg8", "resnet20"])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=common.numbers, default=[1])
    parser.add_argument("--arith", type=lambda text: text.split(","), default=["f32"])
    chosen = parser.parse_args()
    files = archives()
    if not files or not common.quern_version():
        print(f"SKIPPED: needs CIFAR-10's archives, and {common.quern_path()}")
        return
    facts, sections = {"quern": common.quern_version(), "epochs": chosen.epochs}, []
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        for file, part in zip(files, ("train", "test")):
            decode(file, scratch / f"{part}.npz")
        for name in chosen.networks:
            rows = list(contest(name, chosen, files, scratch))
            head = ["", "seed", "accuracy", "SHA-256 of the model"]
            sections.append((name, common.table(head, rows), rows))
    common.publish("Accuracy on CIFAR-10", facts, sections, chosen)


if __name__ == "__main__":
    main()

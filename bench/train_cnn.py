"""Training throughput of convolutional networks beside PyTorch and JAX: images a second.

    python bench/train_cnn.py --networks lenet,vgg8,resnet20 --batches 32,128,512 --threads 2
    python bench/train_cnn.py --networks vgg8 --arith f32,i14 --items 1024 --peers torch

lenet trains on MNIST, the others on CIFAR-10's JPEG files, decoded beforehand; QUERN_MNIST and
QUERN_CIFAR10 name the folders. Without them images are drawn. Every contender gets a turn in every
round, in a fresh process held to its cores, and trains whole shuffled epochs of the same images with
SGD and momentum 0.9. A time counts only after its contender was seen to learn: its loss must fall. Quern's model file must be the
same bytes in every round and for every number of threads. The median over all
epochs of all rounds is reported. FLOP are those of the products: forward, errors, gradients; none
for the errors of the images.
"""

import hashlib
import io
import os
import pathlib
import statistics
import sys
import tarfile
import tempfile

import common

sys.path.insert(0, str(common.HERE / "peers"))
import cnnlib  # noqa: E402
from networks import NETWORKS, SHAPES  # noqa: E402

PEERS = {"torch": "torch_cnn.py", "torch-bf16": "torch_bf16_cnn.py", "jax": "jax_cnn.py"}


def flop(layers, image, first=True):
    """Operations of the products of a training step for an image, and the shape after."""
    total = 0
    for layer in layers:
        behind = cnnlib.after(layer, image)
        if layer["kind"] == "residual":
            total += flop(layer["main"], image, first)[0] + flop(layer["shortcut"], image, first)[0]
        elif layer["kind"] in ("conv", "dense"):
            area = layer["kernel"] if layer["kind"] == "conv" else image[1:]
            depth = image[0] * area[0] * area[1]
            total += (2 if first else 3) * 2 * depth * behind[0] * behind[1] * behind[2]
        first = False
        image = behind
    return total, image


def cifar10(items):
    """Decoded images and labels of CIFAR-10's archive, or None."""
    folder = pathlib.Path(os.environ.get("QUERN_CIFAR10", common.ROOT.parent / "shared/data/cifar10"))
    archive = folder / "train.tar"
    try:
        import PIL.Image
    except ImportError:
        print("SKIPPED: CIFAR-10 needs Pillow here", file=sys.stderr)
        return None
    if not archive.is_file():
        return None
    import numpy as np

    with tarfile.open(archive) as tar:
        members = [m for m in tar if m.isfile()]
        names = sorted({m.name.split("/")[-2] for m in members})
        members = members[:: max(1, len(members) // items)][:items]
        images = [np.asarray(PIL.Image.open(io.BytesIO(tar.extractfile(m).read())).convert("RGB"))
                  for m in members]
        labels = [names.index(m.name.split("/")[-2]) for m in members]
    return np.stack(images).transpose(0, 3, 1, 2), np.array(labels, np.uint8)


def data(which, items, scratch):
    """IDX files of images and labels, and a sentence that says which data."""
    import numpy as np

    found, told = None, f"SYNTHETIC images of the shape of {which}"
    if which == "mnist":
        files, told = common.data(scratch)
        common.cut(files, items)
        return files["train-images"], files["train-labels"], f"{told}, the first {items:,}"
    if found := cifar10(items):
        told = f"CIFAR-10 as JPEG, {items:,} images"
    else:
        random = np.random.default_rng(0)
        labels = random.integers(0, 10, items).astype(np.uint8)
        patterns = random.integers(0, 200, (10, *SHAPES[which]))
        found = patterns[labels] + random.integers(0, 56, (items, *SHAPES[which])), labels
    images, labels = (np.ascontiguousarray(a.astype(np.uint8)) for a in found)
    paths = scratch / f"{which}-images", scratch / f"{which}-labels"
    for path, array in zip(paths, (images.reshape(items, -1), labels)):
        head = b"\0\0\x08" + bytes([array.ndim]) + np.array(array.shape, ">u4").tobytes()
        path.write_bytes(head + array.tobytes())
    return *paths, told


def turn_of_quern(digests, case, arithmetic, chosen, scratch):
    text, images, labels, shape, rate, batch, threads = case
    model = scratch / "quern.safetensors"
    files = {"train-images": images, "train-labels": labels}
    words = ["--arith", arithmetic, "--shape", "x".join(map(str, shape)), *chosen.extra]
    command = common.training(files, batch, threads, chosen.epochs + 1, model, words, text, rate)
    rows = common.json_lines(common.call(command, threads).stdout)
    epochs = [row for row in rows if row.get("event") == "epoch"]
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    if digests.setdefault((text, batch, arithmetic), digest) != digest:
        raise common.Failed(f"batch {batch}, {threads} threads: the model's bytes differ")
    losses = [row["train_loss"] for row in epochs]
    if not losses[-1] < losses[0]:
        raise common.Failed(f"loss went from {losses[0]} to {losses[-1]}")
    return {"chunks": [row["items_per_s"] for row in epochs[1:]], "version": "quern",
            "proof": f"loss of an epoch {losses[0]:.2f} to {losses[-1]:.3f}"}


def turn_of_peer(name, case, chosen, **more):
    text, images, labels, shape, rate, batch, threads = case
    row = common.peer(PEERS[name], "train", threads, images=images, labels=labels, batch=batch, network=text,
                      shape="x".join(map(str, shape)), epochs=chosen.epochs, rate=rate, **more)  # fmt: skip
    if "skip" not in row and not row["loss_after"] < row["loss_before"]:
        raise common.Failed(f"loss went from {row['loss_before']} to {row['loss_after']}")
    if "skip" in row:
        return row
    return {**row, "proof": f"loss {row['loss_before']:.2f} to {row['loss_after']:.3f}"}


def contest(case, chosen, scratch, digests):
    ours = {f"quern {word}": word for word in chosen.arith} if common.quern_version() else {}
    rows = {}
    for _ in range(chosen.rounds):
        for name in [*ours, *chosen.peers]:
            if "skip" in rows.get(name, {}):
                continue
            try:
                turn = (turn_of_quern(digests, case, ours[name], chosen, scratch) if name in ours
                        else turn_of_peer(name, case, chosen))
            except common.Failed as failure:
                turn = {"skip": f"FAILED: {failure}"}
            if "skip" in turn:
                print(f"SKIPPED: {name}: {turn['skip']}", file=sys.stderr)
            rows[name] = {**turn, "chunks": rows.get(name, {}).get("chunks", []) + turn.get("chunks", [])}
    return rows


def table(rows, operations, peak):
    best = max((statistics.median(row["chunks"]) for name, row in rows.items()
                if not name.startswith("quern") and name != "torch-bf16" and row["chunks"]), default=None)
    lines = []
    for name, row in rows.items():
        if not row["chunks"]:
            lines.append([name, "-", "-", "-", "-", "-", row["skip"].splitlines()[0]])
            continue
        rate = statistics.median(row["chunks"])
        gflops = rate * operations / 1e9
        of_peak = f"{gflops / peak:.0%}" if peak and name in ("quern f32", "torch", "jax") else "-"
        lines.append([name, f"{rate:,.0f}", common.spread(row["chunks"]), f"{rate / best:.2f}" if best else "-",
                      f"{gflops:.1f}", of_peak, row["proof"]])
    return common.table(["", "images/s", "spread", "of best float32 peer", "GFLOP/s", "of peak", "verified by"], lines)


def main():
    parser = common.options(__doc__.splitlines()[0], threads=[2], peers=list(PEERS))
    parser.add_argument("--networks", type=lambda text: text.split(","), default=list(NETWORKS))
    parser.add_argument("--batches", type=common.numbers, default=[32, 128, 512])
    parser.add_argument("--arith", type=lambda text: text.split(","), default=["f32"])
    parser.add_argument("--items", type=int, default=2048, help="images of an epoch")
    parser.add_argument("--epochs", type=int, default=2, help="timed epochs of one turn")
    parser.add_argument("--extra", type=str.split, default=[], help="more words for quern train")
    chosen = parser.parse_args()
    facts = common.hardware()
    facts["quern"] = common.quern_version() or "SKIPPED: no " + str(common.quern_path())
    peaks = common.peak(common.quern_path().parent / "bench/peak", chosen.threads)
    facts["peak_GFLOP/s"] = ", ".join(f"{t}: {peaks[t]:.0f}" for t in peaks) or "not measured"
    sections, digests, versions = [], {}, {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        for network in chosen.networks:
            text, which, rate = NETWORKS[network]
            images, labels, facts[f"data_of_{network}"] = data(which, chosen.items, scratch)
            operations, _ = flop(cnnlib.parse(text), SHAPES[which])
            facts[f"{network}"] = f"{text}: {operations / 1e6:.0f} MFLOP an image and step"
            for threads in chosen.threads:
                for batch in chosen.batches:
                    case = text, images, labels, SHAPES[which], rate * min(1, batch / 128), batch, threads
                    rows = contest(case, chosen, scratch, digests)
                    versions.update({n: r["version"] for n, r in rows.items() if "version" in r})
                    heading = f"{network}, batch {batch}, {threads} thread{'s' if threads > 1 else ''}"
                    sections.append((heading, table(rows, operations, peaks.get(threads)), rows))
                    print(heading, sections[-1][1], sep="\n", file=sys.stderr, flush=True)
    facts["peers"] = "; ".join(v for n, v in versions.items() if not n.startswith("quern"))
    facts["load_at_end"] = round(os.getloadavg()[0], 2)
    common.publish("Training throughput of convolutional networks", facts, sections, chosen)
    every = [row for _, _, rows in sections for row in rows.values()]
    sys.exit(any("FAILED" in row.get("skip", "") for row in every))


if __name__ == "__main__":
    main()

"""Prediction by convolutional networks beside ONNX Runtime and PyTorch.

    python bench/predict_cnn.py --networks lenet,resnet20 --rounds 5

Quern trains each network for an epoch on few images. PyTorch takes its weights, and ONNX Runtime
what PyTorch exports. Two tables:

one image    milliseconds of the prediction of one image in a program that keeps running, on one
             thread. Quern begins with the image's bytes, the peers with float32 already scaled.
folder       seconds from CIFAR-10's test archive of 10,000 JPEG files to the classes, on two
             threads, decoding included. Quern: the whole process, with an empty cache. PyTorch: a
             DataLoader with two workers and Pillow over the unpacked files, from its first batch on;
             its start, imports and the unpacking are not counted.

A time counts only when nearly all classes of a peer are those of Quern.
"""

import csv
import json
import os
import pathlib
import statistics
import sys
import tarfile
import tempfile

import common
import train_cnn

IMAGES, NEARLY_ALL = 500, 0.99
PEERS = ["onnxruntime", "torch"]


def trained(network, scratch, items, threads):
    """A model of few images: what bench/train_cnn.py trains."""
    text, which, rate = train_cnn.NETWORKS[network]
    images, labels, told = train_cnn.data(which, items, scratch)
    model = scratch / f"{network}.safetensors"
    shape = "x".join(map(str, train_cnn.SHAPES[which]))
    words = ["--shape", shape]
    files = {"train-images": images, "train-labels": labels}
    common.call(common.training(files, 128, threads, 1, model, words, text, rate), threads)
    return {"text": text, "shape": shape, "images": images, "labels": labels, "model": model, "data": told}


def same(ours, theirs):
    share = sum(a == b for a, b in zip(ours, theirs, strict=True)) / len(ours)
    if share < NEARLY_ALL:
        raise common.Failed(f"only {share:.1%} of the classes are those of Quern")
    return f"{share:.1%} of the classes are Quern's"


def peer(name, case, verb, threads, **more):
    script = common.HERE / "peers/predict_cnn_peer.py"
    words = {"network": case["text"], "shape": case["shape"], "model": case["model"], **more}
    command = [sys.executable, script, name, verb, f"--threads={threads}",
               *(f"--{key}={value}" for key, value in words.items())]
    return common.json_lines(common.call(command, threads).stdout)[-1]


def one_image(case, chosen):
    """{who: [median of a round], proof}."""
    program = common.quern_path().parent / "bench/one_image"
    rows = {name: {"chunks": []} for name in ["quern", *chosen.peers]}
    for _ in range(chosen.rounds):
        words = [program, case["model"], case["images"], case["labels"], IMAGES, 1]
        done = json.loads(common.call(words, 1).stdout)
        rows["quern"]["chunks"].append(done["median_ms"])
        rows["quern"]["proof"] = f"least {done['least_ms']:.3f} ms"
        for name in chosen.peers:
            told = peer(name, case, "one", 1, images=case["images"], count=IMAGES)
            if "skip" in told:
                rows[name]["skip"] = told["skip"]
                continue
            rows[name]["chunks"].append(told["median_ms"])
            rows[name]["proof"] = same(done["classes"], told["classes"])
    return rows


def folder(case, archive, chosen, scratch):
    unpacked = scratch / "unpacked"
    if not unpacked.exists():
        with tarfile.open(archive) as tar:
            tar.extractall(unpacked, filter="data")
    rows = {name: {"chunks": []} for name in ["quern", "torch"]}
    for turn in range(chosen.rounds):
        out, clock = scratch / "folder.csv", []
        os.environ["QUERN_CACHE"] = str(scratch / f"cache{turn}")
        words = [common.quern_path(), "predict", case["model"], "--data", archive, "--threads", 2, "--json", "-o", out]
        common.call(words, 2, clock)
        rows["quern"]["chunks"].append(clock[0])
        rows["quern"]["proof"] = "the whole process"
        with open(out, newline="", encoding="utf-8") as file:
            ours = {"/".join(row["file"].split("/")[-2:]): int(row["prediction"]) for row in csv.DictReader(file)}
        told = peer("torch", case, "folder", 2, images=unpacked)
        if "skip" in told:
            rows["torch"]["skip"] = told["skip"]
            continue
        rows["torch"]["chunks"].append(told["seconds"])
        names = told["names"]
        rows["torch"]["proof"] = same([ours[name] for name in names], told["classes"])
    return rows


def table(rows, unit):
    best = min((statistics.median(row["chunks"]) for name, row in rows.items() if name != "quern" and row["chunks"]),
               default=None)
    lines = []
    for name, row in rows.items():
        if not row["chunks"]:
            lines.append([name, "-", "-", "-", row["skip"]])
            continue
        value = statistics.median(row["chunks"])
        ratio = f"{best / value:.2f}" if best else "-"
        lines.append([name, f"{value:.3f}", common.spread(row["chunks"]), ratio, row["proof"]])
    return common.table(["", unit, "spread", "times as fast as the best peer", "verified by"], lines)


def main():
    parser = common.options(__doc__.splitlines()[0], threads=[2], peers=PEERS, rounds=5)
    parser.add_argument("--networks", type=lambda text: text.split(","), default=["lenet", "resnet20"])
    parser.add_argument("--items", type=int, default=2048, help="images to train with")
    chosen = parser.parse_args()
    facts = common.hardware()
    facts["quern"] = common.quern_version() or sys.exit(f"there is no {common.quern_path()}")
    cifar = pathlib.Path(os.environ.get("QUERN_CIFAR10", common.ROOT.parent / "shared/data/cifar10")) / "test.tar"
    sections = []
    with tempfile.TemporaryDirectory() as place:
        scratch = pathlib.Path(place)
        for network in chosen.networks:
            case = trained(network, scratch, chosen.items, 2)
            facts[f"data_of_{network}"] = case["data"]
            rows = one_image(case, chosen)
            sections.append((f"{network}: one image, one thread", table(rows, "milliseconds"), rows))
            if not cifar.is_file():
                print(f"SKIPPED: there is no {cifar}", file=sys.stderr)
            elif case["shape"] == "3x32x32":
                rows = folder(case, cifar, chosen, scratch)
                sections.append((f"{network}: 10,000 JPEG files, two threads", table(rows, "seconds"), rows))
    facts["load_at_end"] = round(os.getloadavg()[0], 2)
    common.publish("Prediction by convolutional networks", facts, sections, chosen)


if __name__ == "__main__":
    main()

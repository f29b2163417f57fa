"""Networks for photographs of 224x224 pixels beside PyTorch and ONNX Runtime: speed and memory.

    python bench/photographs.py --networks resnet18,mobilenetv2 --cases train,last,one --items 64

train   images a second of a training of all layers at --batch 32
last    the same of the last layer alone: other layers keep their weights and running averages
one     images a second of predictions of one image at a time, in a program that keeps running

The images are drawn, --size pixels wide and high. Every contender gets a turn in every round, in a
fresh process held to its cores. Operations are those of `quern model show`, bytes its activations:
written once and read once in a prediction, and three times as many in a training. Both are the
least: so the table gives the share of the peak of float32's fma that the operations reach. A peak
of memory is that of the process, data included: bytes in Quern, float32 in PyTorch.
"""

import hashlib
import json
import os
import pathlib
import statistics
import sys
import tempfile

import common
import memory
import predict_cnn
import train_cnn

CLASSES, RATE = 10, 0.01
CASES = ("train", "last", "one")
PEERS = {"train": ("torch", "torch-bf16"), "last": ("torch", "torch-bf16"), "one": ("onnxruntime", "torch")}


def drawn(items, size, scratch):
    """IDX files of images and labels; a class is a pattern of squares under noise."""
    import numpy as np

    random = np.random.default_rng(0)
    labels = (np.arange(items) % CLASSES).astype(np.uint8)
    squares = random.integers(0, 200, (CLASSES, 3, 8, 8)).repeat(-(-size // 8), 2).repeat(-(-size // 8), 3)
    images = (squares[labels, :, :size, :size] + random.integers(0, 56, (items, 3, size, size))).astype(np.uint8)
    paths = scratch / "images", scratch / "labels"
    for path, array in zip(paths, (images, labels)):
        head = b"\0\0\x08" + bytes([array.ndim]) + np.array(array.shape, ">u4").tobytes()
        path.write_bytes(head + array.tobytes())
    return paths


def facts_of(network, size):
    """The text of a ready model, its operations and bytes for an image."""
    words = [common.quern_path(), "model", "show", network, "--input", f"3x{size}x{size}", "--json"]
    told = common.json_lines(common.call(words, 1).stdout)[-1]
    return {"text": told["text"], "one": told["flops"], "last": told["flops"], "train": told["training_flops"],
            "bytes": told["activation_bytes"]}


def turn_of_quern(what, case, start, chosen, scratch, digests):
    text, images, labels, shape, rate, batch, threads = case
    model = scratch / f"{what}.safetensors"
    words = ["--shape", "x".join(map(str, shape)), *chosen.extra]
    words += ["--init-from", start, "--freeze", "all-but-last"] if what == "last" else []
    command = common.training({"train-images": images, "train-labels": labels}, batch, threads, chosen.epochs + 1,
                              model, words, text, rate)  # fmt: skip
    rows = common.json_lines(common.call(command, threads).stdout)
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    if digests.setdefault((text, what), digest) != digest:
        raise common.Failed(f"{what}: the model's bytes differ")
    rates = [row["items_per_s"] for row in rows if row.get("event") == "epoch"][1:]
    once = [1 if word == chosen.epochs + 1 else word for word in command]
    return {"chunks": rates, "peak_bytes": memory.peak_bytes(once, threads), "version": "quern"}


def turn_of_one(name, case, model, chosen):
    text, images, labels, shape, _, _, threads = case
    told = {"text": text, "shape": "x".join(map(str, shape)), "model": model}
    if name == "quern":
        program = common.quern_path().parent / "bench/one_image"
        row = json.loads(common.call([program, model, images, labels, chosen.count, threads], threads).stdout)
    else:
        row = predict_cnn.peer(name, told, "one", threads, images=images, count=chosen.count)
    return row if "skip" in row else {**row, "chunks": [1000 / row["median_ms"]]}


def turn(what, name, case, model, chosen, scratch, digests):
    if what == "one":
        return turn_of_one(name, case, model, chosen)
    if name == "quern":
        return turn_of_quern(what, case, model, chosen, scratch, digests)
    return train_cnn.turn_of_peer(name, case, chosen, frozen=int(what == "last"))


def contest(what, case, model, chosen, scratch):
    """{who: row}: rates of all rounds."""
    digests = {}
    rows = common.contest(["quern", *(peer for peer in PEERS[what] if peer in chosen.peers)], chosen.rounds,
                          lambda name, _: turn(what, name, case, model, chosen, scratch, digests))
    ours = rows["quern"].get("classes")
    for row in rows.values():
        if ours and "classes" in row:
            row["proof"] = predict_cnn.same(ours, row["classes"])
    return rows


def table(rows, what, facts, peak):
    head = ["", "images/s", "spread", "quern's rate over it", "GFLOP/s", "of peak", "GB/s", "memory, MiB"]
    lines, ours = [], rows["quern"]["chunks"] and statistics.median(rows["quern"]["chunks"])
    for name, row in rows.items():
        if not row["chunks"]:
            lines.append([name, *"-------"])
            continue
        rate = statistics.median(row["chunks"])
        gflops = rate * facts[what] / 1e9
        moved = rate * facts["bytes"] * (6 if what == "train" else 2) / 1e9
        lines.append([name, f"{rate:.2f}", common.spread(row["chunks"]), f"{ours / rate:.2f}" if ours else "-",
                      f"{gflops:.0f}", f"{gflops / peak:.0%}" if peak and "bf16" not in name else "-", f"{moved:.1f}",
                      f"{row['peak_bytes'] / memory.MIB:,.0f}" if "peak_bytes" in row else "-"])
    return common.table(head, lines)


def start_of(case, chosen, scratch):
    """A model of one step, from which the last layer is trained and predictions are made."""
    text, images, labels, shape, rate, batch, threads = case
    model = scratch / "start.safetensors"
    words = ["--shape", "x".join(map(str, shape))]
    common.call(common.training({"train-images": images, "train-labels": labels}, batch, threads, 1, model, words, text,
                                rate), threads)  # fmt: skip
    return model


def main():
    parser = common.options(__doc__.splitlines()[0], threads=[2], peers=["torch", "torch-bf16", "onnxruntime"])
    parser.add_argument("--networks", type=lambda text: text.split(","), default=["resnet18", "mobilenetv2"])
    parser.add_argument("--cases", type=lambda text: text.split(","), default=list(CASES))
    parser.add_argument("--items", type=int, default=64, help="images of an epoch")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--size", type=int, default=224, help="pixels of a side")
    parser.add_argument("--epochs", type=int, default=1, help="timed epochs of one turn")
    parser.add_argument("--count", type=int, default=10, help="predictions of one image")
    parser.add_argument("--extra", type=str.split, default=[], help="more words for quern train")
    chosen = parser.parse_args()
    facts = {**common.hardware(), "quern": common.quern_version() or sys.exit(f"there is no {common.quern_path()}")}
    peaks = common.peak(common.quern_path().parent / "bench/peak", chosen.threads)
    facts["peak_GFLOP/s"] = ", ".join(f"{t}: {peaks[t]:.0f}" for t in peaks) or "not measured"
    sections = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        images, labels = drawn(chosen.items, chosen.size, scratch)
        for network in chosen.networks:
            own = facts_of(network, chosen.size)
            facts[network] = (f"{own['one'] / 1e9:.2f} GFLOP of a prediction, {own['train'] / 1e9:.2f} of a step, "
                              f"{own['bytes'] / 1e6:.1f} MB of activations")
            for threads in chosen.threads:
                shape = (3, chosen.size, chosen.size)
                case = own["text"], images, labels, shape, RATE, chosen.batch, threads
                model = start_of(case, chosen, scratch)
                for what in chosen.cases:
                    rows = contest(what, case, model, chosen, scratch)
                    heading = f"{network}, {what}, {threads} threads"
                    sections.append((heading, table(rows, what, own, peaks.get(threads)), rows))
                    print(heading, sections[-1][1], sep="\n", file=sys.stderr, flush=True)
    facts["load_at_end"] = round(os.getloadavg()[0], 2)
    common.publish("Photographs", facts, sections, chosen)
    every = [row for _, _, rows in sections for row in rows.values()]
    sys.exit(any("FAILED" in row.get("skip", "") for row in every))


if __name__ == "__main__":
    main()

"""What fine-tuning reaches: a network for one half of CIFAR-10's classes, adapted to the other half.

    python bench/fine_tuning.py --seeds 1,2,3,4,5 --markdown tuned.md --json tuned.json

Quern trains a network for every second class. Then Quern and PyTorch adapt that model to the five
other classes, by the same recipe: momentum 0.9, weight decay, a cosine schedule, "pad 4; crop; flip".
`last` trains a new last layer alone; `all` trains all layers, the first ones at a lower rate. A seed
decides the weights of the new layer, the order and the augmentation, and each contender draws its own.
Accuracies are those of all test images of the five classes. Takes minutes. It needs
../shared/data/cifar10 or the folder in QUERN_CIFAR10; without them images are drawn.
"""

import hashlib
import json
import pathlib
import statistics
import sys
import tempfile

import accuracy_cnn
import common

SHAPE, SCALE = "3x32x32", (0.5, 0.25)
AUGMENT, MOMENTUM, DECAY, BATCH = "pad 4; crop; flip", 0.9, 0.0005, 64
DEPTH = 0.7
# The rate, and what the two contenders add to it.
WAYS = {"last": (0.05, ["--freeze", "all-but-last"], ["--frozen", 1]),
        "all": (0.05, ["--lr-depth", DEPTH], ["--depth", DEPTH])}


def drawn(items):
    """Images and labels of ten patterns of squares under noise."""
    import numpy as np

    random = np.random.default_rng(0)
    labels = np.arange(items) % 10
    squares = random.integers(0, 200, (10, 3, 8, 8)).repeat(4, 2).repeat(4, 3)
    return squares[labels] + random.integers(0, 56, (items, 3, 32, 32)), labels


def halves(images, labels, items):
    """Images and labels of every second class, then of the others; at most `items` of a class, or all if None."""
    import numpy as np

    for half in (0, 1):
        rows = np.sort(np.concatenate([np.flatnonzero(labels == c)[:items] for c in range(half, 10, 2)]))
        yield images[rows].astype(np.uint8), (labels[rows] // 2).astype(np.uint8)


def data(chosen, scratch):
    """Writes first.npz, tune.npz and test.npz, and says what they hold."""
    import numpy as np

    archives, found = accuracy_cnn.archives(), []
    for part, archive in zip(("train", "test"), archives or (None, None)):
        path = scratch / f"{part}-all.npz"
        if archive:
            accuracy_cnn.decode(archive, path)
            with np.load(path) as file:
                found.append((file["images"], file["labels"]))
        else:
            found.append(drawn(10 * max(chosen.first_items, chosen.items)))
    sets = {"first": next(halves(*found[0], chosen.first_items)),
            "tune": list(halves(*found[0], chosen.items))[1],
            "test": list(halves(*found[1], None))[1]}
    for name, (images, labels) in sets.items():
        np.savez(scratch / f"{name}.npz", images=images, labels=labels)
    counts = ", ".join(f"{len(labels):,} images of {name}" for name, (_, labels) in sets.items())
    return f"{'CIFAR-10' if archives else 'SYNTHETIC'}: {counts}"


def files(name, scratch):
    path = scratch / f"{name}.npz"
    return ["--data", f"{path}:images", "--labels", f"{path}:labels", "--shape", SHAPE]


def trained(name, rate, epochs, seed, chosen, scratch, words):
    """The model file that `quern train` writes."""
    model = scratch / f"{name}-{seed}.safetensors"
    mean, deviation = SCALE
    scale = "/".join(",".join([str(number)] * 3) for number in (mean, deviation))
    command = [common.quern_path(), "train", *files(name, scratch), "--scale", scale, "--augment", AUGMENT,
               "--momentum", MOMENTUM, "--weight-decay", DECAY, "--schedule", "cosine", "--lr", rate, "--batch", BATCH,
               "--epochs", epochs, "--seed", seed, "--threads", chosen.threads[0], "--quiet", "-o", model, *words]
    common.call(command, chosen.threads[0])
    return model


def accuracy(model, chosen, scratch):
    command = [common.quern_path(), "evaluate", model, *files("test", scratch)[:4], "--json"]
    return 100 * common.json_lines(common.call(command, chosen.threads[0]).stdout)[-1]["evaluation"]["accuracy"]


def turn_of_quern(way, start, seed, chosen, scratch):
    rate, words, _ = WAYS[way]
    words = [*words, "--init-from", start, "--new-last", *chosen.extra]
    model = trained("tune", rate, chosen.epochs, seed, chosen, scratch, words)
    return {"chunks": [accuracy(model, chosen, scratch)], "digest": hashlib.sha256(model.read_bytes()).hexdigest()}


def turn_of_torch(way, start, seed, chosen, scratch):
    rate, _, words = WAYS[way]
    told = common.call([sys.executable, common.HERE / "peers/torch_fine_tuning.py", "--train", scratch / "tune.npz",
                        "--test", scratch / "test.npz", "--start", start, "--network", text_of(chosen), "--lr", rate,
                        "--epochs", chosen.epochs, "--batch", BATCH, "--decay", DECAY, "--seed", seed,
                        "--mean", SCALE[0], "--deviation", SCALE[1], "--threads", chosen.threads[0], *words],
                       chosen.threads[0])  # fmt: skip
    row = common.json_lines(told.stdout)[-1]
    return row if "skip" in row else {"chunks": [row["accuracy"]]}


def text_of(chosen):
    """The network's text, with five classes."""
    words = [common.quern_path(), "model", "show", chosen.network, "--input", SHAPE, "--json"]
    text = common.json_lines(common.call(words, 1).stdout)[-1]["text"]
    layers, _, _ = text.rpartition("; ")
    return f"{layers}; dense 5 softmax"


def contest(way, start, chosen, scratch):
    """{who: row}: the accuracies of all seeds."""
    rows = {}
    for seed in chosen.seeds:
        for name, turn in (("quern", turn_of_quern), ("torch", turn_of_torch)):
            if name != "quern" and name not in chosen.peers or "skip" in rows.get(name, {}):
                continue
            try:
                row = turn(way, start, seed, chosen, scratch)
            except common.Failed as failure:
                row = {"skip": f"FAILED: {failure}"}
            if "skip" in row:
                print(f"SKIPPED: {name}: {row['skip'].splitlines()[-1]}", file=sys.stderr)
            rows[name] = {**row, "chunks": rows.get(name, {}).get("chunks", []) + row.get("chunks", [])}
            print(json.dumps({"way": way, "who": name, "seed": seed, **row}), file=sys.stderr, flush=True)
    return rows


def table(rows):
    head = ["", "mean", "standard deviation", "lowest", "highest", "Quern's mean less this one, and its error"]
    lines, ours = [], rows["quern"]["chunks"]
    for name, row in rows.items():
        values = row["chunks"]
        if not values:
            lines.append([name, *"-----"])
            continue
        deviation = statistics.stdev(values) if len(values) > 1 else 0.0
        lines.append([name, f"{statistics.mean(values):.2f} %", f"{deviation:.2f}", f"{min(values):.2f} %",
                      f"{max(values):.2f} %", difference(ours, values) if name != "quern" else "-"])
    return common.table(head, lines)


def difference(ours, values):
    """The difference of two means in points, with its standard error where there are several seeds."""
    if min(len(ours), len(values)) < 2:
        return "-"
    error = (statistics.variance(ours) / len(ours) + statistics.variance(values) / len(values)) ** 0.5
    return f"{statistics.mean(ours) - statistics.mean(values):+.2f} +- {error:.2f}"


def main():
    parser = common.options(__doc__.splitlines()[0], threads=[2], peers=["torch"])
    parser.add_argument("--network", default="resnet8", help="a ready model for 32x32 pixels")
    parser.add_argument("--ways", type=lambda text: text.split(","), default=list(WAYS))
    parser.add_argument("--seeds", type=common.numbers, default=[1, 2, 3, 4, 5])
    parser.add_argument("--first-items", type=int, default=5000, help="images of a class before fine-tuning")
    parser.add_argument("--first-epochs", type=int, default=8)
    parser.add_argument("--items", type=int, default=500, help="images of a class for fine-tuning")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--extra", type=str.split, default=[], help="more words for quern's fine-tuning")
    chosen = parser.parse_args()
    facts = {**common.hardware(), "quern": common.quern_version() or sys.exit(f"there is no {common.quern_path()}")}
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        facts["data"] = data(chosen, scratch)
        facts["recipe"] = (f"{chosen.network}, {chosen.epochs} epochs, batch {BATCH}, momentum {MOMENTUM}, weight decay "
                           f"{DECAY}, {AUGMENT}; rates: " + ", ".join(f"{way} {WAYS[way][0]}" for way in chosen.ways))
        start = trained("first", 0.1, chosen.first_epochs, 1, chosen, scratch, ["--model", chosen.network])
        sections = []
        for way in chosen.ways:
            rows = contest(way, start, chosen, scratch)
            sections.append((f"{way}, {len(chosen.seeds)} seeds", table(rows), rows))
    common.publish("Fine-tuning", facts, sections, chosen)
    sys.exit(any("FAILED" in row.get("skip", "") for _, _, rows in sections for row in rows.values()))


if __name__ == "__main__":
    main()

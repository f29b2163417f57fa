"""Networks of tokens that learn to classify reviews from nothing: Quern, and PyTorch by the same recipe.

    python bench/accuracy_reviews.py --networks text-cnn,bert-mini --seeds 1,2,3

The networks are Quern's ready models. The tokens are the words between spaces, the 7,999 most frequent ones of the
training reviews and one for all others. Both read the same arrays of 48 positions, and each draws its own weights from
the same distributions. AdamW with decay of matrices and tables alone, a warm-up and a cosine. A seed decides weights,
order and dropout; the accuracy is that of the test reviews. bench/texts.py measures the default for such a table.
Both compute a batch up to its longest review. Items per second are those of the training, the median of the seeds;
for them `--items 1280 --context 128 --epochs 1` is enough, and `--group-lengths 16` puts like lengths together.

It needs ../shared/data/text, or the folder in QUERN_TEXTS.
"""

import collections
import csv
import gzip
import pathlib
import statistics
import sys
import tempfile

import accuracy_text
import common

WORDS, PADDING, BATCH, WARMUP, DECAY = 8000, 65535, 64, 100, 0.1
RECIPES = {"text-cnn": {"rate": 1e-3, "epochs": 5}, "bert-mini": {"rate": 3e-4, "epochs": 3}}


def rows(part):
    """[(words of a review, 1 where it is positive)]"""
    with gzip.open(accuracy_text.folder() / f"reviews-{part}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        return [(row["text"].split(), int(row["sentiment"] == "positive")) for row in csv.DictReader(file)]


def tables(scratch, chosen):
    """Files of the tokens and labels of both parts."""
    import numpy as np

    parts = {part: rows(part) for part in ("train", "test")}
    seen = collections.Counter(word for words, _ in parts["train"] for word in words)
    number = {word: i for i, (word, _) in enumerate(seen.most_common(WORDS - 1))}
    files = {}
    for part, items in parts.items():
        items = items[: chosen.items]
        x = np.full((len(items), chosen.context), PADDING, np.uint16)
        for row, (words, _) in zip(x, items):
            own = [number.get(word, WORDS - 1) for word in words[: chosen.context]]
            row[: len(own)] = own
        files[part], files[part + "-labels"] = scratch / f"{part}.npy", scratch / f"{part}-labels.npy"
        np.save(files[part], x)
        np.save(files[part + "-labels"], np.array([label for _, label in items], np.uint8))
    return files


def recipe_of(network, chosen):
    own = RECIPES[network]
    return {"rate": own["rate"], "epochs": chosen.epochs or own["epochs"], "batch": BATCH, "warmup": WARMUP,
            "decay": DECAY, "group_lengths": chosen.group_lengths}


def quern(network, seed, chosen, files, scratch):
    own = recipe_of(network, chosen)
    command = [common.quern_path(), "train", "--data", files["train"], "--labels", files["train-labels"]]
    command += ["--test", files["test"], "--test-labels", files["test-labels"], "--tokens", "ids", "--model", network]
    command += ["--optimizer", "adamw", "--lr", own["rate"], "--schedule", "cosine", "--warmup", WARMUP]
    command += ["--weight-decay", DECAY, "--batch", BATCH, "--epochs", own["epochs"], "--seed", seed]
    command += ["--threads", chosen.threads[0], "--json", "-o", scratch / "model.safetensors"]
    command += ["--group-lengths", chosen.group_lengths] * (chosen.group_lengths > 0)
    found = common.json_lines(common.call(command, chosen.threads[0]).stdout)
    epochs = [row for row in found if row["event"] == "epoch"]
    rate = sum(row["items"] for row in epochs) / sum(row["seconds"] for row in epochs)
    return 100 * next(row for row in found if row["event"] == "end")["accuracy"], rate


def torch(network, seed, chosen, files, scratch):
    del scratch
    told = common.peer("torch_accuracy_reviews.py", network, chosen.threads[0], seed=seed, words=WORDS,
                       **{key.replace("-", "_"): path for key, path in files.items()}, **recipe_of(network, chosen))
    return (told["accuracy"], told["rate"]) if "accuracy" in told else told["skip"]


def lines_of(network, chosen, files, scratch):
    for name, turn in {"quern": quern, **({"torch": torch} if "torch" in chosen.peers else {})}.items():
        found = []
        for seed in chosen.seeds:
            found.append(turn(network, seed, chosen, files, scratch))
            print(network, name, "seed", seed, found[-1], file=sys.stderr, flush=True)
        if isinstance(found[0], str):
            yield [name, found[0], "-", "-"]
        else:
            values, rates = zip(*found)
            yield [name, f"{statistics.mean(values):.2f} %", ", ".join(f"{value:.2f}" for value in values),
                   f"{statistics.median(rates):,.0f}"]


def main():
    parser = common.options(__doc__.splitlines()[0], threads=[1], peers=["torch"])
    parser.add_argument("--networks", type=lambda text: text.split(","), default=list(RECIPES))
    parser.add_argument("--seeds", type=common.numbers, default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, help="instead of those of the recipe")
    parser.add_argument("--items", type=int, help="reviews of each part; all of them")
    parser.add_argument("--context", type=int, default=48, help="words of a review")
    parser.add_argument("--group-lengths", type=int, default=0, help="batches whose reviews are sorted by length")
    chosen = parser.parse_args()
    if not accuracy_text.folder().is_dir() or not common.quern_version():
        print(f"SKIPPED: needs {accuracy_text.folder()}, and {common.quern_path()}")
        return
    sections = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        files = tables(scratch, chosen)
        for network in chosen.networks:
            lines = list(lines_of(network, chosen, files, scratch))
            sections.append((network, common.table(["", "mean", "of each seed", "items/s"], lines), lines))
    common.publish("Reviews by networks of tokens", {"quern": common.quern_version(), **RECIPES}, sections, chosen)


if __name__ == "__main__":
    main()

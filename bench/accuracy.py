"""What each arithmetic reaches: accuracy over several seeds, on four jobs.

    python bench/accuracy.py --seeds 1,2,3,4,5 --jobs digits,cancer

`standing` and `entropy` are MNIST's jobs of the README, `digits` draws its own, `cancer` is the
breast cancer table of scikit-learn (a visible skip without it), with a split of its own for every
seed. A seed decides the first weights, the order and the split, so the spread over seeds is what
training itself leaves open; an arithmetic is as good as another where their means differ by less.
Nothing is timed.
"""

import pathlib
import statistics
import tempfile

import common

ARITHMETICS = ["f32", "i21", "i14", "i7"]
BYTES = ["--scale", "unit"]  # alike for all, and what no integers hold exactly
TABLE = ["--scale", "standard", "--label", "last", "--valid", "0.3"]


def mnist(files):
    return [
        "--data", files["train-images"], "--labels", files["train-labels"],
        "--test", files["test-images"], "--test-labels", files["test-labels"],
        "--model", common.MODEL, "--lr", "0.1", "--momentum", "0.9", "--epochs", "10", *BYTES,
    ]  # fmt: skip


def standing(scratch):
    files, said = common.data(scratch)
    return [*mnist(files), "--loss", "mse", "--batch", "64"], said


def entropy(scratch):
    files, said = common.data(scratch)
    return [*mnist(files), "--loss", "cross-entropy", "--batch", "128"], said


def digits(scratch):
    for name, items, first in (("train", 20_000, 0), ("test", 5_000, 20_000)):
        words = ["data", "synth", "digits", "--items", items, "--first", first, "--quiet"]
        common.call([common.quern_path(), *words, "-o", scratch / f"{name}.csv"], 1)
    words = ["--data", scratch / "train.csv", "--test", scratch / "test.csv", "--epochs", "5"]
    said = "20,000 synthetic digits and 5,000 to test with"
    return [*words, "--model", common.MODEL, "--momentum", "0.9", *BYTES], said


def cancer(scratch):
    from sklearn.datasets import load_breast_cancer

    table = load_breast_cancer()
    path = scratch / "cancer.csv"
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join([*table.feature_names, "benign"]) + "\n")
        for values, label in zip(table.data, table.target):
            file.write(",".join(repr(float(v)) for v in values) + f",{label}\n")
    words = ["--data", path, *TABLE, "--model", "dense 16 relu; dense 2 softmax"]
    words += ["--optimizer", "adam", "--lr", "0.01", "--batch", "32", "--epochs", "40"]
    return words, "569 items of 30 features; 171 to validate with"


JOBS = {"standing": standing, "entropy": entropy, "digits": digits, "cancer": cancer}


def train(words, arithmetic, seed, threads, scratch):
    """The `end` event of one training."""
    common_words = ["--arith", arithmetic, "--seed", seed, "--threads", threads, "--json"]
    command = [common.quern_path(), "train", *words, *common_words, "-o", scratch / "m.safetensors"]
    rows = common.json_lines(common.call(command, threads).stdout)
    return next(row for row in rows if row["event"] == "end")


def measure(words, chosen, scratch):
    """Accuracies in percent and last roundings, by arithmetic."""
    results = {}
    for arithmetic in chosen.arith:
        ends = [train(words, arithmetic, s, chosen.threads[0], scratch) for s in chosen.seeds]
        results[arithmetic] = {
            "accuracy": [100 * end["accuracy"] for end in ends],
            "loss": [end["loss"] for end in ends],
            "rounding": ends[-1].get("rounding"),
        }
    return results


def lines_of(results):
    """A row for each arithmetic; differences are taken seed by seed from the first one's."""
    base = next(iter(results.values()))["accuracy"]
    for name, result in results.items():
        values = result["accuracy"]
        yield [
            name,
            f"{statistics.mean(values):.2f} %",
            f"{statistics.stdev(values):.2f}" if len(values) > 1 else "-",
            f"{min(values):.2f} to {max(values):.2f}",
            f"{statistics.mean(v - b for v, b in zip(values, base)):+.2f}",
            f"{statistics.mean(result['loss']):.4f}",
        ]


def main():
    parser = common.options(__doc__.splitlines()[0], threads=[2])
    parser.add_argument("--seeds", type=common.numbers, default=[1, 2, 3, 4, 5])
    parser.add_argument("--jobs", type=lambda text: text.split(","), default=list(JOBS))
    parser.add_argument("--arith", type=lambda text: text.split(","), default=ARITHMETICS)
    chosen = parser.parse_args()
    if not common.quern_version():
        print(f"SKIPPED: no {common.quern_path()}; build it, or name it in QUERN")
        return
    facts = {"quern": common.quern_version(), "seeds": ", ".join(map(str, chosen.seeds))}
    sections = []
    for name in chosen.jobs:
        with tempfile.TemporaryDirectory() as folder:
            scratch = pathlib.Path(folder)
            try:
                words, said = JOBS[name](scratch)
            except ImportError as missing:
                sections.append((name, f"SKIPPED: {missing}", None))
                continue
            results = measure(words, chosen, scratch)
        head = ["arithmetic", "mean", "deviation", "range", f"beside {chosen.arith[0]}", "loss"]
        sections.append((f"{name}: {said}", common.table(head, lines_of(results)), results))
    common.publish("Accuracy over seeds", facts, sections, chosen)


if __name__ == "__main__":
    main()

"""What a small GPT reaches on Shakespeare's plays: Quern, and PyTorch by the same recipe, over several seeds.

    python bench/accuracy_text.py --seeds 1,2,3 --arith f32
    python bench/accuracy_text.py --seeds 1,2,3 --arith f32,i14 --head own

It is the small setting of nanoGPT: 4 layers, 4 heads, width 128, context 64, batch 12, 2,000 steps, no dropout. The
text's first 90 % train, the rest validates. As there, each item of a step begins at a drawn place. A seed decides
these places, the first weights and the order. All contenders read the same items; PyTorch draws its own weights from
the same distributions. AdamW with decay of matrices and tables alone, gradients of a norm of at most 1, a warm-up and
a cosine to a tenth. The last layer has the table of the embedding, or with `--head own` its own weights. The loss is that of all whole items of the validation part, per character.

It needs ../shared/data/text, or the folder in QUERN_TEXTS. Nothing is timed.
"""

import gzip
import hashlib
import os
import pathlib
import statistics
import sys
import tempfile

import common
import train_text

WORDS, CONTEXT, BATCH, STEPS, WARMUP = 65, 64, 12, 2000, 100
RATE, LEAST, DECAY, BETA2, CLIP = 1e-3, 1e-4, 0.1, 0.99, 1.0


def folder():
    return pathlib.Path(os.environ.get("QUERN_TEXTS", common.ROOT.parent / "shared/data/text"))


def model_of(head):
    """The ready model gpt-micro, or with a last layer that has weights."""
    own = train_text.model_of({"words": WORDS, "width": 128, "layers": 4, "heads": 4})
    return "gpt-micro" if head == "tied" else own.replace(f"conv {WORDS} 1x1", f"conv {WORDS} 1x1 nobias")


def characters():
    """The whole text as numbers of its characters."""
    import numpy as np

    text = gzip.decompress((folder() / "shakespeare.txt.gz").read_bytes()).decode()
    numbers = {character: i for i, character in enumerate(sorted(set(text)))}
    return np.array([numbers[character] for character in text], np.uint16)


def items(row, seed, steps, scratch):
    """Files of the training items of a seed, and of the validation items."""
    import numpy as np

    cut = len(row) * 9 // 10
    starts = np.random.default_rng(seed).integers(0, cut - CONTEXT, BATCH * steps)
    whole = range(cut, len(row) - CONTEXT, CONTEXT)
    files = scratch / f"train-{seed}.npy", scratch / "valid.npy"
    for file, begins in zip(files, (starts, whole)):
        np.save(file, np.stack([row[i : i + CONTEXT + 1] for i in begins]))
    return files


def quern(arithmetic, seed, chosen, files, scratch):
    """The loss per character of validation, and the digest of the model."""
    model = scratch / "model.safetensors"
    command = [common.quern_path(), "train", "--data", files[0], "--valid", files[1], "--tokens", "ids"]
    command += ["--task", "next", "--model", model_of(chosen.head), "--optimizer", "adamw"]
    command += ["--lr", RATE, "--lr-min", LEAST, "--schedule", "cosine"]
    command += ["--warmup", WARMUP, "--weight-decay", DECAY, "--beta2", BETA2, "--clip", CLIP, "--batch", BATCH]
    command += ["--epochs", 1, "--arith", arithmetic, "--seed", seed, "--threads", chosen.threads[0], "--json"]
    rows = common.json_lines(common.call([*command, "-o", model], chosen.threads[0]).stdout)
    found = next(row for row in rows if row["event"] == "epoch")
    return found["valid_loss"], hashlib.sha256(model.read_bytes()).hexdigest()


def torch(seed, chosen, files):
    told = common.peer("torch_accuracy_text.py", "train", chosen.threads[0], train=files[0], valid=files[1], seed=seed,
                       head=chosen.head, batch=BATCH, rate=RATE, least=LEAST, warmup=WARMUP, decay=DECAY, beta2=BETA2,
                       clip=CLIP)
    return None if "skip" in told else told["loss"], told.get("skip", told.get("version"))


def contest(chosen, scratch):
    """{contender: [(loss, digest or version) of each seed]}"""
    row, found = characters(), {}
    for seed in chosen.seeds:
        files = items(row, seed, chosen.steps, scratch)
        turns = {f"quern {word}": lambda word=word: quern(word, seed, chosen, files, scratch) for word in chosen.arith}
        if "torch" in chosen.peers:
            turns["torch"] = lambda: torch(seed, chosen, files)
        for name, turn in turns.items():
            found.setdefault(name, []).append(turn())
            print(name, "seed", seed, *found[name][-1], file=sys.stderr, flush=True)
    return found


def lines_of(found, seeds):
    for name, pairs in found.items():
        losses = [loss for loss, _ in pairs if loss is not None]
        mean = f"{statistics.mean(losses):.4f}" if losses else "-"
        deviation = f"{statistics.stdev(losses):.4f}" if len(losses) > 1 else "-"
        yield [name, mean, deviation, ", ".join(f"{loss:.4f}" for loss in losses), pairs[0][1] + f" (seed {seeds[0]})"]


def main():
    parser = common.options(__doc__.splitlines()[0], threads=[1], peers=["torch"])
    parser.add_argument("--seeds", type=common.numbers, default=[1, 2, 3])
    parser.add_argument("--arith", type=lambda text: text.split(","), default=["f32"])
    parser.add_argument("--head", choices=["tied", "own"], default="tied")
    parser.add_argument("--steps", type=int, default=STEPS)
    chosen = parser.parse_args()
    if not folder().is_dir() or not common.quern_version():
        print(f"SKIPPED: needs {folder()}, and {common.quern_path()}")
        return
    facts = {**common.hardware(), "quern": common.quern_version(), "steps": chosen.steps, "head": chosen.head}
    with tempfile.TemporaryDirectory() as scratch:
        found = contest(chosen, pathlib.Path(scratch))
    head = ["", "loss, mean", "deviation", "of each seed", "SHA-256 of the model, or version"]
    common.publish("A small GPT on Shakespeare's plays", facts,
                   [("validation", common.table(head, lines_of(found, chosen.seeds)), found)], chosen)


if __name__ == "__main__":
    main()

"""Training of GPTs for the next token beside PyTorch (eager, compiled; float32, bfloat16): tokens a second.

    python bench/train_text.py --settings gpt,gpt2,long --peers torch,torch-compile,torch-bf16

gpt     6 layers, 6 heads, width 384, context 256, batch 16, 65 characters (10.8 M parameters)
gpt2    GPT-2 of 12 layers, 12 heads, width 768, 50,257 words, at context 256 and batch 2
long    the first network at context 2,048, batch 2
tiny    one layer of width 32, to see that all of them begin

The characters are those of Shakespeare's plays (QUERN_TEXT names another text, gzipped), the words are drawn.
Every contender gets a turn in every round, in a fresh process held to its cores, and trains by AdamW. A time
counts only after its contender was seen to learn: the loss of its last epoch must be below that of the first.
Quern's model must have the same bytes in every round and for every number of threads.

Operations are products alone: 2 for each weight and token, twice in the backward pass, and those of attention for
keys that a query sees. So the share of the peak of float32's fma is what the whole step reaches.
"""

import gzip
import hashlib
import os
import pathlib
import statistics
import sys
import tempfile

import common
import memory

PEERS = ("torch", "torch-compile", "torch-bf16", "torch-compile-bf16")
SETTINGS = {
    "gpt": {"words": 65, "width": 384, "layers": 6, "heads": 6, "context": 256, "batch": 16, "steps": 6},
    "gpt2": {"words": 50257, "width": 768, "layers": 12, "heads": 12, "context": 256, "batch": 2, "steps": 3},
    "long": {"words": 65, "width": 384, "layers": 6, "heads": 6, "context": 2048, "batch": 2, "steps": 4},
    "tiny": {"words": 65, "width": 32, "layers": 1, "heads": 2, "context": 16, "batch": 8, "steps": 8},
}
RATE, DECAY = 0.001, 0.1


def model_of(own):
    width = own["width"]
    block = (f"residual {{ layernorm channels; conv {3 * width} 1x1; attention {own['heads']} causal; "
             f"conv {width} 1x1 }}; residual {{ layernorm channels; conv {4 * width} 1x1 gelu; conv {width} 1x1 }}")
    blocks = "; ".join([block] * own["layers"])
    return (f"embedding {own['words']} {width}; position learned; {blocks}; layernorm channels; "
            f"conv {own['words']} 1x1 softmax")


def work_of(own):
    """Weights of products, and the operations of a token in a step of training."""
    width = own["width"]
    weights = own["layers"] * 12 * width * width + own["words"] * width
    seen = (own["context"] + 1) / 2  # keys of a query, in the mean; by keys and by values
    attention = own["layers"] * 2 * 2 * seen * width
    return weights, 3 * (2 * weights + attention)


def characters(count):
    """So many characters as numbers in the order of their codes, and where they are from; None without a text."""
    import numpy as np

    path = pathlib.Path(os.environ.get("QUERN_TEXT", common.ROOT.parent / "shared/data/text/shakespeare.txt.gz"))
    if not path.is_file():
        return None
    text = gzip.decompress(path.read_bytes()).decode()
    numbers = {character: i for i, character in enumerate(sorted(set(text)))}
    return np.array([numbers[character] for character in text[:count]], np.uint16), path.name


def tokens(own, scratch):
    """An NPY file with one row of tokens for one epoch, and a sentence that says which."""
    import numpy as np

    count = own["context"] * own["batch"] * own["steps"] + 1
    found = characters(count) if own["words"] < 256 else None
    if found and found[0].max() < own["words"] and len(found[0]) == count:
        row, told = found[0], f"the first {count:,} characters of {found[1]}"
    else:
        row = np.random.default_rng(0).zipf(1.2, count) % own["words"]
        told = f"{count:,} DRAWN tokens"
    path = scratch / "tokens.npy"
    np.save(path, row.astype(np.uint16))
    return path, told


def turn_of_quern(case, chosen, scratch, digests):
    own, path, threads = case
    model = scratch / "quern.safetensors"
    command = [common.quern_path(), "train", "--data", path, "--tokens", "ids", "--context", own["context"], "--task",
               "next", "--model", model_of(own), "--optimizer", "adamw", "--lr", RATE, "--weight-decay", DECAY,
               "--batch", own["batch"], "--epochs", chosen.epochs + 1, "--seed", 1, "--threads", threads, "--json",
               "-o", model, *chosen.extra]  # fmt: skip
    rows = [row for row in common.json_lines(common.call(command, threads).stdout) if row.get("event") == "epoch"]
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    if digests.setdefault(model_of(own), digest) != digest:
        raise common.Failed("the model's bytes differ")
    once = [1 if word == chosen.epochs + 1 else word for word in command]
    return {"chunks": [row["items_per_s"] * own["context"] for row in rows[1:]], "version": "quern",
            "loss_before": rows[0]["train_loss"], "loss_after": rows[-1]["train_loss"],
            "peak_bytes": memory.peak_bytes(once, threads)}


def turn(name, case, chosen, scratch, digests):
    own, path, threads = case
    if name == "quern":
        row = turn_of_quern(case, chosen, scratch, digests)
    else:
        sizes = {key: own[key] for key in ("words", "width", "layers", "heads", "context", "batch")}
        row = common.peer("torch_gpt.py", "train", threads, tokens=path, kind=name, rate=RATE, epochs=chosen.epochs,
                          **sizes)
    if "skip" not in row and not row["loss_after"] < row["loss_before"]:
        raise common.Failed(f"loss went from {row['loss_before']} to {row['loss_after']}")
    return row


def contest(case, chosen, scratch, digests):
    """{who: row}: rates of all rounds."""
    rows = common.contest(["quern", *(peer for peer in PEERS if peer in chosen.peers)], chosen.rounds,
                          lambda name, _: turn(name, case, chosen, scratch, digests))
    return rows


def table(rows, operations, peak):
    head = ["", "tokens/s", "spread", "quern's rate over it", "GFLOP/s", "of peak", "loss", "memory, MiB"]
    lines, ours = [], rows["quern"]["chunks"] and statistics.median(rows["quern"]["chunks"])
    for name, row in rows.items():
        if not row["chunks"]:
            lines.append([name, *"-------"])
            continue
        rate = statistics.median(row["chunks"])
        gflops = rate * operations / 1e9
        lines.append([name, f"{rate:,.0f}", common.spread(row["chunks"]), f"{ours / rate:.2f}" if ours else "-",
                      f"{gflops:.0f}", f"{gflops / peak:.0%}" if peak and "bf16" not in name else "-",
                      f"{row['loss_before']:.2f} to {row['loss_after']:.2f}",
                      f"{row['peak_bytes'] / memory.MIB:,.0f}"])
    return common.table(head, lines)


def main():
    parser = common.options(__doc__.splitlines()[0], threads=[2], peers=PEERS)
    parser.add_argument("--settings", type=lambda text: text.split(","), default=["gpt", "gpt2", "long"])
    parser.add_argument("--epochs", type=int, default=2, help="timed epochs of one turn")
    parser.add_argument("--extra", type=str.split, default=[], help="more words for quern train")
    chosen = parser.parse_args()
    facts = {**common.hardware(), "quern": common.quern_version() or sys.exit(f"there is no {common.quern_path()}")}
    peaks = common.peak(common.quern_path().parent / "bench/peak", chosen.threads)
    facts["peak_GFLOP/s"] = ", ".join(f"{t}: {peaks[t]:.0f}" for t in peaks) or "not measured"
    sections, digests = [], {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        for name in chosen.settings:
            own = SETTINGS[name]
            path, told = tokens(own, scratch)
            weights, operations = work_of(own)
            facts[name] = (f"{weights / 1e6:.1f} M weights of products, {operations / 1e6:.1f} MFLOP a token and step, "
                           f"context {own['context']:,}, batch {own['batch']}; {told}")
            for threads in chosen.threads:
                rows = contest((own, path, threads), chosen, scratch, digests)
                heading = f"{name}, {threads} threads"
                sections.append((heading, table(rows, operations, peaks.get(threads)), rows))
                print(heading, sections[-1][1], sep="\n", file=sys.stderr, flush=True)
    facts["load_at_end"] = round(os.getloadavg()[0], 2)
    common.publish("Training for the next token", facts, sections, chosen)
    every = [row for _, _, rows in sections for row in rows.values()]
    sys.exit(any("FAILED" in row.get("skip", "") for row in every))


if __name__ == "__main__":
    main()

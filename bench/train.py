"""Training throughput of Quern beside its peers: 784-500-10, tanh, softmax cross-entropy, SGD.

    python bench/train.py --threads 1,2 --batches 32,128,1024 --markdown train.md --json train.json
    python bench/train.py --arith f32,i14,i14:vnni --network large --items 8192 --batches 1024

--arith names Quern's contenders, each an arithmetic and, after a colon, the instruction set that it is
held to. --network large is 784-4096-4096-10.

Every contender gets a turn in every round, each time in a fresh process held to its cores, and
trains whole shuffled epochs of the same 60,000 images from the same weights' distribution. A time
counts only after its contender was seen to learn: a peer's loss must at least halve, Quern's model
must classify the test images, and Quern's model file must be the same bytes in every round and
for every number of threads and every instruction set. The median over all epochs of all rounds is reported, with its spread.
"""

import hashlib
import os
import pathlib
import statistics
import sys
import tempfile

import common

# The large network sees fewer images in an epoch and learns at a smaller rate.
LOWEST_ACCURACY = {"small": 0.80, "large": 0.50}
MOST_OF_THE_LOSS = {"small": 0.5, "large": 0.8}


def quern_train(files, batch, threads, chosen, model, arithmetic):
    """Train with Quern; the items per second of every epoch after the first."""
    hidden, rate = common.network_of(chosen.network, batch)
    name, _, isa = arithmetic.partition(":")
    words = ["--arith", name, *(["--isa", isa] if isa else []), *chosen.extra]
    epochs = chosen.epochs
    command = common.training(files, batch, threads, epochs + 1, model, words,
                              common.model_of(hidden), rate)  # fmt: skip
    rows = common.json_lines(common.call(command, threads).stdout)
    rates = [row["items_per_s"] for row in rows if row.get("event") == "epoch"]
    if len(rates) != epochs + 1:
        raise common.Failed(f"quern train reported {len(rates)} epochs instead of {epochs + 1}")
    return rates[1:]


def quern_accuracy(files, threads, model, scratch):
    """The share of the test images that Quern's model classifies rightly, from its CSV."""
    out = scratch / "classes.csv"
    common.call(common.predicting(files, threads, model, out), threads)
    return common.accuracy(out, files["test-labels"])


def turn_of_quern(state, arithmetic, files, batch, threads, chosen, scratch):
    """One round of Quern: its rates, after its model has proved itself."""
    model = scratch / "quern.safetensors"
    rates = quern_train(files, batch, threads, chosen, model, arithmetic)
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    if state.setdefault((batch, arithmetic.partition(":")[0]), digest) != digest:
        raise common.Failed(f"batch {batch}, {threads} threads: the model's bytes differ")
    accuracy = quern_accuracy(files, threads, model, scratch)
    if accuracy < LOWEST_ACCURACY[chosen.network]:
        raise common.Failed(f"quern's model is right for {accuracy:.1%} of the test images only")
    return {"chunks": rates, "proof": f"accuracy {accuracy:.1%}", "version": "quern"}


def turn_of_peer(name, files, batch, threads, chosen):
    hidden, rate = common.network_of(chosen.network, batch)
    row = common.peer(
        common.PEERS[name], "train", threads,
        images=files["train-images"], labels=files["train-labels"],
        batch=batch, epochs=chosen.epochs, rate=rate, hidden=",".join(map(str, hidden)),
    )  # fmt: skip
    if "skip" in row:
        return row
    if not row["loss_after"] < MOST_OF_THE_LOSS[chosen.network] * row["loss_before"]:
        raise common.Failed(f"loss went from {row['loss_before']} to {row['loss_after']}")
    return {**row, "proof": f"loss {row['loss_before']:.2f} to {row['loss_after']:.3f}"}


def contest(files, batch, threads, chosen, scratch, digests):
    """All rounds of one batch size and number of threads: {name: row with every chunk}."""
    ours = {f"quern {word}": word for word in chosen.arith} if common.quern_version() else {}
    names = [*ours, *chosen.peers]
    rows = {}
    for _ in range(chosen.rounds):
        for name in names:
            if "skip" in rows.get(name, {}):
                continue
            try:
                if name in ours:
                    turn = turn_of_quern(digests, ours[name], files, batch, threads, chosen,
                                         scratch)  # fmt: skip
                else:
                    turn = turn_of_peer(name, files, batch, threads, chosen)
            except common.Failed as failure:
                turn = {"skip": f"FAILED: {failure}"}
            if "skip" in turn:
                print(f"SKIPPED: {name}, batch {batch}: {turn['skip']}", file=sys.stderr)
            earlier = rows.get(name, {}).get("chunks", [])
            rows[name] = {**turn, "chunks": earlier + turn.get("chunks", [])}
    return rows


# Slices that AMX makes of an integer.
SLICES = {"quern i7": 1, "quern i14": 2, "quern i21": 3}


def summary(name, row, best, peak, hidden):
    """One line of the table: the numbers as text."""
    if "skip" in row:
        return [name, "-", "-", "-", "-", "-", row["skip"].splitlines()[0]]
    rate = statistics.median(row["chunks"])
    gflops = rate * common.flop(hidden) / 1e9
    return [
        name,
        f"{rate:,.0f}",
        common.spread(row["chunks"]),
        f"{rate / best:.2f}" if best else "-",
        f"{gflops:.1f}",
        fraction(name, rate, hidden, *peak),
        row["proof"],
    ]


def fraction(name, rate, hidden, fma, amx):
    """Of AMX's peak where its products of bytes do the work (each slice by each; the images of the
    first layer are one), else of that of float32's fma."""
    gflops = rate * common.flop(hidden) / 1e9
    if name in SLICES and amx:
        slices, first = SLICES[name], common.first_flop(hidden)
        done = first * slices + (common.flop(hidden) - first) * slices**2
        return f"{rate * done / 1e9 / amx:.0%} of AMX"
    by_fma = name != "torch-bf16" and (name == "quern f32" or not is_ours(name))
    return f"{gflops / fma:.0%}" if fma and by_fma else "-"


def is_ours(name):
    return name.startswith("quern ")


HEAD = ["", "items/s", "spread", "of best peer", "GFLOP/s", "of peak", "verified by"]


def section(rows, batch, threads, peaks, hidden):
    """One (heading, table, numbers) of the report."""
    peers = [row for name, row in rows.items() if not is_ours(name) and "skip" not in row]
    best = max((statistics.median(row["chunks"]) for row in peers), default=None)
    lines = [summary(name, row, best, peaks[threads], hidden) for name, row in rows.items()]
    heading = f"batch {batch}, {threads} thread{'s' if threads > 1 else ''}"
    return heading, common.table(HEAD, lines), rows


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--batches", type=common.numbers, default=[32, 128, 1024])
    parser.add_argument("--arith", type=lambda text: text.split(","), default=["f32"],
                        help="Quern's contenders, as f32,i14,i14:vnni")
    parser.add_argument("--network", choices=common.NETWORKS, default="small")
    parser.add_argument("--items", type=int, help="train on the first so many images only")
    parser.add_argument("--no-zeros", action="store_true",
                        help="make every pixel of 0 a 1: Quern leaves zeros out, 81 %% of MNIST")
    parser.add_argument("--epochs", type=int, default=2, help="timed epochs of one turn")
    words = "more words for quern train, as one: --extra='--grain 64'"
    parser.add_argument("--extra", type=str.split, default=[], help=words)
    chosen = parser.parse_args()
    facts = common.hardware()
    facts["quern"] = common.quern_version() or "SKIPPED: no " + str(common.quern_path())
    if chosen.extra:
        facts["quern_also_got"] = " ".join(chosen.extra)
    program = common.quern_path().parent / "bench/peak"
    fma, amx = (common.peak(program, chosen.threads, of_amx) for of_amx in (False, True))
    peaks = {t: (fma.get(t), amx.get(t)) for t in chosen.threads}
    for name, rates in (("peak_GFLOP/s", fma), ("AMX's_peak_in_Gop/s", amx)):
        facts[name] = ", ".join(f"{t}: {rates[t]:.0f}" for t in rates) or "not measured"
    hidden = common.NETWORKS[chosen.network][0]
    facts["network"] = common.model_of(common.NETWORKS[chosen.network][0])
    facts["flop_an_item"] = f"{common.flop(hidden):,}"
    sections, digests, versions = [], {}, {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        files, facts["data"] = common.data(scratch)
        if chosen.no_zeros:
            common.fill_zeros(files)
            facts["data"] += ", every pixel of 0 made 1"
        if chosen.items:
            common.cut(files, chosen.items)
            facts["data"] += f", the first {chosen.items:,}"
        for threads in chosen.threads:
            for batch in chosen.batches:
                rows = contest(files, batch, threads, chosen, scratch, digests)
                versions.update({n: r["version"] for n, r in rows.items() if "version" in r})
                sections.append(section(rows, batch, threads, peaks, hidden))
                print(sections[-1][0], sections[-1][1], sep="\n", file=sys.stderr, flush=True)
    facts["peers"] = "; ".join(v for n, v in versions.items() if not is_ours(n))
    facts["load_at_end"] = round(os.getloadavg()[0], 2)
    common.publish("Training throughput", facts, sections, chosen)
    every = [row for _, _, rows in sections for row in rows.values()]
    failed = any("FAILED" in row.get("skip", "") for row in every)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

"""Training throughput of Quern beside its peers: 784-500-10, tanh, softmax cross-entropy, SGD.

    python bench/train.py --threads 1,2 --batches 32,128,1024 --markdown train.md --json train.json

Every contender gets a turn in every round, each time in a fresh process held to its cores, and
trains whole shuffled epochs of the same 60,000 images from the same weights' distribution. A time
counts only after its contender was seen to learn: a peer's loss must at least halve, Quern's model
must classify the test images, and Quern's model file must be the same bytes in every round and
for every number of threads. The median over all epochs of all rounds is reported, with its spread.
"""

import hashlib
import os
import pathlib
import statistics
import sys
import tempfile

import common

LOWEST_ACCURACY = 0.80


def quern_train(files, batch, threads, epochs, model, extra):
    """Train with Quern; the items per second of every epoch after the first."""
    command = common.training(files, batch, threads, epochs + 1, model, extra)
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


def turn_of_quern(state, files, batch, threads, chosen, scratch):
    """One round of Quern: its rates, after its model has proved itself."""
    model = scratch / "quern.safetensors"
    rates = quern_train(files, batch, threads, chosen.epochs, model, chosen.extra)
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    if state.setdefault(batch, digest) != digest:
        raise common.Failed(f"batch {batch}, {threads} threads: the model's bytes differ")
    accuracy = quern_accuracy(files, threads, model, scratch)
    if accuracy < LOWEST_ACCURACY:
        raise common.Failed(f"quern's model is right for {accuracy:.1%} of the test images only")
    return {"chunks": rates, "proof": f"accuracy {accuracy:.1%}", "version": "quern"}


def turn_of_peer(name, files, batch, threads, chosen):
    row = common.peer(
        common.PEERS[name], "train", threads,
        images=files["train-images"], labels=files["train-labels"],
        batch=batch, epochs=chosen.epochs,
    )  # fmt: skip
    if "skip" in row:
        return row
    if not row["loss_after"] < 0.5 * row["loss_before"]:
        raise common.Failed(f"loss went from {row['loss_before']} to {row['loss_after']}")
    return {**row, "proof": f"loss {row['loss_before']:.2f} to {row['loss_after']:.3f}"}


def contest(files, batch, threads, chosen, scratch, digests):
    """All rounds of one batch size and number of threads: {name: row with every chunk}."""
    names = ["quern", *chosen.peers] if common.quern_version() else list(chosen.peers)
    rows = {}
    for _ in range(chosen.rounds):
        for name in names:
            if "skip" in rows.get(name, {}):
                continue
            try:
                if name == "quern":
                    turn = turn_of_quern(digests, files, batch, threads, chosen, scratch)
                else:
                    turn = turn_of_peer(name, files, batch, threads, chosen)
            except common.Failed as failure:
                turn = {"skip": f"FAILED: {failure}"}
            if "skip" in turn:
                print(f"SKIPPED: {name}, batch {batch}: {turn['skip']}", file=sys.stderr)
            earlier = rows.get(name, {}).get("chunks", [])
            rows[name] = {**turn, "chunks": earlier + turn.get("chunks", [])}
    return rows


def summary(name, row, best, peak):
    """One line of the table: the numbers as text."""
    if "skip" in row:
        return [name, "-", "-", "-", "-", "-", row["skip"].splitlines()[0]]
    rate = statistics.median(row["chunks"])
    gflops = rate * common.TRAIN_FLOP / 1e9
    return [
        name,
        f"{rate:,.0f}",
        common.spread(row["chunks"]),
        f"{rate / best:.2f}" if best else "-",
        f"{gflops:.1f}",
        f"{gflops / peak:.0%}" if peak else "-",
        row["proof"],
    ]


HEAD = ["", "items/s", "spread", "of best peer", "GFLOP/s", "of peak", "verified by"]


def section(rows, batch, threads, peaks):
    """One (heading, table, numbers) of the report."""
    peers = [row for name, row in rows.items() if name != "quern" and "skip" not in row]
    best = max((statistics.median(row["chunks"]) for row in peers), default=None)
    lines = [summary(name, row, best, peaks.get(threads)) for name, row in rows.items()]
    heading = f"batch {batch}, {threads} thread{'s' if threads > 1 else ''}"
    return heading, common.table(HEAD, lines), rows


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--batches", type=common.numbers, default=[32, 128, 1024])
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
    peaks = common.peak(common.quern_path().parent / "bench/peak", chosen.threads)
    facts["peak_GFLOP/s"] = ", ".join(f"{t}: {peaks[t]:.0f}" for t in peaks) or "not measured"
    facts["flop_an_item"] = f"{common.TRAIN_FLOP:,}"
    sections, digests, versions = [], {}, {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        files, facts["data"] = common.data(scratch)
        if chosen.no_zeros:
            common.fill_zeros(files)
            facts["data"] += ", every pixel of 0 made 1"
        for threads in chosen.threads:
            for batch in chosen.batches:
                rows = contest(files, batch, threads, chosen, scratch, digests)
                versions.update({n: r["version"] for n, r in rows.items() if "version" in r})
                sections.append(section(rows, batch, threads, peaks))
                print(sections[-1][0], sections[-1][1], sep="\n", file=sys.stderr, flush=True)
    facts["peers"] = "; ".join(v for n, v in versions.items() if n != "quern")
    facts["load_at_end"] = round(os.getloadavg()[0], 2)
    common.publish("Training throughput", facts, sections, chosen)
    every = [row for _, _, rows in sections for row in rows.values()]
    failed = any("FAILED" in row.get("skip", "") for row in every)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

"""Two processes that train together: Quern's ranks beside PyTorch DDP over gloo, 784-500-10.

    python bench/cluster.py --batches 128,1024 --markdown cluster.md --json cluster.json

The contenders take turns, round after round, on the same cores: Quern as one process of one core,
of two, as two ranks of one core each (started by hand, and by mpirun where --mpirun names one),
PyTorch as one process of two threads and as two processes of one thread. A time counts only after
its contender was seen to learn, and Quern's model has to be the same bytes from all of them. What
the ranks exchanged, and how long they waited for one another, is Quern's own report.
"""

import argparse
import hashlib
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile

import common

LOWEST_ACCURACY = 0.80
LIMIT = 600  # seconds that a run may take
AS_ROOT = {f"{p}_ALLOW_RUN_AS_ROOT{s}": "1" for p in ("OMPI", "PRTE") for s in ("", "_CONFIRM")}


def new_key(scratch):
    """A file with a key for the ranks of one run."""
    key = scratch / "key"
    key.write_text(os.urandom(16).hex())
    key.chmod(0o600)
    return key


def by_hand(words, ranks, scratch):
    """The commands of ranks that meet at an address of this machine."""
    key = new_key(scratch)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return [[*words, "--meet", f"127.0.0.1:{port}", "--ranks", ranks, "--rank", rank, "--key-file",
             key] for rank in range(ranks)]  # fmt: skip


def together(commands, cores):
    """Runs commands side by side on that many cores; what they printed, in their order."""
    held = common.allowed_cores()[:cores]
    if len(held) < cores:
        raise common.Failed(f"{cores} cores asked for, {len(held)} here")
    running = [
        subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env={**os.environ, **AS_ROOT},
            preexec_fn=lambda: os.sched_setaffinity(0, held),
        ) for command in commands
    ]  # fmt: skip
    return "".join(common.outputs_of(running, LIMIT))


def turn_of_quern(how, ranks, cores, files, batch, chosen, scratch, digests):
    """One turn of Quern: the rates of its epochs after the first, when its model proved itself."""
    model = scratch / "model.safetensors"
    model.unlink(missing_ok=True)
    words = common.training(files, batch, cores // ranks, chosen.epochs + 1, model, chosen.extra)
    commands = {
        "alone": lambda: [words],
        "by hand": lambda: by_hand(words, ranks, scratch),
        "mpirun": lambda: [[chosen.mpirun, "-n", ranks, *words]],
    }[how]()
    rows = common.json_lines(together(commands, cores))
    rates = [row["items_per_s"] for row in rows if row.get("event") == "epoch"]
    if len(rates) != chosen.epochs + 1:
        raise common.Failed(f"{len(rates)} epochs were reported, not {chosen.epochs + 1}")
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    if digests.setdefault(batch, digest) != digest:
        raise common.Failed("the model's bytes differ")
    out = scratch / "classes.csv"
    common.call(common.predicting(files, 1, model, out), 1)
    accuracy = common.accuracy(out, files["test-labels"])
    if accuracy < LOWEST_ACCURACY:
        raise common.Failed(f"the model is right for {accuracy:.1%} of the test images only")
    return {"chunks": rates[1:], "proof": f"accuracy {accuracy:.1%}, bytes", "report": rows[-1]}


def turn_of_torch(script, cores, files, batch, chosen):
    row = common.peer(script, "train", cores, images=files["train-images"],
                      labels=files["train-labels"], batch=batch, epochs=chosen.epochs)  # fmt: skip
    if "skip" not in row and not row["loss_after"] < 0.5 * row["loss_before"]:
        raise common.Failed(f"loss went from {row['loss_before']} to {row['loss_after']}")
    return row if "skip" in row else {**row, "proof": f"loss {row['loss_after']:.3f}"}


def contenders(files, batch, chosen, scratch, digests):
    """{name: what gives one turn of it}, in the order of the table."""
    def quern(how, ranks, cores):
        return lambda: turn_of_quern(how, ranks, cores, files, batch, chosen, scratch, digests)

    every = {
        "quern, 1 process, 1 core": quern("alone", 1, 1),
        "quern, 1 process, 2 cores": quern("alone", 1, 2),
        "quern, 2 ranks by hand, 2 cores": quern("by hand", 2, 2),
        "quern, mpirun -n 2, 2 cores": quern("mpirun", 2, 2),
        "torch, 1 process, 2 threads": lambda: turn_of_torch(
            "torch_mlp.py", 2, files, batch, chosen),
        "torch DDP, 2 processes, 2 cores": lambda: turn_of_torch(
            "torch_ddp_mlp.py", 2, files, batch, chosen),
    }  # fmt: skip
    if not chosen.mpirun:
        del every["quern, mpirun -n 2, 2 cores"]
    return every


def contest(files, batch, chosen, scratch, digests):
    rows = {}
    for _ in range(chosen.rounds):
        for name, turn in contenders(files, batch, chosen, scratch, digests).items():
            if "skip" in rows.get(name, {}):
                continue
            try:
                row = turn()
            except common.Failed as failure:
                row = {"skip": f"FAILED: {failure}"}
            if "skip" in row:
                print(f"SKIPPED: {name}, batch {batch}: {row['skip']}", file=sys.stderr)
            chunks = rows.get(name, {}).get("chunks", []) + row.get("chunks", [])
            rows[name] = {**row, "chunks": chunks}
    return rows


def section(rows, batch):
    """One (heading, table, numbers) of the report."""
    medians = {n: statistics.median(r["chunks"]) for n, r in rows.items() if "skip" not in r}
    ddp = medians.get("torch DDP, 2 processes, 2 cores")
    one = medians.get("quern, 1 process, 1 core")
    lines = [
        [name, f"{medians[name]:,.0f}", common.spread(row["chunks"]),
         f"{medians[name] / ddp:.2f}" if ddp else "-",
         f"{medians[name] / one:.2f}" if one and name.startswith("quern") else "-", row["proof"]]
        if name in medians else [name, "-", "-", "-", "-", row["skip"].splitlines()[0]]
        for name, row in rows.items()
    ]  # fmt: skip
    head = ["", "items/s", "spread", "of DDP", "of one core", "verified by"]
    return f"batch {batch}", common.table(head, lines), rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=common.numbers, default=[128, 1024])
    parser.add_argument("--rounds", type=int, default=3, help="turns that every contender gets")
    parser.add_argument("--epochs", type=int, default=2, help="timed epochs of one turn")
    parser.add_argument("--mpirun", default=shutil.which("mpirun"), help="[the one on the path]")
    parser.add_argument("--extra", type=str.split, default=[], help="more words for quern train")
    parser.add_argument("--markdown", type=pathlib.Path, help="also write the report here")
    parser.add_argument("--json", type=pathlib.Path, help="also write every number here")
    chosen = parser.parse_args()
    facts = common.hardware()
    facts["quern"] = common.quern_version() or "none at " + str(common.quern_path())
    if chosen.mpirun:
        told = subprocess.run([chosen.mpirun, "--version"], capture_output=True, text=True).stdout
        facts["mpirun"] = told.splitlines()[0] if told else chosen.mpirun
    sections, digests = [], {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        files, facts["data"] = common.data(scratch)
        for batch in chosen.batches:
            sections.append(section(contest(files, batch, chosen, scratch, digests), batch))
            print(sections[-1][0], sections[-1][1], sep="\n", file=sys.stderr, flush=True)
    versions = {r["version"] for _, _, rows in sections for r in rows.values() if "version" in r}
    facts["peers"] = "; ".join(sorted(versions))
    facts["load_at_end"] = round(os.getloadavg()[0], 2)
    common.publish("Two processes", facts, sections, chosen)
    every = [row for _, _, rows in sections for row in rows.values()]
    sys.exit(1 if any("FAILED" in row.get("skip", "") for row in every) else 0)


if __name__ == "__main__":
    main()

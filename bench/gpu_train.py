"""Training throughput of Quern on a GPU beside its peers on the same GPU.

    python bench/gpu_train.py                          # cuda:0, both networks, batch 128, 1024, 8192
    python bench/gpu_train.py --device opencl:0 --networks small --items 4000 --batches 128

Two networks with tanh, softmax and cross-entropy, SGD with momentum, float32 without TF32:
784-500-10, where launches cost more than arithmetic, and 784-4096-4096-10, where arithmetic is all.
Quern computes on the device alone, on the processor alone and on both together; the peers on CUDA
when the device is a CUDA device, else on the processor. Every contender gets a turn in every round,
each time in a fresh process, and its first epoch is outside the clock.

A time counts only after its contender was seen to learn (a peer's loss must fall by a fifth at
least, Quern's model must classify most of the test images) and when Quern's three ways wrote the
same bytes. Medians over all epochs of all rounds. The exit status is 1 when anything failed.
"""

import hashlib
import os
import pathlib
import statistics
import sys
import tempfile

import common

LOWEST_ACCURACY = 0.5
MOST_OF_THE_LOSS = 0.8


def turn_of_quern(devices, files, batch, network, chosen, scratch):
    """One round of Quern on these devices: its rates, and the digest of its model."""
    hidden, rate = common.network_of(network, batch)
    model, out = scratch / "quern.safetensors", scratch / "classes.csv"
    text = common.model_of(hidden)
    command = common.training(files, batch, 0, chosen.epochs + 1, model,
                              ("--devices", devices), text, rate)  # fmt: skip
    cores = len(common.allowed_cores())
    rows = common.json_lines(common.call(command, cores).stdout)
    rates = [row["items_per_s"] for row in rows if row.get("event") == "epoch"]
    if len(rates) != chosen.epochs + 1:
        raise common.Failed(f"quern reported {len(rates)} epochs instead of {chosen.epochs + 1}")
    common.call(common.predicting(files, 0, model, out), cores)
    accuracy = common.accuracy(out, files["test-labels"])
    if accuracy < LOWEST_ACCURACY:
        raise common.Failed(f"quern's model is right for {accuracy:.1%} of the test images only")
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    return {"chunks": rates[1:], "proof": f"accuracy {accuracy:.1%}", "digest": digest}


def turn_of_peer(name, files, batch, network, chosen):
    hidden, rate = common.network_of(network, batch)
    row = common.peer(
        common.GPU_PEERS[name], "train", len(common.allowed_cores()),
        images=files["train-images"], labels=files["train-labels"],
        batch=batch, epochs=chosen.epochs, rate=rate,
        hidden=",".join(map(str, hidden)), device=chosen.peer_device,
    )  # fmt: skip
    if "skip" in row:
        return row
    if not row["loss_after"] < MOST_OF_THE_LOSS * row["loss_before"]:
        raise common.Failed(f"loss went from {row['loss_before']} to {row['loss_after']}")
    return {**row, "proof": f"loss {row['loss_before']:.2f} to {row['loss_after']:.3f}"}


def contest(files, batch, network, chosen, scratch):
    """All rounds of one network and batch size: {name: row with every chunk}."""
    ways = {f"quern {d}": d for d in (chosen.device, "cpu", f"cpu,{chosen.device}")}
    rows, digests = {}, set()
    for _ in range(chosen.rounds):
        for name in [*ways, *chosen.peers]:
            if "skip" in rows.get(name, {}):
                continue
            try:
                if name in ways:
                    turn = turn_of_quern(ways[name], files, batch, network, chosen, scratch)
                    digests.add(turn["digest"])
                    if len(digests) > 1:
                        raise common.Failed("the model's bytes differ from those of another way")
                else:
                    turn = turn_of_peer(name, files, batch, network, chosen)
            except common.Failed as failure:
                turn = {"skip": f"FAILED: {failure}"}
            if "skip" in turn:
                print(f"SKIPPED: {name}, batch {batch}: {turn['skip']}", file=sys.stderr)
            earlier = rows.get(name, {}).get("chunks", [])
            rows[name] = {**turn, "chunks": earlier + turn.get("chunks", [])}
    return rows


def section(rows, batch, network, peak):
    """One (heading, table, numbers) of the report."""
    hidden, _ = common.NETWORKS[network]
    rates = {name: statistics.median(row["chunks"]) for name, row in rows.items()
             if "skip" not in row}  # fmt: skip
    best = max((rate for name, rate in rates.items() if not name.startswith("quern")), default=None)
    lines = []
    for name, row in rows.items():
        if name not in rates:
            lines.append([name, "-", "-", "-", "-", "-", row["skip"].splitlines()[0]])
            continue
        speed = rates[name] * common.flop(hidden) / 1e12
        lines.append([
            name, f"{rates[name]:,.0f}", common.spread(row["chunks"]),
            f"{rates[name] / best:.2f}" if best else "-", f"{speed:.3f}",
            f"{speed / peak:.0%}" if peak else "-", row["proof"],
        ])  # fmt: skip
    head = ["", "items/s", "spread", "of best peer", "TFLOP/s", "of peak", "verified by"]
    heading = "-".join(map(str, [common.INPUTS, *hidden, common.CLASSES])) + f", batch {batch}"
    return heading, common.table(head, lines), rows


def device_facts(device):
    """The device's own name and driver, as `quern devices --json` tells them."""
    command = [common.quern_path(), "devices", "--json", "--measure", "none"]
    found = common.call(command, len(common.allowed_cores()))
    for row in common.json_lines(found.stdout):
        if row.get("id") == device:
            return "; ".join(filter(None, [row["name"], row.get("platform"), row.get("driver")]))
    sys.exit(f"gpu_train: there is no device {device} here; quern devices tells which there are")


def options():
    parser = common.options(__doc__.splitlines()[0], peers=common.GPU_PEERS, rounds=3)
    parser.add_argument("--device", default="cuda:0", help="as `quern devices` names it")
    parser.add_argument("--batches", type=common.numbers, default=[128, 1024, 8192])
    parser.add_argument("--networks", type=lambda text: text.split(","), default=list(common.NETWORKS))
    parser.add_argument("--epochs", type=int, default=3, help="timed epochs of one turn")
    parser.add_argument("--items", type=int, help="the first so many training images alone")
    parser.add_argument("--peak", type=float, default=0.0,
                        help="the device's float32 peak in TFLOP/s (H200: 67), for the share of it")
    chosen = parser.parse_args()
    chosen.peer_device = "cuda" if chosen.device.startswith("cuda") else "cpu"
    return chosen


def main():
    chosen = options()
    facts = {**common.hardware(), "quern": common.quern_version(),
             "device": device_facts(chosen.device), "peers_compute_on": chosen.peer_device}
    sections, versions = [], {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        files, facts["data"] = common.data(scratch)
        if chosen.items:
            common.cut(files, chosen.items)
            facts["data"] += f"; the first {chosen.items:,} alone"
        for network in chosen.networks:
            for batch in chosen.batches:
                rows = contest(files, batch, network, chosen, scratch)
                versions.update({n: r["version"] for n, r in rows.items() if "version" in r})
                sections.append(section(rows, batch, network, chosen.peak))
                print(sections[-1][0], sections[-1][1], sep="\n", file=sys.stderr, flush=True)
    facts["peers"] = "; ".join(versions.values())
    facts["load_at_end"] = round(os.getloadavg()[0], 2)
    common.publish("Training throughput on a GPU", facts, sections, chosen)
    every = [row for _, _, rows in sections for row in rows.values()]
    sys.exit(1 if any("FAILED" in row.get("skip", "") for row in every) else 0)


if __name__ == "__main__":
    main()

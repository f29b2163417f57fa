"""Training throughput of Quern on a GPU beside its peers on the same GPU.

    python bench/gpu_train.py                          # cuda:0, both networks, batch 128, 1024, 8192
    python bench/gpu_train.py --networks large --batches 8192 --peak 67 --peak-bytes 1979
    python bench/gpu_train.py --device opencl:0 --networks small --items 4000 --batches 128

Two networks with tanh, softmax and cross-entropy, SGD with momentum: 784-500-10, where launches cost
more than arithmetic, and 784-4096-4096-10, where arithmetic is all. Quern computes in each arithmetic
of --arith on the device alone, on the processor alone and on both together (--ways names some of
these); the peers on CUDA when the device is a CUDA device, once in float32 and once with TF32 in
their products, else on the processor in float32. All get the same inputs, bytes over 256. Every
contender gets a turn in every round, each time in a fresh process, and its first epoch is outside
the clock.

A time counts only after its contender was seen to learn (a peer's loss must fall by a fifth at
least, Quern's model must classify most of the test images) and when Quern's ways of an arithmetic
wrote the same bytes in every round. Medians over all epochs of all rounds. The exit status is 1 when
anything failed.
"""

import argparse
import hashlib
import os
import pathlib
import statistics
import sys
import tempfile

import common

LOWEST_ACCURACY = 0.5
MOST_OF_THE_LOSS = 0.8
# Digits of 7 bits that a product has of each operand; each is multiplied by each.
DIGITS = {"i7": 1, "i14": 2, "i21": 3}
WAYS = ("device", "cpu", "both")


def turn_of_quern(arith, devices, files, batch, network, chosen, scratch):
    """One round of Quern on these devices: its rates, and the digest of its model."""
    hidden, rate = common.network_of(network, batch)
    model, out = scratch / "quern.safetensors", scratch / "classes.csv"
    text = common.model_of(hidden)
    command = common.training(files, batch, 0, chosen.epochs + 1, model,
                              ("--arith", arith, "--devices", devices), text, rate)  # fmt: skip
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
    scripts = {**common.GPU_PEERS, **common.TF32_PEERS}
    row = common.peer(
        scripts[name], "train", len(common.allowed_cores()),
        products="tf32" if is_tf32(name) else "float32",
        images=files["train-images"], labels=files["train-labels"],
        batch=batch, epochs=chosen.epochs, rate=rate,
        hidden=",".join(map(str, hidden)), device=chosen.peer_device,
    )  # fmt: skip
    if "skip" in row:
        return row
    if not row["loss_after"] < MOST_OF_THE_LOSS * row["loss_before"]:
        raise common.Failed(f"loss went from {row['loss_before']} to {row['loss_after']}")
    return {**row, "proof": f"loss {row['loss_before']:.2f} to {row['loss_after']:.3f}"}


def is_tf32(name):
    return name.endswith(common.TF32)


def contenders(chosen):
    """Quern's, in the order of the report: {name: (arithmetic, what --devices takes)}."""
    devices = {"device": chosen.device, "cpu": "cpu", "both": f"cpu,{chosen.device}"}
    return {f"quern {arith} {devices[way]}": (arith, devices[way])
            for arith in chosen.arith for way in chosen.ways}  # fmt: skip


def contest(files, batch, network, chosen, scratch):
    """All rounds of one network and batch size: {name: row with every chunk}."""
    ours, rows, digests = contenders(chosen), {}, {}
    for _ in range(chosen.rounds):
        for name in [*ours, *chosen.peers]:
            if "skip" in rows.get(name, {}):
                continue
            try:
                if name in ours:
                    turn = turn_of_quern(*ours[name], files, batch, network, chosen, scratch)
                    if digests.setdefault(ours[name][0], turn["digest"]) != turn["digest"]:
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


def fraction(name, rate, hidden, chosen):
    """Of the device's peak: for float32 that of float32, for integers that of products of bytes, of
    which they take one for each pair of digits. "-" where the peak was not named, for TF32, and
    where the processor takes part."""
    done = rate * common.flop(hidden) / 1e12
    ours = name.startswith("quern ")
    arith = name.split()[1] if ours else "f32"
    if ours and name.split()[2] != chosen.device:
        return "-"
    if arith in DIGITS:
        done, peak = done * DIGITS[arith] ** 2, chosen.peak_bytes
        return f"{done / peak:.0%} in bytes" if peak else "-"
    return f"{done / chosen.peak:.0%}" if chosen.peak and not is_tf32(name) else "-"


HEAD = ["", "items/s", "spread", "of best float32 peer", "of best TF32 peer", "Top/s", "of peak",
        "verified by"]  # fmt: skip


def section(rows, batch, network, chosen):
    """One (heading, table, numbers) of the report."""
    hidden, _ = common.NETWORKS[network]
    rates = {name: statistics.median(row["chunks"]) for name, row in rows.items()
             if "skip" not in row}  # fmt: skip
    peers = {name: rate for name, rate in rates.items() if not name.startswith("quern ")}
    best = [max((r for name, r in peers.items() if is_tf32(name) == tf32), default=None)
            for tf32 in (False, True)]  # fmt: skip
    lines = []
    for name, row in rows.items():
        if name not in rates:
            lines.append([name, *["-"] * (len(HEAD) - 2), row["skip"].splitlines()[0]])
            continue
        lines.append([
            name, f"{rates[name]:,.0f}", common.spread(row["chunks"]),
            *(f"{rates[name] / one:.2f}" if one else "-" for one in best),
            f"{rates[name] * common.flop(hidden) / 1e12:.3f}",
            fraction(name, rates[name], hidden, chosen), row["proof"],
        ])  # fmt: skip
    heading = "-".join(map(str, [common.INPUTS, *hidden, common.CLASSES])) + f", batch {batch}"
    return heading, common.table(HEAD, lines), rows


def device_facts(device):
    """The device's own name and driver, as `quern devices --json` tells them."""
    command = [common.quern_path(), "devices", "--json", "--measure", "none"]
    found = common.call(command, len(common.allowed_cores()))
    for row in common.json_lines(found.stdout):
        if row.get("id") == device:
            return "; ".join(filter(None, [row["name"], row.get("platform"), row.get("driver")]))
    sys.exit(f"gpu_train: there is no device {device} here; quern devices tells which there are")


def some_of(known):
    """For argparse: words of `known`, separated by commas."""
    def parse(text):
        words = text.split(",")
        if set(words) - set(known):
            raise argparse.ArgumentTypeError(f"takes some of {','.join(known)}")
        return words

    return parse


def options():
    every = [*common.GPU_PEERS, *common.TF32_PEERS]
    parser = common.options(__doc__.splitlines()[0], peers=every, rounds=3)
    parser.add_argument("--device", default="cuda:0", help="as `quern devices` names it")
    parser.add_argument("--arith", type=some_of(["f32", *DIGITS]), default=["f32", "i14"])
    parser.add_argument("--ways", type=some_of(WAYS), default=list(WAYS),
                        help="where Quern computes: on the device, the processor, on both")
    parser.add_argument("--batches", type=common.numbers, default=[128, 1024, 8192])
    parser.add_argument("--networks", type=some_of(common.NETWORKS), default=list(common.NETWORKS))
    parser.add_argument("--epochs", type=int, default=3, help="timed epochs of one turn")
    parser.add_argument("--items", type=int, help="the first so many training images alone")
    parser.add_argument("--peak", type=float, default=0.0,
                        help="the device's float32 peak in TFLOP/s (H200: 67), for the share of it")
    parser.add_argument("--peak-bytes", type=float, default=0.0,
                        help="its peak of products of bytes in Top/s (H200: 1979)")
    chosen = parser.parse_args()
    chosen.peer_device = "cuda" if chosen.device.startswith("cuda") else "cpu"
    if chosen.peers == every and chosen.peer_device == "cpu":
        chosen.peers = list(common.GPU_PEERS)  # no processor has TF32
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
                sections.append(section(rows, batch, network, chosen))
                print(sections[-1][0], sections[-1][1], sep="\n", file=sys.stderr, flush=True)
    facts["peers"] = "; ".join(versions.values())
    facts["load_at_end"] = round(os.getloadavg()[0], 2)
    common.publish("Training throughput on a GPU", facts, sections, chosen)
    every = [row for _, _, rows in sections for row in rows.values()]
    sys.exit(1 if any("FAILED" in row.get("skip", "") for row in every) else 0)


if __name__ == "__main__":
    main()

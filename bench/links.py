"""Training on several hosts over links of a given speed: Quern beside PyTorch DDP over gloo.

    python bench/links.py --jobs mlp,lenet,gpt --links 1gbit,10gbit --ranks 4 --markdown links.md

Hosts are network namespaces of this machine, for which one has to be root; a link is shaped by tc in both
directions. Each host has a rank of one thread, held to a core; where cores are fewer, ranks share them. The
contenders take turns: Quern with the data on all hosts, Quern with a part of it on each (`--data-parts`), and
DDP. The table has the median of all epochs after the first of each turn, and what the link alone would allow:
the bytes of a step. For DDP they are those of the model's file, float32, of which a ring of N ranks sends
2 (N - 1) / N; for Quern those that it reports.
"""

import argparse
import contextlib
import hashlib
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

import cluster
import common
import train_text

sys.path.insert(0, str(common.ROOT / "tests"))
sys.path.insert(0, str(common.HERE / "peers"))

from hosts import Hosts  # noqa: E402
from networks import LENET  # noqa: E402
from torch_ddp import given  # noqa: E402

LIMIT = 900  # seconds that a turn may take
GPT = {"words": 65, "width": 128, "layers": 4, "heads": 4, "context": 64, "batch": 64, "steps": 8}
BATCH = {"mlp": 1024, "lenet": 256, "gpt": GPT["batch"]}
EVERYWHERE, PARTS, DDP = "quern", "quern, data in parts", "torch DDP"


def cut(files, items, ranks, scratch):
    """The first items as IDX files: whole, and one part for each rank; {rank or None: (images, labels)}."""
    images, labels = (files[f"train-{kind}"].read_bytes() for kind in ("images", "labels"))
    bounds = {None: (0, items), **{r: (items * r // ranks, items * (r + 1) // ranks) for r in range(ranks)}}
    cuts = {}
    for rank, (first, end) in bounds.items():
        count = (end - first).to_bytes(4, "big")
        cuts[rank] = scratch / f"images-{rank}", scratch / f"labels-{rank}"
        cuts[rank][0].write_bytes(images[:4] + count + images[8:16] + images[16 + 784 * first:16 + 784 * end])
        cuts[rank][1].write_bytes(labels[:4] + count + labels[8 + first:8 + end])
    return cuts


def words_of_quern(job, who, rank, data, chosen, model):
    """What one rank is started with."""
    epochs = chosen.epochs + 1
    if job == "gpt":
        return [common.quern_path(), "train", "--data", data, "--tokens", "ids", "--context", GPT["context"], "--task",
                "next", "--model", train_text.model_of(GPT), "--optimizer", "adamw", "--lr", train_text.RATE,
                "--weight-decay", train_text.DECAY, "--batch", GPT["batch"], "--epochs", epochs, "--seed", 1,
                "--threads", 1, "--json", "-o", model]  # fmt: skip
    images, labels = data[rank if who == PARTS else None]
    network, rate = (LENET, 0.01) if job == "lenet" else (common.MODEL, 0.1)
    words = common.training({"train-images": images, "train-labels": labels}, BATCH[job], 1, epochs, model,
                            network=network, rate=rate)
    return ["--data-parts" if who == PARTS and word == "--data" else word for word in words]


def words_of_torch(job, data, chosen):
    peers = common.HERE / "peers"
    options = ["--epochs", chosen.epochs, "--threads", 1]
    if job == "gpt":
        sizes = [word for key in ("words", "width", "layers", "heads", "context", "batch")
                 for word in (f"--{key}", GPT[key])]
        return [sys.executable, peers / "torch_gpt.py", "train", "--tokens", data, "--kind", "torch-ddp", "--rate",
                train_text.RATE, *sizes, *options]  # fmt: skip
    images, labels = data[None]
    network = ["--network", LENET, "--shape", "1x28x28", "--rate", 0.01] if job == "lenet" else []
    return [sys.executable, peers / f"torch_ddp_{'cnn' if job == 'lenet' else 'mlp'}.py", "train", "--images", images,
            "--labels", labels, "--batch", BATCH[job], *network, *options]  # fmt: skip


def together(net, commands, variables, before):
    """Runs one command on each host, each held to a core; what the first one printed."""
    cores = common.allowed_cores()
    held = [["taskset", "-c", cores[rank % len(cores)], *before, *command] for rank, command in enumerate(commands)]
    running = [subprocess.Popen(net.on(rank, [str(word) for word in command]), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env={**os.environ, **variables(rank)})
               for rank, command in enumerate(held)]  # fmt: skip
    return common.json_lines(common.outputs_of(running, LIMIT)[0])


def turn_of_quern(job, who, net, data, chosen, scratch, digests):
    models = [scratch / f"model-{rank}.safetensors" for rank in range(chosen.ranks)]
    for model in models:
        model.unlink(missing_ok=True)
    meet = ["--meet", f"{net.addresses[0]}:7777", "--ranks", chosen.ranks, "--key-file", cluster.new_key(scratch)]
    commands = [[*words_of_quern(job, who, rank, data, chosen, models[rank]), *meet, "--rank", rank]
                for rank in range(chosen.ranks)]  # fmt: skip
    rows = together(net, commands, lambda rank: {}, chosen.before)
    digest = hashlib.sha256(models[0].read_bytes()).hexdigest()
    if digests.setdefault(job, digest) != digest:
        raise common.Failed("the model's bytes differ")
    epochs = [row for row in rows if row.get("event") == "epoch"]
    (end,) = (row for row in rows if row.get("event") == "end")
    sent = end["ranks"][0]["bytes_out"] / end["steps"]
    return {"chunks": [row["items_per_s"] for row in epochs[1:]], "bytes": sent, "version": "quern",
            "model_bytes": models[0].stat().st_size}


def turn_of_torch(job, net, data, chosen):
    def variables(rank):
        return {**given(net.addresses[0], 7778, chosen.ranks, rank), "GLOO_SOCKET_IFNAME": "eth0"}

    (row,) = together(net, [words_of_torch(job, data, chosen)] * chosen.ranks, variables, chosen.before)
    if "skip" not in row and not row["loss_after"] < row["loss_before"]:
        raise common.Failed(f"loss went from {row['loss_before']} to {row['loss_after']}")
    per_item = GPT["context"] if job == "gpt" else 1
    return row if "skip" in row else {**row, "chunks": [rate / per_item for rate in row["chunks"]], "bytes": None}


def turn(job, who, net, data, chosen, scratch, digests):
    if who == DDP:
        return turn_of_torch(job, net, data, chosen)
    return turn_of_quern(job, who, net, data, chosen, scratch, digests)


def table(rows, job, link, ranks):
    speed = {"gbit": 1e9, "mbit": 1e6}[link[-4:]] * float(link[:-4]) / 8
    ring = rows[EVERYWHERE].get("model_bytes", 0) * 2 * (ranks - 1) / ranks
    ddp = statistics.median(rows[DDP]["chunks"]) if rows[DDP]["chunks"] else None
    lines = []
    for who, row in rows.items():
        if not row["chunks"]:
            lines.append([who, "-", "-", "-", "-", "-", row.get("skip", "")])
            continue
        rate, sent = statistics.median(row["chunks"]), row["bytes"] or ring
        lines.append([who, f"{rate:,.0f}", common.spread(row["chunks"]), f"{rate / ddp:.2f}" if ddp else "-",
                      f"{sent / 1e6:.2f}", f"{BATCH[job] * speed / sent:,.0f}", ""])
    return common.table(["", "items/s", "spread", "of DDP", "MB sent in a step", "the link's bound, items/s", ""], lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=lambda text: text.split(","), default=["mlp", "lenet", "gpt"])
    parser.add_argument("--links", type=lambda text: text.split(","), default=["1gbit", "10gbit"])
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--items", type=int, default=20_000, help="images, of mlp and lenet")
    parser.add_argument("--rounds", type=int, default=3, help="turns that every contender gets")
    parser.add_argument("--epochs", type=int, default=2, help="timed epochs of one turn")
    parser.add_argument("--before", type=shlex.split, default=[], help="words before each command: chrt -r 10")
    parser.add_argument("--markdown", type=pathlib.Path, help="also write the report here")
    parser.add_argument("--json", type=pathlib.Path, help="also write every number here")
    chosen = parser.parse_args()
    facts = {**common.hardware(), "quern": common.quern_version() or "none at " + str(common.quern_path())}
    sections, digests = [], {}
    with contextlib.ExitStack() as stack:
        scratch = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        net = stack.enter_context(Hosts(chosen.ranks, names=[f"host-{n}" for n in range(chosen.ranks)]))
        files, facts["data"] = common.data(scratch)
        images = cut(files, chosen.items, chosen.ranks, scratch)
        tokens, facts["tokens"] = train_text.tokens(GPT, scratch)
        for link in chosen.links:
            for host in range(chosen.ranks):
                net.rate(host, link, burst="256kb")
            for job in chosen.jobs:
                who = [EVERYWHERE, DDP] if job == "gpt" else [EVERYWHERE, PARTS, DDP]
                data = tokens if job == "gpt" else images
                rows = common.contest(who, chosen.rounds, lambda name, _: turn(
                    job, name, net, data, chosen, scratch, digests))  # fmt: skip
                heading = f"{job}, {chosen.ranks} hosts, {link}"
                sections.append((heading, table(rows, job, link, chosen.ranks), rows))
                print(heading, sections[-1][1], sep="\n", file=sys.stderr, flush=True)
    facts["load_at_end"] = round(os.getloadavg()[0], 2)
    common.publish("Training over links", facts, sections, chosen)
    sys.exit(any("FAILED" in row.get("skip", "") for _, _, rows in sections for row in rows.values()))


if __name__ == "__main__":
    main()

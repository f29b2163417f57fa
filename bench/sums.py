"""Sums among ranks of one machine: Quern beside Open MPI's MPI_Allreduce and gloo of PyTorch.

    python bench/sums.py --words 397510,10000000 --ranks 2,4,8 --mpirun mpirun.openmpi

All add up 64-bit integers and verify the total. They take turns, round after round, on the same
cores. In shared memory: Quern, Open MPI. Over loopback TCP: Quern with each rank as if it were on a
machine of its own, also with `--transport mpi`, Open MPI with its TCP transport, and gloo. Each cell has the median of the
rounds' medians of one all-reduce, and the least of all. `--before "chrt -r 10"` are words that start each process.
"""

import argparse
import os
import pathlib
import re
import shlex
import socket
import statistics
import subprocess
import sys

import common

SHARED = {"Quern, shared memory": ("quern", "A"), "Open MPI, shared memory": ("mpi", "self,vader")}
TCP = {"Quern, TCP": ("quern", "ABCDEFGHIJKLMNOP"), "Quern by Open MPI, TCP": ("mpirun", "ABCDEFGHIJKLMNOP"), "Open MPI, TCP": ("mpi", "self,tcp"), "gloo, TCP": ("gloo", "")}
AS_ROOT = {f"OMPI_ALLOW_RUN_AS_ROOT{s}": "1" for s in ("", "_CONFIRM")}
CROWDED = ["--oversubscribe", "--bind-to", "none", "--mca", "btl"]
LIMIT = 300


def told(commands, before):
    """Runs processes side by side; what the first one printed."""
    running = [subprocess.Popen([*before, *map(str, c)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, **AS_ROOT}) for c in commands]  # fmt: skip
    return common.outputs_of(running, LIMIT)[0]


def both(text):
    (row,) = common.json_lines(text)
    return [row["median"], row["least"]]


def one_turn(how, place, words, ranks, chosen):
    """Median and least seconds of an all-reduce."""
    count = max(8, int(chosen.seconds / (words * ranks * 2e-9)))
    if how in ("quern", "mpirun"):
        places = (place * ranks)[:ranks] if len(place) == 1 else place[:ranks]
        command = [common.ROOT / "build/bench/rounds", words, count, places]
        if how == "mpirun":
            command = [chosen.mpirun, "-n", ranks, *CROWDED, "self,tcp", *command, "mpi"]
        text = told([command], chosen.before)
        found = re.search(r"median +([\d.]+) ms +least +([\d.]+)", text)
        return [1e-3 * float(number) for number in found.groups()]
    script = common.HERE / "peers" / f"{how}_sums.py"
    if how == "mpi":
        command = [chosen.mpirun, "-n", ranks, *CROWDED, place, sys.executable, script, words, count]
        return both(told([command], chosen.before))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    commands = [[sys.executable, script, words, count, port, ranks, rank] for rank in range(ranks)]
    return both(told(commands, chosen.before))


def cell(turns):
    medians, least = zip(*turns)
    return f"{1e3 * statistics.median(medians):.2f} ({1e3 * min(least):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", type=common.numbers, default=[397510, 10_000_000])
    parser.add_argument("--ranks", type=common.numbers, default=[2, 4, 8])
    parser.add_argument("--rounds", type=int, default=3, help="turns of each")
    parser.add_argument("--seconds", type=float, default=0.5, help="about what a turn takes")
    parser.add_argument("--mpirun", help="of Open MPI; without it, it is left out")
    parser.add_argument("--before", type=shlex.split, default=[], help="words before each command")
    parser.add_argument("--only", default="", help="contenders whose name holds this")
    parser.add_argument("--markdown", type=pathlib.Path, help="also write the report here")
    parser.add_argument("--json", type=pathlib.Path, help="also write every number here")
    chosen = parser.parse_args()
    facts = {**common.hardware(), "quern": common.quern_version()}
    names = {name: way for name, way in {**SHARED, **TCP}.items()
             if chosen.only in name and (chosen.mpirun or way[0] not in ("mpi", "mpirun"))}  # fmt: skip
    lines, rows = [], []
    for words in chosen.words:
        for ranks in chosen.ranks:
            turns = {name: [] for name in names}
            for _ in range(chosen.rounds):
                for name, way in names.items():
                    turns[name].append(one_turn(*way, words, ranks, chosen))
            rows.append({"words": words, "ranks": ranks, "turns": turns})
            lines.append([f"{8e-6 * words:.1f} MB", ranks, *map(cell, turns.values())])
            print(*lines[-1], file=sys.stderr, flush=True)
    facts["load_at_end"] = round(os.getloadavg()[0], 2)
    text = common.table(["sums", "ranks", *(f"{name}, ms" for name in names)], lines)
    common.publish("Sums among ranks of one machine", facts, [("Medians", text, rows)], chosen)


if __name__ == "__main__":
    main()

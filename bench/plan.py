"""`quern plan` beside real runs: does a training take as long as was planned?

    python bench/plan.py --batches 128,1024 --markdown plan.md --json plan.json

For each data set, batch and team, in turns: `quern devices --costs` measures what calls take (it
trains nothing), `quern plan` says from that alone how long a training will take, and the training
is done. Teams are one rank of two cores, two ranks of a core each, two of which one is killed
half-way, and hosts of one rank with a wire of 1 Gbit/s each (network namespaces, for which one has
to be root). Others can be named: "4 ranks", "8 hosts" have one thread for each rank, and share the
cores where these are fewer. `--before "chrt -r 10"` are words that start each process. What other processes of the machine took of its cores meanwhile is looked up
in /proc/stat; a turn in which that was more than --quiet cores is done again.
"""

import argparse
import contextlib
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import cluster
import common

sys.path.insert(0, str(common.ROOT / "tests"))

from hosts import Hosts  # noqa: E402  (needs the line above)

ALONE, RANKS, DIES, HOSTS = "1 rank, 2 cores", "2 ranks", "2 ranks, one killed half-way", "2 hosts"
TEAMS = (ALONE, RANKS, DIES, HOSTS)
MOST_HOSTS = 8
# What two sockets that send 1.6 MB to each other at once get out of a wire of 1 Gbit/s, headers and
# the answers of TCP being part of it; and half of a short message's way there and back.
WIRE, NET = "1gbit", "net 80us 915Mbit/s"
LIMIT = 600  # seconds that a run may take
TRIES = 20  # of one turn, until the machine was quiet


def jiffies():
    """Seconds that all cores together were at work for processes since the machine was started."""
    words = pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:]
    return sum(map(int, words[:3])) / os.sysconf("SC_CLK_TCK")


class Neighbours:
    """Cores that other processes than this one's children took, in the mean."""

    def __enter__(self):
        self.begun, self.all, self.own = time.monotonic(), jiffies(), self.mine()
        return self

    def __exit__(self, *_):
        seconds = time.monotonic() - self.begun
        self.cores = (jiffies() - self.all - self.mine() + self.own) / seconds

    @staticmethod
    def mine():
        told = os.times()
        return told.user + told.system + told.children_user + told.children_system


def job_words(data, batch, epochs=None):
    words = ["--model", common.MODEL, "--batch", batch]
    if data:
        words += ["--data", data["train-images"], "--labels", data["train-labels"]]
    return words + (["--epochs", epochs] if epochs else [])


def ranks_of(team):
    return 1 if team == ALONE else int(team.split()[0])


def measured(data, batch, ranks, chosen, file):
    """What calls take here, as `quern plan` reads it; the file."""
    words = [*chosen.before, common.quern_path(), "devices", "--json", "--costs", "--devices", "cpu", "--threads",
             max(ranks, 2), "--seconds", chosen.seconds, *job_words(data, batch)]  # fmt: skip
    file.write_text(common.call(words + ["--ranks", ranks], 2).stdout)
    return file


def planned(data, batch, epochs, team):
    words = [common.quern_path(), "plan", "--json", *job_words(data, batch, epochs), "--team", team]
    return common.json_lines(common.call(words, 1).stdout)[-1]


def apart(file):
    """The ranks that a file tells of as hosts of their own."""
    places = []
    for number, line in enumerate(file.read_text().splitlines()):
        places.append(file.with_name(f"host{number}.json"))
        places[-1].write_text(line + "\n")
    return " ".join(f"host({place})" for place in places) + f"; {NET}"


def commands_of(words, team, scratch, net):
    if team == ALONE:
        return [words]
    commands = cluster.by_hand(words, ranks_of(team), scratch)
    if team.endswith("hosts"):
        commands = [net.on(host, [net.addresses[0] + ":7777" if "127.0.0.1:" in str(w) else w
                                  for w in c]) for host, c in enumerate(commands)]  # fmt: skip
    return commands


def trained(data, batch, epochs, team, chosen, scratch, net, kill_at=None):
    """Seconds of the training; rank 1 is killed so many seconds after the start."""
    words = [common.quern_path(), "train", *job_words(data, batch, epochs), "--threads",
             2 if team == ALONE else 1, "--json", "-o", scratch / "m.safetensors"]  # fmt: skip
    commands = commands_of(words, team, scratch, net)
    running = [subprocess.Popen([*chosen.before, *map(str, c)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True) for c in commands]  # fmt: skip
    try:
        out = ""
        while kill_at is not None and '"start"' not in out:
            line = running[0].stdout.readline()
            out += line
            if not line:
                break
        if kill_at is not None:
            time.sleep(kill_at)
            running[1].kill()
        out += running[0].communicate(timeout=LIMIT)[0]
        for process in running[1:]:
            process.communicate(timeout=LIMIT)
    finally:
        for process in running:
            process.kill()
    if running[0].returncode != 0:
        raise common.Failed(f"ended with {running[0].returncode}: {out[-600:]}")
    return common.json_lines(out)[-1]


def one_turn(data, batch, epochs, team, chosen, scratch, net):
    """(planned, real) seconds of one turn."""
    file = measured(data, batch, ranks_of(team), chosen, scratch / "machine.json")
    text = apart(file) if team.endswith("hosts") else f"host({file})"
    told = planned(data, batch, epochs, text)["seconds"]
    kill_at = 0.5 * told if team == DIES else None
    if kill_at:
        told = planned(data, batch, epochs, f"{text}; die 0.1 at {kill_at:.3f}s")["seconds"]
    return told, trained(data, batch, epochs, team, chosen, scratch, net, kill_at)["seconds_training"]


def quiet_turn(*words, chosen, **more):
    for _ in range(TRIES):
        with Neighbours() as neighbours:
            turn = one_turn(*words, chosen=chosen, **more)
        if neighbours.cores <= chosen.quiet:
            return turn
        print(f"again: others took {neighbours.cores:.2f} cores", file=sys.stderr)
    raise common.Failed(f"the machine was not quiet in {TRIES} tries")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=common.numbers, default=[128, 1024])
    parser.add_argument("--teams", type=lambda text: text.split(":"), default=TEAMS)
    parser.add_argument("--rounds", type=int, default=3, help="turns of each")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1, help="that measuring takes")
    parser.add_argument("--before", type=shlex.split, default=[], help="words before each command")
    parser.add_argument("--quiet", type=float, default=0.1, help="cores that others may take")
    parser.add_argument("--markdown", type=pathlib.Path, help="also write the report here")
    parser.add_argument("--json", type=pathlib.Path, help="also write every number here")
    chosen = parser.parse_args()
    facts = common.hardware()
    facts["quern"] = common.quern_version()
    lines, rows = [], []
    with contextlib.ExitStack() as stack:
        net = stack.enter_context(Hosts(MOST_HOSTS, names=[f"host-{n}" for n in range(MOST_HOSTS)]))
        for host in range(MOST_HOSTS):
            net.rate(host, WIRE)
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        scratch = pathlib.Path(folder)
        files, name = common.data(scratch)
        every = {name.split(",")[0]: (files, 1), "built-in digits": (None, 3)}
        for what, (data, times) in every.items():
            for batch in chosen.batches:
                for team in chosen.teams:
                    if team.endswith("hosts") and batch < 512:
                        continue  # half a minute of waiting for the wire
                    turns = [quiet_turn(data, batch, times * chosen.epochs, team, chosen=chosen,
                                        scratch=scratch, net=net) for _ in range(chosen.rounds)]  # fmt: skip
                    plan, real = (statistics.median(column) for column in zip(*turns))
                    rows.append({"data": what, "batch": batch, "team": team, "turns": turns})
                    lines.append([what, batch, team, f"{plan:.2f} s", f"{real:.2f} s",
                                  f"{100 * (plan / real - 1):+.0f} %"])  # fmt: skip
                    print(*lines[-1], file=sys.stderr, flush=True)
    facts["load_at_end"] = round(os.getloadavg()[0], 2)
    text = common.table(["data", "batch", "team", "planned T", "real T", "off by"], lines)
    common.publish("Plans beside real runs", facts, [("T", text, rows)], chosen)


if __name__ == "__main__":
    main()

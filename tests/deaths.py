"""One run with one kind of failure, at moments that chance chooses, and what came of it.

KINDS is the table of what can go wrong. test_cluster_deaths.py makes a run of each kind,
bench/deaths.py makes hundreds. The seed and the kind decide everything that is drawn. What a kill
hit is found out afterwards: from a file that the rank left half written, and from the trace of the
other ranks.

Each run must end in time with the bytes of a single process, with the exit codes that its kind
states, without a rank lost that the kind does not allow to be lost, and without a partial file.
"""

import atexit
import collections
import functools
import json
import random
import shutil
import signal
import sqlite3
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import hosts
import launch
import midwrite
from death_trace import Trace

# Where the ranks are. All but the first have sums travel over TCP.
ONE = "one machine"  # shared memory and Unix sockets
APART = "apart"      # one machine, but each rank in a user namespace of its own
HOSTS = "hosts"      # each rank on a host of its own (see hosts.py)
PAIRS = "pairs"      # two ranks on each host: shared memory and TCP
PLACES = [ONE, APART, HOSTS, PAIRS]
ON_HOSTS = [HOSTS, PAIRS]

# What a kill can hit. "recovery": the others had noticed an earlier one and not yet made up for it.
PHASES = ["step", "validation", "checkpoint", "recovery", "end", "unknown"]


@dataclass
class Fault:
    what: str                  # "kill", "stop", "cut" and so on
    rank: int                  # -1: it hit no rank in particular
    moment: float              # of this machine's clock
    phase: str = "unknown"     # of kills
    noticed: float = -1        # seconds until the first of the others knew; -1: not told
    interruption: float = -1   # seconds until all ranks left had made up for it; -1: not told


@dataclass
class Trial:
    launcher: str
    place: str
    ranks: int
    kind: str
    seed: int
    faults: list = field(default_factory=list)  # those that met a run that was still going on
    codes: list = field(default_factory=list)   # exit codes: of the launcher, or of each rank
    wrong: str = ""       # the first rule that was broken, and the story; empty: all is well
    class_: str = ""      # of what is wrong: "hang", "bytes", "codes", "lost" or "files"
    told: str = ""        # what is wrong with the JSON events of all ranks together
    pause: float = -1     # the longest time without a step of a rank left, by the trace
    seconds: float = 0.0
    job: str = ""         # which one, where the caller has several

    def kills(self):
        return [f for f in self.faults if f.what == "kill"]

    def __str__(self):
        hit = ", ".join(f"{f.what} {f.rank if f.rank >= 0 else ''}".strip() +
                        (f" ({f.phase})" if f.what == "kill" else "") for f in self.faults)
        return (f"{self.kind} (seed {self.seed}): {self.launcher}, {self.place}, "
                f"{self.ranks} ranks; {hit or 'no fault'}; codes {self.codes}, {self.seconds:.2f} s"
                + (f"; events: {self.told}" if self.told else ""))


class Stage:
    """A run under way, for the functions that disturb it. What they expect they write down in
    `dead`, `may_leave` and so on."""

    def __init__(self, trial, run, job, folders, chance, net, host_of, timeout):
        self.trial, self.run, self.job, self.chance, self.net = trial, run, job, chance, net
        self.folders, self.host_of, self.timeout = folders, host_of, timeout
        self.ranks = trial.ranks
        self.some = list(range(trial.ranks))  # in an order that chance chooses
        chance.shuffle(self.some)
        self.dead = set()          # killed: the exit code is that of the signal
        self.leaves = set()        # given up by the others, and told so: 0
        self.cut_off = set()       # without a quorum: 1
        self.may_leave = set()     # perhaps given up: 0 or 1
        self.most_lost = 0         # how many of may_leave
        self.no_quorum = False     # nobody goes on: no model
        self.began = time.monotonic()

    # ---------------------------------------------------------------- when

    def epochs(self):
        return self.run.text().count('"event":"epoch"')

    def sometime(self, least=0.0, most=0.9):
        """Waits for a moment between these parts of the run."""
        part = self.chance.uniform(least, most) * self.job.epochs
        self.run.until(lambda: self.epochs() >= int(part) or self.run.over())
        each = (time.monotonic() - self.began) / self.epochs() if self.epochs() else \
            self.job.seconds / self.job.epochs
        time.sleep(part % 1 * min(each, 1))

    def soon(self, most, least=0.0):
        time.sleep(self.chance.uniform(least, most))

    def writes(self, rank=0):
        """Whether that rank is writing a checkpoint."""
        return any(self.folders[0].glob(f".quern-{self.run.known.get(rank)}-*"))

    def until_it_writes(self, number):
        """Waits for the numberth checkpoint of rank 0."""
        for i in range(number):
            if i:
                self.run.until(lambda: not self.writes() or self.run.over())
            self.run.until(lambda: self.writes() or self.run.over())

    def over(self):
        return self.run.over() or '"event":"end"' in self.run.text()

    # ---------------------------------------------------------------- what

    def note(self, what, rank=-1):
        if not self.over():
            self.trial.faults.append(Fault(what, rank, time.monotonic()))

    def kill(self, *ranks):
        for rank in ranks:
            moment, pid = time.monotonic(), self.run.known.get(rank)
            if not self.run.kill(rank):
                continue
            self.dead.add(rank)
            self.trial.faults.append(Fault("kill", rank, moment))
            for phase, folder in zip(("checkpoint", "end"), self.folders):
                if any(folder.glob(f".quern-{pid}-*")):
                    self.trial.faults[-1].phase = phase

    def stop(self, rank):
        self.note("stop", rank)
        self.run.kill(rank, signal.SIGSTOP)

    def until_given_up(self, rank):
        """Waits until the others have given that rank up, and a little longer."""
        self.leaves.add(rank)
        self.run.until(lambda: self.over() or any(f"rank {rank} on " in row["text"]
                                                  for row in self.run.events("ranks")))
        self.soon(0.3)

    def wake(self, rank):
        self.run.kill(rank, signal.SIGCONT)

    def outage(self, a, seconds, b=None):
        """Nothing passes between hosts `a` and `b` (None: all) for so long."""
        self.note("outage")
        self.net.cut(a, b)
        self.net.cut(b, a)
        time.sleep(seconds)
        self.net.mend(a, b)
        self.net.mend(b, a)

    def somewhere(self):
        """What an outage hits: a host, the line between two hosts, or the whole switch."""
        what = self.chance.randrange(3)
        return [([self.some[0]], None), ([self.some[0]], [self.some[1]]), (None, None)][what]


# ------------------------------------------------------------------------------- the kinds

def _one(s):
    s.sometime()
    s.kill(s.some[0])


def _speaker(s):
    s.sometime()
    s.kill(0)


def _two_at_once(s):
    s.sometime()
    s.kill(*s.some[:2])


def _in_recovery(s):
    s.sometime(most=0.8)
    for rank in s.some[:-1][:3]:
        s.kill(rank)
        time.sleep(10 ** s.chance.uniform(-3, -2.2))


def _one_after_another(s):
    for i, rank in enumerate(s.some[:-1]):
        s.sometime(i / s.ranks, (i + 1) / s.ranks)
        s.kill(rank)


def _validation(s):  # the last part of an epoch; how long an epoch takes is seen first
    s.run.until(lambda: s.epochs() >= 1 or s.run.over())
    seen, began = s.epochs(), time.monotonic()
    s.run.until(lambda: s.epochs() >= seen + 3 or s.run.over())
    epoch = (time.monotonic() - began) / max(1, s.epochs() - seen)
    time.sleep(epoch * (s.chance.randrange(3) + s.chance.uniform(0.8, 1)))
    s.kill(s.some[0])


def _checkpoint(s):
    s.until_it_writes(s.chance.randint(1, 3))
    s.soon(0.002)
    s.kill(s.chance.choice([0, 0, s.some[0]]))


def _end(s):
    pid = s.run.known[0]  # midwrite.py stops it as it writes the model
    s.run.until(lambda: midwrite.stopped(pid) or s.run.over())
    s.kill(0)
    if s.ranks > 2 and s.chance.random() < 0.5:
        s.soon(0.01)
        s.kill(1)


def _last_in_checkpoint(s):
    s.until_it_writes(s.chance.randint(1, 2))
    s.soon(0.005)
    s.kill(s.ranks - 1)


def _two_machines(s):
    first = s.some[0]
    other = next(r for r in s.some if s.host_of[r] != s.host_of[first])
    s.sometime()
    s.kill(first, other)


def _all_but_one(s):
    s.sometime()
    s.kill(*s.some[:-1])


def _stop_long(s):
    rank = s.some[0]
    s.sometime(most=0.7)
    s.stop(rank)
    s.until_given_up(rank)
    s.wake(rank)


def _stop_short(s):
    rank = s.some[0]
    s.sometime(most=0.8)
    s.stop(rank)
    s.soon(0.3 * s.timeout, 0.05 * s.timeout)
    s.wake(rank)


def _speaker_stops_as_it_writes(s):  # midwrite.py stops it
    pid = s.run.known[0]
    s.run.until(lambda: midwrite.stopped(pid) or s.run.over())
    s.note("stop", 0)
    s.until_given_up(0)
    s.wake(0)


def _apart(s, part):
    """Notes that those ranks are cut off from the others for good."""
    rest = set(range(s.ranks)) - part
    goes_on = 2 * len(part) > s.ranks or 2 * len(part) == s.ranks and 0 in part
    s.cut_off |= rest if goes_on else part
    s.note("cut")
    return sorted(part), sorted(rest)


def _cut_both_ways(s):
    part = set(s.some[:s.chance.randint(1, s.ranks // 2)])
    s.sometime(0.1, 0.6)
    a, b = _apart(s, part)
    s.net.cut(a, b)
    s.net.cut(b, a)


def _cut_one_way(s):
    rank, mute = s.some[0], s.chance.random() < 0.5
    s.sometime(0.1, 0.6)
    s.may_leave.add(rank)
    s.most_lost = 1
    s.note("cut", rank)
    if mute:
        s.net.cut([rank])
    else:
        s.net.cut(None, [rank])


def _cut_between_two(s):
    a, b = s.some[:2]
    s.sometime(0.1, 0.6)
    s.may_leave |= {a, b}
    s.most_lost = 1
    s.note("cut")
    s.net.cut([a], [b])
    s.net.cut([b], [a])


def _outage(s):
    a, b = s.somewhere()
    s.sometime(0.05, 0.7)
    s.outage(a, 1.0, b)


def _long_outage(s):
    a, b = s.somewhere()
    s.sometime(0.05, 0.7)
    s.outage(a, s.chance.uniform(0.6, 0.8) * s.timeout, b)


def _two_outages(s):
    s.sometime(0.05, 0.4)
    for _ in range(2):
        a, b = s.somewhere()
        s.outage(a, s.chance.uniform(0.15, 0.4) * s.timeout, b)
        s.soon(0.3, 0.02)


def _delay(s):
    s.sometime(0.05, 0.5)
    s.note("delay")
    s.net.delay(s.chance.uniform(0.002, 0.02), None if s.chance.random() < 0.5 else [s.some[0]])
    time.sleep(1)
    s.net.delay(0)


def _lossy(percent):
    def act(s):
        s.sometime(0.05, 0.5)
        s.net.seed(s.trial.seed)
        s.note("loss")
        s.net.loss(percent)
        time.sleep(1.5)
        s.net.loss(0)
    return act


def _flip(s, **where):
    s.sometime(0.05, 0.7)
    before, moment = s.net.counts()["flipped"], time.monotonic()
    s.net.flip(*s.some[:2], bit=s.chance.randrange(8), **where)
    s.run.until(lambda: s.net.counts()["flipped"] > before or s.over())
    if s.net.counts()["flipped"] > before:
        s.trial.faults.append(Fault("flip", -1, moment))


def _bit_in_head(s):
    # Half of the time in the type, which has four bytes; the numbers and the length follow.
    most = s.chance.choice([3, 39])
    _flip(s, least=40, offset=s.chance.randint(0, most), head=True)


def _bit_in_sum(s):
    _flip(s, least=2000, offset=s.chance.randint(200, 1999))


def _reset(s):
    s.sometime(0.05, 0.7)
    for _ in range(s.chance.randint(1, 2)):
        s.note("reset")
        s.net.reset(*s.some[:2])
        s.soon(0.1)


def _reset_and_outage(s):
    """The connection ends on both sides, and then nobody answers: which proves no death."""
    a, b = s.some[:2]
    s.sometime(0.05, 0.6)
    s.note("reset")
    s.net.cut([a], [b])
    s.net.cut([b], [a])
    s.net.reset(a, b)
    time.sleep(s.chance.uniform(0.4, 0.7) * s.timeout)
    s.net.mend([a], [b])
    s.net.mend([b], [a])


def _kill_on_slow_line(s):
    s.sometime(0.05, 0.6)
    for i in range(s.ranks):
        s.net.rate(i, "100mbit")
    s.soon(0.3)
    s.kill(s.some[0])
    time.sleep(0.7)
    for i in range(s.ranks):
        s.net.rate(i, "0mbit")


def _kill_in_outage(s):
    victim = s.chance.choice(s.some[:2])  # on the host that is out of reach, or on another one
    s.sometime(0.05, 0.6)
    s.note("outage")
    s.net.unplug(s.some[0])
    s.soon(0.7)
    s.kill(victim)
    s.soon(0.3)
    s.net.plug(s.some[0])


def _lose(s, lost):
    """Cuts the power of those hosts at once."""
    gone = {r for r in range(s.ranks) if s.host_of[r] in lost}
    left = set(range(s.ranks)) - gone
    for host in lost:
        s.net.unplug(host)
    for host in lost:
        s.note("power cut", min(r for r in gone if s.host_of[r] == host))
        s.net.kill_all(host)
    s.dead |= gone
    if 2 * len(left) < s.ranks or 2 * len(left) == s.ranks and 0 not in left:
        s.no_quorum = True
        s.cut_off |= left


def _power_cut(s):
    s.sometime(0.05, 0.8)
    _lose(s, {s.host_of[s.some[0]]})


def _power_cut_of_most(s):
    s.sometime(0.05, 0.7)
    _lose(s, {s.host_of[r] for r in s.some[1:]})


@dataclass(frozen=True)
class Kind:
    name: str
    what: str              # that happens
    comes: str             # of it
    act: object            # Stage -> None
    places: tuple = tuple(PLACES)
    ranks: tuple = (2, 3, 4)
    timeout: float = 20    # --rank-timeout in seconds: at least 3, because a healthy rank may have to wait for a core
    job: str = "usual"     # or "large", whose checkpoints take long to write
    midwrite: str = ""     # rank 0 stops itself in the middle of a file: "checkpoint", "model"


SAME = "the same bytes, 0; only killed ranks are lost"
LEAVES = "the same bytes, 0; the others give it up, and it ends with 0"
NOBODY = "the same bytes, 0; no rank is lost"
ONE_LOST = "the same bytes, 0; at most one of two ranks is lost and ends with 0 or 1"
SEVERAL, NET, MORE = (3, 3, 4, 5), (HOSTS,), (3, 4)

# The first kinds are those that other tests draw by number.
KINDS = [
    Kind("one", "one rank is killed", SAME, _one),
    Kind("speaker", "rank 0 is killed", SAME, _speaker),
    Kind("two at once", "two ranks are killed", SAME, _two_at_once, ranks=SEVERAL),
    Kind("in recovery", "up to three ranks are killed, 1 to 6 ms apart", SAME, _in_recovery,
         ranks=SEVERAL),
    Kind("one after another", "all but one are killed over the whole run", SAME,
         _one_after_another, ranks=SEVERAL),
    Kind("validation", "a rank is killed in a validation", SAME, _validation),
    Kind("checkpoint", "rank 0 or another one is killed as rank 0 writes a checkpoint", SAME,
         _checkpoint),
    Kind("end", "rank 0 is killed as it ends, sometimes the next one as well", SAME, _end,
         midwrite="model"),
    Kind("last in checkpoint", "the last rank is killed as rank 0 writes a checkpoint", SAME,
         _last_in_checkpoint, ranks=(3,), places=(APART, APART, HOSTS, PAIRS), job="large"),
    Kind("two machines", "ranks of two machines are killed at once", SAME, _two_machines,
         ranks=MORE, places=(APART, HOSTS, PAIRS)),
    Kind("all but one", "all ranks but one are killed at once", SAME, _all_but_one, ranks=MORE),
    Kind("stop", "a rank is stopped for longer than the time limit", LEAVES, _stop_long,
         ranks=MORE, timeout=3),
    Kind("short stop", "a rank is stopped for less than the time limit", NOBODY, _stop_short,
         timeout=6),
    Kind("stop of the speaker", "rank 0 is stopped for long in the middle of a checkpoint", LEAVES,
         _speaker_stops_as_it_writes, ranks=MORE, timeout=3, midwrite="checkpoint"),
    Kind("cut", "hosts are cut off in both directions",
         "the same bytes and 0 in the part with the quorum, 1 in the other part", _cut_both_ways,
         NET, MORE, 3),
    Kind("one-way cut", "a host is not heard any more, or hears nothing any more",
         "the same bytes, 0; it ends with 0 or 1", _cut_one_way, NET, MORE, 3),
    Kind("cut between two", "two hosts do not reach each other any more, but reach all others",
         ONE_LOST, _cut_between_two, NET, MORE, 3),
    Kind("outage", "1 s without a network: a host, a pair of hosts or all", NOBODY, _outage, NET,
         MORE, 6),
    Kind("long outage", "the same for 60 % to 80 % of the time limit", NOBODY, _long_outage, NET,
         MORE, 6),
    Kind("two outages", "two outages of 15 % to 40 % of the time limit in a row", NOBODY,
         _two_outages, NET, MORE, 6),
    Kind("delay", "frames arrive 2 to 20 ms later for 1 s", NOBODY, _delay, NET, MORE, 6),
    Kind("loss of 1 %", "1 % of the packets are lost for 1.5 s", NOBODY, _lossy(1), NET, MORE, 10),
    Kind("loss of 10 %", "10 % of the packets are lost for 1.5 s", NOBODY, _lossy(10), NET, MORE,
         10),
    Kind("bit in a head", "one bit is inverted in the head of a message", NOBODY, _bit_in_head,
         NET, MORE, 6),
    Kind("bit in a sum", "one bit is inverted in a sum", NOBODY, _bit_in_sum, NET, MORE, 6),
    Kind("reset", "the TCP connection of two living hosts is reset, once or twice", NOBODY, _reset,
         NET, MORE, 6),
    Kind("reset and outage", "a connection is reset, then 40 % to 70 % of the time limit without "
         "that link", NOBODY, _reset_and_outage, NET, MORE, 6),
    Kind("kill on a slow line", "a rank is killed on a network of 100 Mbit/s", SAME,
         _kill_on_slow_line, NET, MORE),
    Kind("kill in an outage", "a rank is killed while a host is out of reach", SAME,
         _kill_in_outage, NET, (4,), 6),
    Kind("power cut", "a host is lost without a word",
         "the same bytes, 0; if no quorum is left: no model, 1", _power_cut, (HOSTS, PAIRS), MORE,
         3),
    Kind("power cut of most", "all hosts but one are lost without a word",
         "no model; the rank left ends with 1", _power_cut_of_most, NET, MORE, 3),
]


def kind_named(name):
    found = [k for k in KINDS if k.name == name]
    if not found:
        raise ValueError(f"no kind {name!r}; there are: " + ", ".join(k.name for k in KINDS))
    return found[0]


# ------------------------------------------------------------------------------- what came of it

def _whole(path):
    """Whether a safetensors file holds as many bytes as its head says."""
    try:
        with open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            head = json.loads(file.read(size))
    except FileNotFoundError:
        return True  # an older checkpoint, which was removed meanwhile
    except (ValueError, MemoryError):
        return False
    ends = [t["data_offsets"][1] for name, t in head.items() if name != "__metadata__"]
    return path.stat().st_size == 8 + size + max(ends, default=0)


def _partial_files(s):
    killed = {str(s.run.known.get(r)) for r in s.dead}
    partial = []
    for folder in s.folders:
        partial += [p.name for p in folder.glob("*.safetensors") if not _whole(p)]
        partial += [p.name for p in folder.glob(".quern-*") if p.name.split("-")[1] not in killed]
    return partial


def _wrong_codes(s):
    """The exit codes that are not what the kind states."""
    hit = bool(s.trial.faults)
    wrong = []
    for rank, code in enumerate(s.trial.codes):
        right = ({-9} if rank in s.dead else {1} if rank in s.cut_off and hit else
                 {0, 1} if rank in s.may_leave else {0})
        if code not in right:
            wrong.append(f"rank {rank} {code} instead of {' or '.join(map(str, sorted(right)))}")
    return wrong


def _wrongly_lost(s):
    """Ranks that the end of the run calls lost and the kind does not."""
    ends = s.run.events("end")
    lost = {row["rank"] for row in ends[-1]["ranks"] if row["lost"]} if ends else set()
    perhaps = lost & s.may_leave
    if len(perhaps) <= s.most_lost:
        lost -= perhaps
    return sorted(lost - s.dead - s.leaves - s.cut_off)


def told(s):
    """What is wrong with the events: each epoch and the end are due once, whoever tells them."""
    counts = collections.Counter(row["epoch"] for row in s.run.events("epoch"))
    ends = len(s.run.events("end"))
    wrong = [f"epoch {e} {counts[e]} times" for e in range(1, s.job.epochs + 1) if counts[e] != 1]
    if ends != 1:
        wrong.append(f"end {ends} times")
    return ", ".join(wrong[:4]) + (f" and {len(wrong) - 4} more" if len(wrong) > 4 else "")


def _wrong_record(s):
    """What is wrong with the record of a run that ended with its model: each epoch is there, and the end."""
    if not s.folders or not (record := s.folders[-1].parent / "record").exists():
        return ""
    epochs = [line.split(",")[0] for line in (record / "metrics.csv").read_text().splitlines()[1:]]
    if epochs != [str(e) for e in range(1, s.job.epochs + 1)]:
        return f"metrics.csv has the epochs {epochs}"
    state = json.loads((record / "run.json").read_text())["state"]
    base = sqlite3.connect(record.with_name("runs"))
    rows = base.execute("SELECT state, epochs FROM runs").fetchall()
    base.close()
    if state != "finished" or rows != [("finished", s.job.epochs)]:
        return f"run.json says {state}, the file of runs {rows}"
    return ""


def judge(s, out):
    """(class, text) of the first rule that was broken, or two empty texts."""
    t = s.trial
    if s.no_quorum and t.faults:
        if out.exists():
            return "bytes", "a model without a quorum"
    elif not s.job.made(out):
        return "bytes", "other bytes" if out.exists() else "no model"
    wrong = _wrong_codes(s) if t.launcher == "meet" else [c for c in t.codes if c]
    if wrong:
        return "codes", f"exit codes: {wrong}"
    lost = _wrongly_lost(s)
    if lost:
        return "lost", f"ranks {lost} were lost"
    partial = _partial_files(s)
    if partial:
        return "files", f"partial files: {partial}"
    record = _wrong_record(s) if out.exists() else ""
    return ("files", record) if record else ("", "")


def _look(t, path):
    """What the trace tells."""
    try:
        trace = Trace(path)
    except (OSError, ValueError, KeyError):
        trace = None
    for fault in t.faults:
        if trace:
            fault.noticed = min(trace.after("loss", fault.moment), default=-1)
            fault.interruption = max(trace.after("made up", fault.moment), default=-1)
            t.pause = max(t.pause, trace.longest_gap(fault.moment))
        if fault.what == "kill" and fault.phase == "unknown":
            fault.phase = (trace.phase(fault.moment) if trace else
                           "end" if t.kind == "end" else "unknown")


# ------------------------------------------------------------------------------- a run

@functools.cache
def _midwrite():
    """The library of midwrite.py, in a folder without spaces, which LD_PRELOAD would not allow."""
    folder = tempfile.mkdtemp(prefix="quern-midwrite-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return midwrite.library(folder)


def draw(kind, seed, launcher="meet", place=None, ranks=None):
    """The Trial of a seed, not yet run; what was given counts, all else is drawn."""
    chance = random.Random(f"{kind.name} {seed}")
    drawn = chance.choice(kind.places), chance.choice(kind.ranks)
    place, ranks = place or drawn[0], ranks or drawn[1]
    if place not in kind.places:
        raise ValueError(f"{kind.name} is not possible with {place}")
    return Trial(launcher, place, ranks, kind.name, seed)


def _disturb(s, kind, limit):
    """Lets the kind's function disturb the run, and waits for its end."""
    s.run.until(lambda: len(s.run.pids()) == s.ranks or s.run.over())
    s.run.until('"event":"start"')
    s.began = time.monotonic()
    kind.act(s)
    s.trial.codes = s.run.wait(limit)
    if s.trial.launcher == "meet":  # a kill at the end may meet a rank that has just ended
        late = {r for r in s.dead if s.trial.codes[r] != -signal.SIGKILL}
        s.dead -= late
        s.trial.faults = [f for f in s.trial.faults if f.what != "kill" or f.rank not in late]


def trial(job, folder, launcher, seed, kind=None, ranks=None, options=(), limit=60, place=ONE,
          net=None):
    """Runs the job once and disturbs it; a Trial, whose `wrong` says what should not have been.

    `launcher`: one of launch.LAUNCHERS; those of MPI need the place ONE. `kind`: a Kind or its
    name; None: by the seed. `place`: None: drawn. `net`: Hosts with faults, for reuse; otherwise
    hosts are made where the place needs them."""
    kind = KINDS[seed % len(KINDS)] if kind is None else kind
    kind = kind_named(kind) if isinstance(kind, str) else kind
    t = draw(kind, seed, launcher, place, ranks)
    if t.place in ON_HOSTS and net is None:
        with hosts.Hosts(t.ranks, faults=True) as net:
            return _run(t, kind, job, Path(folder), options, limit, net)
    return _run(t, kind, job, Path(folder), options, limit, net)


def _run(t, kind, job, folder, options, limit, net):
    chance = random.Random(f"{kind.name} {t.seed} moments")
    folders = [folder / "checkpoints", folder / "out"]
    for f in folders:
        f.mkdir()
    out, trace, environment = folders[1] / "model", folder / "trace.json", {}
    if kind.midwrite == "checkpoint":
        environment = midwrite.environment(_midwrite(), folders[0], chance.randint(1, 3))
    elif kind.midwrite:
        environment = midwrite.environment(_midwrite(), folders[1])
    words = job.train(out, "--checkpoint", folders[0], "--checkpoint-every", job.every, "--trace",
                      trace, "--run-dir", folder / "record", "--runs", folder / "runs", "--rank-timeout",
                      kind.timeout, *options)
    host_of = [r // 2 if t.place == PAIRS else r for r in range(t.ranks)]
    if t.place in ON_HOSTS:
        net.clear()
        where = {"net": net, "slots": [host_of.count(h) for h in range(max(host_of) + 1)]}
    else:
        where = {"apart": t.place == APART}
    began = time.monotonic()
    with launch.Run(job.quern, t.launcher, t.ranks, words, deaths=True, environment=environment,
                    **where) as run:
        s = Stage(t, run, job, folders, chance, net, host_of, kind.timeout)
        try:
            _disturb(s, kind, limit)
            t.class_, t.wrong = judge(s, out)
            t.told = "" if s.no_quorum else told(s)
        except pytest.fail.Exception as failed:
            t.class_, t.wrong = "hang", str(failed)
        t.seconds = time.monotonic() - began
        if t.wrong and t.class_ != "hang":
            t.wrong += "\n" + run.story()
    _look(t, trace)
    return t

"""One run in which ranks are killed at moments that chance chooses, and what came of it.

test_cluster_deaths.py makes some of these runs, bench/deaths.py makes hundreds. What a kill really
hit is found out afterwards: from a file that the rank left half written, and from the trace that the
others write, in which the moment of the kill lies in a step, a validation and so on.
"""

import json
import random
import time
from dataclasses import dataclass, field

import launch

# What is killed when; the moments are drawn from the time that a run takes.
KINDS = ["one", "speaker", "two at once", "in recovery", "one after another", "validation",
         "checkpoint", "end", "end, then the next"]
SEVERAL = {"two at once", "in recovery", "one after another", "end, then the next"}

# What a kill can hit. "recovery": the others had noticed an earlier one and not yet made up for it.
PHASES = ["step", "validation", "checkpoint", "recovery", "end", "unknown"]


LOSS = ("loss", "made up")  # marks in a trace


@dataclass
class Kill:
    rank: int
    moment: float              # of this machine's clock
    phase: str = "unknown"
    noticed: float = -1        # seconds until the first of the others knew; -1: not told
    interruption: float = -1   # seconds until all that were left had made up for it; -1: not told


@dataclass
class Trial:
    launcher: str
    ranks: int
    kind: str
    seed: int
    kills: list = field(default_factory=list)  # of ranks that were there to be killed
    codes: list = field(default_factory=list)  # exit codes: of the launcher, or of the ranks left
    wrong: str = ""                            # what should not have been; empty: all is well
    seconds: float = 0.0

    def __str__(self):
        killed = ", ".join(f"{k.rank} ({k.phase})" for k in self.kills)
        return (f"{self.launcher}, {self.ranks} ranks, {self.kind} (seed {self.seed}), killed "
                f"{killed or 'none'} in {self.seconds:.2f} s")


def _strike(run, chance, trial, job, folders):
    """Kills as the trial's kind says."""
    seconds, some = max(0.3, job.seconds), list(range(trial.ranks))
    chance.shuffle(some)

    def kill(rank):
        moment, pid = time.monotonic(), run.known.get(rank)
        if not run.kill(rank):
            return
        trial.kills.append(Kill(rank, moment))
        for phase, folder in zip(("checkpoint", "end"), folders):
            if any(folder.glob(f".quern-{pid}-*")):
                trial.kills[-1].phase = phase

    def soon(most):
        time.sleep(chance.uniform(0, most))

    def epochs():
        return run.text().count('"event":"epoch"')

    run.until('"start"')
    if trial.kind in ("one", "speaker"):
        soon(seconds)
        kill(some[0] if trial.kind == "one" else 0)
    elif trial.kind == "two at once":
        soon(seconds)
        kill(some[0])
        kill(some[1])
    elif trial.kind == "in recovery":
        soon(seconds)
        for rank in some[:-1][:3]:
            kill(rank)
            time.sleep(10 ** chance.uniform(-3, -2.2))
    elif trial.kind == "one after another":
        for rank in some[:-1]:
            soon(seconds / trial.ranks)
            kill(rank)
    elif trial.kind == "validation":  # the last part of an epoch; how long one takes is seen first
        run.until(lambda: epochs() >= 1 or run.over())
        seen, began = epochs(), time.monotonic()
        run.until(lambda: epochs() >= seen + 3 or run.over())
        epoch = (time.monotonic() - began) / max(1, epochs() - seen)
        time.sleep(epoch * (chance.randrange(3) + chance.uniform(0.8, 1)))
        kill(some[0])
    elif trial.kind == "checkpoint":
        count = len(list(folders[0].glob("*")))
        run.until(lambda: len(list(folders[0].glob("*"))) != count or run.over())
        soon(0.002)
        kill(chance.choice([0, 0, some[0]]))
    else:
        last = f'"epoch":{job.epochs},"epochs":{job.epochs}'
        run.until(lambda: last in run.text() or run.over())
        soon(0.02)
        kill(0)
        if trial.kind == "end, then the next":
            soon(0.01)
            kill(1)


class _Trace:
    """What the ranks that were left tell: spans and marks, by this machine's clock."""

    def __init__(self, path):
        trace = json.loads(path.read_text())
        begun = trace["otherData"]["begun_us"]
        self.spans, self.marks, self.over = [], {}, 0.0
        for event in trace["traceEvents"]:
            if event["ph"] == "M":
                continue
            at = 1e-6 * (begun + event["ts"])
            ended = at + 1e-6 * event.get("dur", 0)
            if event["ph"] == "X":
                self.spans.append((event["name"], at, ended))
                self.over = max(self.over, ended if event["name"] in ("step", "update") else 0)
            elif event["name"] in LOSS:
                self.marks.setdefault(event["pid"], []).append((event["name"], at))

    def phase(self, moment):
        """Where a kill at that moment fell."""
        for marks in self.marks.values():
            losses, ends = ([at for what, at in marks if what == name] for name in LOSS)
            if any(at <= moment <= end for at, end in zip(sorted(losses), sorted(ends))):
                return "recovery"
        for phase, names in (("checkpoint", ["checkpoint"]), ("validation", ["validation", "test"])):
            if any(n in names and at <= moment <= ended for n, at, ended in self.spans):
                return phase
        return "step" if moment <= self.over else "end"

    def after(self, name, moment):
        """Seconds from the kill to each left rank's first such mark; none unless all have one."""
        found = [min((at - moment for what, at in marks if what == name and at > moment),
                     default=None) for marks in self.marks.values()]
        return [] if None in found else found


def _look(trial, path):
    try:
        trace = _Trace(path)
    except (OSError, ValueError, KeyError):
        trace = None
    for kill in trial.kills:
        if trace:
            kill.noticed = min(trace.after("loss", kill.moment), default=-1)
            kill.interruption = max(trace.after("made up", kill.moment), default=-1)
        if kill.phase == "unknown" and trace:
            kill.phase = trace.phase(kill.moment)
        elif kill.phase == "unknown" and trial.kind.startswith("end"):
            kill.phase = "end"


def trial(job, folder, launcher, seed, kind=None, ranks=None, options=(), limit=60):
    """Runs the job once under that launcher and kills; a Trial. Fails by `wrong`, not by raising,
    except for a run that hangs, which launch.py fails with all that can be known."""
    chance = random.Random(seed)
    kind = kind or KINDS[seed % len(KINDS)]
    ranks = ranks or chance.choice([3, 3, 4, 5] if kind in SEVERAL else [2, 3, 4])
    t = Trial(launcher, ranks, kind, seed)
    places = [folder / "checkpoints", folder / "out"]
    places[1].mkdir()
    out, trace = places[1] / "model", folder / "trace.json"
    words = job.train(out, "--checkpoint", places[0], "--checkpoint-every", job.every, "--trace", trace,
                      *options)
    began = time.monotonic()
    with launch.Run(job.quern, launcher, ranks, words, deaths=True) as run:
        run.until(lambda: len(run.pids()) == ranks or run.over())
        _strike(run, chance, t, job, places)
        t.codes = run.wait(limit)
        t.seconds = time.monotonic() - began
        if launcher == "meet":
            killed = {k.rank for k in t.kills}
            t.codes = [c for rank, c in enumerate(t.codes) if rank not in killed]
        if any(t.codes):
            t.wrong = f"exit codes {t.codes}"
        elif not job.made(out):
            t.wrong = "other bytes" if out.exists() else "no model"
        if t.wrong:
            t.wrong += "\n" + run.story()
    _look(t, trace)
    return t

"""One run in which ranks are killed at moments that chance chooses, and what came of it.

test_cluster_deaths.py makes some of these runs, bench/deaths.py makes hundreds.
"""

import random
import time
from dataclasses import dataclass, field

import launch

# What is killed when; `when` moments are seconds after the first step could have begun.
KINDS = ["one", "speaker", "two at once", "in recovery", "one after another", "checkpoint", "end",
         "end, then the next"]
SEVERAL = {"two at once", "in recovery", "one after another", "end, then the next"}


@dataclass
class Trial:
    launcher: str
    ranks: int
    kind: str
    seed: int
    killed: list = field(default_factory=list)  # ranks that were there to be killed
    wrong: str = ""                             # what should not have been; empty: all is well
    recoveries: list = field(default_factory=list)  # the longest of each rank that tells, seconds
    seconds: float = 0.0

    def __str__(self):
        return (f"{self.launcher}, {self.ranks} ranks, {self.kind} (seed {self.seed}), killed "
                f"{self.killed} in {self.seconds:.2f} s")


def _strike(run, chance, trial, job, checkpoints):
    """Kills as the trial's kind says."""
    seconds, some = max(0.3, job.seconds), list(range(trial.ranks))
    chance.shuffle(some)

    def kill(rank):
        if run.kill(rank):
            trial.killed.append(rank)

    def soon(most):
        time.sleep(chance.uniform(0, most))

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
            soon(0.01)
    elif trial.kind == "one after another":
        for rank in some[:-1]:
            soon(seconds / trial.ranks)
            kill(rank)
    elif trial.kind == "checkpoint":
        count = len(list(checkpoints.glob("*")))
        run.until(lambda: len(list(checkpoints.glob("*"))) != count or run.over())
        soon(0.002)
        kill(0)
    else:
        last = f'"epoch":{job.epochs},"epochs":{job.epochs}'
        run.until(lambda: last in run.text() or run.over())
        soon(0.02)
        kill(0)
        if trial.kind == "end, then the next":
            soon(0.01)
            kill(1)


def trial(job, folder, launcher, seed, kind=None, ranks=None, options=(), limit=60):
    """Runs the job once under that launcher and kills; a Trial. Fails by `wrong`, not by raising,
    except for a run that hangs, which launch.py fails with all that can be known."""
    chance = random.Random(seed)
    kind = kind or KINDS[seed % len(KINDS)]
    ranks = ranks or chance.choice([3, 3, 4, 5] if kind in SEVERAL else [2, 3, 4])
    t = Trial(launcher, ranks, kind, seed)
    out, checkpoints = folder / "model", folder / "checkpoints"
    words = job.train(out, "--checkpoint", checkpoints, "--checkpoint-every", 7, *options)
    began = time.monotonic()
    with launch.Run(job.quern, launcher, ranks, words, deaths=True) as run:
        run.until(lambda: len(run.pids()) == ranks or run.over())
        _strike(run, chance, t, job, checkpoints)
        codes = run.wait(limit)
        t.seconds = time.monotonic() - began
        if launcher == "meet":
            codes = [c for rank, c in enumerate(codes) if rank not in t.killed]
        if any(codes):
            t.wrong = f"exit codes {codes}"
        elif not job.made(out):
            t.wrong = "other bytes" if out.exists() else "no model"
        for report in run.events("end"):
            t.recoveries += [row["longest_recovery"] for row in report.get("ranks", [])
                             if row.get("recoveries")]
        if t.wrong:
            t.wrong += "\n" + run.story()
    return t

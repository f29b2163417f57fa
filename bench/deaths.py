"""Hundreds of runs in which ranks are killed at random: does one hang, does a byte differ, and how
long are the others held up?

    python bench/deaths.py --kills 200 --launchers meet,openmpi5 --markdown deaths.md

The network is 784-500-10, the runs are short ones on the built-in digits with a validation in each
epoch and a checkpoint every few steps; tests/deaths.py says what is killed when, and finds out what
was hit. "Interruption" is counted from the kill until the last rank that was left had the sums of
the step (or of the part of a validation) that was hit, the lost share included, which others
computed; the rest of that step is in it. One whole step of one process stands beside it. Needs the packages of tests/requirements.txt.
"""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile
from dataclasses import asdict

import common

sys.path.insert(0, str(common.ROOT / "tests"))

import deaths  # noqa: E402  (needs the line above)
from cluster_job import Job  # noqa: E402


def milliseconds(values):
    if not values:
        return ["-", "-", "-"]
    ranked = sorted(values)
    nine = ranked[min(len(ranked) - 1, len(ranked) * 9 // 10)]
    return [f"{1e3 * v:.1f}" for v in (statistics.median(ranked), nine, ranked[-1])]


def told(kills):
    return [k.interruption for k in kills if k.interruption >= 0]


def noticed(kills):
    return [k.noticed for k in kills if k.noticed >= 0]


def by_kind(name, trials):
    codes = sorted({c for t in trials for c in t.codes})
    return [name, len(trials), sum(len(t.kills) for t in trials),
            sum(1 for t in trials if t.wrong), " ".join(map(str, codes))]


def by_phase(name, kills):
    return [name, len(kills), len(told(kills)), milliseconds(noticed(kills))[0],
            *milliseconds(told(kills))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200, help="until so many ranks were killed")
    parser.add_argument("--launchers", type=lambda text: text.split(","), default=["openmpi5"])
    parser.add_argument("--seed", type=int, default=1000, help="of the first run")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--items", type=int, default=3000)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--markdown", type=pathlib.Path, help="also write the report here")
    parser.add_argument("--json", type=pathlib.Path, help="also write every number here")
    chosen = parser.parse_args()
    facts = common.hardware()
    facts["quern"] = common.quern_version()
    trials = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        job = Job(str(common.quern_path()), scratch, items=chosen.items, epochs=chosen.epochs,
                  batch=chosen.batch, every=25, network=common.MODEL, grain=32)
        step = job.seconds / (chosen.epochs * -(-chosen.items // 2 // chosen.batch))
        facts["one process"] = f"{job.seconds:.2f} s, {1e3 * step:.1f} ms a step, all told"
        while sum(len(t.kills) for t in trials) < chosen.kills:
            seed = chosen.seed + len(trials)
            into = scratch / str(seed)
            into.mkdir()
            launcher = chosen.launchers[len(trials) % len(chosen.launchers)]
            trials.append(deaths.trial(job, into, launcher, seed))
            print(trials[-1], trials[-1].wrong, file=sys.stderr, flush=True)
    facts["load_at_end"] = round(os.getloadavg()[0], 2)
    kills = [k for t in trials for k in t.kills]
    kinds = [by_kind(kind, [t for t in trials if t.kind == kind]) for kind in deaths.KINDS]
    kinds += [by_kind(name, [t for t in trials if t.launcher == name]) for name in chosen.launchers]
    kinds.append(by_kind("all", trials))
    phases = [by_phase(phase, [k for k in kills if k.phase == phase]) for phase in deaths.PHASES]
    phases.append(by_phase("all", kills))
    tables = [
        ("Killed at random", common.table(["what was tried", "runs", "ranks killed", "went wrong",
                                           "exit codes"], kinds), [asdict(t) for t in trials]),
        ("What was hit", common.table(["while the ranks were at", "ranks killed", "of them told",
                                       "noticed ms, median",
                                       "interruption ms, median", "9 of 10", "longest"], phases),
         None)]
    common.publish("Deaths", facts, tables, chosen)
    sys.exit(1 if any(t.wrong for t in trials) else 0)


if __name__ == "__main__":
    main()

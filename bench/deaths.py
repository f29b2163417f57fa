"""Hundreds of runs in which ranks are killed at random: does one hang, does a byte differ, and how
long are the others held up?

    python bench/deaths.py --kills 200 --launchers meet,openmpi5 --markdown deaths.md

The network is 784-500-10, the runs are short ones on the built-in digits with a validation in each
epoch and a checkpoint every few steps; tests/deaths.py says what is killed when. "Interruption" is
what the ranks that were left report of themselves: from the notice of a death to going on. Beside it
stands the time of one whole step of the same run. Needs the packages of tests/requirements.txt.
"""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile

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


def summary(name, trials, step):
    done = [t for t in trials if not t.wrong]
    return [name, len(trials), sum(len(t.killed) for t in trials), len(trials) - len(done),
            *milliseconds([s for t in trials for s in t.recoveries]), f"{1e3 * step:.1f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200, help="until so many ranks were killed")
    parser.add_argument("--launchers", type=lambda text: text.split(","), default=["openmpi5"])
    parser.add_argument("--seed", type=int, default=1000, help="of the first run")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--items", type=int, default=6000)
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
                  batch=chosen.batch, network=common.MODEL, grain=32)
        step = job.seconds / (chosen.epochs * -(-chosen.items * 9 // 10 // chosen.batch))
        facts["one process"] = f"{job.seconds:.2f} s, {1e3 * step:.1f} ms a step, all told"
        while sum(len(t.killed) for t in trials) < chosen.kills:
            seed = chosen.seed + len(trials)
            into = scratch / str(seed)
            into.mkdir()
            launcher = chosen.launchers[len(trials) % len(chosen.launchers)]
            trials.append(deaths.trial(job, into, launcher, seed))
            print(trials[-1], trials[-1].wrong, file=sys.stderr, flush=True)
    facts["load_at_end"] = round(os.getloadavg()[0], 2)
    head = ["", "runs", "ranks killed", "went wrong", "interruption ms, median", "9 of 10", "longest",
            "one step ms"]
    rows = [summary(kind, [t for t in trials if t.kind == kind], step) for kind in deaths.KINDS]
    rows.append(summary("all", trials, step))
    numbers = [vars(t) for t in trials]
    common.publish("Deaths", facts, [("Killed at random", common.table(head, rows), numbers)], chosen)
    sys.exit(1 if any(t.wrong for t in trials) else 0)


if __name__ == "__main__":
    main()

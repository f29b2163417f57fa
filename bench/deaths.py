"""The fault campaign: hundreds of runs, each with one kind of failure at a random moment. Does one
hang, does a byte differ, is an exit code wrong, and how long are the other ranks held up?

    python bench/deaths.py --runs 20 --markdown deaths.md --json deaths.json
    python bench/deaths.py --kinds "last in checkpoint,reset" --runs 12
    python bench/deaths.py --kinds reset --seed 1007 --runs 1 --places hosts

tests/deaths.py has the table of kinds (--list prints it) and checks each run. Two jobs take turns,
both with Adam on the built-in digits and a validation in each epoch: "usual" is 784-500-10 with
batch 128 and a checkpoint every 25 steps, "small" is 784-60-10 with a checkpoint every 7 steps,
whose rounds are so short that more of them are hit between two messages. Kinds that need long
checkpoints have a job of their own ("large": 784-500-10, batch 256). Kind and seed decide all that
is drawn, the place of the ranks included; a failed run prints the command that repeats it.

"Pause" is counted from the fault until the last rank left has the sums of the round that was hit,
the lost share included; the rest of that step is in it, and the time limit where a rank is silent.
If no rank was lost it is the longest time between two steps of one rank, checkpoints included.
Needs the packages of tests/requirements.txt; hosts need root and network namespaces, and kinds that
cannot run are named with the reason.
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

import pytest  # noqa: E402  (needs the line above)

import deaths  # noqa: E402
import hosts  # noqa: E402
import launch  # noqa: E402
from cluster_job import Job  # noqa: E402

CLASSES = ["hang", "bytes", "codes", "lost", "files"]
JOBS = ["usual", "small"]
HEAD = ["runs", "no fault", "hangs", "wrong bytes", "wrong codes", "wrongly lost", "partial files",
        "wrong events", "pause ms, median", "95th", "longest"]  # fmt: skip


def milliseconds(values):
    """Median, 95th percentile and the longest."""
    if not values:
        return ["-", "-", "-"]
    ranked = sorted(values)
    high = ranked[min(len(ranked) - 1, len(ranked) * 95 // 100)]
    return [f"{1e3 * v:.1f}" for v in (statistics.median(ranked), high, ranked[-1])]


def told(faults):
    return [f.interruption for f in faults if f.interruption >= 0]


def pauses(trials):
    """Seconds; one of each fault that cost a rank, one of each other trial with a fault."""
    found = []
    for t in trials:
        known = [t.pause] if t.faults and t.pause >= 0 else []
        found += told(t.faults) or known
    return found


def row(name, trials):
    wrong = [sum(t.class_ == c for t in trials) for c in CLASSES]
    return [name, len(trials), sum(not t.faults for t in trials), *wrong,
            sum(bool(t.told) for t in trials), *milliseconds(pauses(trials))]  # fmt: skip


def by_phase(name, kills):
    noticed = [k.noticed for k in kills if k.noticed >= 0]
    cost = told(kills)
    return [name, len(kills), len(cost), milliseconds(noticed)[0], *milliseconds(cost)]


def again(t):
    """The command that repeats a run."""
    job = f" --jobs {t.job}" if t.job in JOBS else ""
    return (f'python bench/deaths.py --kinds "{t.kind}" --seed {t.seed} --runs 1 '
            f'--places "{t.place}" --launchers {t.launcher}{job}')  # fmt: skip


class Campaign:
    def __init__(self, chosen, scratch):
        self.chosen, self.scratch = chosen, scratch
        self.trials, self.skipped, self.net = [], {}, None
        quern = str(common.quern_path())
        size = {"network": common.MODEL, "grain": 32, "every": 25}
        self.jobs = {"usual": Job(quern, self.folder(), items=3000, epochs=12, batch=128, **size)}
        self.jobs["small"] = Job(quern, self.folder(), epochs=80)
        if any(k.job == "large" for k in chosen.kinds):
            self.jobs["large"] = Job(quern, self.folder(), items=6000, epochs=12, batch=256, **size)

    def folder(self):
        return pathlib.Path(tempfile.mkdtemp(dir=self.scratch))

    def hosts(self):
        """Made when a run first needs them, and kept."""
        if not self.net:
            self.net = hosts.Hosts(5, faults=True)
        return self.net

    def close(self):
        if self.net:
            self.net.close()

    def place(self, kind, seed):
        """One of --places that the kind can have; None: it cannot have any."""
        drawn = deaths.draw(kind, seed).place
        possible = [p for p in kind.places if p in self.chosen.places]
        return drawn if drawn in possible or not possible else possible[seed % len(possible)]

    def one(self, kind, seed):
        place = self.place(kind, seed)
        by_mpi = place == deaths.ONE and not kind.midwrite
        launchers = self.chosen.launchers if by_mpi else ["meet"]
        job = self.chosen.jobs[seed % len(self.chosen.jobs)] if kind.job == "usual" else kind.job
        folder = self.folder()
        try:
            if place not in self.chosen.places:
                pytest.skip("none of the chosen places")
            net = self.hosts() if place in deaths.ON_HOSTS else None
            launcher = launchers[seed % len(launchers)]
            trial = deaths.trial(self.jobs[job], folder, launcher, seed, kind, place=place, net=net,
                                 limit=self.chosen.limit)  # fmt: skip
        except pytest.skip.Exception as why:
            self.skipped[kind.name] = f"{place}: {why}"
            print(f"SKIPPED: {kind.name}: {place}: {why}", file=sys.stderr, flush=True)
            return
        trial.job = job
        self.trials.append(trial)
        print(trial, file=sys.stderr, flush=True)
        if trial.wrong:
            print(f"WRONG: {trial.class_}: {trial.wrong}\n{again(trial)}", file=sys.stderr,
                  flush=True)  # fmt: skip

    def run(self):
        for seed in range(self.chosen.seed, self.chosen.seed + self.chosen.runs):
            for kind in self.chosen.kinds:
                self.one(kind, seed)

    def tables(self):
        def some(name, values):
            return [row(v, [t for t in self.trials if getattr(t, name) == v]) for v in values]

        kinds = [k.name for k in self.chosen.kinds]
        kills = [k for t in self.trials for k in t.kills()]
        phases = [by_phase(p, [k for k in kills if k.phase == p]) for p in deaths.PHASES]
        failed = [[t.kind, t.seed, t.class_, again(t)] for t in self.trials if t.wrong]
        tables = [
            ("Kinds of failure", common.table(["kind", *HEAD], some("kind", kinds) +
                                              [row("all", self.trials)]),
             [asdict(t) for t in self.trials]),
            ("Where the ranks are", common.table(["place", *HEAD], some("place", deaths.PLACES)),
             None),
            ("What is trained", common.table(["job", *HEAD], some("job", [*JOBS, "large"])), None),
            ("How ranks are started", common.table(["launcher", *HEAD],
                                                   some("launcher", self.chosen.launchers)), None),
            ("What a kill hit", common.table(
                ["while the ranks were at", "kills", "of them told", "noticed ms, median",
                 "pause ms, median", "95th", "longest"],
                [*phases, by_phase("all", kills)]), None)]  # fmt: skip
        if failed:
            tables.append(("Failed", common.table(["kind", "seed", "what", "again"], failed), None))
        if self.skipped:
            tables.append(("Skipped", common.table(["kind", "why"], list(self.skipped.items())),
                           self.skipped))  # fmt: skip
        return tables


def kinds_of(text):
    if text == "all":
        return deaths.KINDS
    try:
        return [deaths.kind_named(name.strip()) for name in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def some_of(known):
    def parse(text):
        wrong = [name for name in text.split(",") if name not in known]
        if wrong:
            raise argparse.ArgumentTypeError(f"no {wrong[0]!r}; there are: {', '.join(known)}")
        return text.split(",")
    return parse


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--kinds", type=kinds_of, default=deaths.KINDS, help="names, or all")
    parser.add_argument("--runs", type=int, default=10, help="of each kind")
    parser.add_argument("--seed", type=int, default=1000, help="of the first run of each kind")
    parser.add_argument("--places", type=some_of(deaths.PLACES), default=deaths.PLACES,
                        help="where ranks may be: " + ", ".join(deaths.PLACES))  # fmt: skip
    parser.add_argument("--launchers", type=some_of(launch.LAUNCHERS), default=["meet"],
                        help="in turn, for ranks of one machine")  # fmt: skip
    parser.add_argument("--jobs", type=some_of(JOBS), default=JOBS, help="in turn, by the seed")
    parser.add_argument("--limit", type=float, default=60, help="seconds until a run hangs")
    parser.add_argument("--list", action="store_true", help="print the kinds and leave")
    parser.add_argument("--markdown", type=pathlib.Path, help="also write the report here")
    parser.add_argument("--json", type=pathlib.Path, help="also write every number here")
    return parser.parse_args()


def main():
    chosen = arguments()
    if chosen.list:
        print(common.table(["kind", "what happens", "what must come of it"],
                           [[k.name, k.what, k.comes] for k in deaths.KINDS]))  # fmt: skip
        return
    facts = common.hardware()
    facts["quern"] = common.quern_version()
    facts["seeds"] = f"{chosen.seed} to {chosen.seed + chosen.runs - 1}"
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(chosen, folder)
        job = campaign.jobs["usual"]
        step = job.seconds / (12 * -(-3000 // 2 // job.batch))
        facts["one process"] = f"{job.seconds:.2f} s, {1e3 * step:.1f} ms a step, all told"
        try:
            campaign.run()
        finally:
            campaign.close()
            facts["load_at_end"] = round(os.getloadavg()[0], 2)
            common.publish("Fault campaign", facts, campaign.tables(), chosen)
    sys.exit(1 if any(t.wrong for t in campaign.trials) else 0)


if __name__ == "__main__":
    main()

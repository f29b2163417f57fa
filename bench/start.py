"""How long Quern takes from the start of its process to the end of its first training step.

    python bench/start.py --threads 1,2

The 60,000 images are raw IDX files in the page cache. The clock is this process's and starts before
the fork. It is read when the line about the first epoch arrives; the seconds that the line states
for the epoch's steps are taken off, and one step's share of them is put back. The target is under
0.3 seconds; the exit status is 1 where a median misses it.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import common

TARGET = 0.3  # seconds


def first_step(command, threads, batch):
    """Seconds to the end of the first step of one fresh process."""
    cores = common.allowed_cores()[:threads]
    start = time.perf_counter()
    child = subprocess.Popen(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    try:
        for line in child.stdout:
            arrived = time.perf_counter() - start
            for row in common.json_lines(line):
                if row.get("event") == "epoch":
                    return arrived - row["seconds"] + batch / row["items_per_s"]
    finally:
        child.kill()  # whatever the run still does is not this benchmark's matter
        child.wait()
        child.stdout.close()
    raise common.Failed("quern train ended without a line about an epoch")


def main():
    parser = common.options(__doc__.splitlines()[0], rounds=9)
    parser.add_argument("--batch", type=int, default=128)
    chosen = parser.parse_args()
    if not common.quern_version():
        print(f"SKIPPED: no {common.quern_path()}; build it, or name it in QUERN")
        return
    facts = {**common.hardware(), "quern": common.quern_version(), "target": f"{TARGET} s"}
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        files, facts["data"] = common.data(scratch)
        for threads in chosen.threads:
            model = scratch / "start.safetensors"
            command = common.training(files, chosen.batch, threads, 1, model)
            turns = [first_step(command, threads, chosen.batch) for _ in range(chosen.rounds)]
            rows[threads] = {"median": statistics.median(turns), "chunks": turns}
    lines = [
        [threads, f"{row['median']:.3f}", f"{min(row['chunks']):.3f}", f"{max(row['chunks']):.3f}"]
        for threads, row in rows.items()
    ]
    text = common.table(["threads", "median s", "lowest", "highest"], lines)
    common.publish("Start to the first step", facts, [("Seconds", text, rows)], chosen)
    sys.exit(1 if any(row["median"] >= TARGET for row in rows.values()) else 0)


if __name__ == "__main__":
    main()

"""The memory that a training run of Quern takes at its peak, against its budget.

    python bench/memory.py --threads 1,2 --batches 32,128,1024

The budget is the input's bytes + 12 x the parameters' bytes + 64 MiB: the data once, the parameters
with gradients, integer sums and the optimiser's state, and a fixed allowance. The peak is what the
kernel counted as resident (wait4's ru_maxrss), pages of mapped files included. The exit status
is 1 where a run exceeds its budget.
"""

import pathlib
import sys
import tempfile

import common

MIB = 1 << 20
PARAMETERS = (common.INPUTS + 1) * common.HIDDEN + (common.HIDDEN + 1) * common.CLASSES
# A process's peak also counts what it was before it became another program. So a small interpreter
# stands between: it waits for the run and prints the peak, which is its own at the least.
WAITER = (
    "import os, sys\n"
    "child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ,"
    " file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])\n"
    "_, status, usage = os.wait4(child, 0)\n"
    "print(usage.ru_maxrss)\n"
    "sys.exit(os.waitstatus_to_exitcode(status))\n"
)


def peak_bytes(command, threads):
    """The peak resident bytes of a program (an absolute path and its words)."""
    words = [sys.executable, "-I", "-S", "-c", WAITER, *command]
    return int(common.call(words, threads).stdout) * 1024


def main():
    parser = common.options(__doc__.splitlines()[0], rounds=1)
    parser.add_argument("--batches", type=common.numbers, default=[32, 128, 1024])
    chosen = parser.parse_args()
    if not common.quern_version():
        print(f"SKIPPED: no {common.quern_path()}; build it, or name it in QUERN")
        return
    facts = {**common.hardware(), "quern": common.quern_version()}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        files, facts["data"] = common.data(scratch)
        given = sum(files[key].stat().st_size for key in ("train-images", "train-labels"))
        budget = given + 12 * 4 * PARAMETERS + 64 * MIB
        for threads in chosen.threads:
            for batch in chosen.batches:
                model = scratch / "memory.safetensors"
                command = common.training(files, batch, threads, 1, model)
                peaks = [peak_bytes(command, threads) for _ in range(chosen.rounds)]
                rows.append({"threads": threads, "batch": batch, "peak": max(peaks)})
    facts["budget"] = f"{budget / MIB:.1f} MiB, {given / MIB:.1f} of it the input"
    lines = [
        [row["threads"], row["batch"], f"{row['peak'] / MIB:.1f}", f"{row['peak'] / budget:.0%}"]
        for row in rows
    ]
    text = common.table(["threads", "batch", "peak MiB", "of budget"], lines)
    common.publish("Peak memory of training", facts, [("Resident at the peak", text, rows)], chosen)
    sys.exit(1 if any(row["peak"] > budget for row in rows) else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Training from a table that memory does not hold, beside the same training from memory.

    sudo bench/from_disk.py --quern build/quern

Makes a CSV file of 160,000 x 784 numbers (--bytes: pixels) and its table in a cache folder. Then it
trains in turns: from memory, with the table in the file cache of the system; and from disk, in a
memory control group with an empty file cache. --rate limits what the disk gives to that group. The
models must have the same bytes. Needs the rights of root for the control groups (version 1 or 2) and
to empty the file cache; disturbances by other programs are fewer with `chrt -r 10` before --quern's
command (--before).
"""

import argparse
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

GROUPS = pathlib.Path("/sys/fs/cgroup")
NAME = "quern-from-disk"


def make_table(path, items, end):
    """Pixels of which half are zero, and a label that depends on them; `end` is after each line."""
    draw = np.random.default_rng(1)
    centres = draw.integers(0, 256, (10, 784)) * (draw.random((10, 784)) < 0.5)
    with open(path, "w") as file:
        file.write("label," + ",".join(f"p{k}" for k in range(784)) + "\n")
        for first in range(0, items, 1000):
            label = draw.integers(0, 10, min(1000, items - first))
            noise = draw.integers(0, 128, (len(label), 784)) * (draw.random((len(label), 784)) < 0.5)
            values = centres[label] // 2 + noise
            file.writelines(f"{y}," + ",".join(map(str, row)) + end for y, row in zip(label, values.tolist()))


def disk_of(folder):
    """MAJOR:MINOR of the whole disk on which a folder lies."""
    number = os.stat(folder).st_dev
    place = pathlib.Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    return ((place.parent if (place / "partition").exists() else place) / "dev").read_text().strip()


def make_groups(mebibytes, rate, folder):
    """The folders of new control groups with this much memory, and with so many MB/s from the disk."""
    old, groups = (GROUPS / "memory").is_dir(), []
    for controller, name, limit in (("memory", "memory.limit_in_bytes" if old else "memory.max", str(mebibytes << 20)),
                                    ("blkio", "blkio.throttle.read_bps_device" if old else "io.max",
                                     f"{disk_of(folder)} {'' if old else 'rbps='}{rate * 1000000}")):
        group = GROUPS / controller / NAME if old else GROUPS / NAME
        if controller == "memory" or rate:
            group.mkdir(exist_ok=True)
            (group / name).write_text(limit)
            groups += [] if group in groups else [group]
    return groups


def train(options, folder, model, groups):
    """Seconds of each epoch; in `groups`, if there are any, from disk."""
    words = [*shlex.split(options.before), options.quern, "train", "--data", folder / "table.csv", "--label", "label",
             "--model", options.model, "--batch", "128", "--epochs", str(options.epochs), "-o", model,
             *(["--shape", options.shape] if options.shape else [])]

    def enter():
        for group in groups:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    if groups:
        os.sync()
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
    else:
        for entry in (folder / "cache").iterdir():
            entry.read_bytes()
    done = subprocess.run(words, env={**os.environ, "QUERN_CACHE": str(folder / "cache")}, preexec_fn=enter,
                          capture_output=True, text=True, timeout=600)
    if done.returncode:
        sys.exit(done.stderr)
    lines = (done.stdout + done.stderr).splitlines()
    return [float(line.split()[-2]) for line in lines if re.match(r" +\d+/\d+ ", line)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quern", default=os.environ.get("QUERN", "build/quern"))
    parser.add_argument("--before", default="", help="words before the command, such as 'chrt -r 10'")
    parser.add_argument("--model", default="dense 500 relu; dense 10 softmax")
    parser.add_argument("--items", type=int, default=160_000)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--mebibytes", type=int, default=160, help="of the control group")
    parser.add_argument("--rate", type=int, default=0, help="MB/s that the disk gives at most [no limit]")
    parser.add_argument("--bytes", action="store_true", help="values of one byte instead of four")
    parser.add_argument("--shape", help="of an image, such as 28x28")
    parser.add_argument("--folder", help="on the disk; the default is a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = pathlib.Path(name)
        # A fraction makes the values floats, of four bytes.
        make_table(folder / "table.csv", options.items, "\n" if options.bytes else ".5\n")
        (folder / "cache").mkdir(mode=0o700)
        groups = make_groups(options.mebibytes, options.rate, folder)
        time.sleep(3)  # a file that was changed less than 2 seconds ago is not cached
        train(options, folder, folder / "first", [])
        firsts, laters = [], []
        try:
            for _ in range(options.pairs):
                memory = train(options, folder, folder / "memory", [])
                disk = train(options, folder, folder / "disk", groups)
                if (folder / "memory").read_bytes() != (folder / "disk").read_bytes():
                    sys.exit("the models differ")
                firsts.append(memory[0] / disk[0])
                laters.append(sum(memory[1:]) / max(1e-9, sum(disk[1:])))
                print(f"memory {memory} disk {disk} s", flush=True)
        finally:
            for group in groups:
                group.rmdir()
    print(f"from disk / from memory, median of {options.pairs}: first epoch {statistics.median(firsts):.2f}, "
          f"later epochs {statistics.median(laters):.2f} of the speed")


if __name__ == "__main__":
    main()

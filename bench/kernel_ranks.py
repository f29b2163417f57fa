#!/usr/bin/env python3
"""A user kernel by ranks of one thread each, beside one process with as many threads.

    bench/kernel_ranks.py [build/quern] [--ranks 2] [--repeats 5]

The kernels are a picture of which the upper half costs some 50 times more than the lower one; the
same with one rank that is stopped for half of the time; and a map that costs little. The bytes are
compared with those of one process. Times are those of the report, in turn, medians. `bound` is W/S
over T: 100 % means no waiting.
"""

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KERNEL = """#include <quern/kernel_file.h>
INDEX(y, x); EXTENT(height, width); SCALAR(int, upper, 20000); SCALAR(int, lower, 400);
OUTPUT(double, s); SUM(double, all);
KERNEL {
    double v = x;
    for (int k = 0; k < (y < height / 2 ? upper : lower); k++) v = v * 0.999 + y;
    s = v; all = v;
}
"""
CHEAP = """#include <quern/kernel_file.h>
INDEX(i); OUTPUT(double, s); SUM(double, all);
KERNEL { const double v = sqrt(i + 0.5); s = v; all = v; }
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def delay(process, stop):
    """Every 20 ms the process is stopped for 10 ms."""
    while not stop.wait(0.01):
        for number in (signal.SIGSTOP, signal.SIGCONT):
            if process.poll() is None:
                process.send_signal(number)
            time.sleep(0.01 if number == signal.SIGSTOP else 0)


def run(folder, args, words, count, threads, slow=False):
    """The report, and the bytes of the output."""
    base = [str(args.quern), "run", *words, "--out", "s=s.npy", "--json", "--threads", str(threads)]
    meet = ["--meet", f"127.0.0.1:{free_port()}", "--ranks", str(count)]
    ranks = [subprocess.Popen(base + (meet + ["--rank", str(r)] if count > 1 else []), cwd=folder,
                              stdout=subprocess.PIPE, text=True) for r in range(count)]
    stop = threading.Event()
    helper = threading.Thread(target=delay, args=(ranks[-1], stop)) if slow else None
    if helper:
        helper.start()
    said = [p.communicate()[0] for p in ranks]
    stop.set()
    if helper:
        helper.join()
    assert [p.returncode for p in ranks] == [0] * count
    return json.loads(said[0]), (folder / "s.npy").read_bytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("quern", nargs="?", default=ROOT / "build" / "quern", type=Path)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    args.quern = args.quern.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "k.c").write_text(KERNEL)
        (folder / "cheap.c").write_text(CHEAP)
        uneven = ["--kernel", "k.c", "--shape", "256x256"]
        cases = {
            "uneven, one process": (uneven, 1, args.ranks, False),
            "uneven, ranks": (uneven, args.ranks, 1, False),
            "uneven, a slow rank": (uneven, args.ranks, 1, True),
            "cheap, one process": (["--kernel", "cheap.c", "--shape", "4000000"], 1, args.ranks, False),
            "cheap, ranks": (["--kernel", "cheap.c", "--shape", "4000000"], args.ranks, 1, False)}
        wanted = {}
        for words, _, _, _ in cases.values():
            wanted[words[1]] = run(folder, args, words, 1, 1)[1]
        found = {name: [] for name in cases}
        for _ in range(args.repeats):
            for name, (words, *how) in cases.items():
                report, content = run(folder, args, words, *how)
                assert content == wanted[words[1]], f"{name}: other bytes"
                found[name].append(report)
        for name, reports in found.items():
            middle = statistics.median(r["seconds"] for r in reports)
            bound = statistics.median(r["bound_over_T"] for r in reports)
            shares = [statistics.median(r["ranks"][k]["items"] / r["items"] for r in reports)
                      for k in range(len(reports[0]["ranks"]))]
            print(f"{name:22} {1e3 * middle:9.1f} ms  bound {100 * bound:5.1f} %  shares "
                  + " ".join(f"{100 * s:.0f} %" for s in shares))


if __name__ == "__main__":
    main()

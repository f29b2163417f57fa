#!/usr/bin/env python3
"""Checks a GPU of this machine in at most ten minutes, and writes a report that can be sent.

    make gpu-check                              # the first GPU that training would take
    make gpu-check DEVICE=opencl:0              # another device of `quern devices`
    make gpu-check MINUTES=30                   # more time, for a slow device
    make gpu-check PYTHON=.venv-bench/bin/python  # a Python with PyTorch, to measure beside it
    python3 scripts/gpu_check.py --help

Needs the driver of the GPU, for CUDA also NVRTC, and Python 3.9 or newer without any package. What is
computed on the GPU is compared with the processor bit by bit. Each command has a time limit, and what
goes wrong is named and does not end the check. What does not fit into the time is not done, and the
verdict says so. Exit status: 0 nothing was wrong, 1 failed, 2 nothing to check, 130 stopped. The report,
gpu-check.txt, has no path, no name of the machine and none of the user.
"""

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if sys.version_info < (3, 9):
    sys.exit(f"gpu-check: Python {sys.version.split()[0]} is too old: 3.9 or newer is needed; name one: "
             "make gpu-check PYTHON=python3.11")
sys.path[:0] = [str(ROOT / folder) for folder in ("scripts", "tests", "bench/peers")]

import gpu_check_speed as speed  # noqa: E402
import gpu_check_steps as steps  # noqa: E402
import recipes  # noqa: E402
from gpu_check_run import Check, Scrub  # noqa: E402

SECONDS = 60  # of one command


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="", help="as `quern devices` names it [the first GPU]")
    parser.add_argument("--report", type=Path, default=ROOT / "gpu-check.txt", help="[gpu-check.txt]")
    parser.add_argument("--minutes", type=float, default=10, help="for all of it [10]")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for one command [60]")
    parser.add_argument("--steps", default="", help="only these, of " + ",".join(step[0] for step in steps.STEPS))
    parser.add_argument("--quick", action="store_true", help="a little of each step, to try the check itself")
    parser.add_argument("--program", default=str(ROOT / "build" / "quern"), help="[build/quern]")
    chosen = parser.parse_args()
    names = {step[0] for step in steps.STEPS}
    if not chosen.minutes >= 1:
        parser.error("--minutes: one or more")
    if unknown := set(filter(None, chosen.steps.split(","))) - names:
        parser.error(f"--steps: there is no step {', '.join(sorted(unknown))}")
    return chosen


def devices(check):
    """Rows of `quern devices`, and why kinds are absent; None when it does not answer."""
    done = check.quern("devices", "--json", "--measure", "none", limit=2 * check.limit, partly=True)
    if done.status != 0:
        print(f"gpu-check: quern devices {done.how_it_ended()}\n{done.last_lines()}")
        return None
    rows = done.rows()
    return ([row for row in rows if row["event"] == "device"],
            {row["kind"]: row["reason"] for row in rows if row["event"] == "absence"})


def choose(check, wanted):
    """The device to check, or None with a message that says what there is."""
    gpus = [row for row in check.devices if row["kind"] != "cpu"]
    if wanted:
        found = [row for row in gpus if row["id"] == wanted]
    else:
        found = [row for row in gpus if row["automatic"]] or [row for row in gpus if row["type"] != "CPU"]
    if found:
        return found[0]
    if wanted:
        print(f"gpu-check: there is no device {wanted} here" + (": " + ", ".join(row["id"] for row in gpus) if gpus else ""))
    else:
        print("gpu-check: there is no GPU here")
        for row in gpus:
            print(f"  {row['id']} is a {row['type']} and no GPU; DEVICE={row['id']} checks it all the same")
    for kind, reason in check.absent.items():
        print(f"  no {kind}: {reason}")
    return None


def prepare(chosen, folder):
    scrub = Scrub([(folder, "<scratch>"), (ROOT, "<quern>"), (Path.home(), "<home>"), (Path(sys.prefix), "<python>")])
    # Programs are compiled anew, so that this is checked too. Users' kernels by -O1: the processor's
    # speed does not matter, and the compiler takes less time.
    environment = {**os.environ, "QUERN_CACHE": str(folder / "cache"), "LC_ALL": "C", "NO_COLOR": "1",
                   "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    environment.pop("QUERN_RUNS", None)
    now = time.monotonic()
    return Check(program=str(Path(chosen.program).resolve()), device=chosen.device, folder=folder, report=chosen.report,
                 limit=chosen.seconds, deadline=now + 60 * chosen.minutes - 15, quick=chosen.quick, environment=environment,
                 scrub=scrub, ends=now + 60 * chosen.minutes, seconds=60 * chosen.minutes)


def begin_guard(check):
    """Ends the check where something hangs that has no time limit of its own, such as a disk."""
    def end():
        check.processes.kill_all()
        print(f"\ngpu-check: {check.judge('by its own time limit')}", flush=True)
        os._exit(1)

    guard = threading.Timer(check.seconds + 5, end)
    guard.daemon = True
    guard.start()
    return guard


def perform(check, chosen):
    """All steps; the exit status."""
    wanted = [step for step in steps.STEPS if not chosen.steps or step[0] in chosen.steps.split(",")]
    check.steps = len(wanted)
    used = speed.memory_used()
    for i, (name, title, seconds, work) in enumerate(wanted):
        check.perform(name, title, seconds, sum(step[2] for step in wanted[i + 1:]), work)
    after = speed.memory_used()
    if used and after:
        check.measured("memory of the GPUs in use, before and after", f"{used} and {after} MiB")
    print(f"\ngpu-check: {check.judge()}")
    return 1 if check.faults else 0 if any(step.passed for step in check.results) else 2


def main():
    chosen = options()
    if not os.access(chosen.program, os.X_OK):
        sys.exit(f"gpu-check: there is no program at {chosen.program}; build it with: make gpu-check")
    folder = Path(tempfile.mkdtemp(prefix="quern-gpu-check-"))
    check = prepare(chosen, folder)
    try:
        found = devices(check)
        if found is None:
            return 1
        check.devices, check.absent = found
        device = choose(check, chosen.device)
        if not device:
            return 2
        check.device = device["id"]
        check.facts.append(("checked", f"{device['id']}, {device['name']}, {device['platform']}, driver {device['driver']}"))
        print(f"gpu-check: {device['id']}, {device['name']}; at most {chosen.minutes:g} minutes, Ctrl-C stops it")
        guard = begin_guard(check)
        steps.usable.features = check.quern("version", partly=True).out
        check.files = recipes.make_data([check.program], folder)
        check.training = lambda: steps.small_training(check)
        check.begin_pace()
        status = perform(check, chosen)
        guard.cancel()
    except KeyboardInterrupt:
        check.processes.kill_all()
        if not check.results:
            return 130
        print(f"\ngpu-check: {check.judge('by Ctrl-C')}")
        status = 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"The report is in {chosen.report}. It has no path and no name of this machine or its user; read it, and "
          "please send it\nto the developers, also if all was right (docs/devices.md, \"Checking a GPU\").")
    return status


if __name__ == "__main__":
    sys.exit(main())

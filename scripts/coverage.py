#!/usr/bin/env python3
"""Which lines and branches the tests reach, by folder of docs/map.md: make coverage

Builds the preset `coverage`, runs each C test program once, two for each core at a time, and with
--pytest WORDS what `pytest WORDS` selects, and prints a table. The counts of earlier runs are kept until
--fresh. `--files FOLDER` prints the files of one folder as well.
"""

import argparse
import concurrent.futures
import gzip
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


# A program may take so many seconds; without counting and on an idle machine most take one.
PATIENCE = 600

# OpenCL compiles its kernels for minutes, and no line of the library waits for that: a program meets the
# other devices, and what asks for OpenCL finds no driver.
QUICK = {"QN_TEST_CASES": "1", "QN_TEST_STRIDE": "16381", "OCL_ICD_VENDORS": "/nonexistent"}

def run_program(program, env):
    """What there is to say about it: nothing, where it passes."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.Popen([program], cwd=folder, env=env, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            code = run.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)  # its ranks too
            run.wait()
            return f"took more than {PATIENCE} s and was ended; what it counted is lost"
    return "" if code in (0, 77) else f"failed with {code}"


def run_tests(build, words, everything):
    env = {**({} if everything else QUICK), **os.environ, "QN_SOURCE_DIR": str(ROOT), "QUERN": str(build / "quern")}
    programs = [p for p in (build / "tests").iterdir() if p.is_file() and os.access(p, os.X_OK)]
    # What waits for ranks and time limits begins first, beside what computes.
    programs.sort(key=lambda p: (not p.name.startswith(("cluster.", "tests.ranks", "team.")), p.name))
    with concurrent.futures.ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:
        work = {pool.submit(run_program, p, env): p.name for p in programs}
        for i, done in enumerate(concurrent.futures.as_completed(work), 1):
            if done.result():
                print(f"coverage: {work[done]} {done.result()}", file=sys.stderr)
            if i % 20 == 0 or i == len(programs):
                print(f"coverage: {i} of {len(programs)} C test programs have run", file=sys.stderr, flush=True)
    if words:
        subprocess.run([ROOT / ".venv" / "bin" / "python", "-m", "pytest", "-p", "no:cacheprovider", "-q",
                        *shlex.split(words)], cwd=ROOT, env=env)


def counts(build):
    """{source: ({line: reached}, {(line, branch): reached})}, of all objects that were run or not."""
    lines, branches = defaultdict(dict), defaultdict(dict)
    notes = sorted(str(p) for p in build.rglob("*.gcno"))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["gcov", "--json-format", "--branch-probabilities", "--preserve-paths", "--hash-filenames",
                        *notes], cwd=folder, capture_output=True)
        for path in Path(folder).glob("*.gcov.json.gz"):
            with gzip.open(path) as report:
                files = json.load(report)["files"]
            for file in files:
                name = os.path.relpath(os.path.join(ROOT, file["file"]), ROOT)
                if not name.startswith(("src/", "app/")) or name.endswith(("_test.c", "_test.h")):
                    continue
                for line in file["lines"]:
                    number = line["line_number"]
                    lines[name][number] = lines[name].get(number, False) or line["count"] > 0
                    for i, branch in enumerate(line["branches"]):
                        key = number, i
                        branches[name][key] = branches[name].get(key, False) or branch["count"] > 0
    return lines, branches


def part(reached):
    return f"{100 * sum(reached) / len(reached):6.1f} %" if reached else "      - "


def table(title, lines, branches, key):
    groups = defaultdict(list)
    for name in lines:
        groups[key(name)].append(name)
    width = max(map(len, [title, *groups]), default=0)
    print(f"{title:{width}}     lines  reached  branches  reached")
    for group, names in [*sorted(groups.items()), ("all", list(lines))]:
        some = [hit for n in names for hit in lines[n].values()]
        ways = [hit for n in names for hit in branches[n].values()]
        print(f"{group:{width}}  {len(some):8} {part(some)}  {len(ways):8} {part(ways)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build-coverage", help="the build's folder")
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs counted")
    parser.add_argument("--no-run", action="store_true", help="print what earlier runs counted")
    parser.add_argument("--pytest", default="", help="run these tests as well: 'tests/test_csv.py -k gz'")
    parser.add_argument("--files", default="", help="print the files of this folder too")
    parser.add_argument("--everything", action="store_true", help="all random cases, and kernels by OpenCL; "
                        "takes an hour")
    words = parser.parse_args()
    build = words.build.resolve()
    if not words.no_run:
        configure = ["cmake", "--preset", "coverage", "-B", str(build), "--log-level=WARNING"]
        if not (build / "CMakeCache.txt").exists() and subprocess.run(configure, cwd=ROOT).returncode:
            return 1
        if subprocess.run(["cmake", "--build", build, "--target", "quern-program", "tests"]).returncode:
            return 1
        if words.fresh:
            for path in build.rglob("*.gcda"):
                path.unlink()
        run_tests(build, words.pytest, words.everything)
    lines, branches = counts(build)
    if not lines:
        print(f"coverage: {build} has no counts; run without --no-run", file=sys.stderr)
        return 1
    table("folder", lines, branches, lambda name: str(Path(name).parent).removeprefix("src/"))
    if words.files:
        some = {n: lines[n] for n in lines if str(Path(n).parent).removeprefix("src/") == words.files.removeprefix("src/")}
        print()
        table("file", some, branches, lambda name: Path(name).name)
    return 0


if __name__ == "__main__":
    sys.exit(main())

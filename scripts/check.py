#!/usr/bin/env python3
"""What concerns some files, in seconds: make check FILE=src/data/columnar/parquet_pages.c

Builds the program, checks the layout of the files, and runs
- the C tests that include a header of the same name or have the name of the file, and where there is
  none those of its folder,
- the test scripts whose names begin as the file's does (parquet_pages.c: test_parquet*.py).
`--list` names them and runs nothing. `make test` runs everything.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv" / "bin" / "python"


def name_of(test):
    """src/base/error_test.c -> base.error, as CMake names it."""
    return re.sub(r"^src/|_test\.c$", "", str(test.relative_to(ROOT))).replace("/", ".")


def c_tests(file):
    """The C tests of a file."""
    if file.suffix == ".py":
        return []
    tests = sorted(ROOT.glob("src/**/*_test.c")) + sorted(ROOT.glob("tests/*_test.c"))
    if file in tests:
        return [file]
    header = f'"{file.with_suffix(".h").relative_to(ROOT / "src")}"' if ROOT / "src" in file.parents else None
    own = [t for t in tests if t.stem == f"{file.stem}_test"
           or (header and f"#include {header}" in t.read_text())]
    return own or [t for t in tests if t.parent == file.parent]


def scripts(file):
    """The test scripts of a file: those with the longest beginning of its name in theirs."""
    if file.suffix == ".py" and file.name.startswith("test_"):
        return [file]
    words = re.sub("^user_", "kernel_", file.stem).removesuffix("_command").removesuffix("_test").split("_")
    for count in range(len(words), 0, -1):
        start = "_".join(words[:count])
        for name in (start, f"{start}s", start.removesuffix("s")):
            found = sorted(ROOT.glob(f"tests/test_{name}.py")) + sorted(ROOT.glob(f"tests/test_{name}_*.py"))
            if found:
                return found
    return []


def run(*command):
    print("check:", *(str(c).replace(f"{ROOT}/", "") for c in command), flush=True)
    return subprocess.run([str(c) for c in command], cwd=ROOT).returncode == 0


def check(files, tests, names):
    layout = [f for f in files if f.suffix in (".c", ".h", ".inc", ".cl")]
    targets = ["quern-program", *(f"test.{name_of(t)}" for t in tests)]
    if tests:
        targets.append("fakes")
    well = not layout or run("clang-format", "--dry-run", "-Werror", *layout)
    if not run("cmake", "--build", "build", "--target", *targets):
        return False
    for test in tests:
        well &= run(ROOT / "build" / "tests" / name_of(test))
    return (not names or run(PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", *names)) and well


def main():
    parser = argparse.ArgumentParser(prog="check.py", description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="+", type=lambda name: (ROOT / name).resolve())
    parser.add_argument("--list", action="store_true", help="name the tests and run nothing")
    chosen = parser.parse_args()
    for file in chosen.file:
        if not file.is_file() or ROOT not in file.parents:
            sys.exit(f"check: {file} was not found; give its path from the top of the repository: src/base/error.c")
    tests = sorted({t for f in chosen.file for t in c_tests(f)})
    names = sorted({s for f in chosen.file for s in scripts(f)})
    for line in (*map(name_of, tests), *(str(s.relative_to(ROOT)) for s in names)):
        if chosen.list:
            print(line)
    if chosen.list:
        return
    well = check(chosen.file, tests, names)
    print(f"check: {len(tests)} C tests and {len(names)} test scripts:", "passed" if well else "FAILED")
    sys.exit(not well)


if __name__ == "__main__":
    main()

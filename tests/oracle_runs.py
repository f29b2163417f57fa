"""Runs of tests/oracle, for tests that compare the program with it."""

import os
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "oracle"))

import oracle  # noqa: E402


def run_oracle(arguments, output):
    """What it printed. A copy of this process runs it, because a new one would first load NumPy, which
    takes longer than many of the jobs."""
    said = output.with_suffix(".said")
    with open(said, "w+") as out:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.dup2(out.fileno(), 1)
                os.dup2(out.fileno(), 2)
                sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)
                sys.argv = ["oracle", *map(str, arguments), "-o", str(output)]
                oracle.main()
                code = 0
            except SystemExit as end:
                print(end)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        ended = os.waitpid(child, 0)[1]
        out.seek(0)
        text = out.read()
    assert ended == 0, text
    return text

"""Turns: as many tests compute at once as there are cores, and one more process for those that wait.

scripts/test.sh starts one process more than that and says in QUERN_TEST_TURNS how many turns there
are; without it everybody has one. A test takes a turn for as long as it runs, in the order of asking.
Tests marked `waits` need none: most of their time they wait for clocks, other programs or the network,
and nothing in them minds a busy machine.
"""

import contextlib
import fcntl
import os
import time

import builds


def _take(files):
    while True:
        for file in files:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return file
        time.sleep(0.002)


@contextlib.contextmanager
def turn():
    """Waits for a turn; it ends with the block, or with the process."""
    count = int(os.environ.get("QUERN_TEST_TURNS") or 0)
    if count == 0:
        yield
        return
    builds.CACHE.mkdir(parents=True, exist_ok=True)
    files = [open(builds.CACHE / f"turn-{i}.lock", "w") for i in range(count)]
    try:
        with open(builds.CACHE / "turns.lock", "w") as queue:
            fcntl.flock(queue, fcntl.LOCK_EX)
            held = _take(files)
        for file in files:
            if file is not held:
                file.close()
        yield
    finally:
        for file in files:
            file.close()

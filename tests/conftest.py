"""What every test of the command shares: the program, and a way to run it.

The program under test is the one that the environment variable QUERN names; without it, the
release build, which is brought up to date before the first test that needs it and is then named
by QUERN as well.
"""

import os
import re
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import builds  # noqa: E402  (needs the line above)

# These build for themselves what they need, or need no program.
NO_PROGRAM = {"test_hosts", "test_house", "test_lint", "test_units"}


# Their tests are long: whoever begins with them is not left alone with one in the end.
LONG = {"test_cuda", "test_image", "test_install", "test_lint", "test_mnist", "test_opencl",
        "test_units"}


def begin_signals():
    """What nohup or the & of a script leaves ignored would stay so in every program under test. Here
    it is heard and dropped, and programs begin with what is usual."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
                   signal.SIGUSR2, signal.SIGCHLD, signal.SIGALRM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())


def pytest_configure(config):
    begin_signals()
    # Worker processes inherit these, so all of them agree which builds are of this session.
    os.environ.setdefault("QUERN_TEST_SESSION", uuid.uuid4().hex)
    # Programs of devices are built once for all tests and kept from run to run, but not among the
    # user's own.
    for variable, folder in (("QUERN_CACHE", "programs"), ("POCL_CACHE_DIR", "pocl")):
        if variable not in os.environ:
            (builds.CACHE / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
            os.environ[variable] = str(builds.CACHE / folder)
    if "QUERN" not in os.environ:
        os.environ["QUERN"] = str(builds.directory("release") / "quern")
        os.environ["QUERN_TEST_BUILDS"] = "yes"


def pytest_collection_modifyitems(items):
    # A test that takes the program from the environment must not meet an old one or none.
    for item in items:
        if item.module.__name__ not in NO_PROGRAM and "quern" not in item.fixturenames:
            item.fixturenames.insert(0, "quern")
    items.sort(key=lambda item: item.module.__name__ not in LONG)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """With QUERN_TEST_COSTS=FILE: a line for each test, processor seconds and its name. What a loaded
    machine does to the seconds of a clock, it does not do to these."""
    before = os.times()
    yield
    after = os.times()
    if "QUERN_TEST_COSTS" in os.environ:
        with open(os.environ["QUERN_TEST_COSTS"], "a") as out:
            out.write(f"{sum(after[:4]) - sum(before[:4]):9.2f} {item.nodeid}\n")


# How a test says that it misses what scripts/setup.sh installs.
OBTAINABLE = re.compile(r"scripts/setup\.sh says how to get it")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    """Where scripts/setup.sh has installed everything, an engine that a test does not find is a fault
    of the test or of the set-up, and no reason to skip."""
    report = (yield).get_result()
    reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else ""
    if report.skipped and "QUERN_TEST_INSTALLED" in os.environ and OBTAINABLE.search(reason):
        report.outcome = "failed"
        report.longrepr = f"scripts/setup.sh has installed everything, but: {reason}"


@pytest.fixture(scope="session")
def quern():
    """The absolute path of the program, as a string."""
    if "QUERN_TEST_BUILDS" in os.environ:
        builds.ready("release")
    path = os.path.abspath(os.environ["QUERN"])
    if not os.access(path, os.X_OK):
        pytest.fail(f"there is no program at {path}", pytrace=False)
    return path


@pytest.fixture(scope="session")
def run_quern(quern):
    """run_quern("train", "--data", path, ...) -> CompletedProcess with text output.

    Fails the test when the exit status is not `status` (None: any), showing what was printed.
    """

    def run(*args, status=0, timeout=600, **kwargs):
        kwargs.setdefault("text", True)
        done = subprocess.run([quern, *map(str, args)], capture_output=True, timeout=timeout,
                              **kwargs)
        if status is not None and done.returncode != status:
            pytest.fail(f"quern {' '.join(map(str, args))}\nended with {done.returncode}, "
                        f"not {status}\n{done.stdout}\n{done.stderr}")
        return done

    return run

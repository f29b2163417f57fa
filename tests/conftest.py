"""What every test of the command shares: the program, and a way to run it.

The program under test is the one that the environment variable QUERN names; without it, the
release build, which is brought up to date before the first test that needs it and is then named
by QUERN as well.
"""

import contextlib
import fcntl
import gc
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import builds  # noqa: E402  (needs the line above)
import machine  # noqa: E402
import recipes  # noqa: E402

# These build for themselves what they need, or need no program.
NO_PROGRAM = {"test_hosts", "test_house", "test_lint", "test_store_server", "test_units"}


# Their tests are long: whoever begins with them is not left alone with one in the end.
LONG = {"test_cuda", "test_image", "test_install", "test_kernels_cuda", "test_lint", "test_mnist",
        "test_notebooks", "test_opencl", "test_platforms", "test_units"}

# Their tests mostly wait, for ranks that end, time limits and batch systems. They run beside the
# others, on workers of their own; the second half of the list takes about as long as the first.
WAITING = ["test_ranks", "test_joining", "test_hosts", "test_slurm", "test_kubernetes", "test_submit",
           "test_cluster_deaths", "test_cluster", "test_cluster_silence", "test_bad_launch",
           "test_interrupt", "test_launch"]

# C programs of test_units.py that wait like them. One worker has them all, after the second half: three
# side by side, which is what their names would give, leave a core without work.
WAITING_PROGRAMS = re.compile(r"test_program\[\w+-(cluster\.(death|rendezvous|transport)\b|tests\.ranks)")


def begin_signals():
    """What nohup or the & of a script leaves ignored would stay so in every program under test. Here
    it is heard and dropped, and programs begin with what is usual."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
                   signal.SIGUSR2, signal.SIGCHLD, signal.SIGALRM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())


# Folders of tests in memory: programs write their files through to the disk, for which most tests would
# wait longer than they compute. The number is that of the process that will remove the folder.
IN_MEMORY = "/dev/shm"
FOLDER = "pytest-in-memory-"
SPACE = 4 << 30


def is_spacious(place):
    """Whether files and programs of the tests have their place there, in memory that nobody uses."""
    try:
        there = os.statvfs(place)
        free = int(re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())[1]) << 10
    except (OSError, TypeError):
        return False
    return (os.access(place, os.W_OK) and not there.f_flag & (os.ST_NOEXEC | os.ST_RDONLY)
            and there.f_bavail * there.f_frsize > SPACE and free > 2 * SPACE)


def place_folders(config):
    """In memory, where there is capacity, and pytest was not told another place."""
    if config.option.basetemp is not None or not is_spacious(IN_MEMORY):
        return
    for old in Path(IN_MEMORY).glob(f"{FOLDER}*"):
        if not Path("/proc", old.name.removeprefix(FOLDER)).exists():
            shutil.rmtree(old, ignore_errors=True)
    config.option.basetemp = f"{IN_MEMORY}/{FOLDER}{os.getpid()}"


def pytest_sessionfinish(session, exitstatus):
    """What a failed test has left stays until the next run."""
    own = f"{IN_MEMORY}/{FOLDER}{os.getpid()}"
    if exitstatus == 0 and session.config.option.basetemp == own:
        shutil.rmtree(own, ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    gc.disable()
    place_folders(config)
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


def pytest_collection_modifyitems(config, items):
    # A test that takes the program from the environment must not meet an old one or none.
    names = long_variants(config, items)
    for item in items:
        if is_long(item) or item.nodeid.removeprefix("tests/") in names:
            item.add_marker(machine.LONG)
        if item.module.__name__ not in NO_PROGRAM and "quern" not in item.fixturenames:
            item.fixturenames.insert(0, "quern")
    items[:] = in_order(items)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """The tests and the modules that they need stay to the end: Python need not look through them for
    garbage again and again."""
    gc.freeze()
    gc.enable()


def long_variants(config, items):
    """The lines of tests/long_tests.txt. One that names no test of a file that was collected whole is an
    error: the test has another name now, and would run each time."""
    text = (Path(__file__).parent / "long_tests.txt").read_text()
    names = {line for line in text.splitlines() if line and not line.startswith("#")}
    found = {item.nodeid.removeprefix("tests/") for item in items}
    files = {name.partition("::")[0] for name in found}
    lost = sorted(n for n in names - found if n.partition("::")[0] in files)
    if lost and not any("::" in word for word in config.args):
        raise pytest.UsageError("tests/long_tests.txt names what is not a test: " + ", ".join(lost))
    return names


def is_long(item):
    """The thread sanitizer needs a build of its own and slows its programs down: together a tenth of
    the whole run's time."""
    values = item.callspec.params.values() if hasattr(item, "callspec") else []
    return any(isinstance(value, str) and value == "tsan" for value in values)


def in_order(items):
    """The order in which pytest-xdist shares the tests out: each worker begins with a run of the
    list. The last two begin with what waits, the others with what computes."""
    module = lambda item: item.module.__name__
    programs = [i for i in items if WAITING_PROGRAMS.match(i.name)]
    computing = sorted((i for i in items if module(i) not in WAITING and i not in programs),
                       key=lambda i: module(i) not in LONG)
    halves = WAITING[:len(WAITING) // 2], WAITING[len(WAITING) // 2:]
    waiting = [sorted((i for i in items if module(i) in half), key=lambda i: half.index(module(i)))
               for half in halves]
    waiting[1] += programs
    workers = max(3, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "3")))
    run = len(items) // workers
    others = workers - 2
    first, rest = computing[:others * run], computing[others * run:]
    filler = max(0, run - len(waiting[0]))
    return [*(item for i in range(others) for item in first[i::others]), *waiting[0], *rest[:filler],
            *waiting[1], *rest[filler:]]


@contextlib.contextmanager
def turn(item):
    """A test that computes takes one of QUERN_TEST_TURNS places; scripts/test.sh gives one more than
    there are cores, because tests also wait for files. It also begins where these are taken and the processor has little to do: some of them wait too."""
    turns = int(os.environ.get("QUERN_TEST_TURNS", "0"))
    if turns == 0 or item.module.__name__ in WAITING or WAITING_PROGRAMS.match(item.name):
        yield
        return
    builds.CACHE.mkdir(parents=True, exist_ok=True)
    places = [open(builds.CACHE / f"turn-{i}.lock", "w") for i in range(turns)]
    try:
        while not any(map(is_free, places)) and not is_idle():
            pass
        yield
    finally:
        for place in places:
            place.close()


def is_idle():
    """Whether more than a twentieth of the processor had nothing to do, or waited for a disk, in the last
    tenth of a second."""
    def times():
        with open("/proc/stat") as stat:
            return [int(word) for word in stat.readline().split()[1:9]]

    before = times()
    time.sleep(0.1)
    spent = [b - a for a, b in zip(before, times())]
    return sum(spent[3:5]) * 20 > sum(spent)  # idle, and waiting for a disk


def is_free(place):
    """Takes the place when nobody has it."""
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """Waits for the test's turn."""
    with turn(item):
        yield from costs(item)


def costs(item):
    """With QUERN_TEST_COSTS=FILE: a line for each test, its seconds of processor time, its seconds by
    the clock, its name, the worker and when it ended. A loaded machine changes the second
    much more than the first."""
    before = os.times()
    yield
    after = os.times()
    if "QUERN_TEST_COSTS" in os.environ:
        with open(os.environ["QUERN_TEST_COSTS"], "a") as out:
            out.write(f"{sum(after[:4]) - sum(before[:4]):9.2f} {after.elapsed - before.elapsed:9.2f} "
                      f"{item.nodeid} {os.environ.get('PYTEST_XDIST_WORKER', '')} "
                      f"{time.strftime('%H:%M:%S')}\n")


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
    with builds.alone("digits"):
        recipes.make_few_digits([path])
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

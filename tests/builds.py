"""The builds that the tests need, each made once in a session, whoever asks first.

`ready("asan")` configures the preset of that name, builds its program and returns its build directory;
`ready("asan", "tests")` builds that target of CMake as well. It skips the calling test, saying what is
missing, where a tool is not on this machine, and fails it with the end of the log where the build
fails. Several pytest processes may ask at the same time: a file lock lets one build and the others
wait. The time that this takes does not count against the timeout of the calling test.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import warnings
from pathlib import Path

import pytest

import groups

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "tests"
JOBS = str(len(os.sched_getaffinity(0)))

# The programs that a preset needs beside CMake and Ninja.
NEEDS = {
    "release": [],
    "debug": ["gcc"],
    "asan": ["gcc"],
    "tsan": ["gcc"],
    "clang": ["clang"],
    "clang-debug": ["clang"],
    "aarch64": ["aarch64-linux-gnu-gcc", "qemu-aarch64"],
    "aarch64-quick": ["aarch64-linux-gnu-gcc", "qemu-aarch64"],
    "armhf": ["arm-linux-gnueabihf-gcc", "qemu-arm"],
    "i386": ["i686-linux-gnu-gcc"],
    "musl": ["musl-gcc"],
    "riscv64": ["riscv64-linux-gnu-gcc", "qemu-riscv64"],
    "s390x": ["s390x-linux-gnu-gcc", "clang", "qemu-s390x"],
}

# What computes is built as the preset says. The rest, which is most, is not optimised: clang takes a
# third less time for the whole. With QUERN_LONG_TESTS=yes it is. An address that wraps around is found
# there and by the fuzz targets; the address sanitizer ends whoever uses it.
PLAIN = {} if "QUERN_LONG_TESTS" in os.environ else {"clang": "-O0",
                                                     "asan": "-O0;-fno-sanitize=pointer-overflow"}

# clang optimises what computes by -O1, which takes a third less time for the whole, and with
# QUERN_LONG_TESTS=yes by -O3, as the preset says.
LEVEL = {"clang": ["-DCMAKE_C_FLAGS_RELEASE=-O3 -DNDEBUG" if "QUERN_LONG_TESTS" in os.environ else
                   "-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG"]}

# Its other sources are the objects of the release build. What computes, without AVX-512 and AMX, and what
# depends on an option, is compiled by clang. The warnings of clang in all sources come from clang-tidy,
# and from the build for IBM Z, which is one of the long tests.
MIXED = [] if "QUERN_LONG_TESTS" in os.environ else ["clang"]
CROSS = {} if "QUERN_LONG_TESTS" in os.environ else {
    "s390x": ["-DQUERN_CROSS=clang", "-DCMAKE_C_FLAGS_RELEASE=-O0"]}

# Where nothing else depends on it, files are compiled in groups that read their headers once: half of
# the time of a build without optimisation. The release build compiles each alone.
GROUPED = [] if "QUERN_LONG_TESTS" in os.environ else [name for name in NEEDS if name != "release"]


def require(*programs):
    """Skip the calling test unless all these programs are on the path."""
    missing = [p for p in programs if shutil.which(p) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed; scripts/setup.sh says how to get it")


def directory(preset):
    return ROOT / ("build" if preset == "release" else f"build-{preset}")


@contextlib.contextmanager
def untimed():
    """The timer of pytest-timeout stands still: what is done here is not the test's own work."""
    left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)


@contextlib.contextmanager
def alone(name):
    """One process of this working copy at a time."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def ready(preset, *targets):
    """Build the program of `preset` and these targets unless this session already has; return its
    build directory. A target may be several, separated by blanks."""
    require("cmake", "ninja", *NEEDS[preset])
    if preset in MIXED:
        ready("release")
    stamp, log = CACHE / f"{preset}.json", CACHE / f"{preset}.log"
    session = os.environ["QUERN_TEST_SESSION"]  # set by conftest.py
    with untimed(), alone(preset):
        known = json.loads(stamp.read_text()) if stamp.exists() else {}
        if known.get("session") != session:
            known = {"session": session}
            log.unlink(missing_ok=True)
        for target in ("configure", "quern-program", *targets):
            if target in known:
                if not known[target]:  # the whole story once; whoever asks later gets one line
                    pytest.fail(f"the build '{preset}' failed at '{target}'; see "
                                f"{log.relative_to(ROOT)}", pytrace=False)
                continue
            known[target] = _build(preset, target, log)
            stamp.write_text(json.dumps(known))
            if not known[target]:
                tail = "\n".join(log.read_text(errors="replace").splitlines()[-60:])
                pytest.fail(f"the build '{preset}' failed at '{target}':\n{tail}", pytrace=False)
    return directory(preset)


def _build(preset, target, log):
    command = ["cmake", "--build", str(directory(preset)), "--parallel", JOBS, "--target", *target.split()]
    if target == "configure":
        command = _configure(preset, grouped=preset in GROUPED)
    with open(log, "a") as out:
        run = lambda words: subprocess.run(words, cwd=ROOT, stdout=out, stderr=out).returncode == 0
        if run(command):
            return True
        # A name that two files of a group share may be the reason.
        again = preset in GROUPED and run(_configure(preset, grouped=False)) and run(command)
        if again:
            warnings.warn(f"{preset}: a group of tests/groups.py did not compile; see {log}")
        return again


def _configure(preset, grouped):
    groups = _groups() if grouped else ""
    return ["cmake", "--preset", preset, "-DQUERN_WERROR=ON", f"-DQUERN_GROUPS={groups}",
            f"-DQUERN_PLAIN_FLAGS={PLAIN.get(preset, '')}", *LEVEL.get(preset, []), *CROSS.get(preset, []),
            f"-DQUERN_OBJECTS={directory('release') if preset in MIXED else ''}"]


def _groups():
    """The file with the groups, written once a session."""
    path, first = CACHE / "groups.txt", f"# {os.environ['QUERN_TEST_SESSION']}\n"
    with alone("groups"):
        if not path.exists() or not path.read_text().startswith(first):
            path.write_text(first + groups.lines())
    return path


def bench(name):
    """A program of bench/ of the release build."""
    return ready("release", f"bench.{name}") / "bench" / name


def beside(program, target, name):
    """What `target` makes in the build of `program`: "fake_gpu" of the target fakes, say."""
    path = Path(program).parent / name
    built = "QUERN_TEST_BUILDS" in os.environ
    if built:
        ready("release", target)
    if not path.is_file() and not list(path.glob("lib*.so*")):
        pytest.skip("no cmocka here; scripts/setup.sh says how to get it" if built else
                    f"{path} is not built; its target is {target}")
    return path


def runs_here(program):
    """Whether the kernel takes a program of that processor."""
    try:
        return subprocess.run([program, "version"], capture_output=True).returncode == 0
    except OSError:
        return False


def command(preset, program):
    """How to run a program of that build: under the emulator, or with addresses left in place."""
    for emulator in NEEDS[preset]:
        if emulator.startswith("qemu-"):
            return [emulator, str(program)]
    if preset == "i386" and not runs_here(program):
        require("qemu-i386")
        return ["qemu-i386", str(program)]
    if preset == "tsan" and shutil.which("setarch"):
        # The thread sanitizer's shadow does not fit every randomised address layout.
        quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if subprocess.run(["setarch", "-R", "true"], **quiet).returncode == 0:
            return ["setarch", "-R", str(program)]
    return [str(program)]


def environment(preset):
    """The environment for programs of that build: a sanitizer's finding ends the program."""
    env = dict(os.environ)
    env["QUERN"] = str(directory(preset) / "quern")
    env["QN_SOURCE_DIR"] = str(ROOT)
    env["ASAN_OPTIONS"] = "detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1"
    env["LSAN_OPTIONS"] = f"suppressions={ROOT / 'tests' / 'leaks.txt'}:print_suppressions=0"
    env["UBSAN_OPTIONS"] = "print_stacktrace=1"
    env["TSAN_OPTIONS"] = "halt_on_error=1:second_deadlock_stack=1"
    return env

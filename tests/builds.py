"""The builds that the tests need, each made once in a session, whoever asks first.

`ready("asan")` configures and builds the preset of that name and returns its build directory.
It skips the calling test, saying what is missing, where a tool is not on this machine, and fails
it with the end of the log where the build fails. Several pytest processes may ask at the same
time: a file lock lets one build and the others wait.
"""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

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
}

# What is built of a preset whose C tests nobody runs here: the program alone. What compilers say of
# the C tests themselves is seen elsewhere, gcc's warnings in "release" and clang's in "clang-debug".
TARGETS = {"debug": ["quern-program"], "clang": ["quern-program"]}


def require(*programs):
    """Skip the calling test unless all these programs are on the path."""
    missing = [p for p in programs if shutil.which(p) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed; scripts/setup.sh says how to get it")


def directory(preset):
    return ROOT / ("build" if preset == "release" else f"build-{preset}")


def ready(preset):
    """Build `preset` unless this session already has; return its build directory."""
    require("cmake", "ninja", *NEEDS[preset])
    CACHE.mkdir(parents=True, exist_ok=True)
    stamp, log = CACHE / f"{preset}.stamp", CACHE / f"{preset}.log"
    session = os.environ["QUERN_TEST_SESSION"]  # set by conftest.py
    with open(CACHE / f"{preset}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text().split()[0] != session:
            built = _build(preset, log)
            stamp.write_text(f"{session} {'built' if built else 'failed'}")
            if not built:  # the whole story once; whoever asks later gets one line
                tail = "\n".join(log.read_text(errors="replace").splitlines()[-60:])
                pytest.fail(f"the build '{preset}' failed:\n{tail}", pytrace=False)
        if stamp.read_text().split()[1] == "failed":
            pytest.fail(f"the build '{preset}' failed; see {log.relative_to(ROOT)}",
                        pytrace=False)
    return directory(preset)


def _build(preset, log):
    configure = ["cmake", "--preset", preset, "-DQUERN_WERROR=ON"]
    build = ["cmake", "--build", str(directory(preset)), "--parallel", JOBS]
    if preset in TARGETS:
        build += ["--target", *TARGETS[preset]]
    with open(log, "w") as out:
        for command in (configure, build):
            if subprocess.run(command, cwd=ROOT, stdout=out, stderr=out).returncode != 0:
                return False
    return True


def bench(name, target=None):
    """A program of bench/ of the release build, which does not make them by itself. `target`: what to
    build, "bench" for all of them."""
    folder = ready("release")
    with open(CACHE / "release.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(["cmake", "--build", str(folder), "--target", target or f"bench.{name}"],
                              capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
    return folder / "bench" / name


def command(preset, program):
    """How to run a program of that build: under the emulator, or with addresses left in place."""
    if preset == "aarch64":
        return ["qemu-aarch64", str(program)]
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

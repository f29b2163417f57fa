"""What the tests rest on: how programs begin, and what counts as a test's time."""

import os
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

import builds
import groups
import machine

IGNORED = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1]


def state_of_a_child():
    """(ignored, blocked) signals of a program as tests start them."""
    text = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True).stdout
    masks = {name: int(mask, 16) for name, mask in re.findall(r"^Sig(Ign|Blk):\s*(\w+)", text, re.M)}
    return [{n for n in signal.valid_signals() if mask >> (n - 1) & 1} for mask in
            (masks["Ign"], masks["Blk"])]


def test_programs_begin_with_the_usual_signals():
    ignored, blocked = state_of_a_child()
    assert not ignored & set(IGNORED) and not blocked


def spoil():
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, IGNORED)


def test_also_below_nohup():
    """A script's `make test &` leaves SIGINT ignored, nohup SIGHUP, and a wrapper may block more."""
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir",
                           builds.ROOT, f"{__file__}::{test_programs_begin_with_the_usual_signals.__name__}"],
                          capture_output=True, text=True, preexec_fn=spoil)
    assert done.returncode == 0, done.stdout


def test_folders_in_memory(tmp_path, monkeypatch):
    """What a run that has ended left there is removed, what one that goes on has is not."""
    import conftest
    monkeypatch.setattr(conftest, "IN_MEMORY", str(tmp_path))
    monkeypatch.setattr(conftest, "SPACE", 0)
    gone = subprocess.Popen(["true"])
    gone.wait()
    names = {pid: tmp_path / f"{conftest.FOLDER}{pid}" for pid in (gone.pid, os.getpid(), os.getppid())}
    for folder in names.values():
        (folder / "below").mkdir(parents=True)
    config = SimpleNamespace(option=SimpleNamespace(basetemp=None))
    conftest.place_folders(config)
    assert config.option.basetemp == str(names[os.getpid()])
    assert [folder.exists() for folder in names.values()] == [False, True, True]
    conftest.pytest_sessionfinish(SimpleNamespace(config=config), 1)
    assert names[os.getpid()].exists()
    conftest.pytest_sessionfinish(SimpleNamespace(config=config), 0)
    assert not names[os.getpid()].exists() and names[os.getppid()].exists()
    config.option.basetemp = "told"
    conftest.place_folders(config)
    assert config.option.basetemp == "told"
    assert not conftest.is_spacious(str(tmp_path / "absent")) and not conftest.is_spacious("/proc")
    monkeypatch.setattr(conftest, "SPACE", 1 << 62)
    assert not conftest.is_spacious(str(tmp_path))


def test_a_build_does_not_count_as_the_tests_time():
    """The timer of pytest-timeout is an interval timer; it goes on where it stopped."""
    def fail(*_):
        raise TimeoutError
    before = signal.signal(signal.SIGALRM, fail)
    left, _ = signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with builds.untimed():
            time.sleep(0.4)
        with pytest.raises(TimeoutError):
            time.sleep(20)
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("ability", machine.ABILITIES)
def test_what_is_forbidden_is_skipped_with_its_reason(ability, tmp_path, monkeypatch):
    for program in ("unshare", "mount"):
        fake = tmp_path / program
        fake.write_text(f"#!/bin/sh\necho '{program}: Operation not permitted' >&2\nexit 1\n")
        fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    machine.lacking.cache_clear()
    try:
        with pytest.raises(pytest.skip.Exception, match=r"not permitted|only root|not installed"):
            machine.need(ability)
    finally:
        machine.lacking.cache_clear()


@pytest.mark.parametrize("first, second, together", [
    ("static int f(void) { return 1; }", "int g(void) { return 2; }", True),
    ("static int f(void) { return 1; }", "static int f(void) { return 2; }", False),
    ("static int n;", "int g(int n) { return n; }", False),
    ("#define SIZE 3", "enum { SIZE = 4 };", False),
    ("#define SIZE 3", "int g(struct s *s) { return s->SIZE; }", False),
    ("static int f(void) { return 1; }", "int g(struct s *s) { return s->f; }", True),
    ("typedef struct { int a; } pair;", "typedef struct {\n    int b;\n} pair;", False),
    ('#include "one.h"', '#include "two.h"', False),
    ("static int read(void) { return 1; }", "#include <unistd.h>", False),
    ("#pragma pack(1)", "int g(void) { return 2; }", False),
])
def test_files_that_are_compiled_together(first, second, together, tmp_path, monkeypatch):
    """tests/groups.py: they share no name."""
    monkeypatch.setattr(groups, "ROOT", tmp_path)
    for name, text in {"src/a.c": first, "src/b.c": second, "src/one.h": "struct s { int a; };",
                       "src/two.h": "struct s { int b; };"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    assert (max(map(len, groups.groups("src"))) == 2) == together

"""Ctrl-C and its like in every command: exit code 130, nothing left behind, no death by the signal.

A library for LD_PRELOAD sends the signal at the worst moment: all bytes of a file are written, and
it is not yet in its place. What `quern train` does with a signal while it trains is in
test_interrupt.py.
"""

import hashlib
import os
import signal
import subprocess

import pytest

import midwrite
from test_interrupt import attentive

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
SOURCE = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int fsync(int file) {
    char link[40], path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    if (readlink(link, path, sizeof path - 1) > 0 && strstr(path, "/.quern-"))
        kill(getpid(), atoi(getenv("QUERN_TEST_SIGNAL")));
    return (int)syscall(SYS_fsync, file);
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return midwrite.compiled(tmp_path_factory.mktemp("signals"), "signals", SOURCE)


@pytest.fixture(scope="module")
def made(run_quern, tmp_path_factory):
    """A folder with a table and a model of it."""
    d = tmp_path_factory.mktemp("made")
    run_quern("data", "synth", "digits", "--items", 100, "--quiet", "-o", d / "t.csv")
    run_quern("train", "--data", d / "t.csv", "--epochs", 1, "--model", "dense 10 softmax",
              "--quiet", "-o", d / "m")
    return d


def interrupted(quern, args, cwd, number, **environment):
    """Runs a command that a signal ends; returns what it said."""
    done = subprocess.run([quern, *map(str, args)], cwd=cwd, preexec_fn=attentive, timeout=60,
                          capture_output=True, text=True,
                          env={**os.environ, "QUERN_TEST_SIGNAL": str(int(number)), **environment})
    assert done.returncode == 130, (done.returncode, done.stdout, done.stderr)
    return done


WRITERS = {
    "data-synth-csv": ["data", "synth", "digits", "--items", 10, "-o", "out.csv"],
    "data-synth-idx": ["data", "synth", "digits", "--items", 10, "-o", "out.idx", "--labels", "l"],
    "predict": ["predict", "{m}", "--data", "{t}", "-o", "out.csv"],
    "predict-to-stdout": ["predict", "{m}", "--data", "{t}"],
}


@pytest.mark.parametrize("number", SIGNALS, ids=lambda n: n.name)
@pytest.mark.parametrize("case", WRITERS)
def test_while_a_file_is_written(quern, made, library, tmp_path, case, number):
    words = {"{m}": made / "m", "{t}": made / "t.csv"}
    args = [words.get(word, word) for word in WRITERS[case]]
    interrupted(quern, args, tmp_path, number, LD_PRELOAD=str(library), TMPDIR=str(tmp_path))
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("args", [["train", "--data", "{t}", "--epochs", 1, "-o", "m"],
                                  ["replay", "{m}", "--data", "{t}", "-o", "again"]],
                         ids=lambda args: args[0])
def test_twice_while_a_model_is_written(quern, made, tmp_path, args):
    """The first signal is heard while the file is written; the second ends it there and then."""
    twice = midwrite.compiled(tmp_path, "twice", SOURCE.replace("kill(", "raise(SIGINT), kill("))
    folder = tmp_path / "here"
    folder.mkdir()
    words = {"{m}": made / "m", "{t}": made / "t.csv"}
    interrupted(quern, [words.get(word, word) for word in args], folder, signal.SIGINT,
                LD_PRELOAD=str(twice))
    assert not os.listdir(folder)


# Sends the signal at the first call of a kind; "load" is before main begins.
EARLY = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static void early(const char *where) {
    static int done;
    if (!done && strcmp(where, getenv("QUERN_TEST_WHERE")) == 0 && (done = 1))
        kill(getpid(), atoi(getenv("QUERN_TEST_SIGNAL")));
}
__attribute__((constructor)) static void begin(void) { early("load"); }
char *setlocale(int category, const char *name) {
    early("setlocale");
    return ((char *(*)(int, const char *))dlsym(RTLD_NEXT, "setlocale"))(category, name);
}
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *user) {
    early("pthread_create");
    return ((int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create"))(
        thread, attributes, run, user);
}
int open64(const char *path, int flags, int mode) {
    if (strstr(path, "t.csv"))
        early("data");
    if (strstr(path, "/.quern-") || strncmp(path, ".quern-", 7) == 0)
        early("temporary");
    return (int)syscall(SYS_openat, -100, path, flags, mode);
}
int open(const char *path, int flags, int mode) { return open64(path, flags, mode); }
"""


def test_a_signal_at_the_beginning(quern, made, tmp_path):
    """Before main begins it ends the process, which has made nothing yet. From then on it ends with 130."""
    early = midwrite.compiled(tmp_path, "early", EARLY)
    for where in "load", "setlocale", "data", "pthread_create", "temporary":
        for number in SIGNALS if where in ("load", "data") else SIGNALS[:1]:
            folder = tmp_path / f"{where}{int(number)}"
            folder.mkdir()
            done = subprocess.run([quern, "train", "--data", made / "t.csv", "--epochs", "1", "--threads", "2", "-o", "m"], cwd=folder,
                                  preexec_fn=attentive, timeout=60, capture_output=True, text=True,
                                  env={**os.environ, "QUERN_TEST_SIGNAL": str(int(number)), "QUERN_TEST_WHERE": where,
                                       "TMPDIR": str(folder), "QUERN_CACHE": str(folder / "cache"), "LD_PRELOAD": str(early)})
            assert done.returncode == (-number if where == "load" else 130), (where, number, done.returncode, done.stderr)
            assert not os.listdir(folder), (where, number)


# Sends the signal when the model is in its place: while the team of threads ends, or at the exit.
LATE = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void late(const char *where) {
    if (strcmp(where, getenv("QUERN_TEST_WHERE")) == 0 && access("m.csv", F_OK) == 0)
        raise(atoi(getenv("QUERN_TEST_SIGNAL")));
}
int pthread_join(pthread_t thread, void **result) {
    late("join");
    return ((int (*)(pthread_t, void **))dlsym(RTLD_NEXT, "pthread_join"))(thread, result);
}
__attribute__((destructor)) static void end(void) { late("exit"); }
"""


@pytest.mark.parametrize("where, args", [
    ("join", ["train", "--data", "{t}", "--epochs", 1, "--threads", 2, "-o", "m.csv"]),
    ("exit", ["train", "--data", "{t}", "--epochs", 1, "-o", "m.csv"]),
    ("join", ["replay", "{m}", "--data", "{t}", "--threads", 2, "-o", "m.csv"]),
    ("exit", ["predict", "{m}", "--data", "{t}", "-o", "m.csv"]),
    ("exit", ["data", "synth", "digits", "--items", 10, "-o", "m.csv"]),
], ids=lambda value: value if isinstance(value, str) else value[0])
def test_a_signal_after_the_result(quern, made, tmp_path, args, where):
    """What is written and reported is done: the code does not ask to do it again."""
    late = midwrite.compiled(tmp_path, "late", LATE)
    folder = tmp_path / "here"
    folder.mkdir()
    words = {"{m}": str(made / "m"), "{t}": str(made / "t.csv")}
    done = subprocess.run([quern, *(words.get(word, str(word)) for word in args)],
                          cwd=folder, preexec_fn=attentive, timeout=60, capture_output=True, text=True,
                          env={**os.environ, "QUERN_TEST_SIGNAL": str(int(signal.SIGTERM)),
                               "QUERN_TEST_WHERE": where, "LD_PRELOAD": str(late)})
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    assert os.listdir(folder) == ["m.csv"] and "interrupted" not in done.stderr
    if args[0] == "train":
        digest = hashlib.sha256((folder / "m.csv").read_bytes()).hexdigest()
        assert done.stdout.splitlines()[-1].split() == [digest, "m.csv"]


def test_the_old_file_stays(quern, made, library, tmp_path):
    (tmp_path / "out.csv").write_text("precious")
    interrupted(quern, WRITERS["data-synth-csv"], tmp_path, signal.SIGINT,
                LD_PRELOAD=str(library))
    assert os.listdir(tmp_path) == ["out.csv"]
    assert (tmp_path / "out.csv").read_text() == "precious"


@pytest.mark.parametrize("number", SIGNALS, ids=lambda n: n.name)
@pytest.mark.parametrize("command, engine", [("sbatch", "--slurm"), ("kubectl", "--kubernetes")])
def test_while_an_engine_takes_a_job(quern, tmp_path, command, engine, number):
    programs, jobs = tmp_path / "bin", tmp_path / "jobs"
    programs.mkdir()
    (programs / command).write_text(f"#!/bin/sh\nkill -{int(number)} $PPID\nsleep 1\n")
    (programs / command).chmod(0o755)
    image = ["--image", "quern"] if command == "kubectl" else []
    interrupted(quern, ["submit", engine, *image, "train", "-o", "m"], tmp_path, number,
                PATH=f"{programs}:{os.environ['PATH']}", QUERN_JOBS=str(jobs))
    assert not os.listdir(jobs)


def test_an_ignored_signal_stays_ignored(quern, library, tmp_path):
    """As nohup starts a program, and a shell its background jobs."""
    def ignore():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    done = subprocess.run([quern, *map(str, WRITERS["data-synth-csv"])], cwd=tmp_path,
                          preexec_fn=ignore, timeout=60, capture_output=True,
                          env={**os.environ, "QUERN_TEST_SIGNAL": str(int(signal.SIGHUP)),
                               "LD_PRELOAD": str(library)})
    assert done.returncode == 0 and os.listdir(tmp_path) == ["out.csv"]

"""Files that change while they are read: an error that names file and place, and no signal.

A library for LD_PRELOAD cuts the file short at a certain read of it, so that the test hits the
moment; another program would do the same at any time.
"""

import os
import re
import subprocess

import pytest

import midwrite

SOURCE = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Cuts the file at its middle when it is read, or mapped, for the time that QUERN_TEST_CUT says. */
static void look(int file) {
    static int left = -1;
    char link[40], path[4096] = "";
    if (left < 0)
        left = atoi(getenv("QUERN_TEST_CUT"));
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    if (readlink(link, path, sizeof path - 1) > 0 && strstr(path, "/victim") &&
        __atomic_sub_fetch(&left, 1, __ATOMIC_SEQ_CST) == 0)
        truncate(path, lseek(file, 0, SEEK_END) / 2);
}
ssize_t pread(int file, void *to, size_t size, off_t at) {
    look(file);
    return syscall(SYS_pread64, file, to, size, at);
}
ssize_t pread64(int file, void *to, size_t size, off_t at) { return pread(file, to, size, at); }
void *mmap(void *at, size_t size, int protection, int flags, int file, off_t from) {
    void *made = (void *)syscall(SYS_mmap, at, size, protection, flags, file, from);
    if (file >= 0)
        look(file);
    return made;
}
void *mmap64(void *a, size_t s, int p, int f, int d, off_t o) { return mmap(a, s, p, f, d, o); }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return midwrite.compiled(tmp_path_factory.mktemp("cut"), "cut", SOURCE)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Tables of some five megabytes: one of bytes, one of other numbers."""
    d = tmp_path_factory.mktemp("tables")
    (d / "bytes").write_text("".join(f"{i % 10},{i % 251},{i % 13},0,17\n" for i in range(350000)))
    (d / "floats").write_text("".join(f"{i % 10},{i}.25,{i % 13},-0.5\n" for i in range(280000)))
    return d


@pytest.mark.parametrize("kind", ["bytes", "floats"])
@pytest.mark.parametrize("when", [1, 2, 3, 6, 9, 12, 15])
def test_a_table_that_is_cut_short(quern, library, tables, tmp_path, kind, when):
    """In each of the passes: header, lines, bytes, floats."""
    victim = tmp_path / "victim.csv"
    victim.write_bytes((tables / kind).read_bytes())
    done = subprocess.run([quern, "data", "info", victim], capture_output=True, text=True,
                          timeout=60, env={**os.environ, "LD_PRELOAD": str(library),
                                           "QUERN_TEST_CUT": str(when)})
    if victim.stat().st_size == (tables / kind).stat().st_size:
        assert done.returncode == 0, done.stderr  # there were not so many reads
        return
    if done.returncode == 0:
        pytest.skip("the part that was cut off had been read for the last time")
    assert done.returncode == 1, done.stderr
    assert "the file became shorter while it was read" in done.stderr
    assert re.search(rf"at {victim}, byte \d+ of \d+", done.stderr)


def test_a_model_that_is_cut_short(quern, run_quern, library, tmp_path):
    run_quern("data", "synth", "digits", "--items", 60, "--quiet", "-o", tmp_path / "t.csv")
    run_quern("train", "--data", tmp_path / "t.csv", "--epochs", 1, "--model",
              "dense 600 tanh; dense 10 softmax", "--quiet", "-o", tmp_path / "victim")
    done = subprocess.run([quern, "predict", tmp_path / "victim", "--data", tmp_path / "t.csv"],
                          capture_output=True, text=True, timeout=60,
                          env={**os.environ, "LD_PRELOAD": str(library), "QUERN_TEST_CUT": "1"})
    assert done.returncode in (0, 1), (done.returncode, done.stderr)
    assert done.returncode == 0 or "victim" in done.stderr


def test_a_fifo_as_a_model_waits_for_its_writer(quern, run_quern, tmp_path):
    """As cat does; an interruption ends it."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "t.csv").write_text("1,2\n0,3\n" * 9)
    with subprocess.Popen([quern, "predict", tmp_path / "fifo", "--data", tmp_path / "t.csv"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as waiting:
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(1)
        waiting.terminate()
        assert waiting.wait(20) == 130

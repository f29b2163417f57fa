"""Files that change while they are read: an error that names file and place, and no signal.

A library for LD_PRELOAD cuts the file short, or writes to it, at a certain read of it, so that the
test hits the moment; another program would do the same at any time.
"""

import gzip
import io
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import tarfile
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import midwrite
import parquet_writer

SOURCE = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int is_victim(int file, char path[4096]) {
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t size = readlink(link, path, 4095);
    path[size > 0 ? size : 0] = 0;
    return size > 0 && strstr(path, "/victim") && !strstr(path, " (deleted)");
}
/* Writes the byte in the middle of the file again: its bytes stay, its times do not. */
static void touch(const char *path, int back) {
    char byte;
    struct stat info;
    const int file = open(path, O_RDWR);
    syscall(SYS_fstat, file, &info);
    syscall(SYS_pread64, file, &byte, 1, info.st_size / 2);
    pwrite(file, &byte, 1, info.st_size / 2);
    if (back)
        futimens(file, (struct timespec[]){info.st_atim, info.st_mtim});
    close(file);
}
static int is_to(const char *action) {
    const char *own = getenv("QUERN_TEST_ACTION");
    return strcmp(own ? own : "cut", action) == 0;
}
/* Cuts the file at its middle, or does what QUERN_TEST_ACTION says, when it is read, or mapped, for
 * the time that QUERN_TEST_CUT says. */
static void look(int file) {
    static int left = -1;
    char path[4096] = "", other[4200];
    if (left < 0)
        left = atoi(getenv("QUERN_TEST_CUT"));
    if (!is_victim(file, path) || __atomic_sub_fetch(&left, 1, __ATOMIC_SEQ_CST) != 0)
        return;
    snprintf(other, sizeof other, "%s.other", path);
    struct stat info;
    if ((is_to("cut") || is_to("cut by name")) && stat(path, &info) == 0)
        truncate(path, info.st_size / 2);
    if (is_to("write") || is_to("tick"))
        touch(path, 0);
    if (is_to("write back"))
        touch(path, 1);
    if (is_to("replace"))
        rename(other, path);
    if (is_to("move"))
        rename(path, other);
    if (is_to("chmod"))
        chmod(path, 0400);
    if (is_to("link"))
        link(path, other);
}
/* Kernels before 6.13 give times in ticks. Here a tick has 16 ms, the first stamp of the file has a
 * write, and another one comes in the same tick unless the program waits. */
static void cut_to_tick(struct timespec *t) { t->tv_nsec -= t->tv_nsec % 16000000; }
int clock_gettime(clockid_t clock, struct timespec *now) {
    const int bad = syscall(SYS_clock_gettime, clock == 5 ? 0 : clock, now);
    if (clock == 5) /* CLOCK_REALTIME_COARSE */
        cut_to_tick(now);
    return bad;
}
int fstat(int file, struct stat *info) {
    static int done;
    char path[4096];
    if (is_to("tick") && !done && is_victim(file, path) && (done = 1))
        touch(path, 0);
    const int bad = syscall(SYS_fstat, file, info);
    if (is_to("tick")) {
        cut_to_tick(&info->st_mtim);
        cut_to_tick(&info->st_ctim);
    }
    return bad;
}
int fstat64(int file, struct stat64 *info) { return fstat(file, (struct stat *)info); }
ssize_t read(int file, void *to, size_t size) {
    if (!is_to("cut"))
        look(file);
    return syscall(SYS_read, file, to, size);
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


def test_json_that_is_cut_short(quern, library, tmp_path):
    """Also where a cut leaves half an object, which is no JSON."""
    victim = tmp_path / "victim.jsonl"
    victim.write_text('{"y": 1, "a": "a text"}\n' * 50000 + '{"y": 1}\n')
    done = subprocess.run([quern, "data", "info", victim], capture_output=True, text=True, timeout=60, env={
        **os.environ, "LD_PRELOAD": str(library), "QUERN_TEST_ACTION": "cut by name", "QUERN_TEST_CUT": "1"})
    assert done.returncode == 1 and "the file became shorter while it was read" in done.stderr
    assert re.search(rf"at {victim}, byte \d+", done.stderr)


def test_a_model_that_is_cut_short(quern, run_quern, library, tmp_path):
    run_quern("data", "synth", "digits", "--items", 60, "--quiet", "-o", tmp_path / "t.csv")
    run_quern("train", "--data", tmp_path / "t.csv", "--epochs", 1, "--model",
              "dense 600 tanh; dense 10 softmax", "--quiet", "-o", tmp_path / "victim")
    done = subprocess.run([quern, "predict", tmp_path / "victim", "--data", tmp_path / "t.csv"],
                          capture_output=True, text=True, timeout=60,
                          env={**os.environ, "LD_PRELOAD": str(library), "QUERN_TEST_CUT": "1"})
    assert done.returncode in (0, 1), (done.returncode, done.stderr)
    assert done.returncode == 0 or "victim" in done.stderr


def catches(pid, number):
    """Whether the process has set a function for that signal."""
    return int(re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())[1], 16) >> (number - 1) & 1


def test_a_fifo_as_a_model_waits_for_its_writer(quern, run_quern, tmp_path):
    """As cat does; an interruption ends it."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "t.csv").write_text("1,2\n0,3\n" * 9)
    with subprocess.Popen([quern, "predict", tmp_path / "fifo", "--data", tmp_path / "t.csv"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as waiting:
        while not catches(waiting.pid, signal.SIGTERM):
            time.sleep(0.01)
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(0.3)
        waiting.terminate()
        assert waiting.wait(60) == 130


def rows():
    return np.arange(600, dtype=np.uint8).reshape(200, 3), np.arange(200, dtype=np.uint8) % 2


def saved(write, *arguments):
    out = io.BytesIO()
    write(out, *arguments)
    return out.getvalue()


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def pictures(run_quern, folder):
    """Eight PNG files in folders of classes."""
    run_quern("data", "synth", "digits", "--items", 8, "--quiet", "-o", folder / "all.tar")
    shutil.unpack_archive(folder / "all.tar", folder / "set", filter="data")
    return folder / "set"


def packed_columns(folder):
    values, labels = rows()
    parquet_writer.write(folder / "t.parquet", {"y": labels.astype(np.int32),
                                                "a": values[:, 0].astype(np.int32)}, 50)
    return (folder / "t.parquet").read_bytes()


def sheet(folder, mode):
    with sqlite3.connect(folder / "base") as base:
        base.execute(f"PRAGMA journal_mode = {mode}")
        base.execute("CREATE TABLE t (y INTEGER, a REAL)")
        base.executemany("INSERT INTO t VALUES (?, ?)", [(i % 2, i / 8) for i in range(200)])
    base.close()
    data = (folder / "base").read_bytes()
    (folder / "base").unlink()
    return data


@pytest.fixture(scope="module")
def kinds(run_quern, tmp_path_factory):
    """Name and bytes of a file of each kind."""
    d = tmp_path_factory.mktemp("kinds")
    values, labels = rows()
    text = "".join(f"{y},{a},{b},{c}\n" for y, (a, b, c) in zip(labels, values)).encode()
    (d / "t.csv").write_bytes(b"y,a,b,c\n" + text)
    run_quern("data", "convert", d / "t.csv", "-o", d / "t.libsvm", "--quiet")
    lines = b"".join(b'{"y":%d,"a":%d}\n' % (y, a) for y, a in zip(labels, values[:, 0]))
    folder = pictures(run_quern, d)
    tar, packed = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as out:
        out.add(folder, "set")
    with zipfile.ZipFile(packed, "w") as out:
        for path in sorted(folder.rglob("*.png")):
            out.writestr(str(path.relative_to(folder)), path.read_bytes())
    return {"victim.csv": text, "victim.csv.gz": gzip.compress(text), "victim.jsonl": lines,
            "victim.libsvm": (d / "t.libsvm").read_bytes(), "victim.idx": idx(values),
            "victim.npy": saved(np.save, values),
            "victim.npz": saved(lambda to: np.savez_compressed(to, x=values, y=labels)),
            "victim.db": sheet(d, "DELETE"), "victim.tar": tar.getvalue(),
            "victim.parquet": packed_columns(d), "victim.tar.gz": gzip.compress(tar.getvalue()), "victim.zip": packed.getvalue()}


def look(quern, library, path, action, *more, at=1):
    return subprocess.run([quern, "data", "info", path, *more], capture_output=True, text=True,
                          timeout=60, env={**os.environ, "LD_PRELOAD": str(library),
                                           "QUERN_TEST_ACTION": action, "QUERN_TEST_CUT": str(at)})


def refused(done, path):
    assert done.returncode == 1, (path, done.stdout, done.stderr)
    assert "the file changed while it was read" in done.stderr, (path, done.stderr)
    assert str(path) in done.stderr and "when nothing writes to it" in done.stderr


@pytest.mark.parametrize("action", ["write", "write back", "tick"])
def test_a_file_that_is_written_to(quern, kinds, library, tmp_path, action):
    """Whatever the kind, when a write comes after the first read: the size stays, and with "write
    back" the time of the last change too. "tick": the write comes in the same step of the kernel's
    clock as another one before the file was opened."""
    some = kinds if action == "write" else ["victim.csv", "victim.npz"]
    for name in some:
        path = tmp_path / name
        path.write_bytes(kinds[name])
        refused(look(quern, library, path, action), path)


def test_an_arrow_file_that_is_written_to(quern, library, tmp_path):
    feather = pytest.importorskip("pyarrow.feather")
    from pyarrow import table  # noqa: PLC0415
    values, labels = rows()
    path = tmp_path / "victim.arrow"
    feather.write_feather(table({"y": labels, "a": values[:, 0]}), str(path), "uncompressed")
    refused(look(quern, library, path, "write"), path)


def test_texts_that_are_written_to(quern, library, tmp_path):
    """Alone, as a row of tokens, and in archives, as documents and as items."""
    text = b"some words of a text" * 40
    tar, packed = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as out, zipfile.ZipFile(packed, "w") as files:
        for name in "a/1.txt", "b/2.txt":
            member = tarfile.TarInfo(name)
            member.size = len(text)
            out.addfile(member, io.BytesIO(text))
            files.writestr(name, text)
    corpus = ["--tokens", "bytes", "--context", "4"]
    for name, content, words in (("victim.txt", text, corpus), ("victim.txt.gz", gzip.compress(text), corpus),
                                 ("victim.bin", text, ["--tokens", "ids", "--context", "4"]),
                                 ("victim.tar", tar.getvalue(), corpus), ("victim.tar", tar.getvalue(), []),
                                 ("victim.zip", packed.getvalue(), corpus), ("victim.zip", packed.getvalue(), [])):
        (tmp_path / name).write_bytes(content)
        refused(look(quern, library, tmp_path / name, "write", *words), tmp_path / name)


def test_labels_and_pictures_that_are_written_to(quern, run_quern, library, tmp_path):
    values, labels = rows()
    for end, write in (("idx", idx), ("npy", lambda a: saved(np.save, a))):
        (tmp_path / "items").write_bytes(write(values))
        (tmp_path / f"victim.{end}").write_bytes(write(labels))
        refused(look(quern, library, tmp_path / "items", "write", "--labels",
                     tmp_path / f"victim.{end}"), tmp_path / f"victim.{end}")
    folder = pictures(run_quern, tmp_path)
    folder.rename(tmp_path / "victims")
    for at in (1, 8, 9, 16):  # heads, and then the pictures; a change is not a broken picture
        for more in [], ["--skip-broken"]:
            refused(look(quern, library, tmp_path / "victims", "write", *more, at=at),
                    tmp_path / "victims")


@pytest.mark.parametrize("action", ["replace", "move", "chmod", "link"])
def test_a_file_whose_bytes_stay(quern, kinds, library, tmp_path, action):
    """Programs that replace a file as a whole leave the bytes that are being read."""
    for name in "victim.csv", "victim.csv.gz", "victim.jsonl":
        path = tmp_path / name
        path.write_bytes(kinds[name])
        if action == "replace":
            (tmp_path / f"{name}.other").write_bytes(b"1,2\n")
        done = look(quern, library, path, action)
        assert done.returncode == 0, done.stderr
        assert re.search(r"^items +200$", done.stdout, re.M)
        assert action != "replace" or path.read_bytes() == b"1,2\n"


def test_a_database_in_its_mode_for_writers(quern, library, tmp_path):
    """SQLite gives one state of it while others write."""
    path = tmp_path / "victim.db"
    path.write_bytes(sheet(tmp_path, "WAL"))
    done = look(quern, library, path, "write")
    assert done.returncode == 0, done.stderr

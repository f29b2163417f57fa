"""Training from a table that memory does not hold: disks and other programs that disturb it.

A library for LD_PRELOAD fails calls for files of the cache folder, or changes such a file, while the
training reads it in large pieces (src/data/ahead/item_scan.h).
"""

import os
import resource
import subprocess
import tempfile
from pathlib import Path

import numpy
import pytest

import midwrite

@pytest.fixture
def tmp_path():
    """Not in memory, which may refuse to be read past the cache."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


SOURCE = r"""
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is(const char *what) { return strcmp(getenv("QUERN_TEST_DO"), what) == 0; }
static int path_of(int file, char *path) {
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t size = readlink(link, path, 4095);
    path[size > 0 ? size : 0] = 0;
    return strstr(path, getenv("QUERN_CACHE")) == path;
}
static void log_one(const char *letter) {
    const int log = open(getenv("QUERN_TEST_LOG"), O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (write(log, letter, 1) != 1)
        abort();
    close(log);
}
static void change(const char *path) {
    const int file = open(path, O_RDWR);
    if ((is("cut") || is("fail")) && truncate(path, 5000) != 0)
        abort();
    if (is("write") && pwrite(file, "changed", 7, 9000000) != 7)
        abort();
    if (is("touch"))
        futimens(file, NULL);
    close(file);
}
/* The file seems to have all its bytes, and some cannot be read. */
int stat(const char *path, struct stat *info) {
    const int result = (int)syscall(SYS_newfstatat, AT_FDCWD, path, info, 0);
    if (is("fail"))
        info->st_size = 1 << 30;
    return result;
}
int stat64(const char *path, struct stat64 *info) { return stat(path, (struct stat *)info); }
ssize_t pread(int file, void *to, size_t size, off_t at) {
    static int reads;
    char path[4096];
    if (!path_of(file, path))
        return syscall(SYS_pread64, file, to, size, at);
    const int direct = (syscall(SYS_fcntl, file, F_GETFL, 0) & O_DIRECT) != 0;
    log_one(direct ? "d" : "c");
    const int number = __atomic_add_fetch(&reads, 1, __ATOMIC_SEQ_CST);
    if (number == 20)
        change(path);
    errno = is("EIO") && number > 20 ? EIO : is("EINVAL") && direct ? EINVAL : 0;
    return errno ? -1 : syscall(SYS_pread64, file, to, size, at);
}
ssize_t pread64(int file, void *to, size_t size, off_t at) { return pread(file, to, size, at); }
int fcntl(int file, int what, ...) {
    char path[4096];
    va_list more;
    va_start(more, what);
    const long value = va_arg(more, long);
    va_end(more);
    if (what == F_SETFL && value & O_DIRECT && is("no direct") && path_of(file, path)) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_fcntl, file, what, value);
}
int fcntl64(int file, int what, ...) {
    va_list more;
    va_start(more, what);
    const long value = va_arg(more, long);
    va_end(more);
    return fcntl(file, what, value);
}
"""
ITEMS, FEATURES, MIB = 45000, 200, 1 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of 36 MB, and the library."""
    made = tmp_path_factory.mktemp("disk")
    numpy.save(made / "x.npy", numpy.random.default_rng(1).random((ITEMS, FEATURES), dtype=numpy.float32))
    numpy.save(made / "y.npy", numpy.arange(ITEMS, dtype=numpy.int32) % 3)
    midwrite.compiled(made, "disturb", SOURCE)
    return made


def little_memory():
    """Private memory for a third of the table; files that are mapped do not count, stacks do."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    resource.setrlimit(resource.RLIMIT_STACK, (MIB, MIB))
    resource.setrlimit(resource.RLIMIT_DATA, (64 * MIB, 64 * MIB))


@pytest.fixture
def train(quern, folder, tmp_path):
    def run(what, limit=little_memory):
        (tmp_path / "cache").mkdir(mode=0o700, exist_ok=True)
        env = {**os.environ, "QUERN_CACHE": str(tmp_path / "cache"), "QUERN_TEST_DO": what,
               "QUERN_TEST_LOG": str(tmp_path / "log"), "LD_PRELOAD": str(folder / "disturb.so")}
        words = [quern, "train", "--data", folder / "x.npy", "--labels", folder / "y.npy", "--model", "dense 3 softmax",
                 "--epochs", "2", "--batch", "200", "--threads", "1", "-o", tmp_path / "model"]
        return subprocess.run(words, env=env, preexec_fn=limit, capture_output=True, text=True, timeout=60)

    return run


@pytest.fixture
def model(tmp_path):
    """Takes the bytes of the model that was written."""
    return lambda: ((tmp_path / "model").read_bytes(), (tmp_path / "model").unlink())[0]


def log(tmp_path):
    return (tmp_path / "log").read_text() if (tmp_path / "log").exists() else ""


@pytest.mark.parametrize("what, reads", [("nothing", {"d"}), ("EIO", {"d"}), ("EINVAL", {"d", "c"}),
                                         ("no direct", {"c"}), ("touch", {"d"})])
def test_training_goes_on(train, model, tmp_path, what, reads):
    """Reading fails, the file system has no direct reading, or another process uses the entry: the same bytes."""
    done = train(what)
    assert done.returncode == 0, done.stderr
    assert set(log(tmp_path)) == reads
    from_disk = model()
    done = train("nothing", None)
    assert done.returncode == 0 and from_disk == model(), done.stderr


def test_the_file_changes(train, tmp_path):
    done = train("write")
    assert done.returncode == 1 and "the values of the table changed while they were used" in done.stderr, done.stderr
    assert f"at {tmp_path}/cache/" in done.stderr and "let no other program write" in done.stderr
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("what, told, remedy", [("cut", "became shorter", "run it again"),
                                                ("fail", "its disk failed", "QUERN_CACHE names another folder")])
def test_the_mapped_file_cannot_be_read(train, tmp_path, what, told, remedy):
    done = train(what)
    assert done.returncode == 1 and f"quern: {tmp_path}/cache/" in done.stderr, (done.returncode, done.stderr)
    assert told in done.stderr and "at byte" in done.stderr and remedy in done.stderr
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("folder_of, limit", [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/unified", "memory.max"),
                                              ("/sys/fs/cgroup", "memory.high"),
                                              ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")])
def test_a_control_group(quern, folder, folder_of, limit):
    """The limit of a real control group, of version 2 and 1, is the memory that decides."""
    group = Path(folder_of) / f"quern-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"a control group in {folder_of} that can be made ({error.strerror})")
    try:
        if not (group / limit).exists():
            pytest.skip(f"control groups with {limit} in {folder_of}")
        (group / limit).write_text(str(32 * MIB))
        done = subprocess.run([quern, "data", "info", folder / "x.npy", "--unlabelled", "--no-cache"],
                              preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid())),
                              capture_output=True, text=True, timeout=60)
    finally:
        group.rmdir()
    assert done.returncode > 0 and "takes 34.3 MiB" in done.stderr, done.stderr
    assert f"at {folder}/x.npy" in done.stderr and "leave --no-cache out" in done.stderr

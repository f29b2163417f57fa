"""Rank 0 stops itself (SIGSTOP) in the middle of writing a file: all of the file's bytes are there, and
it is not yet in its place. Whoever watches from outside may come too late for that.

    environment = midwrite.environment(library, folder, 2)   # at the second file in that folder
    ... start ranks with it ...
    wait until midwrite.stopped(pid)
"""

import os
import subprocess
from pathlib import Path

import builds

# For libraries for LD_PRELOAD that change what rank 0 does.
IS_RANK_0 = r"""
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_rank_0(void) {
    static const char words[] = "\0--rank\0000";
    static const char *const launched[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof launched / sizeof *launched; i++)
        if (getenv(launched[i]))
            return strcmp(getenv(launched[i]), "0") == 0;
    char line[65536];
    const int file = open("/proc/self/cmdline", O_RDONLY);
    const ssize_t size = read(file, line, sizeof line);
    close(file);
    return size > 0 && memmem(line, (size_t)size, words, sizeof words);
}
"""

SOURCE = IS_RANK_0 + r"""
int fsync(int file) {
    static int left = -1;
    char link[40], path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    if (left < 0)
        left = is_rank_0() ? atoi(getenv("QUERN_TEST_STOP_AT")) : 0;
    if (left > 0 && readlink(link, path, sizeof path - 1) > 0 && strstr(path, "/.quern-") &&
        strstr(path, getenv("QUERN_TEST_STOP_IN")) == path && --left == 0)
        kill(getpid(), SIGSTOP);
    return (int)syscall(SYS_fsync, file);
}
"""


def compiled(folder, name, source):
    """Compiles a library into that folder."""
    builds.require("cc")
    made = Path(folder) / f"{name}.so"
    subprocess.run(["cc", "-w", "-D_GNU_SOURCE", "-shared", "-fPIC", "-x", "c", "-o", made, "-"],
                   check=True, input=source, text=True)
    return made


def library(folder):
    return compiled(folder, "midwrite", SOURCE)


def environment(library, folder, number=1):
    """What rank 0 needs to stop at its file of that number in the folder; others go by."""
    return {"LD_PRELOAD": str(library), "QUERN_TEST_STOP_IN": os.path.realpath(folder),
            "QUERN_TEST_STOP_AT": str(number)}


def stopped(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except FileNotFoundError:
        return False

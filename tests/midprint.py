"""Rank 0 stops itself (SIGSTOP) right before or right after it writes a line with some text to its
standard output. Whoever watches the output from outside comes too late for that.

    environment = midprint.environment(library, "before", '"event":"end"')
    ... start ranks with it ...
    wait until midwrite.stopped(pid)
"""

import subprocess
from pathlib import Path

import builds

# A library for LD_PRELOAD.
SOURCE = r"""
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_rank_0(void) {
    static const char words[] = "\0--rank\0000";
    char line[65536];
    const int file = open("/proc/self/cmdline", O_RDONLY);
    const ssize_t size = read(file, line, sizeof line);
    close(file);
    return size > 0 && memmem(line, (size_t)size, words, sizeof words);
}

ssize_t write(int file, const void *bytes, size_t size) {
    const char *text = getenv("QUERN_TEST_PRINT"), *when = getenv("QUERN_TEST_PRINT_WHEN");
    const int hit = file == 1 && memmem(bytes, size, text, strlen(text)) && is_rank_0();
    if (hit && strcmp(when, "before") == 0)
        kill(getpid(), SIGSTOP);
    const ssize_t put = syscall(SYS_write, file, bytes, size);
    if (hit && strcmp(when, "after") == 0)
        kill(getpid(), SIGSTOP);
    return put;
}
"""


def library(folder):
    """Compiles it into that folder."""
    builds.require("cc")
    made = Path(folder) / "midprint.so"
    subprocess.run(["cc", "-w", "-D_GNU_SOURCE", "-shared", "-fPIC", "-x", "c", "-o", made, "-"],
                   check=True, input=SOURCE, text=True)
    return made


def environment(library, when, text):
    """What rank 0 needs to stop "before" or "after" it writes that text; others go by."""
    return {"LD_PRELOAD": str(library), "QUERN_TEST_PRINT": text, "QUERN_TEST_PRINT_WHEN": when}

"""Rank 0 stops itself (SIGSTOP) right before or right after it writes a line with some text to its
standard output. Whoever watches the output from outside comes too late for that.

    environment = midprint.environment(library, "before", '"event":"end"')
    ... start ranks with it ...
    wait until midwrite.stopped(pid)
"""

import midwrite

# A library for LD_PRELOAD.
SOURCE = midwrite.IS_RANK_0 + r"""
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
    return midwrite.compiled(folder, "midprint", SOURCE)


def environment(library, when, text):
    """What rank 0 needs to stop "before" or "after" it writes that text; others go by."""
    return {"LD_PRELOAD": str(library), "QUERN_TEST_PRINT": text, "QUERN_TEST_PRINT_WHEN": when}

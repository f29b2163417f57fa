#include "whole_output.h"
#include "interrupt.h"
#include "message.h"
#include "output.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int copy_to_stdout(const char *path) {
    char block[65536];
    size_t n;
    FILE *file = fopen(path, "rb");
    if (!file)
        return message_fail(QN_IO, strerror(errno), path, "");
    while ((n = fread(block, 1, sizeof block, file)) > 0)
        if (fwrite(block, 1, n, stdout) != n) {
            output_lost(errno); /* reported when the program ends */
            break;
        }
    fclose(file);
    return -1;
}

int whole_output(whole_output_writer *write, const void *user) {
    const char *base = getenv("TMPDIR");
    char folder[4096], path[4200];
    int length = snprintf(folder, sizeof folder, "%s/quern-XXXXXX", base && *base ? base : "/tmp");
    interrupt_hold();
    const char *made = length < (int)sizeof folder ? mkdtemp(folder) : NULL;
    snprintf(path, sizeof path, "%s/output", folder);
    if (made)
        interrupt_removes(path, folder);
    interrupt_release();
    if (!made)
        return message_fail(QN_IO, "cannot make a folder for the output", base ? base : "/tmp",
                            "set TMPDIR, or name a file with -o");
    int code = write(user, path);
    if (code < 0)
        code = copy_to_stdout(path);
    unlink(path);
    rmdir(folder);
    interrupt_removes(NULL, NULL);
    return code;
}

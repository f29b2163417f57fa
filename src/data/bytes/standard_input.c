#include "data/bytes/standard_input.h"

#include "base/files/write_whole.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 16 };

static qn_status refuse(const char *what, qn_error *err) {
    qn__fail(err, QN_INPUT, "%s", what);
    qn__at(err, QN__STANDARD_INPUT_SHOWN);
    return qn__remedy(err, QN_INPUT, "pipe or redirect a file into it, or name the file");
}

/* A new file without a name: nothing is left behind, whatever happens. */
static int make_file(void) {
    char path[4096];
    const char *base = getenv("TMPDIR");
    const int size =
        snprintf(path, sizeof path, "%s/.quern-input-XXXXXX", base && *base ? base : "/tmp");
    if (size >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    const int file = mkostemp(path, O_CLOEXEC);
    if (file >= 0)
        unlink(path);
    return file;
}

static qn_status copy(int file, qn_error *err) {
    char bytes[PIECE];
    for (;;) {
        const ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return qn__fail_errno(err, "read", QN__STANDARD_INPUT_SHOWN);
        if (got == 0)
            break;
        if (qn__write_whole(file, bytes, (size_t)got) != 0) {
            qn__fail_errno(err, "keep", QN__STANDARD_INPUT_SHOWN);
            return qn__remedy(err, QN_IO, "set TMPDIR to a folder with more space, or name a file");
        }
    }
    return lseek(file, 0, SEEK_SET) == 0 ? QN_OK
                                         : qn__fail_errno(err, "read", QN__STANDARD_INPUT_SHOWN);
}

/* The pipe has ended. A later call finds the copy in its place, with a position that nobody moves.
 */
static void put_in_place(int file) {
    char path[32];
    snprintf(path, sizeof path, "/dev/fd/%d", file);
    const int again = open(path, O_RDONLY | O_CLOEXEC);
    if (again < 0)
        return;
    (void)dup2(again, STDIN_FILENO);
    close(again);
}

qn_status qn__standard_input_open(int *file, qn_error *err) {
    struct stat info;
    *file = -1;
    if (fstat(STDIN_FILENO, &info) != 0)
        return refuse("the input is closed", err);
    if (S_ISDIR(info.st_mode))
        return refuse("the input is a folder", err);
    if (isatty(STDIN_FILENO))
        return refuse("the input is a terminal, and data was expected", err);
    /* Opened anew, because a shared position would move under the program that gave it. */
    if (S_ISREG(info.st_mode) && lseek(STDIN_FILENO, 0, SEEK_CUR) == 0)
        *file = open("/dev/stdin", O_RDONLY | O_CLOEXEC);
    if (*file >= 0)
        return QN_OK;
    *file = make_file();
    if (*file < 0) {
        qn__fail_errno(err, "make a file for", QN__STANDARD_INPUT_SHOWN);
        return qn__remedy(err, QN_IO, "set TMPDIR to a folder that can be written, or name a file");
    }
    const qn_status status = copy(*file, err);
    if (status == QN_OK) {
        put_in_place(*file);
        return QN_OK;
    }
    close(*file);
    *file = -1;
    return status;
}
